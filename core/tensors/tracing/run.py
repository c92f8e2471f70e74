"""The tensors of one trace, and what each planned operation does to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from core.limits import limit
from core.tensors.layout import Layout
from core.tensors.operations import guards
from core.tensors.operations.guards import Picker, check_size
from core.tensors.operations.table import WRITING
from core.tensors.operations.values import DType, ExpressionError, Index, IndexItem, MemoryFormat, Nested, Slot, Value
from core.tensors.operations.views import SHORT_CASTS
from core.tensors.parsing.evaluated import Counts
from core.tensors.parsing.plan import Plan, PlanStep
from core.tensors.tracing.execution import call, touched
from core.tensors.tracing.operators import largest, operator_of, raw
from core.tensors.tracing.reasons import fixes, reason, view_verdict
from core.tensors.tracing.refusals import refusal_reason
from core.tensors.tracing.steps import Kind, Piece, Scalar, Step, label_of


class Run:
    """The tensors of one trace, kept alive until its end so that storages can be told apart."""

    cap = "tensor_elements"
    """The entry of core.limits that caps a tensor."""
    furthest = "expression_integer"
    """The entry that caps a stride."""

    def __init__(self, torch: Any, einops: Any, plan: Plan) -> None:
        self.torch = torch
        self.einops = einops
        self.plan = plan
        self.tensors: list[Any] = []
        """One per step: a tensor, or the tuple of all that a split made while none is picked."""
        self.storages: list[int] = []
        self.steps: list[Step] = []
        self.worked = 0
        """Elements handled so far; see `guards.check_total`."""
        self.planned: list[PlanStep] = []
        """The operations as they ran, with their numbers worked out."""
        self.counts = Counts(plan.questions, self.tensors)

    def start(self, layout: Layout, dtype: str) -> None:
        """Step 0: x over a fresh storage."""
        cells = 1 + (layout.span or (0, -1))[1]
        x = self.torch.arange(cells, dtype=getattr(self.torch, dtype)).as_strided(layout.shape, layout.stride)
        self._record(x, "start", source="x", expression="x", operation="x", inputs=(), name="x")

    def all(self) -> None:
        """Every planned step in order, until torch refuses one."""
        for step in self.plan.steps:
            self.planned.append(self._known(step))
            if not self._advance(self.planned[-1]):
                return
        self.counts.all()

    def _known(self, step: PlanStep) -> PlanStep:
        """``step`` with the numbers in it worked out."""
        value = self.counts.value
        return replace(
            step,
            args=tuple(self.counts.parts(step.args)),
            keywords=tuple((name, value(given)) for name, given in step.keywords),
            index=None if step.index is None else tuple(value(item) for item in step.index),
        )

    def _advance(self, step: PlanStep) -> bool:
        """Run one planned operation; False when torch refused it."""
        inputs = self._seen(step)
        if step.form == "piece":
            inputs = []
        self._guard(step, inputs)
        if step.operation.restrides:
            self._keep_layouts(inputs[0])
        written = self._touched(step, inputs) if step.operation.writes else None
        try:
            results = self._ran(step, inputs)
            result, pieces = self._pick(step, results)
        except ExpressionError:
            raise
        except Exception as problem:  # whatever torch or einops raises is what this page is about
            self._refuse(step, problem)
            return False
        operation = step.operation
        basis = _basis(step)
        if step.form == "write" or operation.writes:
            self._record_write(inputs[0], written if operation.writes else result, basis)
            self._work(inputs[0].numel() * (1 + len(self.steps[-1].changed)), step)
            return True
        for tensor in (result, *pieces):
            self._check(tensor, step)
        verdict = view_verdict(operation.name, self._inputs(step), tuple(result.shape), _name(result.dtype))
        kind = self._kind(result, inputs, step)
        together = [piece for piece in pieces if storage_identity(piece) == storage_identity(result)]
        self._record(
            result,
            kind,
            **basis,
            pieces=tuple(self._piece(piece) for piece in together) if len(together) > 1 or len(pieces) == 1 else (),
            picked=step.pick,
            verdict=verdict,
            reason=reason(step, kind, self._inputs(step), layout_of(result), _name(result.dtype), verdict),
        )
        if pieces and step.pick is None:
            self.tensors[-1] = pieces
        self._work(sum(piece.numel() for piece in pieces or (() if kind in ("view", "same") else (result,))), step)
        return True

    def _work(self, elements: int, step: PlanStep) -> None:
        """Count what a step handled: what it made, a single view aside; of a write also every tensor that sees it."""
        self.worked += elements
        guards.check_total(self.worked, step.source)

    def _inputs(self, step: PlanStep) -> list[Step]:
        return [self.steps[number] for number in step.inputs]

    # ---------------------------------------------------------------------------------------------- before

    def _guard(self, step: PlanStep, inputs: Sequence[Any]) -> None:
        shapes = [tuple(tensor.shape) for tensor in _opened(inputs)]
        if step.operation.guard is not None:
            args = step.args
            if step.form == "bare" and args and isinstance(args[0], tuple):  # einops stacks a list first
                shapes, args = [(len(shapes), *shapes[0])], args[1:]
            step.operation.guard(shapes, args, dict(step.keywords))
        if step.operation.measured is not None:
            step.operation.measured(shapes, step.args, dict(step.keywords), [largest(t) for t in _opened(inputs)])
        if step.index is not None and step.form != "piece":
            guards.picked(shapes[0], [self._picker(item, inputs) for item in step.index])
        self._guard_complex(step, inputs)

    def _picker(self, item: IndexItem, inputs: Sequence[Any]) -> Picker | int | None:
        """What an item in square brackets picks at most; see `guards.picked`."""
        if item is ...:
            return None
        if isinstance(item, tuple):
            data = np.array(item) if _is_even(item) else np.zeros(0)
            return Picker(data.shape) if data.dtype != bool else Picker((int(data.sum()),), data.ndim)
        if isinstance(item, Slot):
            tensor = inputs[item.number]
            if tensor.dtype in (self.torch.bool, self.torch.uint8):
                return Picker((int(tensor.count_nonzero()),), tensor.dim())
            return Picker(tuple(tensor.shape))
        return 0 if item is None else 1

    def _guard_complex(self, step: PlanStep, inputs: Sequence[Any]) -> None:
        """torch would drop the imaginary part, with a warning nobody sees."""
        complex_ = [tensor.is_complex() for tensor in _opened(inputs)]
        if not any(complex_):
            return
        name = step.operation.name
        wanted = [value.name for value in (*step.args, *dict(step.keywords).values()) if isinstance(value, DType)]
        casts = name in SHORT_CASTS or (name != "view" and any(not dtype.startswith("complex") for dtype in wanted))
        writes = step.form == "write" or step.operation.writes
        if casts or (writes and not complex_[0]):
            raise ExpressionError("Complex numbers do not fit into a real type; take .real or .imag first.")

    def _check(self, result: Any, step: PlanStep) -> None:
        """Caps on what came out: views allocate nothing, but the next step could."""
        if not isinstance(result, self.torch.Tensor):
            raise ExpressionError(f"`{step.source[:60]}` gives no tensor.")
        shape = tuple(result.shape)
        if min(shape, default=0) < 0:
            # torch lets as_strided and broadcast_to make these when another size is 0.
            raise ExpressionError(f"`{step.source[:60]}` gives a tensor of shape {shape}; no size can be negative.")
        check_size(shape, f"The result of `{step.source[:60]}`", self.cap)
        if max(result.stride(), default=0) > limit(self.furthest):
            raise ExpressionError(f"`{step.source[:60]}` gives a stride above {limit(self.furthest):,}.")

    # --------------------------------------------------------------------------------------------- running

    def _ran(self, step: PlanStep, inputs: Sequence[Any]) -> Any:
        args, keywords = self._given(step, inputs)
        match step.form:
            case "method" | "property" | "torch" | "F":
                return call(self.torch, step.form, step.operation, inputs, args, keywords)
            case "bare":
                subject = inputs[:1] if step.operation.subject else ()
                return getattr(self.einops, step.operation.name)(*subject, *args, **keywords)
            case "index":
                return inputs[0][self._index(step.index or (), inputs)]
            case "unary":
                return -inputs[0] if step.symbol == "-" else ~inputs[0]
            case "binary":
                return operator_of(step.symbol)(*args)
            case "write":
                return self._write(step, inputs, args[0])
            case "name":
                return inputs[0]
            case "piece":
                return self.tensors[step.inputs[0]]

    def _touched(self, step: PlanStep, inputs: Sequence[Any]) -> npt.NDArray[np.int64] | None:
        """The cells that an operation in place is about to write, ``None`` for all of its tensor."""
        args, keywords = self._given(step, inputs)
        with suppress(Exception):  # what is wrong with the arguments torch says of the operation itself
            elements = touched(self.torch, step.operation, inputs[0], args, keywords)
            return None if elements is None else layout_of(inputs[0]).cells()[elements.flatten().numpy()]
        return None

    def _given(self, step: PlanStep, inputs: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        keywords = {name: self._value(value, inputs) for name, value in step.keywords}
        return [self._value(arg, inputs) for arg in step.args], keywords

    def _keep_layouts(self, tensor: Any) -> None:
        """Let earlier steps keep the layout that ``tensor`` has now, which is about to change."""
        for number, seen in enumerate(self.tensors):
            if seen is tensor:
                self.tensors[number] = tensor.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def _value(self, value: Value, inputs: Sequence[Any]) -> Any:
        if isinstance(value, Slot):
            return inputs[value.number]
        if isinstance(value, DType | MemoryFormat):
            return getattr(self.torch, value.name)
        if isinstance(value, tuple) and any(isinstance(item, Slot) for item in value):
            return _opened([inputs[item.number] for item in value if isinstance(item, Slot)])
        return value

    def _index(self, index: Index, inputs: Sequence[Any]) -> Any:
        """The items as torch takes them, one alone without a tuple, which it words its errors by.

        A mask of bytes is deprecated and warns; the same mask of bools does not. Neither does a tuple of a nested list.
        """
        items: list[Any] = []
        for item in index:
            if isinstance(item, Slot):
                tensor = inputs[item.number]
                items.append(tensor.bool() if tensor.dtype == self.torch.uint8 else tensor)
            else:
                items.append(_lists(item) if isinstance(item, tuple) else item)
        return items[0] if len(items) == 1 and not isinstance(items[0], list) else tuple(items)

    def _write(self, step: PlanStep, inputs: Sequence[Any], value: Any) -> Any:
        """Write through a name or square brackets; gives the cells written, ``None`` for all of the tensor."""
        update = None if step.symbol == "=" else operator_of(step.symbol)
        if step.index is None:
            if update is not None:
                update(inputs[0], value)
            return None
        index = self._index(step.index, inputs)
        cells = self._cells_written(inputs[0], index)
        if update is not None:
            value = update(inputs[0][index], value)  # what Python does: read, update in place, write back
        inputs[0][index] = value
        return cells

    def _cells_written(self, tensor: Any, index: Any) -> Any:
        """The storage cells that square brackets take of ``tensor``, one per element; ``None`` where they fail."""
        with suppress(Exception):  # what is wrong with the index torch says of the write itself
            layout = layout_of(tensor)
            return self.torch.from_numpy(layout.cells()).view(layout.shape)[index].flatten().numpy()
        return None

    def _pick(self, step: PlanStep, result: Any) -> tuple[Any, tuple[Any, ...]]:
        """The tensor to go on with, and all pieces when there are several."""
        if step.form == "write" or not _several(result):
            return result, ()
        pieces: tuple[Any, ...] = tuple(result)
        if step.form == "name":
            return pieces[0], pieces
        if step.form == "piece":
            if step.index is None:
                return pieces[step.pick or 0], ()
            pieces = pieces[self._index(step.index, ())]
        _check_unpacked(step.unpack, len(pieces))
        if not pieces:
            raise ExpressionError(f"`{step.source[:60]}` gives no tensor.")
        return pieces[step.pick or 0], pieces

    # ------------------------------------------------------------------------------------------- recording

    def _kind(self, result: Any, inputs: Sequence[Any], step: PlanStep) -> Kind:
        if step.form == "name" or any(result is tensor for tensor in inputs):
            return "same"
        number = storage_identity(result)
        if step.form == "piece":
            # Pieces of one storage are drawn with the step that made them all, others on their own.
            if number not in self.storages:
                return "copy"
            first = self.steps[step.inputs[0]]
            there = first.storage == self.storages.index(number) or any(result is tensor for tensor in self.tensors)
            return "same" if there else "view"
        return "view" if any(storage_identity(tensor) == number for tensor in _opened(inputs)) else "copy"

    def _piece(self, tensor: Any) -> Piece:
        return Piece(layout_of(tensor), tensor.is_contiguous(), self.values(tensor))

    def values(self, tensor: Any) -> tuple[Scalar, ...]:
        """The first elements in logical order."""
        return tuple(tensor.flatten()[: limit("storage_cells_drawn")].tolist())

    def cells(self, tensor: Any, count: int) -> tuple[Scalar, ...]:
        """The first ``count`` cells of the storage of ``tensor``, as elements of its dtype."""
        return tuple(raw(tensor).as_strided((count,), (1,), 0).tolist())

    def _record(self, tensor: Any, kind: Kind, **rest: Any) -> None:
        identity = storage_identity(tensor)
        new = identity not in self.storages
        if new:
            self.storages.append(identity)
        storage = self.storages.index(identity)
        nbytes: int = tensor.untyped_storage().nbytes()
        element_size: int = tensor.element_size()
        cells = nbytes // element_size
        number = min(cells, limit("storage_cells_drawn"))
        sharing = [step for step in self.steps if step.storage == storage and step.kind != "write"]
        before = self.steps[-1].bytes_total if self.steps else 0
        self.tensors.append(tensor)
        self.steps.append(
            Step(
                number=len(self.steps),
                kind=kind,
                layout=layout_of(tensor),
                dtype=_name(tensor.dtype),
                element_size=element_size,
                is_contiguous=tensor.is_contiguous(),
                storage=storage,
                storage_elements=cells,
                sharing=tuple(step.number for step in sharing),
                shares_storage_with=(),
                bytes_allocated=nbytes if new else 0,
                bytes_total=before + (nbytes if new and kind != "start" else 0),
                values=self.values(tensor),
                storage_values=self.cells(tensor, number),
                **rest,
            )
        )
        named = dict.fromkeys(label_of(self.steps, step) for step in sharing)
        self.steps[-1] = replace(self.steps[-1], shares_storage_with=tuple(named))

    def _record_write(self, tensor: Any, cells: Any, basis: Mapping[str, Any]) -> None:
        """A write: the cells it touched and every tensor that sees them."""
        size: int = tensor.element_size()
        mark = np.zeros(tensor.untyped_storage().nbytes() // size, dtype=np.bool_)
        touches = np.bincount(layout_of(tensor).cells() if cells is None else cells)
        mark[: len(touches)] = touches > 0
        storage = self.storages.index(storage_identity(tensor))
        # Tensors of other element sizes may lie in the same storage, so cells are compared byte by byte.
        touched = np.zeros(tensor.untyped_storage().nbytes(), dtype=bool)
        touched[: mark.size * size] = mark.repeat(size)
        cells_of: dict[int, Any] = {}  # element size → which cells of that size were touched
        changed: list[int] = []
        for step, seen in zip(self.steps, self.tensors, strict=True):
            if step.storage != storage or step.kind == "write":
                continue
            if any(seen is self.tensors[number] for number in changed):
                continue
            width = step.element_size
            if width not in cells_of:
                lines = touched[: touched.size // width * width].reshape(-1, width)
                cells_of[width] = lines.any(axis=1)
            layouts = [step.layout] if step.picked is not None else [p.layout for p in step.pieces] or [step.layout]
            if any(_any(cells_of[width], layout) for layout in layouts):
                changed.append(step.number)
        table: dict[tuple[Layout, Any], tuple[Scalar, ...]] = {}
        """What tensors alike see; a long chain has many that are."""
        for first in (_first(self.tensors[number]) for number in changed):
            if (layout_of(first), first.dtype) not in table:
                table[layout_of(first), first.dtype] = self.values(first)
        self._record(
            tensor,
            "write",
            **basis,
            written=tuple(np.flatnonzero(mark).tolist()),
            touched=int(mark.sum()),
            changed=tuple(changed),
            after=tuple(
                table[layout_of(first), first.dtype] for first in (_first(self.tensors[number]) for number in changed)
            ),
            updates=int(touches.sum()),
            fullest=(int(touches.argmax()), int(touches.max())) if len(touches) else (0, 0),
            reason=WRITING.why,
        )

    def _refuse(self, step: PlanStep, problem: Exception) -> None:
        tried = self.steps[step.inputs[0] if step.inputs else 0]
        basis: dict[str, Any] = {**_basis(step), "forgets": ()}
        verdict, why = refusal_reason(step, self._inputs(step), self._target(step))
        self.steps.append(
            Step(
                number=len(self.steps),
                kind="refused",
                layout=tried.layout,
                dtype=tried.dtype,
                element_size=tried.element_size,
                is_contiguous=tried.is_contiguous,
                storage=tried.storage,
                storage_elements=tried.storage_elements,
                sharing=(),
                shares_storage_with=(),
                bytes_allocated=0,
                bytes_total=self.steps[-1].bytes_total,
                values=tried.values,
                storage_values=tried.storage_values,
                verdict=verdict,
                error_type=type(problem).__name__,
                error_message=str(problem),
                reason=why,
                fixes=fixes(self.plan.text, step, tried, verdict),
                **basis,
            )
        )

    def _target(self, step: PlanStep) -> Layout | None:
        """What a refused write would have written to: the tensor, or the part that its brackets take as a view."""
        if step.form != "write" and not step.operation.writes:
            return None
        target = self.tensors[step.inputs[0]]
        if step.index is not None:
            try:
                part = target[self._index(step.index, self._seen(step))]
            except (IndexError, TypeError, ValueError, RuntimeError):
                return None  # the brackets are what torch refused
            target = part if storage_identity(part) == storage_identity(target) else None
        return None if target is None else layout_of(target)

    def _seen(self, step: PlanStep) -> list[Any]:
        return [self.tensors[number] for number in step.inputs]


def _basis(step: PlanStep) -> dict[str, Any]:
    """What a recorded step takes over from the plan."""
    return {
        "source": step.source,
        "expression": step.expression,
        "operation": step.operation.name,
        "inputs": step.inputs,
        "line": step.line,
        "name": step.name,
        "forgets": step.forgets,
    }


def layout_of(tensor: Any) -> Layout:
    return Layout(tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset())


def _any(cells: npt.NDArray[np.bool_], layout: Layout) -> bool:
    """Whether any element of ``layout`` lies in a cell that is True."""
    if not layout.numel:
        return False
    return bool(np.ndarray(layout.shape, bool, cells, layout.offset, layout.stride).any())


def _opened(tensors: Sequence[Any]) -> list[Any]:
    """``tensors`` with each split opened into its pieces."""
    return [piece for tensor in tensors for piece in (tensor if _several(tensor) else (tensor,))]


def _check_unpacked(wanted: int | None, number: int) -> None:
    """Raise ``ValueError`` in Python's own words, for q, k, v = x.chunk(2). wanted: negative for at least so many."""
    if wanted is None or wanted == number or 0 > wanted >= -number:
        return
    if wanted < 0:
        raise ValueError(f"not enough values to unpack (expected at least {-wanted}, got {number})")
    if number < wanted:
        raise ValueError(f"not enough values to unpack (expected {wanted}, got {number})")
    raise ValueError(f"too many values to unpack (expected {wanted})")


def _first(result: Any) -> Any:
    """The tensor a step is drawn with, when it made several."""
    return result[0] if _several(result) else result


def _several(result: Any) -> bool:
    return isinstance(result, tuple | list)


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def storage_identity(tensor: Any) -> int:
    """Identity of the storage while it lives; its data pointer will not do, all empty storages share one."""
    return tensor.untyped_storage()._cdata


def _lists(items: Nested) -> Any:
    return [_lists(item) for item in items] if isinstance(items, tuple) else items


def _is_even(items: Nested) -> bool:
    """Whether nested lists have the same lengths everywhere; torch refuses others by itself."""
    if not isinstance(items, tuple):
        return True
    shapes = {len(item) if isinstance(item, tuple) else -1 for item in items}
    return len(shapes) < 2 and all(_is_even(item) for item in items)
