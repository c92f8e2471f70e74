"""Programs as the lecture and people write them: presets, names asked for, starts, draws, and scripts of them."""

from __future__ import annotations

import random
import subprocess
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from core.lecture.catalogue import CLAIMS
from core.tensors.examples.lecture import PROGRAM
from core.tensors.examples.presets import LECTURE, PRESETS
from core.tensors.tracing.script import script
from core.tensors.tracing.trace import ELEMENT_DTYPES, follow, trace
from core.views.tensors.text import headline
from tests.core.test_tensors_gradients import kept_bytes
from tests.every import every
from tests.patience import PATIENCE_S

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
    assert not run.starts_with_x
    assert headline(run)[0]


def test_the_lecture_has_a_preset_for_every_claim() -> None:
    claims = [preset.claim for preset in LECTURE]
    assert claims == [f"T{n}" for n in range(1, 1 + len(claims))]
    last = {p.claim: trace(p.source, p.shape, dtype=p.dtype) for p in LECTURE}
    assert {claim for claim, run in last.items() if run.refusal} == {"T5"}
    assert [run.last.layout.offset for run in (last["T1"], last["T2"])] == [6, 5]
    assert {step.storage for step in last["T3"]} == {0}
    assert last["T4"].last.values == (100, 3, 1, 4, 2, 5)
    assert last["T6"].last.storage == 1
    assert (last["T7"].bytes_copied, last["T9"].bytes_copied) == (96, 48)
    assert (last["T8"].last.kind, last["T8"].last.is_contiguous) == ("view", False)
    assert len({step.layout for step in last["T10"].steps[2:]}) == 1
    assert last["T10"].bytes_copied == 0
    assert set(last["T11"].last.values) == {0}
    assert last["T12"].last.values == (1, 1, 1, 0, 1, 1, 0, 0, 1)
    assert last["T13"].last.layout.shape == (4, 8, 16, 2)


def test_six_lines_of_attention_copy_once_and_make_two_products() -> None:
    (one,) = (preset for preset in PRESETS if preset.group == "programs")
    run = trace(one.source, one.shape, dtype=one.dtype)
    assert run.refusal is None
    assert run.last.line == 6
    assert [step.operation for step in run if step.bytes_allocated] == ["x", "matmul", "softmax", "matmul", "reshape"]
    assert all(step.storage == 0 for step in run if step.line < 5)


@every(
    ("text", "line", "why"),
    [
        ("y = x.t()\nz = y.veiw(6)\nz + 1", 2, "AttributeError: 'Tensor' object has no attribute 'veiw'"),
        ("y = x.t()\nz = y +", 2, "SyntaxError: invalid syntax"),
        ("y = x.t()\nz = 1 / 0", 2, "ZeroDivisionError: division by zero"),
    ],
)
def test_an_error_of_python_keeps_what_ran_before_it(text: str, line: int, why: str) -> None:
    run = follow(text, (2, 3), dtype="float32")
    assert [step.name for step in run.steps if step.name] == ([] if "SyntaxError" in why else ["x", "y"])
    assert run.unread is not None
    assert (run.unread.line, run.unread.why) == (line, why)


def test_prompts_and_fences_are_no_part_of_a_program() -> None:
    run = follow("```python\n>>> y = x.t()\n>>> y.shape\ntorch.Size([3, 2])\n```", (2, 3))
    assert [step.source for step in run] == ["x", ".t()"]
    assert run.facts[0].value == "torch.Size([3, 2])"


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


def test_what_is_kept_for_a_gradient_is_counted() -> None:
    assert kept_bytes(follow(READ["A gradient by hand"], (1,))) == 12 + 4  # x, and pred_y - 5


def test_nothing_in_an_assertion_changes_the_program() -> None:
    run = follow("y = x.t()\nassert x.fill_(7) is not None\nassert y.contiguous().numel() == 6\ny", (2, 3))
    assert [step.kind for step in run.steps] == ["start", "view", "write", "same"]


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


REAL = (
    '"""Attention – by hand."""\n_, *rest = x.shape\nq, k, v = x[0], x[1], x[2]\nz = q.reshape(-1, rest[-1])',
    "q, k, v = x.unbind(0)\n*_, d = q.shape\nk, q = q, k\nz = (q * d).reshape(d, -1)",
    "q, k, v = x.split(1)\nn, z = q.numel(), k.transpose(0, -1)\nz = z.reshape(n)",
)


