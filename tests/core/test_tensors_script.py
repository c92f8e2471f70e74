"""Scripts run on their own and print what the page shows, step by step."""

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

from core.tensors.examples.overlap import HAZARDS
from core.tensors.examples.presets import ATTENTION, LECTURE
from core.tensors.examples.quiz import items
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.script import script
from core.tensors.tracing.trace import trace
from tests.core.tensors_random import DTYPES, SHAPES, outcome, random_program
from tests.every import every
from tests.patience import PATIENCE_S

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


def test_a_start_with_strides() -> None:
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
