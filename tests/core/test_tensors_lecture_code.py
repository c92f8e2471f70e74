"""The lecture's own program on tensors, in words of our own: every idiom of it is read, and says what torch says."""

from __future__ import annotations

import pytest

from core.lecture.catalogue import CLAIMS
from core.tensors.examples.lecture import PROGRAM
from core.tensors.tracing.trace import follow
from core.views.tensors.text import headline, kept_bytes, passed_over, unread
from tests.every import every

OTHERS: dict[str, str] = {
    "sampling": "p = torch.tensor([0.1, 0.2, 0.7])\ni = torch.multinomial(p, 2)\nassert i.shape == (2,)\n"
    "rows, = torch.where(p > 0.15)\nassert rows.tolist() == [1, 2]",
    "optimiser in place": "p = torch.zeros(3)\ng = torch.ones(3)\np.add_(g, alpha=-0.1)\n"
    "mask = torch.ones(2, dtype=bool)\nsizes = [i * 2 for i in range(3)]\nsizes",
    "a conditional": "device = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
    "x = torch.ones(2, device=device)\nx.device",
}
"""Further idioms of the notes → a program of them."""

READ = {**{part.title: part.source for part in PROGRAM}, **OTHERS}


def test_every_part_names_claims_of_the_lecture() -> None:
    assert len({part.title for part in PROGRAM}) == len(PROGRAM)
    assert all(part.claims and set(part.claims) <= set(CLAIMS) for part in PROGRAM)
    lines = [(part.source.splitlines(), number) for part in PROGRAM for number in part.claims.values()]
    assert all(1 <= number <= len(source) and source[number - 1].strip() for source, number in lines)


@every("name", list(READ))
def test_the_lecture_is_read_as_it_stands(name: str) -> None:
    run = follow(READ[name], (2, 3), dtype="float32")
    assert run.unread is None, (name, run.unread)
    assert run.refusal is None, (name, run.last.error_message)
    assert all(fact.holds in (None, True) for fact in run.facts), (name, run.facts)
    assert not any("not worked out" in fact.value for fact in run.facts), (name, run.facts)
    assert not run.starts_with_x
    assert headline(run)[0]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("y = x.t()\nz = y.veiw(6)\nz + 1", 2, "Did you mean `view`?"),
        ("y = x.t()\nz = y +", 2, "not a complete expression"),
        ("y = x.t()\nimport os", 2, "only torch"),
        ("y = x.t()\nwhile x: pass", 2, "is not run here"),
        ("y = x.t()\nz = y\u0456", 2, "no place"),
        ("y = x.t()\nz = x.grad.t()", 2, "is None here"),
    ],
)
def test_a_refused_line_keeps_the_lines_before_it(text: str, line: int, words: str) -> None:
    run = follow(text, (2, 3), dtype="float32")
    assert [step.name for step in run.steps] == ["x", "y"]
    assert run.unread is not None
    assert run.unread.line == line
    assert words in unread(run)
    assert "The lines before it are shown." in unread(run)


def test_names_that_nothing_defines_are_asked_for() -> None:
    run = follow("x = torch.ones(B, D)\nw = torch.randn(D, K)\ny = x @ w", (2, 3), dtype="float32", given={"K": "5"})
    assert [(item.name, item.role, item.text) for item in run.asked] == [
        ("B", "number", "2"),
        ("D", "number", "8"),
        ("K", "number", "5"),
    ]
    assert run.last.layout.shape == (2, 5)


def test_a_function_is_called_with_what_its_names_suggest() -> None:
    text = "def attention(q, k, n_heads: int):\n    b, n, d = q.shape\n    s = q @ k.transpose(-2, -1)\n"
    run = follow(f"{text}    return s.softmax(-1) / n_heads", (2, 3), dtype="float32", given={"k": "2, 5, 8"})
    assert [(item.name, item.text) for item in run.asked] == [("q", "2, 3, 8"), ("k", "2, 5, 8"), ("n_heads", "2")]
    assert run.last.layout.shape == (2, 3, 5)


def test_annotations_are_held_against_shapes() -> None:
    run = follow("x: Float[Tensor, 'b d'] = torch.ones(2, 3)\ny: Int[Tensor, 'b e'] = torch.ones(4, 3)", (1,))
    assert [fact.holds for fact in run.facts] == [True, False]
    run = follow("x: Float[Tensor, 'b d'] = torch.ones(2, 3)\ny: Float[Tensor, '*b d'] = torch.ones(4, 2)", (1,))
    assert run.facts[1].value == "`d` was 3 before and is 2 here"


def test_devices_may_not_meet() -> None:
    run = follow("y = x.cuda()\nz = y + x", (2, 3), dtype="float32")
    assert (run[1].device, run[1].moved) == ("cuda:0", 24)
    assert "24 B move from cpu to cuda:0" in run[1].reason
    assert "same device" in run.last.error_message


