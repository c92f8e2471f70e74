"""Power of accelerators and nodes; energy and carbon of a run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from core.budget.equations import BudgetError
from core.formula import Explanation, Source, Symbol, formula
from core.hardware.accelerators import Accelerator, accelerators, find
from core.limits import cached
from core.rows import number, read_record, read_rows
from core.sources import OWN_CONSTRUCTION

ASSUMED = "assumed"
"""Confidence of a node whose power nobody published."""


@formula(
    r"\frac{\v{watts}}{\v{accelerators}}",
    result=Symbol("w", "one accelerator’s part of the node’s most", "watts"),
    symbols={
        "watts": Symbol(r"w_\text{node}", "most that a node draws", "watts"),
        "accelerators": Symbol("m", "accelerators of a node", "count"),
    },
    sources=(OWN_CONSTRUCTION.at("equal parts of what its maker says that a node draws at most"),),
)
def part_of_node(watts: float, accelerators: float) -> float:
    """One accelerator's part of its node's power.

    Hosts, switches, adapters, fans and the losses of its supplies are in it; storage and the switches between nodes
    are not.
    """
    return watts / accelerators


@dataclass(frozen=True, slots=True)
class NodePower:
    """Peak power of an accelerator's node in W; NaN if its power limit is unknown.

    drawn: measured average power in training as a share of it; NaN if not measured for this node. confidence:
    ``verified``, ``recalled``, or `ASSUMED`.
    """

    node: str
    accelerators: int
    watts: float
    drawn: float
    confidence: str
    source: str

    @property
    def each(self) -> float:
        """Watts of one accelerator's part."""
        return float(part_of_node(watts=self.watts, accelerators=self.accelerators))


@cached("tables_kept")
def _published() -> Mapping[str, NodePower]:
    columns = {"watts": "node_w"}
    return {find(row["label"]).id: read_record(NodePower, row, columns) for row in read_rows("node_power")}


@cached("results_kept")
def usual_ratio(generation: int) -> float:
    """Return what published nodes of a generation draw at most, over the power limits of their accelerators: the
    median."""
    ratios = [
        node.each / device.tdp_watts
        for device in accelerators()
        if device.generation == generation
        and (node := _published().get(device.id))
        and node.confidence != ASSUMED
        and node.each > device.tdp_watts
    ]
    return statistics.median(ratios)


@cached("results_kept")
def node_power(device: Accelerator) -> NodePower:
    """Return the node of an accelerator: the published one, or a usual one of its generation around its power limit."""
    node = _published().get(device.id)
    if node is not None:
        return node
    ratio = usual_ratio(device.generation)
    return NodePower(
        node="node",
        accelerators=device.node_size,
        watts=ratio * device.tdp_watts * device.node_size,
        drawn=number(""),
        confidence=ASSUMED,
        source=f"{ratio:.2f} times the accelerators’ power limits, as published nodes of its generation",
    )


_LLAMA1 = Source("Touvron et al. 2023, LLaMA", "section 6, table 15", "https://arxiv.org/abs/2302.13971")
_WU = Source("Wu et al. 2021, Sustainable AI", "section II", "https://arxiv.org/abs/2111.00364")

_NEWKIRK = Source(
    "Newkirk et al. 2025, Empirically-Calibrated H100 Node Power Models", "abstract", "https://arxiv.org/abs/2506.14551"
)

_HOURS = Symbol("H", "accelerator-hours", "accelerator_hours")
_ENERGY = Symbol("W", "energy", "watt_hours")
_PUE = Symbol(r"\text{PUE}", "power usage effectiveness, the building’s power over the machines’", "number")

DRAWN_SHARE = 0.76
"""Share of its node's most that computationally intensive training on eight H100 drew, by Newkirk et al. 2025.

Of V100s it fits too: GPT-3 drew 330 W each (Patterson et al. 2021, table 4), 75 % of a DGX-1's eighth."""

US_GRID = 0.385
"""kg of CO₂ equivalent per kWh that LLaMA's table 15 takes for every run: the US average."""

MOST_DRAWN = 3.0
"""Share of the accelerators' power limits that no server draws, with all else that is in it."""

USUAL_PUE = 1.1
"""Power usage effectiveness of the data centres of the same table."""