@every("seed", range(12))
@every("source", REAL)
def test_names_are_bound_as_in_python(source: str, seed: int) -> None:
    """Sizes, strides, values and who shares storage, on random shapes."""
    rng = random.Random(seed)
    shape = (3, *(rng.randint(1, 4) for _ in range(rng.randint(1, 3))))
    names = {"x": torch.arange(torch.Size(shape).numel()).view(shape)}
    exec(source, {}, names)  # noqa: S102 (text of our own making)
    run = trace(f"{source}\nz", shape).last
    z = names["z"]
    assert run.layout.shape == tuple(z.shape)
    assert run.layout.stride == tuple(z.stride())
    assert run.values == tuple(z.flatten()[: len(run.values)].tolist())
    assert (run.storage == 0) == (z.untyped_storage().data_ptr() == names["x"].untyped_storage().data_ptr())


def test_the_text_of_each_step() -> None:
    steps = trace(" (x + 1) . t ( ).chunk(2, dim=1)[0][ 0, :] @ torch.sum(x.t(), 1) ", (4, 2)).steps[1:]
    assert [step.source for step in steps] == [
        "+ 1",
        ".t ( )",
        ".chunk(2, dim=1)[0]",
        "[ 0, :]",
        ".t()",
        "torch.sum(x.t(), 1)",
        "@ torch.sum(x.t(), 1)",
    ]
    assert steps[3].expression == "(x + 1) . t ( ).chunk(2, dim=1)[0][ 0, :]"
    assert [step.inputs for step in steps] == [(0,), (1,), (2,), (3,), (0,), (5,), (4, 6)]
    assert [step.line for step in steps] == [1] * 7


@every("dtype", ELEMENT_DTYPES)
def test_start_types(dtype: str) -> None:
    traced = trace("x", (2, 3), dtype=dtype)
    assert traced.last.dtype == dtype
    assert traced.last.values == (0, 1, 2, 3, 4, 5)


def test_other_start_types_are_refused() -> None:
    with pytest.raises(ValueError, match="not one of"):
        trace("x", (2, 3), dtype="complex64")


def test_a_start_with_strides() -> None:
    """x lies over arange of a storage that just holds it."""
    traced = trace("x.contiguous()", (2, 3), (1, 2), "float32")
    assert (traced[0].layout.stride, traced[0].storage_elements, traced[0].is_contiguous) == ((1, 2), 6, False)
    assert traced.last.values == (0, 2, 4, 1, 3, 5)
    overlapping = trace("x", (4, 3), (1, 1))
    assert (overlapping.last.storage_elements, overlapping.last.values[:6]) == (6, (0, 1, 2, 1, 2, 3))
    assert trace("x", (0, 3), (7, 7)).last.storage_elements == 0


# ---------------------------------------------------------------------------------------- scripts

