"""Pasted lines that only print or assert: skipped, said so, and never evaluated."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.text import code_of, skipped
from core.tensors.tracing.trace import trace
from core.views.tensors.text import passed_over
from tests.every import every

PASTED = """import torch
x = x.t()
print(f"shape: {x.shape}")  # {'what': 1}
assert x.shape == (3, 2), "no; not (that"
print(
    x.stride(),
    "a ) and \'\'\'",
)
y = x.contiguous()
print(y)"""


def test_lines_that_only_print_or_assert_are_skipped() -> None:
    assert skipped(PASTED) == ("print", "assert")
    run = trace(PASTED.replace("x = x.t()", "z = x.t()").replace("x.contiguous", "z.contiguous"), (2, 3))
    assert [(step.source, step.kind) for step in run.steps[1:]] == [(".t()", "view"), (".contiguous()", "copy")]
    assert passed_over(run).startswith("Skipped, not run: lines with `print` and `assert`.")
    assert passed_over(trace("x.t()", (2, 3))) == ""
    code = code_of(PASTED)
    assert len(code) == len(PASTED)
    assert code.count("\n") == PASTED.count("\n")  # every step keeps its line


@pytest.mark.parametrize(
    "text",
    [
        "print(open('/etc/passwd').read())",
        "assert __import__('os').system('touch napkin-was-here') == 0",
        "print([0] * 10 ** 10)",
        "assert 9 ** 9 ** 9 ** 9",
        "print(" + "(" * 100 + ")" * 100 + ")",
        "assert x.fill_(7) is None",
    ],
)
def test_nothing_in_a_skipped_line_is_evaluated(text: str) -> None:
    run = trace(f"y = x.t()\n{text}\ny.view(6)", (2, 3))
    assert not Path("napkin-was-here").exists()
    assert len(run.steps) == 3
    assert [step.kind for step in run.steps] == ["start", "view", "refused"]


@every(
    ("text", "words"),
    [
        ("print(x)", "are drawn"),
        ("assert x", "no other statement"),
        ("y = x.t()\nprint(y); y", "are drawn"),
        ("y = x.t()\nprint(y).t()", "are drawn"),
        ("y = x.t()\nz = print(y)", "are drawn"),
        ("y = x.t()\nassert y; y.load()", "no other statement"),
        ("y = x.t()\nprint(y", "not a complete expression"),
        ("y = x.t()\nprint('y\nz = y)", "not a complete expression"),
        ("y = x.view(\nprint(x)\n)", "`print(x)` is not a number"),
        ("y = x.t()\nassert (z := y) is not None\nz.t()", "`z` is not known"),
        ("x.t()\n" * 41 + "print(x)", "41 lines"),
        ("x.t()\nprint('" + "a" * 4_000 + "')", "characters long"),
        ("x.t()\nprint('\x07')", "has no place"),
    ],
)
def test_what_is_skipped_lifts_no_cap_and_hides_nothing_else(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as problem:
        trace(text, (2, 3))
    assert words in str(problem.value)


def test_many_skipped_lines_are_not_counted() -> None:
    assert len(trace("print(x)\n" * 60 + "x.t()", (2, 3)).steps) == 2
