"""Programs as the lecture and people write them: presets, names asked for, starts, draws, and scripts of them."""

from __future__ import annotations

import ast
import io
import random
import re
import subprocess
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import torch

from core.lecture.catalogue import CLAIMS
from core.tensors.examples.lecture import PROGRAM
from core.tensors.examples.overlap import HAZARDS
from core.tensors.examples.presets import ATTENTION, LECTURE
from core.tensors.examples.quiz import items
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.script import script
from core.tensors.tracing.trace import ELEMENT_DTYPES, follow, trace
from core.views.tensors.text import headline, kept_bytes
from tests.core.tensors_random import DTYPES, SHAPES, outcome, random_program
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
    assert not any("not worked out" in fact.value for fact in run.facts), (name, run.facts)
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
    run = trace(ATTENTION.source, ATTENTION.shape, dtype=ATTENTION.dtype)
    assert run.refusal is None
    assert run.last.line == 6
    assert [step.operation for step in run if step.bytes_allocated] == ["x", "matmul", "softmax", "matmul", "reshape"]
    assert all(step.storage == 0 for step in run if step.line < 5)


@every(
    ("text", "line"),
    [
        ("y = x.t()\nz = y.veiw(6)\nz + 1", 2),
        ("y = x.t()\nz = y +", 2),
        ("y = x.t()\nimport os", 2),
        ("y = x.t()\nz = x.grad.t()", 2),
    ],
)
def test_a_refused_line_keeps_the_lines_before_it(text: str, line: int) -> None:
    run = follow(text, (2, 3), dtype="float32")
    assert [step.name for step in run.steps] == ["x", "y"]
    assert run.unread is not None
    assert run.unread.line == line


def test_a_misspelt_operation_suggests_the_nearest() -> None:
    with pytest.raises(ExpressionError, match="`contiguous`"):
        trace("x.contigous()", (2, 3))


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
    assert run.refusal is not None


def test_what_is_kept_for_a_gradient_is_counted() -> None:
    assert kept_bytes(follow(READ["A gradient by hand"], (1,))) == 12 + 4  # x, and pred_y - 5


def test_nothing_in_an_assertion_changes_the_program() -> None:
    run = follow("y = x.t()\nassert x.fill_(7) is None\nassert y.contiguous().numel() == 6\ny", (2, 3))
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


def test_names_of_names_cost_no_more_than_their_lines() -> None:
    """Each line uses the one before many times: worked out once, and not nested, or this would take forever."""
    lines = ["n = x.size(0) - 1", *["n = " + " + ".join(["n"] * 20) + " - n * 19"] * 11]
    assert trace("\n".join(lines[:8]) + "\nx.view(n * 2, -1)", (2, 3)).last.layout.shape == (2, 3)
    deep = "n = x.size(0)" + "+ 0" * 60
    assert trace(f"{deep}\n" + "n = n" + " + 0" * 60 + "\nx.view(n, -1)", (2, 3)).last.layout.shape == (2, 3)


def test_random_arithmetic_is_that_of_python() -> None:
    rng = random.Random(20251120)
    agreed = 0
    for _ in range(400):
        text = _sum(rng, 3)
        try:
            run = trace(f"n = x.size(0)\nm = {text}\nx.add(m)", (2, 3))
        except ExpressionError:
            continue
        names = {"x": torch.arange(6).view(2, 3), "n": 2}
        assert run.planned[-1].args[0] == eval(text, names)  # noqa: S307 (text of our own making)
        agreed += 1
    assert agreed > 200


def _sum(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["n", "x.size(1)", "x.shape[-1]", "x.numel()", "2", "7", "0", "-3", "x.stride(0)", "x.ndim"])
    return f"({_sum(rng, depth - 1)} {rng.choice(['+', '-', '*', '//', '%', '**', '/'])} {_sum(rng, depth - 1)})"


def test_the_text_of_each_step() -> None:
    steps = trace(" (x + 1) . t ( ).chunk(2, dim=1)[0][ 0, :] @ torch.sum(x.t(), 1) ", (4, 2)).planned
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

_BLOCK = re.compile(
    r"    shape (\(.*?\)), strides (\(.*?\)), offset (\d+), (not )?contiguous, "
    r"torch\.(\w+), storage ([A-Z]) \((\d+) B\)"
)


