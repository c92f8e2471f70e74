"""What a node draws at most: one row of ``assets/data/node_power.csv`` each, hosts, switches and fans in it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from core.formula import Symbol, formula
from core.hardware.accelerators import Accelerator, accelerators, find
from core.limits import cached
from core.rows import number, read_rows
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
    """What the node of an accelerator draws at most, in watts; NaN where even its power limit is unknown.

    drawn: share of it that training was measured to draw on average; NaN where nobody measured that of this node.
    confidence: ``verified``, ``recalled`` or `ASSUMED`.
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
    return {
        find(row["label"]).id: NodePower(
            node=row["node"],
            accelerators=int(row["accelerators"]),
            watts=float(row["node_w"]),
            drawn=number(row["drawn"]),
            confidence=row["confidence"],
            source=row["source"],
        )
        for row in read_rows("node_power")
    }


@cached("results_kept")
def usual_ratio(generation: int) -> float:
    """What published nodes of a generation draw at most, over the power limits of their accelerators: the median."""
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
    """The node of an accelerator: the published one, or a usual one of its generation around its power limit."""
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
