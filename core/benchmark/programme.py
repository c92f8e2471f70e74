"""What one measurement does: its kinds, dtypes, sizes, and seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, model_validator

from core.benchmark.device import DeviceKind
from core.benchmark.points import Checked, Count, Kind, Name, Seconds
from core.limits import limit

METHOD = "measure-3"
"""Version of the method, stamped on every measurement. Those of different versions are not comparable."""

KINDS: tuple[Kind, ...] = ("matmul", "memory", "attention", "layer")
"""In the order in which they are measured."""

DTYPES: tuple[str, ...] = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp8 fast", "int8", "nvfp4")
"""What matmuls may be tried in, in order: each is attempted, for support cannot be inferred from a name. fp8 is E4M3
with one scale per tensor, fast with fast accumulation; nvfp4 has one E4M3 per 16."""

CPU_DTYPES = ("fp64", "fp32", "bf16", "fp16", "int8")

MISALIGNED = 4_095
"""A size that no tile divides."""

SIZES: Mapping[DeviceKind, tuple[int, ...]] = {
    "cpu": (256, 512, 1024, 2048),
    "cuda": (256, 512, 1024, 2048, 4096, MISALIGNED, 8192, 16384),
}
"""Squares by default, the last of which a user may change; those that do not fit memory or time are skipped."""

SECONDS: Mapping[DeviceKind, float] = {"cpu": 0.5, "cuda": 0.1}
"""Timed seconds per item."""

SUSTAINED_S: Mapping[DeviceKind, float] = {"cpu": 0.0, "cuda": 10.0}
"""Long enough for a GPU to meet its power limit."""


class LayerShape(Checked):
    """One layer of a plan's model and one micro-batch of it, on one device. experts: 0 if it is dense; else it is not
    stepped."""

    model: Name
    hidden: Annotated[Count, Field(ge=1)]
    heads: Annotated[Count, Field(ge=1)]
    kv_heads: Annotated[Count, Field(ge=1)]
    head_dim: Annotated[Count, Field(ge=1)]
    ffn: Annotated[Count, Field(ge=1)]
    gated: bool
    vocab: Annotated[Count, Field(ge=1)]
    seq_len: Annotated[Count, Field(ge=1)]
    micro_batch: Annotated[Count, Field(ge=1)]
    experts: Count = 0
    experts_per_token: Count = 0

    @property
    def tokens(self) -> int:
        """Tokens of one micro-batch."""
        return self.seq_len * self.micro_batch


class Programme(Checked):
    """One measurement: what is measured, on which device, and for how long each.

    sizes: of square matmuls. seconds: timed per item. sustained_s: 0, or how long the largest square of each dtype that
    a plan takes is timed once more, after everything else. layer: whose attention and training step are timed; None for
    `core.benchmark.layer.DEFAULT_LAYER`. Raises ``pydantic.ValidationError`` outside the caps of `core.limits`.
    """

    device: DeviceKind
    kinds: tuple[Kind, ...] = Field(min_length=1, max_length=len(KINDS))
    dtypes: tuple[Name, ...] = Field(max_length=len(DTYPES))
    sizes: tuple[Annotated[int, Field(ge=16, le=limit("matmul_size"))], ...] = Field(max_length=limit("measure_sizes"))
    seconds: Annotated[Seconds, Field(ge=0.02, le=limit("measure_dtype_seconds"))]
    sustained_s: Annotated[float, Field(ge=0, le=limit("measure_dtype_seconds"), allow_inf_nan=False)] = 0.0
    layer: LayerShape | None = None

    @model_validator(mode="after")
    def _known(self) -> Self:
        for given in (self.kinds, self.dtypes, self.sizes):
            if len(set(given)) != len(given):
                raise ValueError("the same is asked for twice")
        if unknown := [dtype for dtype in self.dtypes if dtype not in DTYPES]:
            raise ValueError(f"no such dtypes: {', '.join(unknown)}")
        return self
