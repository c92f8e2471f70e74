"""What one accelerator reaches: rates of products, memory and links, datasheet times the constants or as measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.budget.equations import BudgetError
from core.hardware.accelerators import Accelerator
from core.hardware.cluster import Cluster, Rates
from core.step_time.constants import Constants
from core.step_time.parts import Running
from core.wording import listed

BITS = {"bf16": 16, "fp16": 16, "fp8": 8, "fp4": 4}
"""Formats in which a step can be computed, with their bits."""

_CAP_WATTS, _FULL_HOPPER = 600.0, 9e14
"""A Hopper of full nominal peak, in FLOP/s, that draws less than so many watts does not hold its clocks."""


_PINNED = 0.87
"""Share of a slot's bytes that copies from pinned memory reach: 54.6 of 63.0 GB/s, measured on one H100 with 256 MiB at
a time; 51 with 16 MiB, and 46 each way where both ways are busy. From memory that is not pinned it was 7 to 13."""


def check_peak(device: Accelerator, dtype: str) -> None:
    """Raise `BudgetError` for a format in which no step is timed, or whose peak on ``device`` is unknown."""
    if dtype not in BITS:
        known = listed(list(BITS), "or")
        raise BudgetError("dtype", f"A step is timed with products in {known}, not in {dtype}. For example: bf16.")
    if math.isnan(device.peak(dtype)):
        raise BudgetError("dtype", f"No dense {dtype} peak of {device.name} is known. For example: bf16.")


@dataclass(frozen=True, slots=True)
class Speeds:
    """Rates of one accelerator, FLOP/s and bytes per second, NaN when unknown.

    weight_matmul, matmul16, matmul32: products with weights in the step's format, in 16 bits, and in fp32, whose peak
    is taken for that of 16 bits where nobody prints it.  peak16: of 16 bits. inside, between: collectives over the
    links of a node, or domain, and over the network.  domain: accelerators of a node.  host: of one accelerator, from
    its host's memory.
    """

    weight_matmul: float
    matmul16: float
    matmul32: float
    attention: float
    peak16: float
    memory: float
    inside: float
    between: float
    domain: int
    host: float

    def in_fp32(self) -> Speeds:
        """The same where all products are in fp32, attention's no nearer to the peak than in 16 bits.

        What moves over memory and links stays counted as in 16 bits: a few percent of a step that is so slow.
        """
        attention = self.matmul32 * (self.attention / self.matmul16)
        return replace(self, weight_matmul=self.matmul32, matmul16=self.matmul32, attention=attention)

    def group(self, ranks: Any, stride: Any) -> Any:
        """Bytes per second of one rank of a group whose ranks lie ``stride`` apart; without end where it is alone.

        Beyond one node all of the group's ranks in it share its network.
        """
        here = np.clip(self.domain / stride, 1.0, ranks)
        far = np.where(here > 1, np.minimum(self.inside, self.between * here), self.between)
        return np.where(ranks > 1, np.where(ranks * stride <= self.domain, self.inside, far), np.inf)

    def neighbour(self, ranks: Any, stride: Any) -> Any:
        """Bytes per second from one rank to the next of such a group."""
        return np.where(ranks > 1, np.where(ranks * stride <= self.domain, self.inside, self.between), np.inf)


def wide_peak(accelerator: Accelerator) -> float:
    """Dense 16-bit peak: bf16, or fp16 where there is no bf16."""
    bf16 = accelerator.peak("bf16")
    return accelerator.peak("fp16") if math.isnan(bf16) else bf16


def speeds_of(cluster: Cluster, running: Running, constants: Constants, rates: Rates | None) -> Speeds:
    """What the cluster's accelerator reaches; ``rates`` replace what they have."""
    device, c, measured = cluster.accelerator, constants, rates or Rates()
    factor = _factor(device, c)
    half = wide_peak(device) * factor
    bits = BITS[running.dtype]
    weights = half if bits == 16 else device.peak(running.dtype) * factor
    share = {16: c.matmul16, 8: c.matmul8, 4: c.matmul4}
    attention = {"newest": c.attention, "fa2": c.attention_fa2, "triton": c.attention_triton}[running.attention]
    return Speeds(
        weight_matmul=measured.product(running.dtype, weights * share[bits]),
        matmul16=measured.product("bf16", half * share[16]),
        matmul32=np.fmin(half, device.peak("fp32") * factor) * share[16],
        attention=half * attention,
        peak16=half,
        memory=measured.of("memory", device.bandwidth * c.bandwidth),
        inside=measured.of("inside", cluster.link_inside * c.inside),
        between=measured.of("between", cluster.link_between * c.between),
        domain=cluster.per_node,
        host=c.host if math.isnan(cluster.link_host) else _PINNED * cluster.link_host,
    )


def _factor(device: Accelerator, c: Constants) -> Any:
    """What a part reaches of its nominal peak beside its family: more power, a cap on it, or units half idle."""
    if device.half_rate:
        return c.half_rate
    if device.family == "Blackwell" and device.id.endswith("b300"):
        return c.ultra
    full = device.family == "Hopper" and device.peak("bf16") > _FULL_HOPPER
    return c.capped if full and device.tdp_watts < _CAP_WATTS else 1.0