def facts(printed: str) -> list[tuple[str, str, int, bool, str, str, int]]:
    return [
        (m[1], m[2], int(m[3]), not m[4], m[5], m[6], int(m[7]))
        for m in map(_BLOCK.fullmatch, printed.splitlines())
        if m
    ]


def run_here(text: str) -> str:
    """What the script prints, run in this process, where torch's warnings are no errors."""
    printed = io.StringIO()
    with redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text, "script", "exec"), {})  # noqa: S102 (text of our own making)
    return printed.getvalue()


def check(source: str, shape: tuple[int, ...], dtype: str, stride: tuple[int, ...] | None = None) -> None:
    traced = trace(source, shape, stride, dtype)
    printed = run_here(script(source, shape, dtype, stride))
    facts_printed = iter(facts(printed))
    for step in traced:
        if step.storage < 0 or (step.pieces and step.picked is None):
            continue  # a split whose tensors are shown one by one
        if step.kind == "refused":
            said = " ".join(f"{step.error_type}: {step.error_message}".split())
            assert said in " ".join(printed.split())
            assert step is not traced.last or " ".join(printed.split()).endswith(said)
            continue
        wanted = (
            str(step.layout.shape),
            str(step.layout.stride),
            step.layout.offset,
            step.is_contiguous,
            step.dtype,
            chr(ord("A") + step.storage),
            step.storage_elements * step.element_size,
        )
        assert wanted in facts_printed, (step, printed)  # in order: `in` moves the iterator on


@every(("source", "shape"), PROGRAMS)
def test_scripts_print_what_the_trace_says(source: str, shape: tuple[int, ...]) -> None:
    check(source, shape, "int64")


def test_scripts_of_the_presets_the_quiz_and_the_hazards() -> None:
    for preset in (*LECTURE, ATTENTION):
        check(preset.source, preset.shape, preset.dtype)
    for item in items():
        check(item.source, item.shape, item.dtype)
    for hazard in HAZARDS:
        check(f"{hazard.view}.{hazard.method}({hazard.value})", hazard.shape, "int64")


@pytest.mark.long
def test_scripts_of_random_programs() -> None:
    """Whatever is read becomes Python; what runs to its end here prints the same there."""
    rng = random.Random(7)
    parsed = ran = 0
    while parsed < 1_000:
        text, shape, dtype = random_program(rng), rng.choice(SHAPES), rng.choice(DTYPES)
        try:
            traced = script(text, shape, dtype)
        except ExpressionError:
            continue
        ast.parse(traced)
        parsed += 1
        known = outcome(text, shape, dtype)
        again = re.search(r"\b(\w+), (?:\w+, )?\1\b", text)  # one name unpacked twice shows the later tensor twice
        elsewhere = "cuda" in text or "pin_memory" in text  # followed here, and a CPU alone has neither
        if parsed % 2 or isinstance(known, str) or known.refusal or again or elsewhere or "uint8" in dtype:
            continue
        if re.search(r"\b(if|while|assert|print)\b", text):
            continue  # the tensors of a question are steps here, and are not printed by the script
        check(text, shape, dtype)
        ran += 1
    assert ran > 60, ran


def test_scripts_of_starts_with_strides() -> None:
    check("x.view(6)", (2, 3), "float32", (1, 2))
    check("x + 1", (3, 4), "int64", (0, 1))
    check("x", (), "int64")
    check("x", (0, 3), "int64")


@pytest.mark.process
def test_a_script_runs_alone(tmp_path: Path) -> None:
    text = script("y = rearrange(x, 'a b -> b a')\ny.view(2, 3)", (2, 3), "bfloat16")
    assert text.startswith("import torch\nfrom einops import rearrange\n")
    file = tmp_path / "views.py"
    file.write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert done.stderr == ""
    assert facts(done.stdout)[0] == ("(2, 3)", "(3, 1)", 0, True, "bfloat16", "A", 12)
    assert "RuntimeError: view size is not compatible" in done.stdout


def test_only_what_the_page_runs_becomes_a_script() -> None:
    for source in ("__import__('os')", "open('x')", "x.numpy()", "import os"):
        with pytest.raises(ExpressionError):
            script(source, (2, 3))
    with pytest.raises(ExpressionError, match="would have"):
        script("x", (10**13,))
