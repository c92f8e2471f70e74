"""What a reader asks of a run; see `core.tensors.parsing.facts.Machine`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.tensors.operations.table import NAMING
from core.tensors.parsing.plan import PlanStep
from core.tensors.tracing.run import Run


class RunningMachine:
    """A run that a reader drives, step by step."""

    def __init__(self, run: Run) -> None:
        self.running = run
        self.counted = run.cap == "counted_elements"

    def run(self, step: PlanStep) -> Exception | None:
        return self.running.run(step)

    def last(self) -> int:
        """The number of the last step."""
        return len(self.running.steps) - 1

    def tensor(self, number: int) -> Any:
        return self.running.tensors[number]

    def device(self, number: int) -> str:
        return self.running.device(number)

    def storage(self, number: int) -> int:
        return self.running.steps[number].storage

    def name(self, number: int) -> str:
        step = self.running.steps[number]
        return step.name or step.expression[:24]

    def operation(self, number: int) -> Any:
        """The operation that made the tensor of a step, which names hand on."""
        while number and self.running.planned[number - 1].form == "name":
            number = self.running.planned[number - 1].inputs[0]
        return self.running.planned[number - 1].operation if number else NAMING

    def rename(self, number: int, name: str) -> None:
        """Let the result of a step have a name."""
        steps, planned = self.running.steps, self.running.planned
        steps[number] = replace(steps[number], name=name)
        if number:
            planned[number - 1] = replace(planned[number - 1], name=name)

    def settle(self, names: Mapping[str, int], held: frozenset[int]) -> None:
        """Put down what stands for what, and which tensors are held, once the last step is done."""
        run = self.running
        run.steps[-1] = replace(run.steps[-1], names=names)
        del run.kept[len(run.steps) - 1 :]
        run.kept.append(held)

    def gradient(self, number: int) -> int | None:
        """The step that made the gradient of a step's tensor, if there is one."""
        tensor = self.running.tensors[number]
        if isinstance(tensor, tuple) or not tensor.requires_grad or not (self._is_leaf(tensor) or tensor.retains_grad):
            return None
        gradient = tensor.grad
        if gradient is None:
            return None
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
        """Undo the record of what ran since ``mark``, unless a step left an earlier tensor other than it was."""
        run = self.running
        steps, storages, worked = mark
        if any(
            step.form == "write" or step.operation.writes or step.operation.restrides
            for step in run.planned[steps - 1 :]
        ):
            return
        run.worked = worked
        del run.steps[steps:], run.tensors[steps:], run.planned[steps - 1 :], run.kept[steps:]
        del run.storages[storages:], run.devices[storages:], run.stored[steps:]
