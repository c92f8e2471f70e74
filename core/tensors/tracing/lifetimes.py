"""How long memory lives: a tensor stays while a name stands for it or a later operation takes it, as in Python.

A storage is given back with its last tensor. What an expression makes on the way is gone once the operation that took
it has returned; an old tensor of a name goes when the name stands for another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from core.tensors.parsing.plan import Plan
from core.tensors.tracing.allocations import Allocated
from core.tensors.tracing.steps import Step

Storages: TypeAlias = Mapping[int, int]
"""Identity of a storage → its bytes."""


def alive(
    plan: Plan, steps: Sequence[Step], stored: Sequence[Storages], reads: Mapping[int, tuple[Allocated, ...]]
) -> tuple[list[dict[int, int]], list[int]]:
    """The storages that are there after each step, and the most bytes that were there at once during it.

    plan: of all steps, those behind a refused one too. stored: the storages in which the tensors of each step lie.
    reads: what an update through square brackets allocates to read what it updates, which Python does before it works
    the value out, then to update it, and to write it back, when the value is gone already.
    """
    last = {number: at for at, planned in enumerate(plan.steps, 1) for number in planned.inputs}
    """The last operation that takes the tensor of each step."""
    names = _Names(plan)
    held = [dict(stored[0])]
    most = [steps[0].bytes_peak]
    for at in range(1, len(steps)):
        most.append(sum(held[-1].values()) + steps[at].bytes_peak)
        kept = names.after(at) | {number for number in range(at + 1) if last.get(number, 0) > at}
        if at == len(steps) - 1:
            kept.add(at)  # the result, which is shown
        held.append({storage: size for number in kept for storage, size in stored[number].items()})
    for at, (read, update, store) in reads.items():
        since = plan.steps[at - 1].reads or 0
        for number in range(since + 1, at):  # the steps that work the value out
            most[number] += read.kept
        before, after = sum(held[at - 1].values()), sum(held[at].values())
        most[at] = read.kept + max(before + update.peak, after + update.kept + store.peak)
        most[since + 1] = max(most[since + 1], sum(held[since].values()) + read.peak)
    return held, most


class _Names:
    """Which steps the names stand for."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.steps: dict[str, tuple[int, ...]] = {"x": (0,)}
        self.waiting: list[tuple[int, str, int]] = []
        """Names of a line whose values are all worked out first: from when, the name, and the step it stands for."""
        self._list(0)

    def after(self, at: int) -> set[int]:
        """The steps whose tensors have a name once step ``at`` is done; asked of one step after the other."""
        planned = self.plan.steps[at - 1]
        for name in planned.forgets:
            self.steps.pop(name, None)
        if planned.name:
            self.waiting.append((planned.bound or at, planned.name, at))
        self.steps.update({name: (number,) for when, name, number in self.waiting if when <= at})
        self.waiting = [item for item in self.waiting if item[0] > at]
        self._list(at)
        return {*(n for numbers in self.steps.values() for n in numbers), *(n for _, _, n in self.waiting)}

    def _list(self, at: int) -> None:
        self.steps.update({name: numbers for when, name, numbers in self.plan.lists if when == at})