@formula(
    r"\v{hours} \cdot \v{watts} \cdot \v{share} \cdot \v{pue}",
    result=_ENERGY,
    symbols={
        "hours": _HOURS,
        "watts": Symbol("w", "one accelerator’s part of the node’s most, or its own power limit (TDP)", "watts"),
        "share": Symbol("s", "share of that drawn on average", "ratio"),
        "pue": _PUE,
    },
    sources=(_LLAMA1, _WU, _NEWKIRK),
)
def energy(hours: float, watts: float, share: float, pue: float) -> float:
    """Energy of the machines, cooling and supply included.

    Counted by nodes, hosts are in it: training on eight H100 was measured to draw 76 % of what its node draws at most.
    Counted by the accelerators’ own limits they are in it only with a share above 100 %; published tables take the full
    limit.
    """
    return hours * watts * share * pue


@formula(
    r"\v{accelerators} \cdot \v{watts} \cdot \v{pue}",
    result=Symbol(r"P_\text{peak}", "most that the building draws for the machines", "watts"),
    symbols={
        "accelerators": Symbol("n", "accelerators", "count"),
        "watts": Symbol("w", "one accelerator’s part of the node’s most", "watts"),
        "pue": _PUE,
    },
    sources=(_WU, _NEWKIRK),
)
def peak_power(accelerators: float, watts: float, pue: float) -> float:
    """Power to provide: all nodes at their most at once, cooling and supply included.

    Steps of training rise and fall together on all accelerators, so that no node makes up for another.
    """
    return accelerators * watts * pue


@formula(
    r"\frac{\v{energy}}{1000} \cdot \v{intensity}",
    result=Symbol("M", "carbon dioxide, or the equivalent of other gases", "kg_co2"),
    symbols={"energy": _ENERGY, "intensity": Symbol("i", "carbon intensity of the grid", "kg_per_kwh")},
    sources=(_LLAMA1, _WU),
)
def carbon(energy: float, intensity: float) -> float:
    """Carbon dioxide equivalent of the energy.

    The intensity is that of the local grid, whatever certificates were bought. Manufacturing is not included.
    """
    return energy / 1000 * intensity


def drawn_power(device: Accelerator, share: float | None) -> tuple[float, float]:
    """Return the power of an accelerator in W, and the share drawn on average.

    An entered share refers to its power limit. Without one, it is the published share of its part of the node.
    """
    if share is not None:
        return device.tdp_watts, share
    node = node_power(device)
    return node.each, DRAWN_SHARE if math.isnan(node.drawn) else node.drawn


def most_drawn(device: Accelerator, share: float | None) -> float:
    """Return the maximum power in W of an accelerator's part of its node, or the entered power if that is higher."""
    return max(node_power(device).each, device.tdp_watts * (share or 0.0))


@dataclass(frozen=True, slots=True)
class Footprint:
    """Energy in Wh and carbon in kg of a run; NaN if the accelerator's power is unknown. The rest as in `energy`."""

    hours: float
    watts: float
    share: float
    pue: float
    intensity: float

    @property
    def energy(self) -> float:
        return float(energy(hours=self.hours, watts=self.watts, share=self.share, pue=self.pue))

    @property
    def carbon(self) -> float:
        return float(carbon(energy=self.energy, intensity=self.intensity))

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """Both, computed only where they are read: writing formulas takes far longer than the numbers."""
        used = energy.explain(hours=self.hours, watts=self.watts, share=self.share, pue=self.pue)
        return used, carbon.explain(energy=used.value, intensity=self.intensity)


def footprint(
    hours: float, watts: float, *, share: float = 1.0, pue: float = USUAL_PUE, intensity: float = US_GRID
) -> Footprint:
    """Return the energy and carbon of ``hours`` accelerator-hours at ``share`` of ``watts`` each.

    Raises `BudgetError` for a negative quantity, a share above `MOST_DRAWN` or a PUE below 1.
    """
    for field, value, low, high in (
        ("hours", hours, 0.0, float("inf")),
        ("watts", watts, 0.0, float("inf")),
        ("share", share, 0.0, MOST_DRAWN),
        ("pue", pue, 1.0, 10.0),
        ("intensity", intensity, 0.0, 10.0),
    ):
        if value < low or value > high:
            raise BudgetError(field, f"{field} is {value:g}; it lies between {low:g} and {high:g}.")
    return Footprint(hours, watts, share, pue, intensity)
