"""Parameters of a transformer by component, exact to the last one.

The counts are those of the tensors that a framework allocates. Buffers (rotary tables, router balancing offsets) are
not parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.formula import Explanation
from core.limits import cached
from core.models.components import ModelPart, explain_row, totals
from core.models.spec import TransformerSpec


@dataclass(frozen=True, slots=True)
class Component(ModelPart):
    """One component’s parameters; ``active`` is what one token runs through."""

    total: int
    active: int

    def explain(self) -> Explanation:
        """Return the formula of ``total`` with its values."""
        return explain_row(self.spec, self.id, "parameters")


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """Parameters by component, in the order a token meets them. ``active`` differs from ``total`` with experts."""

    components: tuple[Component, ...]

    @property
    def total(self) -> int:
        return sum(component.total for component in self.components)

    @property
    def active(self) -> int:
        """Parameters one token runs through: with its input embedding, without tables that layers look up."""
        return sum(component.active for component in self.components)


@cached("small_results_kept")
def parameters(spec: TransformerSpec) -> ParameterCount:
    """Return the parameters of ``spec`` by component, total and active."""
    active = totals(spec, "active")
    return ParameterCount(
        tuple(Component(spec, key, total, active[key]) for key, total in totals(spec, "parameters").items())
    )