def test_backward_without_a_scalar_says_so() -> None:
    run = follow("w = torch.ones(3, requires_grad=True)\n(w * 2).backward()", (1,))
    assert "only for scalar outputs" in run.last.error_message
    run = follow("x.sum().backward()", (2, 3), dtype="float32")
    assert "does not require grad" in run.last.error_message


def test_what_is_kept_and_what_has_a_gradient_is_said() -> None:
    run = follow(READ["A gradient by hand"], (1,))
    sentence, _ = headline(run)
    assert "`w.grad`" in sentence
    assert "12 B" in sentence
    assert "None at `x`" in sentence
    assert kept_bytes(run) == 12 + 4  # x, and pred_y - 5


def test_nothing_in_an_assertion_changes_the_program() -> None:
    run = follow("y = x.t()\nassert x.fill_(7) is None\nassert y.contiguous().numel() == 6\ny", (2, 3))
    assert [step.kind for step in run.steps] == ["start", "view", "write", "same"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y = x.t()\nassert y.shape == (2, 3)\nz = y.contiguous()", "**fails** on line 2: it is (3, 2)."),
        (
            "x: Float[Tensor, 'b d'] = torch.ones(2, 3)\ny: Float[Tensor, 'b e'] = torch.ones(4, 3)",
            "**fails** on line 2: `b` was 2 before and is 4 here.",
        ),
    ],
)
def test_what_fails_is_the_answer(text: str, words: str) -> None:
    sentence, detail = headline(follow(text, (2, 3)))
    assert sentence.endswith(words)
    assert "new storage" in detail


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("print(f'{x.view(7)}')\ny = x.t()", 1),
        ("y = x.t()\nprint(x.view(7))\ny", 2),
        ("assert x.view(7).dim() == 1\ny = x.t()", 1),
    ],
)
def test_what_torch_refuses_inside_a_question_ends_the_program(text: str, line: int) -> None:
    """As it does in Python."""
    run = follow(text, (2, 3))
    assert (run.last.kind, run.last.line) == ("refused", line)
    assert run.unread is None


def test_what_was_reached_of_a_question_stays() -> None:
    run = follow("print(torch.deg2rad(x.unsqueeze_(0)))\nprint(x.clone().softmax())\ny = x.t()", (3,), dtype="float32")
    assert [step.expression for step in run.steps][-1] == "x.t()"
    assert run.last.layout.shape == (3, 1)


def test_a_membership_that_torch_cannot_decide_is_said() -> None:
    run = follow("y = torch.ones(3)\nassert x.dim() in (1, y)", (2, 3))
    assert [fact.value for fact in run.facts if "ambiguous" in fact.value]


@pytest.mark.parametrize(
    ("given", "ends"),
    [
        ("std=0.02", True),
        ("0, 1, -3, 3", True),
        ("0, 1, 1, 2", True),
        ("0, 1e-6", True),
        ("0, 1, -1e9, -1", False),
        ("1e6, 1", False),
        ("64, 1", False),
    ],
)
def test_a_draw_that_would_not_end_is_refused(given: str, ends: bool) -> None:
    run = follow(f"w = torch.empty(64, 64)\nnn.init.trunc_normal_(w, {given})", (1,))
    assert (run.unread is None) == ends
    assert ends or "has hardly any" in run.unread.why  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    [
        "torch.multinomial(torch.ones(2, 3), 10**8, True)",
        "x.float().multinomial(num_samples=10**8, replacement=True)",
        "torch.normal(0.0, 1.0, (30000, 30000))",
        "torch.normal(0.0, 1.0, size=(30000, 30000))",
    ],
)
def test_large_draws_are_only_counted(text: str) -> None:
    run = follow(text, (2, 3))
    assert run.counted or run.unread is not None


def test_a_name_keeps_its_tensor_where_a_question_was_not_reached() -> None:
    run = follow("print(torch.multinomial(x.swapdims_(0, 1), torch.ones(2, 3), 2))\na1 = x\nx.t()", (2, 3))
    assert run.last.kind == "view"


@pytest.mark.parametrize("after", ["q.grad", "q.requires_grad", "print(q.is_leaf, q.grad_fn)", "v = q", "q * 2"])
def test_a_view_that_torch_has_cut_off_ends_nothing_else(after: str) -> None:
    """One of several views of a leaf that was written: torch keeps even its node to itself."""
    run = follow(
        f"w = torch.ones(2, 3, requires_grad=True)\nk, q = w.chunk(2, 1)\nnn.init.zeros_(q)\n{after}\nw.t()", (1,)
    )
    assert run.last.kind == ("refused" if "*" in after else "view")


def test_a_name_that_may_be_a_slip_says_so() -> None:
    assert "Did you mean `scores`?" in passed_over(follow("scores = x.t()\nscroes.view(6)", (2, 3)))
    assert "Did you mean" not in passed_over(follow("scores = x.t()\nother.view(6)", (2, 3)))
