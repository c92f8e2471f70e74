"""Clusters: nodes of accelerators, their links, and the rates that were measured on them.

Vendors print the bandwidth of a link inside a node as the sum of both directions; here it is one way, like that of the
network: bytes per second of one accelerator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from core.formula import Symbol, formula
from core.hardware.accelerators import Accelerator
from core.sources import ML_ENGINEERING

RateName: TypeAlias = Literal["matmul16", "matmul8", "matmul4", "memory", "inside", "between"]
"""What can be measured and stand in: products by the bits of their factors, memory, and links."""

_OF_DTYPE: Mapping[str, RateName] = {"bf16": "matmul16", "fp16": "matmul16", "fp8": "matmul8", "fp4": "matmul4"}


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates measured on a device, in place of datasheet times efficiency; NaN if nothing was measured.

    matmul16, matmul8, matmul4: FLOP/s of large products by the bits of their factors.  memory: bytes per second of a
    large copy, read and written.  inside, between: bytes per second one way that collectives reach on one accelerator's
    links to its node, and on its share of the network to other nodes.
    """

    matmul16: float = math.nan
    matmul8: float = math.nan
    matmul4: float = math.nan
    memory: float = math.nan
    inside: float = math.nan
    between: float = math.nan

    def product(self, dtype: str, otherwise: float) -> float:
        """Return the matmul rate in ``dtype``, in FLOP/s; ``otherwise`` if it was not measured."""
        name = _OF_DTYPE.get(dtype)
        return self.of(name, otherwise) if name else otherwise

    def of(self, name: RateName, otherwise: float) -> float:
        """Return the rate of this name; ``otherwise`` if it was not measured."""
        rate: float = getattr(self, name)
        return otherwise if math.isnan(rate) else rate

    @property
    def known(self) -> tuple[tuple[RateName, float], ...]:
        """What was measured, by name."""
        names: tuple[RateName, ...] = get_args(RateName)
        return tuple((name, rate) for name in names if not math.isnan(rate := getattr(self, name)))


_NETWORK = ML_ENGINEERING.at("network")
_PCIE = {"3.0 x16": 15.75e9, "4.0 x8": 15.75e9, "4.0 x16": 31.5e9, "5.0 x16": 63.0e9}
"""Bytes per second one way of a slot: lanes of 8, 16 or 32 GT/s, of whose 130 bits 128 are data."""


@formula(
    r"\v{count} \cdot \v{peak}",
    result=Symbol(r"P_\text{all}", "dense peak of the cluster", "flop_per_s"),
    symbols={
        "count": Symbol("n", "accelerators", "count"),
        "peak": Symbol("P", "dense peak of one accelerator", "flop_per_s"),
    },
    sources=(_NETWORK,),
)
def cluster_peak(count: float, peak: float) -> float:
    """Dense peak of the cluster."""
    return count * peak


@dataclass(frozen=True, slots=True)
class Cluster:
    """``count`` of one accelerator in nodes of ``per_node``. Raises ``ValueError`` unless both are at least 1."""

    accelerator: Accelerator
    count: int
    per_node: int

    def __post_init__(self) -> None:
        if self.count < 1 or self.per_node < 1:
            raise ValueError(
                f"A cluster and its nodes need at least 1 accelerator, not {self.count} in nodes of {self.per_node}."
            )

    @property
    def nodes(self) -> int:
        """Nodes, the last of which may be partly empty."""
        return -(-self.count // self.per_node)

    @property
    def idle(self) -> int:
        """Places of the last node that stay empty."""
        return self.nodes * self.per_node - self.count

    @property
    def link_inside(self) -> float:
        """Bytes per second one way of one accelerator to its neighbors in the node: over its own links, else its slot;
        NaN when unknown."""
        own = self.accelerator.interconnect_bandwidth / 2
        return self.link_host if math.isnan(own) else own

    @property
    def link_host(self) -> float:
        """Bytes per second one way of one accelerator's slot, to its host; NaN when unknown."""
        return _PCIE.get(self.accelerator.pcie.partition(" (")[0], math.nan)

    @property
    def link_between(self) -> float:
        """Bytes per second one way of one accelerator to other nodes; NaN when unknown."""
        return self.accelerator.network

    @property
    def memory_bytes(self) -> float:
        """Memory of all accelerators."""
        return self.count * self.accelerator.memory_bytes

    @property
    def watts(self) -> float:
        """Power limit of all accelerators; hosts and network are not in it. NaN when unknown."""
        return self.count * self.accelerator.tdp_watts

    def peak(self, dtype: str) -> float:
        """Return the dense peak of all accelerators in FLOP/s; NaN when unknown."""
        return cluster_peak(self.count, self.accelerator.peak(dtype))


def cluster(accelerator: Accelerator, count: int, per_node: int | None = None) -> Cluster:
    """Return ``count`` of ``accelerator`` in its usual nodes, or in nodes of ``per_node``."""
    return Cluster(accelerator, count, accelerator.node_size if per_node is None else per_node)
