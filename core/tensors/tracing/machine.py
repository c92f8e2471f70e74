"""A run that a reader drives: each statement runs before the next one is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from core.tensors.parsing.plan import PlanStep
from core.tensors.tracing.run import Run


class RunningMachine:
    """What a `Reader` asks of a `Run`; see `core.tensors.parsing.facts.Machine`."""

    def __init__(self, run: Run) -> None:
        self.running = run
        self.counted = run.cap == "counted_elements"

    def advance(self, steps: Sequence[PlanStep]) -> Exception | None:
        return None if self.running.advance(steps) else self.running.problem

    def tensor(self, number: int) -> Any:
        return self.running.tensors[number]

    def number(self, count: Any) -> Any:
        return self.running.counts.value(count)

    def device(self, number: int) -> str:
        return self.running.device(number)

    def storage(self, number: int) -> int:
        return self.running.steps[number].storage

    def gradient(self, number: int) -> int | None:
        """The step that made the gradient of a step's tensor, if there is one."""
        tensor = self.running.tensors[number]
        if isinstance(tensor, tuple) or not (self._is_leaf(tensor) or tensor.retains_grad) or tensor.grad is None:
            return None
        gradient = tensor.grad
        return next((n for n, other in enumerate(self.running.tensors) if other is gradient), None)

    def _is_leaf(self, tensor: Any) -> bool:
        try:
            return tensor.is_leaf
        except RuntimeError:  # see `SavedTensors.tracks`
            return False

    def reached(self, number: int) -> list[int]:
        """The steps whose tensors backward from ``number`` would leave a gradient at, each tensor once."""
        run = self.running
        leaves = run.nodes.leaves(run.tensors[number])
        found: dict[int, int] = {}
        for at, tensor in enumerate(run.tensors):
            if isinstance(tensor, tuple) or run.steps[at].kind in ("write", "refused"):
                continue
            reaches = tensor.requires_grad and (
                (self._is_leaf(tensor) and id(tensor) in leaves)
                or (tensor.retains_grad and tensor.grad_fn in leaves.values())
            )
            if reaches:
                found.setdefault(id(tensor), at)
        return list(found.values())

    def clear(self, number: int) -> None:
        self.running.tensors[number].grad = None

    def forget(self, number: int, name: str) -> None:
        """Let a step that has run say that ``name`` stands for no tensor after it."""
        steps = self.running.steps
        if number < len(steps):
            steps[number] = replace(steps[number], forgets=(*steps[number].forgets, name))

    def has_run(self, number: int) -> bool:
        return number < len(self.running.steps)

    def unpacks(self, number: int, wanted: int) -> bool:
        """Whether the several tensors of a step go into so many names; negative for at least so many."""
        count = len(self.running.tensors[number])
        return count == wanted if wanted >= 0 else count >= -wanted

    def seed(self, number: int) -> None:
        self.running.drawn = self.running.torch.Generator().manual_seed(number % 2**63)

    def allocated(self, device: str) -> int:
        run = self.running
        made = {step.storage: step.bytes_allocated for step in run.steps if step.bytes_allocated}
        return sum(count for storage, count in made.items() if run.devices[storage].startswith(device))

    def mark(self) -> tuple[int, int, int]:
        run = self.running
        return len(run.steps), len(run.storages), run.worked

    def back(self, mark: tuple[int, int, int]) -> None:
        """Undo the record of what ran since ``mark``, for steps that wrote nothing."""
        run = self.running
        steps, storages, worked = mark
        run.worked = worked
        del run.steps[steps:], run.tensors[steps:], run.planned[steps - 1 :]
        del run.storages[storages:], run.devices[storages:], run.stored[steps:]
