"""One call of einops or einsum as a person types it, and presets from a transformer.

>>> from core.tensors.named_axes.calls import explain_call
>>> explain_call("rearrange(x, 'b s (h d) -> b h s d', h=2)", [(2, 3, 8)]).bytes_allocated
0
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from core.messages import message
from core.rows import read_rows
from core.tensors.layout import TensorLayout
from core.tensors.named_axes.einsums import EinsumPlan, explain_einsum
from core.tensors.named_axes.patterns import FUNCTIONS, PatternPlan, explain_pattern
from core.tensors.operations.values import ExpressionError, check_length, check_size
from core.tensors.tracing.steps import Trace, TraceStep

Plan: TypeAlias = PatternPlan | EinsumPlan

EXAMPLE = "rearrange(x, 'b s (h d) -> b h s d', h=2)"


@dataclass(frozen=True, slots=True)
class PatternCall:
    """A call read from text. function: an einops function or ``einsum``; words: names of several letters.

    sizes: axis sizes given as keywords. reduction: of ``reduce``.
    """

    function: str
    pattern: str
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    reduction: str = ""
    words: bool = False


@dataclass(frozen=True, slots=True)
class PatternPreset:
    """A preset: the call, one shape per operand, and what it is good for in a sentence."""

    label: str
    call: str
    shapes: tuple[tuple[int, ...], ...]
    why: str


PRESETS: tuple[PatternPreset, ...] = tuple(
    PatternPreset(
        row["label"],
        row["call"],
        tuple(tuple(map(int, shape.split(","))) for shape in row["shapes"].split(";")),
        row["why"],
    )
    for row in read_rows("tensor_patterns")
)
"""The rows of ``assets/data/tensor_patterns.csv``."""


def read_call(text: str) -> PatternCall:
    """Read one call of ``rearrange``, ``reduce``, ``repeat`` or ``einsum``; nothing is evaluated.

    ``torch.einsum('ij,jk->ik', x, y)`` takes letters, ``einsum(x, y, 'a b, b c -> a c')`` (of einops) takes words.
    Raises `ExpressionError` with an example for anything else.
    """
    text = text.strip()
    check_length(len(text))
    try:
        node = ast.parse(text, mode="eval").body  # parses only
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(message("axes.problem.call", example=EXAMPLE)) from None
    call = _call(node)
    if call is None:
        raise ExpressionError(message("axes.problem.call", example=EXAMPLE))
    return call


def _call(node: ast.expr) -> PatternCall | None:
    """The call ``node`` is, ``None`` for any other syntax."""
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(value=ast.Name(id="einops"), attr=name)):
            words = name == "einsum"
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="einsum" as name)):
            words = False
        case _:
            return None
    texts = [item.value for item in node.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    tensors = sum(not isinstance(item, ast.Constant) for item in node.args)
    named = {
        item.arg or "": item.value.value if isinstance(item.value, ast.Constant) else None for item in node.keywords
    }
    reduction = str(named.pop("reduction", texts[1] if len(texts) > 1 else ""))
    sizes = {
        axis: size for axis, size in named.items() if axis and isinstance(size, int) and not isinstance(size, bool)
    }
    wrong = len(sizes) < len(named) or not texts or (name != "einsum" and tensors != 1)
    if wrong or name not in (*FUNCTIONS, "einsum"):
        return None
    return PatternCall(name, texts[0], sizes, reduction, words=words)


def explain_call(
    text: str | PatternCall,
    shapes: Sequence[Sequence[int] | TensorLayout],
    *,
    element_size: int = 4,
    reduced_size: int | None = None,
) -> Plan:
    """What one call does on operands of these shapes (contiguous) or layouts.

    Raises `ExpressionError` when the call cannot be read or einops or torch would refuse it.
    """
    call = read_call(text) if isinstance(text, str) else text
    layouts: list[TensorLayout] = []
    for shape in shapes:
        layout = shape if isinstance(shape, TensorLayout) else TensorLayout.contiguous(shape)
        check_size(layout.shape, message("axes.problem.operand"))
        layouts.append(layout)
    if call.function == "einsum":
        plan = explain_einsum(call.pattern, layouts, words=call.words, element_size=element_size)
        check_size(plan.shape, message("axes.problem.result"))
        return plan
    if len(layouts) != 1:
        shapes_given = float(len(layouts))
        raise ExpressionError(message("axes.problem.tensors", function=call.function, shapes=shapes_given))
    return explain_pattern(
        call.function,
        call.pattern,
        layouts[0],
        call.sizes,
        reduction=call.reduction,
        element_size=element_size,
        reduced_size=reduced_size,
    )


def plans_of(trace: Trace) -> tuple[tuple[TraceStep, Plan], ...]:
    """The einops and einsum steps of a trace, each with what it became on the layouts it met.

    Steps torch or einops refused are left out: they became nothing.
    """
    rows: list[tuple[TraceStep, Plan]] = []
    for planned, step in zip(trace.calls, trace.steps[1:], strict=True):
        function = planned.operation.name
        bare = planned.form == "bare"
        if step.kind == "refused" or not (function == "einsum" or (bare and function in FUNCTIONS)):
            continue
        texts = [value for value in planned.args if isinstance(value, str)]
        named = dict(planned.keywords)
        reduction = named.get("reduction", texts[1] if len(texts) > 1 else "")
        sizes = {name: size for name, size in named.items() if isinstance(size, int)}
        call = PatternCall(
            function,
            texts[0],
            sizes,
            str(reduction),
            words=bare and function == "einsum",
        )
        layouts = [trace[number].layout for number in planned.inputs]
        size = trace[planned.inputs[0]].element_size
        try:
            plan = explain_call(call, layouts, element_size=size, reduced_size=step.element_size)
        except ExpressionError:
            continue  # torch ran it, but it is beyond what the explanation takes
        rows.append((step, plan))
    return tuple(rows)
