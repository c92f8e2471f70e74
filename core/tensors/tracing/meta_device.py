"""A trace of tensors too large to be made: torch's meta device follows shapes, strides and bytes without memory.

The operations are the same as on real tensors. There are no values, so what depends on them is refused and said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from core.tensors.layout import TensorLayout
from core.tensors.operations.guards import TooLargeError, check_elements
from core.tensors.operations.table import WRITING
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.plan import PlanStep
from core.tensors.tracing.allocations import AllocationMeter, PartsMeter
from core.tensors.tracing.recording import layout_of, storage_identity
from core.tensors.tracing.refusals import strided_bounds
from core.tensors.tracing.run import ProgramRun
from core.tensors.tracing.steps import Scalar


class CountedRun(ProgramRun):
    """A `ProgramRun` on the meta device; every step has its layout and bytes, none has values."""

    counted = True
    cap = "counted_elements"
    furthest = "counted_elements"

    def _meter(self) -> AllocationMeter:
        return PartsMeter(self.torch)

    def values(self, tensor: Any) -> tuple[Scalar, ...]:
        return ()

    def cells(self, tensor: Any, count: int) -> tuple[Scalar, ...]:
        return ()

    def _work(self, elements: int, step: PlanStep) -> None:
        """Nothing is made, so nothing is counted against a click."""

    def _guard(self, step: PlanStep, inputs: Sequence[Any]) -> None:
        try:
            super()._guard(step, inputs)
        except TooLargeError as problem:
            check_elements(problem.count, problem.what, self.cap)
        if step.operation.name == "as_strided":  # which checks no bounds on the meta device
            cells = inputs[0].untyped_storage().nbytes() // inputs[0].element_size()
            checked = strided_bounds(step, layout_of(inputs[0]), cells)
            if checked is not None and not checked.inside:
                raise ExpressionError(f"`{step.source[:60]}`: {checked.reason}: {checked.arithmetic}.")

    def _ran(self, step: PlanStep, inputs: Sequence[Any]) -> Any:
        if step.form == "write" or step.operation.writes:
            self._guard_reading(step, inputs)
        whole = inputs and not (inputs[0].is_floating_point() or inputs[0].is_complex())
        if whole and step.symbol in ("**", "**=") and isinstance(step.args[-1], int) and step.args[-1] < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")  # as the CPU's kernels do
        try:
            return self._as_on_cpu(step, inputs, super()._ran(step, inputs))
        except NotImplementedError:
            raise ExpressionError(
                f"What `{step.source[:60]}` gives depends on values, and tensors of this size are only counted. A "
                "smaller x shows it."
            ) from None
        except RuntimeError as problem:
            if "meta" in str(problem).lower() and "Meta" not in str(problem):
                raise ExpressionError(
                    f"`{step.source[:60]}` is not followed at this size, where tensors are only counted. A smaller x "
                    "shows it."
                ) from None
            raise

    # -------------------------------------------------------------------------------------------- writes

    def _as_on_cpu(self, step: PlanStep, inputs: Sequence[Any], result: Any) -> Any:
        """``result`` with the strides that the kernels of the CPU give it, where the meta device takes others.

        Fused attention writes its result in the order of the queries.
        """
        if step.operation.name != "scaled_dot_product_attention" or result.dim() != 4:
            return result
        return self.torch.empty_like(inputs[0]) if inputs[0].shape == result.shape else result

    def _guard_reading(self, step: PlanStep, inputs: Sequence[Any]) -> None:
        """Refuse to write from the same cells: torch refuses some of that, and the meta device none."""
        for other in inputs[1:]:
            same = storage_identity(other) == storage_identity(inputs[0])
            if same and (step.index is not None or layout_of(other) != layout_of(inputs[0])):
                raise ExpressionError(
                    f"`{step.source[:60]}` reads the storage that it writes, which is not followed at this size. A "
                    "smaller x shows it."
                )

    def _touched(self, step: PlanStep, inputs: Sequence[Any]) -> None:
        """Which cells a mask or an index would pick is not worked out: it would take one number for each of them."""

    def _cells_written(self, tensor: Any, index: Any) -> TensorLayout | None:
        """Where a write through square brackets goes: the view that they take."""
        part = tensor[index]
        if storage_identity(part) != storage_identity(tensor):
            raise ExpressionError(
                "Which cells a list or tensor in square brackets picks is not worked out for tensors of this size. "
                "A smaller x shows it."
            )
        return layout_of(part)

    def _record_write(self, tensor: Any, cells: Any, basis: Mapping[str, Any]) -> None:
        target = cells if isinstance(cells, TensorLayout) else layout_of(tensor)
        size = tensor.element_size()
        changed = self._seeing(tensor, lambda layout, item: _meet(target, size, layout, item))
        taken = [n if s or not n else 1 for n, s in zip(target.shape, target.stride, strict=True)]
        distinct = math.prod(taken)
        if _overlaps(TensorLayout(tuple(taken), target.stride)):
            raise ExpressionError("Which cells are written more than once is not worked out at this size.")
        self._record(
            tensor,
            "write",
            **basis,
            written=(),
            touched=distinct,
            changed=tuple(changed),
            after=tuple(() for _ in changed),
            updates=target.numel,
            fullest=(target.offset, target.numel // distinct if distinct else 0),
            reason=WRITING.why,
        )


def _meet(target: TensorLayout, size: int, layout: TensorLayout, item: int) -> bool:
    """Whether two layouts of elements of these sizes share a byte."""
    try:
        return target.meets(layout) if size == item else _bytes(target, size).meets(_bytes(layout, item))
    except ValueError:
        raise ExpressionError(
            "Whether this write reaches the other tensors is not worked out at this size. A smaller x shows it."
        ) from None


def _overlaps(layout: TensorLayout) -> bool:
    """Whether elements share a cell; where that would take long, they may."""
    try:
        return layout.overlaps
    except ValueError:
        return True


def _bytes(layout: TensorLayout, size: int) -> TensorLayout:
    return TensorLayout((*layout.shape, size), (*(stride * size for stride in layout.stride), 1), layout.offset * size)
