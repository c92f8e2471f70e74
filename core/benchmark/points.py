"""What a measurement finds: points, refusals and the device, each checked before it is believed.

One form for everything that is timed. A point says what was timed, how much work one run is, and how long runs took;
rates, shares and places on a roofline follow from that and are never stored.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from core.benchmark.formulas import achieved_bandwidth, achieved_rate
from core.limits import limit

Kind: TypeAlias = Literal["matmul", "attention", "memory", "layer"]
"""Matmuls; fused attention; copies; a layer's step."""

Regime: TypeAlias = Literal["burst", "sustained"]
"""Timed for a moment, or for so long that power and temperature limits show."""

Why: TypeAlias = Literal["refused", "skipped"]
"""The library's own refusal, or our reason for not trying."""

Text = Annotated[str, Field(max_length=limit("measure_text_chars"))]
Name = Annotated[str, Field(min_length=1, max_length=limit("measure_name_chars"))]
Amount = Annotated[float, Field(ge=0, le=1e30, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, lt=2**63)]


def clip(text: str, chars: int = limit("measure_text_chars")) -> str:
    """Return ``text`` cut to ``chars`` characters, saying so with an ellipsis."""
    return text if len(text) <= chars else f"{text[: chars - 1]}…"


class Checked(BaseModel):
    """Base of all that crosses a pipe, a file or a database: frozen, nothing more than the fields, no conversion."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Item(Checked):
    """One thing to be timed.

    name: a dtype for matmuls, a back end for attention. label: which of them, for people
    ("n = 4,096", "QKV", "8 MiB"), unique among the items of a kind and name. shape: sizes that the kind gives a
    meaning to; (m, n, k) for matmuls. seconds: timed, besides the warm-up.
    """

    kind: Kind
    name: Name
    label: Name
    shape: tuple[Count, ...] = Field(max_length=8)
    seconds: Seconds
    regime: Regime = "burst"

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells it from the other items of a measurement."""
        return self.kind, self.name, self.label, self.regime


class State(Checked):
    """State of a device at one moment; None for unreported values. energy_j: energy used so far. clock_reasons: NVML's
    bits."""

    clock_mhz: Amount | None = None
    temperature_c: Amount | None = None
    power_w: Amount | None = None
    energy_j: Amount | None = None
    clock_reasons: Count | None = None


class Point(Checked):
    """Measurement of one item.

    shape: the timed shape, which may be smaller than the one asked for. flop, bytes: work of one run, and the least
    bytes it moves; 0 if that has no meaning. dtype: the dtype it computes in; for a matmul, its name. relative_error:
    Frobenius norm of (result − float64 reference), divided by that of the reference; None if nothing was compared.
    peak_memory_bytes: most bytes allocated at once; None if not measured. mean_power_w: from the energy used; None for
    very short runs.
    """

    item: Item
    shape: tuple[Count, ...] = Field(max_length=8)
    flop: Amount
    bytes: Amount
    dtype: Text = ""
    median_s: Seconds
    best_s: Seconds
    p10_s: Seconds
    p90_s: Seconds
    runs: Annotated[int, Field(ge=1, lt=2**63)]
    duration_s: Amount
    relative_error: Amount | None = None
    peak_memory_bytes: Amount | None = None
    mean_power_w: Amount | None = None
    before: State = State()
    after: State = State()
    note: Text = ""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.best_s <= self.p10_s <= self.median_s <= self.p90_s:
            raise ValueError("best, p10, median and p90 are out of order")
        return self

    @property
    def rate(self) -> float:
        """The headline of computing: FLOP/s at the median time."""
        return achieved_rate(self.flop, self.median_s)

    @property
    def p10_rate(self) -> float:
        """A tenth of the runs were slower than this FLOP/s (the p90 of the times)."""
        return achieved_rate(self.flop, self.p90_s)

    @property
    def p90_rate(self) -> float:
        """A tenth of the runs were faster than this FLOP/s (the p10 of the times)."""
        return achieved_rate(self.flop, self.p10_s)

    @property
    def bandwidth(self) -> float:
        """The headline of moving: bytes per second at the median time."""
        return achieved_bandwidth(self.bytes, self.median_s)


class Refusal(Checked):
    """An item without a point: ``refused`` carries the library's own words, ``skipped`` our reason."""

    item: Item
    why: Why
    text: Text


def _which(value: Any) -> str:
    """Return whether an outcome, or what says it, is a refusal."""
    return "refusal" if isinstance(value, Refusal) or (isinstance(value, dict) and "why" in value) else "point"


Outcome: TypeAlias = Annotated[
    Annotated[Point, Tag("point")] | Annotated[Refusal, Tag("refusal")], Discriminator(_which)
]


class DeviceFacts(Checked):
    """The device as the library sees it. ``threads`` is 0 if it does not apply, unknown numbers are None.

    power_limit_w: the board's default. enforced_limit_w: the limit that holds now.
    """

    name: Text
    detail: Text
    threads: Annotated[int, Field(ge=0, le=1_000_000)]
    memory_bytes: Amount | None
    power_limit_w: Amount | None
    enforced_limit_w: Amount | None = None
