"""The largest model that a cluster holds, and the fewest accelerators that hold a plan."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from core.budget.equations import BudgetError
from core.formula import Explanation
from core.limits import cached, limit
from core.messages import message
from core.planning.layout import own_layout, resolve_layout, tried_layouts
from core.planning.memory_estimate import MemoryEstimate, memory_estimate
from core.planning.plan import TYPED, Plan, whole_accelerators
from core.planning.solving import allocations, first_place, largest_size, rounded_down
from core.training.device.inputs import explain_largest
from core.training.device.memory import DeviceMemory
from core.training.layout import LayoutError
from core.training.optimizers import explain_state_bytes

Counted: TypeAlias = Literal["everything", "model states alone"]
"""What has to fit."""

_EXAMPLE = 8e9
_ROUNDS = 3
_ROUNDING = 1e-14
"""Forgives the division's rounding, so that 640 GB / 16 B is 40B and never 39.99B."""


@dataclass(frozen=True, eq=False, slots=True)
class Largest:
    """Largest model that fits, and the memory that it then needs.

    parameters: count rounded down to four digits; 0 if no model fits, NaN if the memory capacity is unknown.
    device_memory: the part of ``memory`` that is counted.
    """

    plan: Plan
    counted: Counted
    parameters: float
    memory: MemoryEstimate

    @property
    def device_memory(self) -> DeviceMemory:
        """What is counted on the fullest accelerator."""
        if self.counted == "everything":
            return self.memory.device_memory
        memory = self.memory.device_memory
        whole = memory.gradients + memory.later
        return replace(memory, gradients=whole, later=0.0, activations=0.0, gathered=0.0, buckets=0.0, runtime=0.0)

    def explain(self) -> tuple[Explanation, ...]:
        """Return how the result follows from model states only, or from the full memory account."""
        if self.counted == "everything" or math.isnan(self.parameters):
            return self.memory.explain()
        return explain_by_states(self.memory)


def explain_by_states(h: MemoryEstimate) -> tuple[Explanation, ...]:
    """Return the steps to the largest model by model states only, sharded evenly over all accelerators."""
    return (
        *(() if h.plan.runtime_options.paged else explain_state_bytes(h.optimizer, h.policy, h.spec)),
        *explain_largest(h.states_each, h.layout, h.usable),
    )


def largest_by_states(h: MemoryEstimate) -> float:
    """Return the parameters of the largest model whose states fit; NaN if the memory capacity is unknown."""
    return explain_by_states(h)[-1].value


@cached("results_kept")
def largest(plan: Plan, counted: Counted = "everything") -> Largest:
    """Return the largest dense model that fits on the plan's accelerators, with everything else unchanged.

    Without a custom layout, the model is fully sharded as in ZeRO-3, which sets no condition on its shape. An even
    larger model can fit if its shape changes, for example to a smaller vocabulary. Raises `LayoutError` if the
    accelerators have no valid layout.
    """
    given, plan = plan, replace(plan, own_layout=True, layout=plan.layout if plan.own_layout else Plan().layout)
    resolve_layout(own_layout(plan), whole_accelerators(plan.accelerators), plan.sequences)
    alone = _EXAMPLE
    for _ in range(_ROUNDS):  # states that depend on shapes are another share of another size
        alone = min(largest_by_states(_sized(plan, max(1.0, alone))) * (1 + _ROUNDING), limit("parameters"))
    if math.isnan(alone):
        return Largest(given, counted, math.nan, _sized(plan, _EXAMPLE))
    if counted == "model states alone":
        value = rounded_down(alone) if alone >= 1 else 0.0
    else:
        value = min(largest_size(lambda size: _load(plan, size), alone, limit("parameters")), limit("parameters"))
    return Largest(given, counted, value, _sized(plan, max(1.0, value)))


def _load(plan: Plan, parameters: float) -> float:
    """Return the bytes of a model of so many parameters over those that it may take; infinite if its layers cannot be
    split so."""
    with suppress(LayoutError):
        h = memory_estimate(_typed_plan(plan, parameters))
        return h.total / (h.total + h.room)
    return math.inf


def _sized(plan: Plan, parameters: float) -> MemoryEstimate:
    """Return the plan for a model of so many parameters, not split where its layers cannot be."""
    try:
        return memory_estimate(_typed_plan(plan, parameters))
    except LayoutError:
        whole = replace(plan.layout, tensor=1, pipeline=1, interleave=1, context=1, expert=1, shard_group=0)
        return memory_estimate(_typed_plan(replace(plan, layout=whole), parameters))


def _typed_plan(plan: Plan, parameters: float) -> Plan:
    return replace(plan, find="time", model=TYPED, parameters=parameters)


class DoesNotFitError(BudgetError):
    """No layout of the plan's accelerators fits. The number that would fit is only searched for when it is read."""

    def __init__(self, plan: Plan) -> None:
        count, device = float(int(plan.accelerators)), plan.accelerator
        super().__init__("count", message("error.does_not_fit", accelerators=count, device=device))
        self.plan = plan

    def __str__(self) -> str:
        if not self.needed:
            return str(self.args[0])
        count, needed = float(int(self.plan.accelerators)), float(self.needed)
        return message("error.does_not_fit_needs", accelerators=count, device=self.plan.accelerator, needed=needed)

    @property
    def needed(self) -> int | None:
        """How many accelerators the plan needs; None if no number of them is enough."""
        return fewest_that_hold(self.plan)


@cached("results_kept")
def fewest_that_hold(plan: Plan) -> int | None:
    """Return the fewest accelerators, in whole units, on which the plan fits with its memory headroom.

    None if no number is enough, or if too many layouts would be tried.
    """
    if tried_layouts((plan,)) > limit("repeated_search"):
        return None

    def lacking(at: int) -> float:
        with suppress(LayoutError):
            h = memory_estimate(replace(plan, accelerators=size(at)))
            if h.host_holds and not h.lacks:
                return 0.0
        return math.inf

    size, place = allocations(plan)
    found = first_place(lacking, 1, limit("accelerators"), size, place)
    return None if found is None else int(size(found))
