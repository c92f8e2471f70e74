"""Runs pasted code on torch, in a sealed process, and gives the trace of what it did."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.limits import limit
from core.messages import message
from core.tensors.layout import TensorLayout
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.text import readable
from core.tensors.sealed.client import POOL
from core.tensors.sealed.given import Start, filled, names_in, whole_program
from core.tensors.tracing.report import Event, trace_of
from core.tensors.tracing.steps import Trace

_LOG = logging.getLogger(__name__)

ELEMENT_DTYPES = ("float32", "int64", "bfloat16", "float64", "float16", "int32", "int16", "int8", "uint8")
"""Element types the start tensor may have, those offered first in front."""


def start_layout(shape: Sequence[int], stride: Sequence[int] | None = None) -> TensorLayout:
    """Return the layout of the start tensor: contiguous, or with the strides given, from storage cell 0.

    Raises `ExpressionError` beyond the caps of core.limits, and for strides that do not match the shape.
    """
    sizes = tuple(shape)
    if len(sizes) > (most := limit("tensor_rank")):
        raise ExpressionError(message("tensors.problem.rank", rank=float(len(sizes)), most=float(most)))
    if stride is not None and len(stride) != len(sizes):
        given, wanted = float(len(stride)), float(len(sizes))
        raise ExpressionError(message("tensors.problem.strides", strides=given, dimensions=wanted))
    layout = TensorLayout.contiguous(sizes) if stride is None else TensorLayout(sizes, tuple(stride))
    elements = max(math.prod(max(size, 1) for size in sizes), 1 + (layout.span or (0, -1))[1])
    if elements > (most := limit("counted_elements")):
        raise ExpressionError(message("tensors.problem.elements", elements=float(elements), most=float(most)))
    return layout


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
    start = Start(start_layout(shape, stride), dtype)
    text = readable(source[: 2 * limit("expression_chars")])
    names = names_in(text, shape)
    starts = any(item.name == "x" for item in names) or not text.strip()
    names = filled(names, given or {})
    notes = tuple(message("tensors.note.meant", name=item.name, meant=item.meant) for item in names if item.meant)
    try:
        if len(source) > (most := limit("expression_chars")):
            raise ExpressionError(message("tensors.problem.long", most=float(most)))
        done = _ran(text, whole_program(text, start if starts else None, names))
    except ExpressionError as problem:
        return trace_of((), text, names, notes, stopped=str(problem))
    return replace(done, asked=names, notes=(*done.notes, *notes))


def trace(
    source: str,
    shape: Sequence[int],
    stride: Sequence[int] | None = None,
    dtype: str = "int64",
    given: Mapping[str, str] | None = None,
) -> Trace:
    """Return the trace of `follow`, but raise `ExpressionError` if the program ends before its last line."""
    result = follow(source, shape, stride, dtype, given)
    if result.unread is not None:
        raise ExpressionError(result.unread.why)
    return result


def run_program(source: str) -> tuple[Sequence[Event], str]:
    """Return the events that a program's run reports, and why it did not end by itself; empty if it did.

    Whoever takes code from users or links asks `core.tensors.sealed.trust.decide` first: without a seal this runs it.
    """
    report = POOL.run(source)
    return report.events, report.ended.message


def _ran(text: str, whole: str) -> Trace:
    events, stopped = run_program(whole)
    try:
        return trace_of(events, text, stopped=stopped)
    except (AttributeError, TypeError, ValueError, LookupError) as problem:
        _LOG.warning("The report of a program cannot be read: %r", problem)
        raise ExpressionError(message("tensors.problem.report")) from None
