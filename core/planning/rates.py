"""Which rates a plan is counted with: those that it carries, as far as they are of its accelerator."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.benchmark.datasheet import match
from core.benchmark.device import Gpu
from core.hardware.accelerators import Accelerator
from core.hardware.cluster import Cluster, cluster
from core.hardware.rates import RateName, Rates
from core.limits import cached
from core.planning.plan import Plan
from core.step_time.links import wide_peak
from core.units import Kind

RatesOrigin: TypeAlias = Literal["none", "own", "stands in", "other"]
"""What a plan's rates are of: nothing, its own accelerator, a device that no datasheet is known of and which stands in
for it, or another accelerator."""


_SIZE = re.compile(r"(\d{1,4}) ?GB\b")


@cached("results_kept")
def rows_of(device: str) -> tuple[str, ...]:
    """The accelerators of the catalogue that a device may be, by the name it gives itself; none where it is unknown.

    Memory in the name, such as 80GB, tells them apart, unless it is that of a whole module with its CPU.
    """
    size = _SIZE.search(device)
    sized = match(device, float(size[1]) * 1e9, None).rows if size else ()
    return tuple(row.name for row in sized or match(device, None, None).rows)


def is_this_machine(accelerator: str, gpu: Gpu) -> bool:
    """Whether a GPU may be an accelerator of the catalogue."""
    return accelerator in {row.name for row in match(gpu.name, gpu.memory_bytes, gpu.power_limit_w).rows}


def rates_origin(plan: Plan) -> RatesOrigin:
    """What the plan's rates are of."""
    if not plan.measured.rates.known:
        return "none"
    rows = rows_of(plan.measured.device)
    return "stands in" if not rows else "own" if plan.accelerator in rows else "other"


def rates_of(plan: Plan) -> Rates | None:
    """The rates that count in place of the datasheet's, wherever a time is worked out from rates; None where none do:
    the plan has none, or they are of another accelerator."""
    return plan.measured.rates if rates_origin(plan) in ("own", "stands in") else None


KIND_OF: Mapping[RateName, Kind] = {
    "matmul16": "flop_per_s",
    "matmul8": "flop_per_s",
    "matmul4": "flop_per_s",
    "memory": "bytes_per_s",
    "inside": "bytes_per_s",
    "between": "bytes_per_s",
}

TOO_GOOD = 1.05
"""Share of the datasheet's rate from which one of the two is doubtful: clocks above nominal explain a few percent."""

NAMES: Mapping[RateName, str] = {
    "matmul16": "bf16",
    "matmul8": "fp8",
    "matmul4": "fp4",
    "memory": "memory",
    "inside": "links in a node",
    "between": "network",
}


@dataclass(frozen=True, slots=True)
class ReplacedRate:
    """One rate that counts, and the datasheet's in its place, NaN where unknown. name: the format, memory or links."""

    id: RateName
    name: str
    measured: float
    datasheet: float

    @property
    def kind(self) -> Kind:
        """What both are."""
        return KIND_OF[self.id]

    @property
    def doubtful(self) -> bool:
        """Whether it is more than the datasheet has, beyond what clocks explain."""
        return self.measured > TOO_GOOD * self.datasheet


def replaced_rates(plan: Plan) -> tuple[ReplacedRate, ...]:
    """The rates of the plan that count, each beside the datasheet's dense peak or bandwidth."""
    rates = rates_of(plan)
    device = plan.device
    return tuple(
        ReplacedRate(name, _named(device, name), rate, _datasheet(device, name))
        for name, rate in (rates or Rates()).known
    )


def _named(device: Accelerator, name: RateName) -> str:
    """bf16, or fp16 where the accelerator has no bf16."""
    return "fp16" if name == "matmul16" and math.isnan(device.peak("bf16")) else NAMES[name]


def network_known(here: Cluster) -> float:
    """Bytes per second one way of one accelerator to other nodes, as far as a system is known that has it; else NaN."""
    return math.nan if here.accelerator.network_confidence == "assumed" else here.link_between


def _datasheet(device: Accelerator, name: RateName) -> float:
    if name == "memory":
        return device.bandwidth
    if name in ("inside", "between"):
        here = cluster(device, 1)
        return here.link_inside if name == "inside" else network_known(here)
    return wide_peak(device) if name == "matmul16" else device.peak(NAMES[name])
