"""A layout tried on a tensor of a trace: whether torch has operations that give it, and the program that has them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.limits import limit
from core.tensors.examples.reachable_layouts import Calls, same_cells, views_to
from core.tensors.layout import TensorLayout, bounds
from core.tensors.operations.guards import check_size
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.steps import DrawnTensor, Trace, drawn
from core.tensors.tracing.trace import trace

Verdict: TypeAlias = Literal["found", "strided", "none"]

_BY = (
    ((".t()", ".transpose(", ".permute("), "transposing"),
    ((".expand(",), "expanding with stride 0"),
    ((".unfold(",), "windows"),
    ((".diagonal(",), "a diagonal"),
    ((".view(",), "regrouping"),
    (("[",), "slicing"),
)


@dataclass(frozen=True, slots=True)
class LayoutAttempt:
    """What torch has for a layout: a chain of views, `as_strided` alone, or nothing.

    word: the verdict in a few words. why: the reason, as a sentence. code: what gives the layout, empty for nothing;
    the calls alone where nothing names their tensor any more. source: the program with it as its last line, or empty.
    """

    verdict: Verdict
    word: str
    why: str
    code: str = ""
    source: str = ""


def try_layout(run: Trace, number: int, layout: TensorLayout) -> LayoutAttempt:
    """What torch has to read the storage of the drawn tensor ``number`` as ``layout``.

    Raises `ExpressionError` for a tensor that is not there, and for sizes and numbers beyond the caps.
    """
    all_drawn = drawn(run)
    if not 0 <= number < len(all_drawn):
        raise ExpressionError(f"There is no tensor {number} in the picture.")
    if max((*map(abs, layout.stride), abs(layout.offset)), default=0) > limit("expression_integer"):
        raise ExpressionError(f"Strides are at most {limit('expression_integer'):,} here.")
    check_size(layout.shape, "The tensor")
    item = all_drawn[number]
    if same_cells(item.layout, layout):
        return LayoutAttempt("found", "as it is", f"That is {item.name} itself.")
    if min((*layout.stride, layout.offset), default=0) < 0:
        return LayoutAttempt("none", "impossible", "torch has no negative stride and no negative offset; flip copies.")
    room = bounds(layout, item.step.storage_elements)
    if not room.inside:
        return LayoutAttempt("none", "impossible", f"Beyond the storage: {room.reason} ({room.arithmetic}).")
    results = _found(all_drawn, item, layout)
    if results is not None:
        name, calls = _operand(results[0]), results[1]
        how = " and ".join(dict.fromkeys(word for call in calls for starts, word in _BY if call.startswith(starts)))
        code = f"{name}{''.join(calls)}"
        source = _program(run, code, layout)
        return LayoutAttempt(
            "found", "torch has it", f"By {how}: a view, 0 B.", code if source else "".join(calls), source
        )
    size, stride = (f"({', '.join(map(str, n))}{',' * (len(n) == 1)})" for n in (layout.shape, layout.stride))
    call = f".as_strided({size}, {stride}, {layout.offset})"
    name = _operand(item.name)
    source = _program(run, f"{name}{call}", layout)
    why = (
        "The cells are there, but transposing, slicing, regrouping, windows, diagonals and expanding do not give these "
        "strides in four operations or fewer."
    )
    return LayoutAttempt("strided", "as_strided only", why, f"{name}{call}" if source else call, source)


def _operand(name: str) -> str:
    """A tensor's label so that a method can stand behind it: a sum or product in round brackets."""
    with suppress(SyntaxError):  # “old y” is no code, and no program has it
        expression = ast.parse(name, mode="eval").body
        return name if isinstance(expression, ast.Name | ast.Call | ast.Attribute | ast.Subscript) else f"({name})"
    return name


def _found(all_drawn: list[DrawnTensor], item: DrawnTensor, layout: TensorLayout) -> tuple[str, Calls] | None:
    """A chain of views from the tensor, or from another on the same storage: its name and the calls."""
    for base in (item, *all_drawn):
        holds = (base.step.storage, base.step.dtype) == (item.step.storage, item.step.dtype)
        if holds and base.step.kind != "refused" and (calls := views_to(base.layout, layout)):
            return base.name, calls
    return None


def _program(run: Trace, code: str, layout: TensorLayout) -> str:
    """The program with ``code`` as its last line; run, because a name may stand for something else by then."""
    for text in _texts(run, code):
        with suppress(ExpressionError):
            start = run[0]
            result = trace(text, start.layout.shape, start.layout.stride, start.dtype)
            if result.refusal is None and same_cells(result.last.layout, layout):
                return text
    return ""


def _texts(run: Trace, code: str) -> Iterator[str]:
    lines = run.text.splitlines()
    yield "\n".join([*(lines if run.refusal is None else lines[: run.last.line - 1]), code])
    yield code
