"""Runs an expression on real torch tensors, one operation at a time, and records what each did to memory.

torch itself is asked: shapes, strides, errors are its own. Whether a step is a view is decided by asking whose
storage it uses, not by ``_is_view()``, which says True after ``.t().ravel()`` (a copy) and False after ``detach()``.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any

from core.limits import limit
from core.tensors.layout import TensorLayout
from core.tensors.operations.guards import TooLargeError, check_elements, check_size
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.access import PYTHON
from core.tensors.parsing.asked import Asked, asked
from core.tensors.parsing.binding import is_name
from core.tensors.parsing.evaluation import Refused
from core.tensors.parsing.imports import MODULES
from core.tensors.parsing.objects import Ref
from core.tensors.parsing.reader import Reader
from core.tensors.parsing.syntax import parsed
from core.tensors.parsing.text import code_of, tidy
from core.tensors.tracing.allocations import QUIET
from core.tensors.tracing.lifetimes import alive
from core.tensors.tracing.meta_device import CountedRun
from core.tensors.tracing.run import ProgramRun
from core.tensors.tracing.steps import Trace, Unread

ELEMENT_DTYPES = ("float32", "int64", "bfloat16", "float64", "float16", "int32", "int16", "int8", "uint8")
"""Element types the start tensor may have, those offered first in front."""

_LOADING = threading.Lock()


def load_torch() -> tuple[Any, Any]:
    """Import torch and einops, once per process and by one thread at a time; about a second the first time."""
    with _LOADING:
        import einops
        import torch

    return torch, einops


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
        raise ExpressionError(f"Shape {sizes} has a negative size.")
    check_size(sizes, "The start tensor", cap)
    if stride is None:
        return TensorLayout.contiguous(sizes)
    steps = tuple(stride)
    if len(steps) != len(sizes):
        raise ExpressionError(f"{len(steps)} strides for {len(sizes)} dimensions: one stride per dimension.")
    if min(steps, default=0) < 0:
        raise ExpressionError(f"Stride {min(steps)} is negative; torch has only strides of 0 and above.")
    if max(steps, default=0) > limit("expression_integer"):
        raise ExpressionError(f"Strides are at most {limit('expression_integer'):,} here.")
    layout = TensorLayout(sizes, steps)
    check_elements(1 + (layout.span or (0, -1))[1], "The storage of the start tensor", cap)
    return layout


def trace(
    source: str,
    shape: Sequence[int],
    stride: Sequence[int] | None = None,
    dtype: str = "int64",
    given: Mapping[str, str] | None = None,
) -> Trace:
    """Run ``source``, lines on ``x``, and record every step; the first step is x itself.

    ``x`` has ``shape`` and ``stride`` (contiguous by default) over a storage that holds ``torch.arange`` of ``dtype``.
    What is too large for real numbers is run on torch's meta device instead, which allocates nothing: the trace is then
    ``counted``, and has no values. An error torch raises ends the trace as a ``refused`` step. Raises
    `ExpressionError` when the expression is not understood or would exceed the caps of core.limits, before memory is
    allocated; ``ValueError`` for a dtype that is not in `ELEMENT_DTYPES`.
    """
    result = follow(source, shape, stride, dtype, given)
    if result.unread is not None:
        raise ExpressionError(result.unread.why)
    return result


def follow(
    source: str,
    shape: Sequence[int],
    stride: Sequence[int] | None = None,
    dtype: str = "int64",
    given: Mapping[str, str] | None = None,
) -> Trace:
    """Like `trace`, but a line that is not understood ends it: those before it are kept, `Trace.unread` says why.

    given: what names stand for that nothing in ``source`` defines, ``4`` for a number and ``2, 3`` for a tensor's
    sizes; the others take what their names suggest, see `Trace.asked`. Raises `ExpressionError` for the start alone.
    """
    if dtype not in ELEMENT_DTYPES:
        raise ValueError(f"dtype {dtype!r} is not one of {', '.join(ELEMENT_DTYPES)}")
    layout = start_layout(shape, stride, "counted_elements")
    program = Program(source, layout, dtype, given or {})
    try:
        check_elements(1 + (layout.span or (0, -1))[1], "The start tensor")
        done = program.run(ProgramRun)
    except TooLargeError as problem:
        if problem.count > limit("counted_elements"):
            check_elements(problem.count, problem.what, "counted_elements")  # which says what is followed
        done = program.run(CountedRun)
    return replace(done, suits=program.suiting(done))


@dataclass(frozen=True, slots=True)
class Program:
    """A text and where it starts."""

    source: str
    layout: TensorLayout
    dtype: str
    given: Mapping[str, str]

    def run(self, kind: type[ProgramRun]) -> Trace:
        """The text run as far as it goes, on the meta device where it is only counted."""
        text, unread = _readable(self.source)
        names = _asked(text, self.layout.shape)
        torch, einops = load_torch()
        run = kind(torch, einops, text)
        reader = Reader(code_of(text) if text else "", run)
        with QUIET.held(), torch.device("meta") if kind is CountedRun else nullcontext():
            if any(item.name == "x" for item in names) or not text or (unread is not None and not names):
                run.start(self.layout, self.dtype)
                reader.frame.names["x"] = Ref(0)
            else:
                run.nothing()
            names = tuple(item for item in names if item.name != "x")
            names = tuple(replace(item, text=self.given.get(item.name, item.text)) for item in names)
            unread = self._read(reader, names) or unread
        for item in names:
            if item.meant:
                reader.notes[f"`{item.name}` is set nowhere, so it is asked for. Did you mean `{item.meant}`?"] = None
        reader.settle()
        steps, planned, notes = tuple(run.steps), tuple(run.planned), tuple(reader.notes)
        held, most = alive(planned, steps, run.stored, run.kept, run.saved, run.reads)
        number = {identity: place for place, identity in enumerate(run.storages)}
        shown = tuple({number.get(key, -1 - at): size for at, (key, size) in enumerate(now.items())} for now in held)
        return Trace(
            text or self.source,
            steps,
            str(torch.__version__),
            planned,
            notes,
            kind is CountedRun,
            held=shown,
            at_once=tuple(most),
            facts=tuple(reader.facts),
            unread=unread,
            asked=names,
        )

    def _read(self, reader: Reader, names: Sequence[Asked]) -> Unread | None:
        """Read and run; what stopped it, if anything did that is not torch's own refusal."""
        try:
            for item in names:
                reader.give(item, self.dtype)
            if reader.text:
                reader.read()
        except Refused:
            return None
        except TooLargeError as problem:
            if problem.count <= limit("counted_elements") and not reader.machine.counted:
                raise
            return _unread(reader, problem)
        except ExpressionError as problem:
            return _unread(reader, problem)
        return None

    def suiting(self, done: Trace) -> str:
        """The dtype of x with which torch runs the step that it refuses; empty where that is not the cause.

        Asked of torch itself, as its messages name kernels, not causes: ``"softmax_lastdim_kernel_impl" not
        implemented``.
        """
        last = done.last
        if last.kind != "refused" or last.reason or not done.starts_with_x:
            return ""
        for other in ("float32", "int64"):
            with suppress(ExpressionError):
                if other == self.dtype:
                    continue
                tried = replace(self, dtype=other).run(CountedRun if done.counted else ProgramRun)
                if any(step.number == last.number and step.kind != "refused" for step in tried.steps):
                    return other
        return ""


