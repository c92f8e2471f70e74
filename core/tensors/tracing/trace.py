"""Runs pasted code on torch, in a sealed process, and gives the trace of what it did."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.limits import limit
from core.messages import message
from core.tensors.layout import TensorLayout
from core.tensors.operations.values import ExpressionError, check_elements, check_length, check_size
from core.tensors.parsing.asked import Asked
from core.tensors.parsing.text import readable
from core.tensors.sealed.given import Start, filled, names_in, whole_program
from core.tensors.sealed.running import run_program
from core.tensors.tracing.report import ForgedError, trace_of
from core.tensors.tracing.steps import Trace

_LOG = logging.getLogger(__name__)

ELEMENT_DTYPES = ("float32", "int64", "bfloat16", "float64", "float16", "int32", "int16", "int8", "uint8")
"""Element types the start tensor may have, those offered first in front."""


def start_layout(
    shape: Sequence[int], stride: Sequence[int] | None = None, cap: str = "tensor_elements"
) -> TensorLayout:
    """The layout of the start tensor: contiguous, or with the strides given, from storage cell 0.

    cap: the entry of core.limits that caps its elements.

    Raises `ExpressionError` beyond the caps of core.limits, for strides that do not match the shape, and for negative
    ones, which torch does not have.
    """
    sizes = tuple(shape)
    if min(sizes, default=0) < 0:
        raise ExpressionError(message("tensors.problem.negative_size", shape=sizes))
    check_size(sizes, message("tensors.problem.start"), cap)
    if stride is None:
        return TensorLayout.contiguous(sizes)
    steps = tuple(stride)
    if len(steps) != len(sizes):
        given, wanted = float(len(steps)), float(len(sizes))
        raise ExpressionError(message("tensors.problem.strides", strides=given, dimensions=wanted))
    if min(steps, default=0) < 0:
        raise ExpressionError(message("tensors.problem.negative_stride", stride=min(steps)))
    if max(steps, default=0) > (most := limit("expression_integer")):
        raise ExpressionError(message("tensors.problem.large_stride", most=float(most)))
    layout = TensorLayout(sizes, steps)
    check_elements(1 + (layout.span or (0, -1))[1], message("tensors.problem.start_storage"), cap)
    return layout


def names_asked(source: str, shape: Sequence[int] = ()) -> tuple[Asked, ...]:
    """What ``source`` uses and does not define, x among it, with what each name suggests. Nothing runs."""
    return names_in(readable(source[: limit("expression_chars")]), shape)


def follow(
    source: str,
    shape: Sequence[int],
    stride: Sequence[int] | None = None,
    dtype: str = "int64",
    given: Mapping[str, str] | None = None,
) -> Trace:
    """Run ``source`` and record every step; where it reads ``x`` before it makes one, the first step is x itself.

    ``x`` has ``shape`` and ``stride`` (contiguous by default) over a storage that holds ``torch.arange`` of ``dtype``.
    given: what names stand for that nothing in ``source`` defines, ``4`` for a number and ``2, 3`` for a tensor's
    sizes; the others take what their names suggest, see `Trace.asked`. An error that torch raises ends the trace as a
    ``refused`` step; any other end before the last line is `Trace.unread`. Raises `ExpressionError` for the start
    alone, and ``ValueError`` for a dtype that is not in `ELEMENT_DTYPES`.
    """
    if dtype not in ELEMENT_DTYPES:
        raise ValueError(f"dtype {dtype!r} is not one of {', '.join(ELEMENT_DTYPES)}")
    start = Start(start_layout(shape, stride, "counted_elements"), dtype)
    text = readable(source[: 2 * limit("expression_chars")])
    names = names_in(text, shape)
    starts = any(item.name == "x" for item in names) or not text.strip()
    names = filled(names, given or {})
    notes = tuple(message("tensors.note.meant", name=item.name, meant=item.meant) for item in names if item.meant)
    try:
        check_length(len(source))
        done = _ran(text, whole_program(text, start if starts else None, names))
    except ExpressionError as problem:
        return trace_of((), text, names, notes, stopped=str(problem))
    done = replace(done, asked=names, notes=(*done.notes, *notes))
    last = done.last
    if last.kind == "refused" and not last.reason and starts:
        for other in ("float32", "int64"):
            if other != dtype:
                tried = _ran(text, whole_program(text, replace(start, dtype=other), names))
                if any(step.number == last.number and step.kind != "refused" for step in tried.steps):
                    return replace(done, suits=other)
    return done


def trace(
    source: str,
    shape: Sequence[int],
    stride: Sequence[int] | None = None,
    dtype: str = "int64",
    given: Mapping[str, str] | None = None,
) -> Trace:
    """Like `follow`, but raises `ExpressionError` where the program ends before its last line."""
    result = follow(source, shape, stride, dtype, given)
    if result.unread is not None:
        raise ExpressionError(result.unread.why)
    return result


def _ran(text: str, whole: str) -> Trace:
    events, stopped = run_program(whole)
    try:
        return trace_of(events, text, stopped=stopped)
    except (ForgedError, AttributeError, TypeError, ValueError, KeyError, IndexError) as problem:
        _LOG.warning("The report of a program cannot be read: %r", problem)
        raise ExpressionError(message("tensors.problem.report")) from None
