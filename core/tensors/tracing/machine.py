"""What a reader asks of a run; see `core.tensors.parsing.facts.Machine`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.tensors.operations.table import NAMING
from core.tensors.tracing.recording import Recorder


class Answering(Recorder):
    """A record that a reader asks, step by step, and tells the names of things."""

    counted = False
    """Whether tensors are only counted, not made."""

    def last(self) -> int:
        """The number of the last step."""
        return len(self.steps) - 1

    def tensor(self, number: int) -> Any:
        return self.tensors[number]

    def storage(self, number: int) -> int:
        return self.steps[number].storage

    def name(self, number: int) -> str:
        step = self.steps[number]
        return step.name or step.expression[:24]

    def operation(self, number: int) -> Any:
        """The operation that made the tensor of a step, which names hand on."""
        while number and self.planned[number - 1].form == "name":
            number = self.planned[number - 1].inputs[0]
        return self.planned[number - 1].operation if number else NAMING

    def rename(self, number: int, name: str) -> None:
        """Let the result of a step have a name."""
        self.steps[number] = replace(self.steps[number], name=name)
        if number:
            self.planned[number - 1] = replace(self.planned[number - 1], name=name)

    def settle(self, names: Mapping[str, int], held: frozenset[int]) -> None:
        """Put down what stands for what, and which tensors are held, once the last step is done."""
        self.steps[-1] = replace(self.steps[-1], names=names)
        del self.kept[len(self.steps) - 1 :]
        self.kept.append(held)

    def gradient(self, number: int) -> int | None:
        """The step that made the gradient of a step's tensor, if there is one."""
        tensor = self.tensors[number]
        if isinstance(tensor, tuple) or not tensor.requires_grad or not (self._is_leaf(tensor) or tensor.retains_grad):
            return None
        gradient = tensor.grad
        if gradient is None:
            return None
        return next((n for n, other in enumerate(self.tensors) if other is gradient), None)

    def _is_leaf(self, tensor: Any) -> bool:
        try:
            return tensor.is_leaf
        except RuntimeError:  # see `SavedTensors.tracks`
            return False

    def reached(self, number: int) -> list[int]:
        """The steps whose tensors backward from ``number`` would leave a gradient at, each tensor once."""
        leaves = self.nodes.leaves(self.tensors[number])
        found: dict[int, int] = {}
        for at, tensor in enumerate(self.tensors):
            if isinstance(tensor, tuple) or self.steps[at].kind in ("write", "refused"):
                continue
            reaches = tensor.requires_grad and (
                (self._is_leaf(tensor) and id(tensor) in leaves)
                or (tensor.retains_grad and tensor.grad_fn in leaves.values())
            )
            if reaches:
                found.setdefault(id(tensor), at)
        return list(found.values())

    def clear(self, number: int) -> None:
        self.tensors[number].grad = None

    def seed(self, number: int) -> None:
        self.drawn = self.torch.Generator().manual_seed(number % 2**63)

    def allocated(self, device: str) -> int:
        made = {step.storage: step.bytes_allocated for step in self.steps if step.bytes_allocated}
        return sum(count for storage, count in made.items() if self.devices[storage].startswith(device))

    def mark(self) -> tuple[int, int, int]:
        return len(self.steps), len(self.storages), self.worked

    def back(self, mark: tuple[int, int, int]) -> None:
        """Undo the record of what ran since ``mark``, unless a step left an earlier tensor other than it was."""
        steps, storages, worked = mark
        if any(
            step.form == "write" or step.operation.writes or step.operation.restrides
            for step in self.planned[steps - 1 :]
        ):
            return
        self.worked = worked
        del self.steps[steps:], self.tensors[steps:], self.planned[steps - 1 :], self.kept[steps:]
        del self.storages[storages:], self.devices[storages:], self.stored[steps:]
