"""What one measuring job shall do, and about how long it takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.limits import limit

METHOD = "matmul-1"
"""Version of the method, stamped on every result. Results of different versions are not comparable."""

DeviceKind: TypeAlias = Literal["cpu", "cuda"]

DTYPES: Mapping[DeviceKind, tuple[str, ...]] = {
    "cpu": ("fp32", "fp16", "bf16"),
    "cuda": ("fp32", "tf32", "fp16", "bf16"),
}
"""The dtypes tried on each kind of device, in order. tf32 is fp32 storage with tensor cores rounding to 10 bits."""

DEFAULT_N: Mapping[DeviceKind, int] = {"cpu": 1024, "cuda": 8192}
"""Matrix size to start from: large enough to be compute-bound on such a device, small enough to be quick."""

MIN_N = 16
MIN_SECONDS = 0.2
DEFAULT_SECONDS = 2.0

STARTUP_S: Mapping[DeviceKind, float] = {"cpu": 2.0, "cuda": 5.0}
"""About what starting the worker, importing torch and creating a CUDA context take."""

SETUP_S: Mapping[DeviceKind, float] = {"cpu": 0.2, "cuda": 0.5}
"""About what inputs, correctness check and probing take per dtype; a GPU's first kernels of a size are loaded then."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One job: square matmuls of size ``n`` on ``device``, timed for ``seconds`` per dtype.

    Raises ``ValueError`` outside the caps of `core.limits`.
    """

    device: DeviceKind
    n: int
    seconds: float

    def __post_init__(self) -> None:
        if self.device not in DTYPES:
            raise ValueError(f"device {self.device!r} is neither cpu nor cuda")
        if not MIN_N <= self.n <= limit("matmul_size"):
            raise ValueError(f"n = {self.n} is out of range: from {MIN_N} to {limit('matmul_size')}")
        top = limit("measure_dtype_seconds")
        if not (math.isfinite(self.seconds) and MIN_SECONDS <= self.seconds <= top):
            raise ValueError(f"{self.seconds} s per dtype is out of range: from {MIN_SECONDS} to {top}")

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes this job tries, in order."""
        return DTYPES[self.device]

    @property
    def startup_s(self) -> float:
        """About how long it takes until the first dtype is begun."""
        return STARTUP_S[self.device]

    @property
    def setup_s(self) -> float:
        """About how long one dtype takes before it is warmed up."""
        return SETUP_S[self.device]

    @property
    def warm_up_s(self) -> float:
        """Seconds of untimed runs before the timed ones: caches fill, clocks rise."""
        return min(max(self.seconds / 4, 0.2), 2.0)

    @property
    def dtype_s(self) -> float:
        """About how long one dtype takes, everything included."""
        return self.setup_s + self.warm_up_s + self.seconds

    @property
    def expected_s(self) -> float:
        """About how long the whole job takes."""
        return self.startup_s + len(self.dtypes) * self.dtype_s