PROGRAMS: list[tuple[str, tuple[int, ...]]] = [
    ("x.t().view(2, 3)", (2, 3)),
    ("x[0] += 1\nx *= 2\nx[..., ::2] -= x[:, :1]", (2, 3)),
    ("a, b = x.split(1)\na + b\ny = x.split(1)\ny[1] + y[0]", (2, 3)),
    ("x.chunk(2)[-1]\ntorch.chunk(x, 2)[0]", (4, 3)),
    ("x[x > 2]\nx[[0, 1]]\nx[torch.tensor([1, 1])]", (2, 3)),
    ("einops.rearrange(x.t(), 'a b -> (b a)').view(torch.int32)", (2, 3)),
    ("F.unfold(x.float().view(1, 1, 4, 6), 2)", (4, 6)),
    ("torch.einsum('ij,kj->ik', x, x + 1)", (2, 3)),
    ("x.max(dim=0)[0] + x.sort(0).indices.t()[0]\nx.max()[None]\ntorch.topk(x, 2).values", (2, 3)),
    ("import torch\nimport torch.nn.functional as F\nfrom einops import rearrange; import einops", (2, 3)),
    ("a, *b = x.t().chunk(3)\ntorch.cat([a, *b[1:]])\nb[-1]", (2, 3)),
    ("ys = [x, x.t().reshape(2, 3)]\ntorch.cat(ys)\ny = ys[1]\ny[0] = 7\nys[0] + 1", (2, 3)),
    ("q, k = map(lambda t: t.view(3, 2).t(), (x, x + 1))\nq.t() @ k", (2, 3)),
    ("import math\nx / math.sqrt(x.size(-1)) * int(2.5) + math.pi", (2, 3)),
    ("torch.zeros(2, 3, device='cuda:1', requires_grad=True)", (2, 3)),
    ("def f(q, k=2):\n    'Halves.'\n    with torch.no_grad():\n        q = q * k\n    return q.t()", (2, 3)),
    ("def f(q, k):\n    s = q @ k.t()\n    return s / k.size(-1) ** 0.5\ny = f(x, k=x + 1)\ny[0]", (2, 3)),
    ("for i in range(2):\n    y = x[i]\n    for j in range(2, 0, -1):\n        y += j\ny", (2, 3)),
    ("from torch.nn.functional import unfold as u\nu(x.float(), 2)", (1, 1, 2, 3)),
]


@every(("source", "shape"), PROGRAMS)
def test_scripts_give_what_the_trace_says(source: str, shape: tuple[int, ...]) -> None:
    """Run as they stand, without a recorder."""
    run = follow(source, shape)
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with nullcontext() if run.refusal is None and "cuda" not in source else pytest.raises(Exception):  # noqa: PT011
            exec(compile(script(source, shape), "script", "exec"), names)  # noqa: S102 (text of our own making)
    for name, theirs in names.items():
        if isinstance(theirs, torch.Tensor) and name in run.last.names:
            step = run[run.last.names[name]]
            assert (step.layout.shape, step.layout.stride) == (tuple(theirs.shape), theirs.stride()), name


@pytest.mark.process
def test_a_script_runs_alone(tmp_path: Path) -> None:
    text = script("y = rearrange(x, 'a b -> b a')\nprint(y.shape)", (2, 3), "bfloat16")
    file = tmp_path / "views.py"
    file.write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert (done.stdout, done.stderr) == ("torch.Size([3, 2])\n", "")


LOOPS = {
    "sgd": (
        "model = nn.Linear(4, 2)\nopt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)\n"
        "data = torch.randn(8, 4)",
        "loss = model(data).pow(2).mean()\nopt.zero_grad()\nloss.backward()\nopt.step()",
    ),
    "views": ("x = torch.arange(6.0)", "y = x.view(2, 3).t().contiguous()\nx = y.view(6) + 1"),
    "leak": ("w = torch.ones(3, requires_grad=True)\nlosses = []", "losses.append((w * 2).sum())"),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("head", ["for step in range(7):", "step = 0\nwhile step < 7:\n    step += 1"])
def test_a_loop_costs_and_gives_what_its_iterations_written_out_do(name: str, head: str) -> None:
    before, body = LOOPS[name]
    inner = "\n".join(f"    {line}" for line in body.split("\n"))
    loop = follow(f"{before}\n{head}\n{inner}\ndone = torch.ones(1)", (1,))
    written = follow("\n".join([before, *[body] * 7, "done = torch.ones(1)"]), (1,))
    assert loop.unread is written.unread is None
    for told in (
        lambda run: run.last.bytes_total,
        lambda run: sum(step.flops * step.times for step in run),
        lambda run: max(run.at_once),
        lambda run: sum(run.held[-1].values()),
        lambda run: sum(step.times for step in run),
        lambda run: run.parameters,
    ):
        assert told(loop) == told(written)
    assert {n: loop[row].values for n, row in loop.last.names.items() if n != "done"} == {
        n: written[row].values for n, row in written.last.names.items() if n != "done"
    }
    assert (len(loop) < len(written)) == (name != "leak")


def test_iterations_that_write_elsewhere_are_all_reported() -> None:
    run = follow("x = torch.zeros(6)\nfor i in range(6):\n    x[i] = i", (1,))
    assert [step.written for step in run if step.kind == "write"] == [(n,) for n in range(6)]