_KNOWN = (*MODULES, *PYTHON, *dir(builtins), "rearrange", "reduce", "repeat", "einsum")


def names_asked(source: str, shape: Sequence[int] = ()) -> tuple[Asked, ...]:
    """What ``source`` uses and does not define, x among it, with what each name suggests. Nothing runs."""
    return _asked(_readable(source)[0], shape)


def _asked(text: str, shape: Sequence[int]) -> tuple[Asked, ...]:
    names = asked(parsed(code_of(text)).body, set(_KNOWN), shape) if text else ()
    return tuple(item for item in names if is_name(item.name.removeprefix("self.")))[: limit("expression_lines") // 2]


def _readable(source: str) -> tuple[str, Unread | None]:
    """The longest part of ``source``, from its first line, that is within the caps and parses; and what stops it."""
    try:
        text = tidy(source)
        parsed(code_of(text))
    except ExpressionError as problem:
        lines = source[: 2 * limit("expression_chars")].splitlines()
        for count in range(min(len(lines) - 1, 3 * limit("expression_lines")), 0, -1):
            with suppress(ExpressionError):
                text = tidy("\n".join(lines[:count]))
                parsed(code_of(text))
                return text, Unread(count + 1, lines[count].strip()[:200], str(problem))
        return "", Unread(1, lines[0].strip()[:200] if lines else "", str(problem))
    return text, None


def _unread(reader: Reader, problem: ExpressionError) -> Unread:
    lines = reader.text.split("\n")
    line = min(max(reader.line, 1), len(lines))
    return Unread(line, lines[line - 1].strip()[:200], str(problem))
