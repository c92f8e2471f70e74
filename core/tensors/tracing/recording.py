"""What a run puts down of every step: layout, storage, bytes, who shares it, and what torch refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from core.limits import limit
from core.tensors.layout import TensorLayout
from core.tensors.operations.table import WRITING
from core.tensors.parsing.plan import PlanStep
from core.tensors.tracing.allocations import Allocated, AllocationMeter
from core.tensors.tracing.gradients import SavedTensors
from core.tensors.tracing.reasons import fixes
from core.tensors.tracing.refusals import refusal_reason
from core.tensors.tracing.several import first_of, opened, raw
from core.tensors.tracing.steps import Kind, Piece, Scalar, TraceStep


class Recorder:
    """The tensors of one trace, kept alive until its end so that storages can be told apart."""

    cap = "tensor_elements"
    """The entry of core.limits that caps a tensor."""
    furthest = "expression_integer"
    """The entry that caps a stride."""

    def __init__(self, torch: Any, einops: Any, text: str) -> None:
        self.torch = torch
        self.einops = einops
        self.text = text
        self.tensors: list[Any] = []
        """One per step: a tensor, or the tuple of all that a split made while none is picked."""
        self.storages: list[int] = []
        self.steps: list[TraceStep] = []
        self.worked: int = 0
        """Elements handled so far; see `guards.check_total`."""
        self.planned: list[PlanStep] = []
        """The operations as they ran, with their numbers worked out."""
        self.place = "cpu"
        """Where the storage that is about to be recorded lies."""
        self.devices: list[str] = []
        """Where each storage lies."""
        self.drawn: Any = torch.Generator().manual_seed(0)
        """Where random numbers come from, until a manual_seed."""
        self.nodes = SavedTensors(torch)
        self.problem: Exception | None = None
        """What torch raised last."""
        self.left: list[Any] = []
        """The gradients that backward has just made."""
        self.meter = self._meter()
        self.stored: list[dict[int, int]] = []
        """For each step the storages that its tensors lie in, by their identity, and their bytes."""
        self.kept: list[frozenset[int]] = []
        """For each step the steps whose tensors something stands for once it is done."""
        self.saved: dict[int, list[tuple[int, int]]] = {}
        """For each step the storages that it newly keeps for backward, by their identity, and their bytes."""
        self.reads: dict[int, tuple[Allocated, ...]] = {}
        """For each update through square brackets, what reading, updating and writing the part allocated."""

    def _meter(self) -> AllocationMeter:
        return AllocationMeter(self.torch)

    def nothing(self) -> None:
        """Step 0 of a program that never reads x: a place without a storage."""
        self._record(self.torch.zeros(()), "start", source="", expression="", operation="x", inputs=())
        self.steps[0] = replace(
            self.steps[0], storage=-1, bytes_allocated=0, bytes_peak=0, values=(), storage_values=()
        )
        self.storages, self.devices, self.stored = [], [], [{}]

    def _check_devices(self, step: PlanStep) -> None:
        """torch's own refusal where tensors of two devices meet; numbers in a tensor of no dimension may."""
        if step.form in ("name", "piece", "grad") or step.operation.name in ("to", "copy_", "cuda", "cpu", "type_as"):
            return
        found = {self.device(number): None for number in step.inputs if self.steps[number].layout.rank}
        if len(found) > 1:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {' and '.join(found)}!"
            )

    def device(self, number: int) -> str:
        """Where the tensor of a step lies."""
        storage = self.steps[number].storage
        return self.devices[storage] if storage >= 0 else "cpu"

    def _placed(self, step: PlanStep) -> tuple[str, int]:
        """Where the result of ``step`` lies, and how many bytes move there."""
        there = next((self.device(n) for n in step.inputs if self.steps[n].layout.rank), "")
        there = there or next((self.device(n) for n in step.inputs), "cpu")
        if not step.device or step.device == there or step.operation.name not in ("to", "cuda", "cpu"):
            return step.device or there, 0
        return step.device, 1

    def _inputs(self, step: PlanStep) -> list[TraceStep]:
        return [self.steps[number] for number in step.inputs]

    def _kind(self, result: Any, inputs: Sequence[Any], step: PlanStep) -> Kind:
        if step.form == "name" or any(result is tensor for tensor in inputs):
            return "same"
        number = storage_identity(result)
        if step.form == "grad":
            return "view" if number in self.storages else "copy"  # torch may hand one buffer to two leaves
        if step.form == "piece":
            # Pieces of one storage are drawn with the step that made them all, others on their own.
            if number not in self.storages:
                return "copy"
            first = self.steps[step.inputs[0]]
            there = first.storage == self.storages.index(number) or any(result is tensor for tensor in self.tensors)
            return "same" if there else "view"
        return "view" if any(storage_identity(tensor) == number for tensor in opened(inputs)) else "copy"

    def _piece(self, tensor: Any) -> Piece:
        return Piece(layout_of(tensor), tensor.is_contiguous(), self.values(tensor))

    def values(self, tensor: Any) -> tuple[Scalar, ...]:
        """The first elements in logical order."""
        return tuple(tensor.flatten()[: limit("storage_cells_drawn")].tolist())

    def cells(self, tensor: Any, count: int) -> tuple[Scalar, ...]:
        """The first ``count`` cells of the storage of ``tensor``, as elements of its dtype."""
        return tuple(raw(tensor).as_strided((count,), (1,), 0).tolist())

    def _record(self, tensor: Any, kind: Kind, *, made: Sequence[Any] = (), **rest: Any) -> None:
        """A step that gives ``tensor``. made: all that it gives, where that is more."""
        stored = {storage_identity(item): item.untyped_storage().nbytes() for item in (tensor, *made)}
        asked = kind not in ("start", "same") or rest["operation"] == "backward"
        used = self.meter.allocated() if asked else Allocated()
        seen = {number for numbers in self.stored for number in numbers}
        kept = sum(size for number, size in stored.items() if number not in seen)
        self.stored.append(stored)
        identity = storage_identity(tensor)
        new = identity not in self.storages
        if new:
            self.storages.append(identity)
            self.devices.append(self.place)
        storage = self.storages.index(identity)
        nbytes: int = tensor.untyped_storage().nbytes()
        element_size: int = tensor.element_size()
        cells = nbytes // element_size
        number = min(cells, limit("storage_cells_drawn"))
        before = self.steps[-1].bytes_total if self.steps else 0
        inside = max(used.total - kept, 0)
        self.tensors.append(tensor)
        self.steps.append(
            TraceStep(
                number=len(self.steps),
                kind=kind,
                layout=layout_of(tensor),
                dtype=name_of(tensor.dtype),
                element_size=element_size,
                is_contiguous=tensor.is_contiguous(),
                storage=storage,
                storage_elements=cells,
                bytes_allocated=nbytes if new else 0,
                bytes_total=before + (kept + inside if kind != "start" else 0),
                bytes_inside=inside,
                bytes_peak=max(used.peak, kept),
                freed=used.freed,
                values=self.values(tensor),
                storage_values=self.cells(tensor, number),
                device=self.devices[storage],
                asks_gradient=bool(tensor.requires_grad),
                **rest,
            )
        )

    def _record_write(self, tensor: Any, cells: Any, basis: Mapping[str, Any]) -> None:
        """A write: the cells it touched and every tensor that sees them."""
        size: int = tensor.element_size()
        mark = np.zeros(tensor.untyped_storage().nbytes() // size, dtype=np.bool_)
        touches = np.bincount(layout_of(tensor).cells() if cells is None else cells)
        mark[: len(touches)] = touches > 0
        # Tensors of other element sizes may lie in the same storage, so cells are compared byte by byte.
        touched = np.zeros(tensor.untyped_storage().nbytes(), dtype=bool)
        touched[: mark.size * size] = mark.repeat(size)
        cells_of: dict[int, Any] = {}  # element size → which cells of that size were touched

        def sees(layout: TensorLayout, width: int) -> bool:
            if width not in cells_of:
                cells_of[width] = touched[: touched.size // width * width].reshape(-1, width).any(axis=1)
            return _any(cells_of[width], layout)

        changed = self._seeing(tensor, sees)
        firsts = [first_of(self.tensors[number]) for number in changed]
        alike = {(layout_of(first), first.dtype): first for first in firsts}  # a long chain has many that are
        values = {key: self.values(first) for key, first in alike.items()}
        self._record(
            tensor,
            "write",
            **basis,
            written=tuple(np.flatnonzero(mark).tolist()),
            touched=int(mark.sum()),
            changed=tuple(changed),
            after=tuple(values[layout_of(first), first.dtype] for first in firsts),
            updates=int(touches.sum()),
            fullest=(int(touches.argmax()), int(touches.max())) if len(touches) else (0, 0),
            reason=WRITING.why,
        )

    def _seeing(self, tensor: Any, sees: Callable[[TensorLayout, int], bool]) -> list[int]:
        """The earlier steps on the storage of ``tensor`` that ``sees`` says see a write, each of their tensors once."""
        storage = self.storages.index(storage_identity(tensor))
        changed: list[int] = []
        for step, seen in zip(self.steps, self.tensors, strict=True):
            if step.storage != storage or step.kind in ("write", "refused"):
                continue
            layouts = [step.layout] if step.picked is not None else [p.layout for p in step.pieces] or [step.layout]
            known = any(seen is self.tensors[number] for number in changed)
            if not known and any(sees(layout, step.element_size) for layout in layouts):
                changed.append(step.number)
        return changed

    def _refuse(self, step: PlanStep, problem: Exception, target: TensorLayout | None) -> None:
        """A step that torch refused. target: what a write would have written to, where that is known."""
        tried = self.steps[step.inputs[0] if step.inputs else 0]
        used = self.meter.allocated()
        self.stored.append({})
        verdict, why = refusal_reason(step, self._inputs(step), target)
        self.tensors.append(self.tensors[step.inputs[0] if step.inputs else 0])
        self.steps.append(
            TraceStep(
                number=len(self.steps),
                kind="refused",
                bytes_allocated=0,
                bytes_total=self.steps[-1].bytes_total + used.total,
                bytes_inside=used.total,
                bytes_peak=used.peak,
                freed=used.freed,
                verdict=verdict,
                error_type=type(problem).__name__,
                error_message=str(problem),
                reason=why,
                fixes=fixes(self.text, step, tried, verdict),
                **{name: getattr(tried, name) for name in _OF_TENSOR},
                **basis_of(step),
            )
        )

    def _seen(self, step: PlanStep) -> list[Any]:
        return [self.tensors[number] for number in step.inputs]


_OF_TENSOR = (
    *("layout", "dtype", "element_size", "is_contiguous", "storage", "storage_elements", "values", "storage_values"),
    "device",
)
"""Fields of a step that tell of its tensor."""


def basis_of(step: PlanStep) -> dict[str, Any]:
    """What a recorded step takes over from the plan."""
    return {
        "source": step.source,
        "expression": step.expression,
        "operation": step.operation.name,
        "inputs": step.inputs,
        "line": step.line,
        "name": step.name,
    }


def layout_of(tensor: Any) -> TensorLayout:
    return TensorLayout(tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset())


def _any(cells: npt.NDArray[np.bool_], layout: TensorLayout) -> bool:
    """Whether any element of ``layout`` lies in a cell that is True."""
    if not layout.numel:
        return False
    return bool(np.ndarray(layout.shape, bool, cells, layout.offset, layout.stride).any())


def name_of(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def storage_identity(tensor: Any) -> int:
    """Identity of the storage while it lives; its data pointer will not do, all empty storages share one."""
    return tensor.untyped_storage()._cdata
