"""How long memory lives: a tensor stays while something stands for it or a later operation takes it, as in Python.

A storage is given back with its last tensor. What an expression makes on the way is gone once the operation that took
it has returned; an old tensor of a name goes when the name stands for another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from core.tensors.parsing.plan import PlanStep
from core.tensors.tracing.allocations import Allocated
from core.tensors.tracing.steps import TraceStep

Storages: TypeAlias = Mapping[int, int]
"""Identity of a storage → its bytes."""


def alive(
    planned: Sequence[PlanStep],
    steps: Sequence[TraceStep],
    stored: Sequence[Storages],
    kept: Sequence[frozenset[int]],
    saved: Mapping[int, Sequence[tuple[int, int]]],
    reads: Mapping[int, tuple[Allocated, ...]],
) -> tuple[list[dict[int, int]], list[int]]:
    """The storages that are there after each step, and the most bytes that were there at once during it.

    stored: the storages in which the tensors of each step lie. kept: the steps whose tensors something stands for after
    each. saved: what each keeps for backward, which lasts as long as a tensor that backward could start from, or until
    it has passed. reads: what an update through square brackets allocates to read what it updates, which Python does
    before it works the value out, then to update it, and to write it back, when the value is gone already.
    """
    last = {number: at for at, step in enumerate(planned, 1) for number in step.inputs}
    """The last operation that takes the tensor of each step."""
    graph: list[frozenset[int]] = []
    """For each step those that backward from it passes."""
    passed: set[int] = set()
    held: list[dict[int, int]] = []
    most: list[int] = []
    for at, step in enumerate(steps):
        most.append((sum(held[-1].values()) if held else 0) + step.bytes_peak)
        numbers = {number for number in kept[at] if number <= at} if at < len(kept) else set[int]()
        numbers |= {number for number in range(at + 1) if last.get(number, 0) > at}
        if at == len(steps) - 1:
            numbers.add(at)  # the result, which is shown
        before = planned[at - 1].inputs if at else ()
        behind = frozenset({at}).union(*(graph[number] for number in before))
        graph.append(behind if step.asks_gradient else frozenset())
        if step.operation == "backward" and ("retain_graph", True) not in planned[at - 1].keywords:
            passed |= graph[planned[at - 1].inputs[0]]
        behind = frozenset[int]().union(*(graph[number] for number in numbers)) - passed
        lasting = {storage: size for number in behind for storage, size in saved.get(number, ())}
        held.append(lasting | {storage: size for number in numbers for storage, size in stored[number].items()})
    for at, (read, update, store) in reads.items():
        since = planned[at - 1].reads or 0
        for number in range(since + 1, at):  # the steps that work the value out
            most[number] += read.kept
        before, after = sum(held[at - 1].values()), sum(held[at].values())
        most[at] = read.kept + max(before + update.peak, after + update.kept + store.peak)
        most[since + 1] = max(most[since + 1], sum(held[since].values()) + read.peak)
    return held, most
