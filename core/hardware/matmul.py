"""The best matmul rate of an accelerator: measured, or as a share of peak that its relatives were measured at."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core.hardware.accelerators import Accelerator, accelerators, find
from core.limits import cached


@dataclass(frozen=True, slots=True)
class BestMatmul:
    """The fastest matmul that is known, or to be expected, of an accelerator in one dtype.

    share: of the dense peak of that dtype. rate: FLOP/s. measured: whether somebody measured this very accelerator.
    of: whose measurements it follows from.
    """

    share: float
    rate: float
    measured: bool
    of: str


def _share(device: Accelerator, dtype: str) -> float:
    return device.best_measured(dtype) / device.peak(dtype)


def _measured(dtype: str, like: Callable[[Accelerator], bool]) -> Sequence[float]:
    shares = (_share(device, dtype) for device in accelerators() if like(device))
    return [share for share in shares if not math.isnan(share)]


@cached("results_kept")
def best_matmul(name: str, dtype: str) -> BestMatmul:
    """The best measured matmul of accelerator ``name`` in ``dtype``; NaN where it has no such peak, or nobody measured
    any accelerator in it.

    Where nobody measured it, its peak times the median share measured of its family, else of its vendor, else its own
    share in bf16, or for bf16 that of all: how much of a datasheet's peak a matmul reaches hangs on clocks under load
    and on the vendor's library, both of which a vendor's accelerators share. The median, so that one outlier does not
    speak for all. fp16 follows bf16.
    """
    device = find(name)
    peak, base = device.peak(dtype), "bf16" if dtype == "fp16" else dtype
    own = _share(device, base)
    if not math.isnan(own):
        return BestMatmul(own, own * peak, measured=True, of=device.name)
    pools = (
        (device.family, _measured(base, lambda other: other.family == device.family)),
        (device.vendor, _measured(base, lambda other: other.vendor == device.vendor)),
        ("all accelerators", _measured(base, lambda _: True)) if base == "bf16" else _own_bf16(device),
    )
    of, shares = next(((of, shares) for of, shares in pools if shares), ("", (math.nan,)))
    share = statistics.median(shares)
    return BestMatmul(share, share * peak, measured=False, of=of)


def _own_bf16(device: Accelerator) -> tuple[str, Sequence[float]]:
    return f"{device.name} in 16 bits", [best_matmul(device.name, device.usable("bf16")).share]


def ceiling_of(device: Accelerator, dtype: str) -> float:
    """The best bare matmul of an accelerator, as a share of its peak; 1 where nobody measured one."""
    share = best_matmul(device.name, dtype).share
    return 1.0 if math.isnan(share) else min(share, 1.0)
