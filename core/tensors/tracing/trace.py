"""Runs an expression on real torch tensors, one operation at a time, and records what each did to memory.

torch is the witness here: shapes, strides, errors are its own. Whether a step is a view is decided by asking whose
storage it uses, not by ``_is_view()``, which says True after ``.t().ravel()`` (a copy) and False after ``detach()``.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from typing import Any

from core.limits import limit
from core.tensors.layout import Layout
from core.tensors.operations.guards import TooLargeError, check_elements, check_size
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.plan import Plan
from core.tensors.parsing.reader import read_expression
from core.tensors.tracing.meta_device import CountedRun
from core.tensors.tracing.run import Run
from core.tensors.tracing.steps import Trace

START_DTYPES: tuple[str, ...] = ("int64", "float32", "bfloat16")
"""Element types offered first for the start tensor."""

ELEMENT_DTYPES: tuple[str, ...] = (*START_DTYPES, "float64", "float16", "int32", "int16", "int8", "uint8")
"""Element types the start tensor may have."""


_LOADING = threading.Lock()


def load_torch() -> tuple[Any, Any]:
    """Import torch and einops, once per process and by one thread at a time; about a second the first time."""
    with _LOADING:
        import einops
        import torch

    return torch, einops


def start_layout(shape: Sequence[int], stride: Sequence[int] | None = None, cap: str = "tensor_elements") -> Layout:
    """The layout of the start tensor: contiguous, or with the strides given, from storage cell 0.

    cap: the entry of core.limits that caps its elements.

    Raises `ExpressionError` beyond the caps of core.limits, for strides that do not match the shape, and for negative
    ones, which torch does not have.
    """
    sizes = tuple(shape)
    if min(sizes, default=0) < 0:
        raise ExpressionError(f"Shape {sizes} has a negative size.")
    check_size(sizes, "The start tensor", cap)
    if stride is None:
        return Layout.contiguous(sizes)
    steps = tuple(stride)
    if len(steps) != len(sizes):
        raise ExpressionError(f"{len(steps)} strides for {len(sizes)} dimensions: one stride per dimension.")
    if min(steps, default=0) < 0:
        raise ExpressionError(f"Stride {min(steps)} is negative; torch has only strides of 0 and above.")
    if max(steps, default=0) > limit("expression_integer"):
        raise ExpressionError(f"Strides are at most {limit('expression_integer'):,} here.")
    layout = Layout(sizes, steps)
    check_elements(1 + (layout.span or (0, -1))[1], "The storage of the start tensor", cap)
    return layout


def trace(source: str, shape: Sequence[int], stride: Sequence[int] | None = None, dtype: str = "int64") -> Trace:
    """Run ``source``, lines on ``x``, and record every step; the first step is x itself.

    ``x`` has ``shape`` and ``stride`` (contiguous by default) over a storage that holds ``torch.arange`` of ``dtype``.
    What is too large for real numbers is run on torch's meta device instead, which allocates nothing: the trace is then
    ``counted``, and has no values. An error torch raises ends the trace as a ``refused`` step. Raises
    `ExpressionError` when the expression is not understood or would exceed the caps of core.limits, before memory is
    allocated; ``ValueError`` for a dtype that is not in `ELEMENT_DTYPES`.
    """
    if dtype not in ELEMENT_DTYPES:
        raise ValueError(f"dtype {dtype!r} is not one of {', '.join(ELEMENT_DTYPES)}")
    layout = start_layout(shape, stride, "counted_elements")
    plan = read_expression(source)
    try:
        check_elements(1 + (layout.span or (0, -1))[1], "The start tensor")
        run = _ran(Run, plan, layout, dtype)
    except TooLargeError as problem:
        if problem.count > limit("counted_elements"):
            check_elements(problem.count, problem.what, "counted_elements")  # which says what is followed
        run = _ran(CountedRun, plan, layout, dtype)
    steps, planned = tuple(run.steps), tuple(run.planned)
    version, counted = str(run.torch.__version__), isinstance(run, CountedRun)
    return Trace(plan.text, steps, version, planned, plan.notes, counted, _suiting(run, layout, dtype))


def _ran(kind: type[Run], plan: Plan, layout: Layout, dtype: str) -> Run:
    """``plan`` run on x of this layout and dtype, on the meta device where it is only counted."""
    torch, einops = load_torch()
    run = kind(torch, einops, plan)
    with torch.device("meta") if kind is CountedRun else nullcontext():
        run.start(layout, dtype)
        run.all()
    return run


def _suiting(run: Run, layout: Layout, dtype: str) -> str:
    """The dtype of x with which torch runs the step that it refuses in ``run``; empty where that is not the cause.

    Asked of torch itself, as its messages name kernels, not causes: ``"softmax_lastdim_kernel_impl" not implemented``.
    """
    last = run.steps[-1]
    if last.kind != "refused" or last.reason:
        return ""
    for other in (START_DTYPES[1], START_DTYPES[0]):
        with suppress(ExpressionError):
            if other != dtype and any(
                step.number == last.number and step.kind != "refused"
                for step in _ran(type(run), run.plan, layout, other).steps
            ):
                return other
    return ""
