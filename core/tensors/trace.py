"""Runs an expression on real torch tensors, one operation at a time, and records what each did to memory.

torch is the witness here: shapes, strides, errors are its own. Whether a step is a view is decided by asking whose
storage it uses, not by ``_is_view()``, which says True after ``.t().ravel()`` (a copy) and False after ``detach()``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from core.limits import limit
from core.tensors.layout import Layout
from core.tensors.operations import DType, ExpressionError, MemoryFormat, Value, check_size, integers, named
from core.tensors.reader import PlanStep, read_expression
from core.tensors.view import ViewVerdict, explain_view

Kind: TypeAlias = Literal["start", "same", "view", "copy", "write", "refused"]

START_DTYPES: tuple[str, ...] = ("int64", "float32", "bfloat16")
"""Element types the start tensor may have."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trace; sizes, strides and offsets in elements, memory in bytes.

    kind: ``start`` (x itself), ``same`` (the very same tensor), ``view`` (another tensor on the same storage),
    ``copy`` (a new storage), ``write`` (a value written in place) or ``refused`` (torch raised an error).
    source: the text of this step; expression: the text up to and including it; inputs: the steps it reads.
    layout, dtype, element_size, storage: of the resulting tensor; for ``write`` of the tensor written through, and
    for ``refused`` of the tensor the operation was tried on.
    storage: number of the storage, 0 is that of x; storage_elements: its length in elements of this dtype.
    shares_storage_with: earlier steps whose tensor lies in the same storage.
    bytes_allocated: new storage this step keeps; 0 for everything but copies and the start.
    values: the first elements in logical order; storage_values: the first cells of the storage, both after the step
    and at most as many as are drawn. written: storage cells written.
    verdict: what the layout algebra says about view, reshape, flatten and ravel, ``None`` for other operations
    (ravel copies whatever is not contiguous, even where a view would work).
    error_type, error_message: torch's own, when refused. reason: our explanation of it, empty where we have none.
    fixes: expressions that work instead, by the text that replaces the refused step.
    """

    number: int
    kind: Kind
    source: str
    expression: str
    operation: str
    inputs: tuple[int, ...]
    layout: Layout
    dtype: str
    element_size: int
    is_contiguous: bool
    storage: int
    storage_elements: int
    shares_storage_with: tuple[int, ...]
    bytes_allocated: int
    values: tuple[int | float, ...]
    storage_values: tuple[int | float, ...]
    written: tuple[int, ...] = ()
    verdict: ViewVerdict | None = None
    error_type: str = ""
    error_message: str = ""
    reason: str = ""
    fixes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """All steps of one expression; the first is x itself, the last is the result or the refusal."""

    text: str
    steps: tuple[Step, ...]
    torch_version: str

    @property
    def last(self) -> Step:
        return self.steps[-1]

    @property
    def refusal(self) -> Step | None:
        """The step torch refused, if any; it is then the last."""
        return self.last if self.last.kind == "refused" else None

    @property
    def bytes_copied(self) -> int:
        """Bytes all steps after the start allocated."""
        return sum(step.bytes_allocated for step in self.steps[1:])

    def seen_by(self, cells: Sequence[int], storage: int) -> tuple[Step, ...]:
        """The steps whose tensor has an element in one of ``cells`` of ``storage``."""
        tensors = (step for step in self.steps if step.storage == storage and step.kind not in ("refused", "write"))
        return tuple(step for step in tensors if not set(cells).isdisjoint(step.layout.cells().tolist()))


_LOADING = threading.Lock()


def load_torch() -> Any:
    """Import torch and einops, once per process and by one thread at a time; about a second the first time."""
    with _LOADING:
        import einops
        import torch

    return torch, einops


def trace(source: str, shape: Sequence[int], dtype: str = "int64") -> Trace:
    """Run the expression ``source`` on ``x = torch.arange(numel, dtype).view(shape)`` and record every step.

    An error torch raises ends the trace as a ``refused`` step. Raises `ExpressionError` when the expression is not
    understood or would exceed the caps of core.limits, before memory is allocated; ``ValueError`` for a dtype that
    is not in `START_DTYPES`.
    """
    if dtype not in START_DTYPES:
        raise ValueError(f"dtype {dtype!r} is not one of {', '.join(START_DTYPES)}")
    check_size(shape, "The start tensor")
    plan = read_expression(source)
    torch, einops = load_torch()
    run = _Run(torch, einops)
    run.start(tuple(shape), dtype)
    for step in plan.steps:
        if not run.advance(step, plan.text):
            break
    return Trace(plan.text, tuple(run.steps), str(torch.__version__))


class _Run:
    """The tensors of one trace, kept alive until its end so that storages can be told apart."""

    def __init__(self, torch: Any, einops: Any) -> None:
        self.torch = torch
        self.einops = einops
        self.tensors: list[Any] = []
        self.storages: list[int] = []
        self.steps: list[Step] = []

    def start(self, shape: tuple[int, ...], dtype: str) -> None:
        numel = Layout.contiguous(shape).numel
        x = self.torch.arange(numel, dtype=getattr(self.torch, dtype)).view(shape)
        self._record(x, "start", "x", "x", "x", ())

    def advance(self, step: PlanStep, text: str) -> bool:
        """Run one planned operation; False when torch refused it."""
        inputs = [self.tensors[number] for number in step.inputs]
        keywords = dict(step.keywords)
        if step.operation.guard is not None:
            step.operation.guard([tuple(t.shape) for t in inputs], step.args, keywords)
        try:
            result = self._apply(step, inputs, keywords)
        except Exception as problem:  # whatever torch or einops raises is what this page is about
            self._refuse(step, text, problem)
            return False
        if step.form == "write":
            self._record(inputs[0], "write", step.source, step.expression, "write", step.inputs, result)
            return True
        self._check(result, step)
        verdict = None
        if step.operation.name in ("view", "reshape", "flatten", "ravel") and result.dtype == inputs[0].dtype:
            verdict = explain_view(_layout(inputs[0]), tuple(result.shape))
        kind = self._kind(result, inputs)
        self._record(result, kind, step.source, step.expression, step.operation.name, step.inputs, verdict=verdict)
        return True

    # --------------------------------------------------------------------------------------------- running

    def _apply(self, step: PlanStep, inputs: list[Any], keywords: Mapping[str, Value]) -> Any:
        args = [self._value(arg) for arg in step.args]
        named = {name: self._value(value) for name, value in keywords.items()}
        name = step.operation.name
        match step.form:
            case "method":
                result = getattr(inputs[0], name)(*inputs[1:], *args, **named)
            case "property":
                result = self._property(inputs[0], name)
            case "torch" if name == "einsum":
                result = self.torch.einsum(*args, *inputs)
            case "torch":
                result = getattr(self.torch, name)(*inputs, *args, **named)
            case "bare":
                result = getattr(self.einops, name)(inputs[0], *args, **named)
            case "index":
                result = inputs[0][step.index]
            case "negative":
                result = -inputs[0]
            case "binary":
                result = self._binary(step, inputs)
            case "write":
                cells = _layout(inputs[0][step.index]).cells()
                inputs[0][step.index] = step.value
                return tuple(cells.tolist())
        return result if step.pick is None else result[step.pick]

    def _property(self, tensor: Any, name: str) -> Any:
        # What torch does with these ranks is deprecated: it works, but warns once per process. Same results here.
        if name == "T" and tensor.dim() != 2:
            return tensor.permute(*reversed(range(tensor.dim())))
        if name == "mT" and tensor.dim() == 0:
            return tensor
        return getattr(tensor, name)

    def _binary(self, step: PlanStep, inputs: list[Any]) -> Any:
        tensors = iter(inputs)
        left, right = (next(tensors) if side is None else side for side in step.sides)
        return _OPERATORS[step.symbol](left, right)

    def _value(self, value: Value) -> Any:
        if isinstance(value, DType | MemoryFormat):
            return getattr(self.torch, value.name)
        return value

    def _check(self, result: Any, step: PlanStep) -> None:
        """Caps on what came out: views allocate nothing, but the next step could."""
        if not isinstance(result, self.torch.Tensor):
            raise ExpressionError(f"`{step.source[:60]}` gives no tensor.")
        shape = tuple(result.shape)
        if min(shape, default=0) < 0:
            # torch lets as_strided and broadcast_to make these when another size is 0.
            raise ExpressionError(f"`{step.source[:60]}` gives a tensor of shape {shape}; no size can be negative.")
        check_size(shape, f"The result of `{step.source[:60]}`")
        if max(result.stride(), default=0) > limit("expression_integer"):
            raise ExpressionError(f"`{step.source[:60]}` gives a stride above {limit('expression_integer'):,}.")

    # ------------------------------------------------------------------------------------------- recording

    def _kind(self, result: Any, inputs: list[Any]) -> Kind:
        if any(result is tensor for tensor in inputs):
            return "same"
        mine = _storage_identity(result)
        return "view" if any(_storage_identity(tensor) == mine for tensor in inputs) else "copy"

    def _record(
        self,
        tensor: Any,
        kind: Kind,
        source: str,
        expression: str,
        operation: str,
        inputs: tuple[int, ...],
        written: tuple[int, ...] = (),
        verdict: ViewVerdict | None = None,
    ) -> None:
        identity = _storage_identity(tensor)
        new = identity not in self.storages
        if new:
            self.storages.append(identity)
        storage = self.storages.index(identity)
        nbytes: int = tensor.untyped_storage().nbytes()
        element_size: int = tensor.element_size()
        cells = nbytes // element_size
        shown = limit("storage_cells_drawn")
        self.tensors.append(tensor)
        self.steps.append(
            Step(
                number=len(self.steps),
                kind=kind,
                source=source,
                expression=expression,
                operation=operation,
                inputs=inputs,
                layout=_layout(tensor),
                dtype=str(tensor.dtype).removeprefix("torch."),
                element_size=element_size,
                is_contiguous=tensor.is_contiguous(),
                storage=storage,
                storage_elements=cells,
                shares_storage_with=tuple(step.number for step in self.steps if step.storage == storage),
                bytes_allocated=nbytes if new else 0,
                values=tuple(tensor.flatten()[:shown].tolist()),
                storage_values=tuple(tensor.as_strided((min(cells, shown),), (1,), 0).tolist()),
                written=written,
                verdict=verdict,
            )
        )

    def _refuse(self, step: PlanStep, text: str, problem: Exception) -> None:
        tried = self.steps[step.inputs[0]]
        verdict, reason = _why(step, tried)
        fixes: tuple[tuple[str, str], ...] = ()
        if verdict is not None and verdict.boundary is not None and step.form == "method":
            before, after = text[: step.name_at], text[step.name_at + len("view") :]
            arguments = step.source.removeprefix(".view")
            as_shape = arguments.replace("size=", "shape=", 1)  # what the parameter is called in reshape
            fixes = (
                (f".reshape{as_shape}", f"{before}reshape{as_shape}{after.removeprefix(arguments)}"),
                (f".contiguous().view{arguments}", f"{before}contiguous().view{after}"),
            )
        self.steps.append(
            replace(
                tried,
                number=len(self.steps),
                kind="refused",
                source=step.source,
                expression=step.expression,
                operation=step.operation.name,
                inputs=step.inputs,
                shares_storage_with=(),
                bytes_allocated=0,
                written=(),
                verdict=verdict,
                error_type=type(problem).__name__,
                error_message=str(problem),
                reason=reason,
                fixes=fixes,
            )
        )


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "@": lambda left, right: left @ right,
}


def _layout(tensor: Any) -> Layout:
    return Layout(tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset())


def _storage_identity(tensor: Any) -> int:
    """Identity of the storage while it lives; its data pointer will not do, all empty storages share one."""
    return tensor.untyped_storage()._cdata


def _why(step: PlanStep, tried: Step) -> tuple[ViewVerdict | None, str]:
    """The layout algebra's account of a refused ``view`` or ``as_strided``; nothing for other operations."""
    values = (*step.args, *(value for _, value in step.keywords))
    if step.operation.name == "view" and not any(isinstance(value, DType) for value in values):
        verdict = explain_view(tried.layout, integers(values))
        return verdict, verdict.reason
    if step.operation.name == "as_strided":
        given = named(("size", "stride", "storage_offset"), step.args, dict(step.keywords))
        size, stride = integers((given.get("size"),)), integers((given.get("stride"),))
        offset = (*integers((given.get("storage_offset"),)), tried.layout.offset)[0]
        if len(size) == len(stride) and min((*size, *stride, offset), default=0) >= 0:
            span = Layout(size, stride, offset).span
            if span is not None and span[1] >= tried.storage_elements:
                cells = tried.storage_elements
                owned = f"cells 0 to {cells - 1:,}" if cells else "no cells"
                return None, f"the last element would be cell {span[1]:,}, but the storage has {owned}"
    return None, ""
