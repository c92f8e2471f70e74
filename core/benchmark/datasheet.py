"""Which row of the accelerator table a device is, so that a measured rate can stand beside a datasheet peak.

A name alone does not tell: "NVIDIA H100 80GB HBM3" is the SXM part, "NVIDIA GH200 480GB" counts the CPU's memory.
So the model must match exactly, and form factor, memory and power narrow down what is left. What stays open stays
unknown: a wrong peak is worse than none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.hardware.accelerators import Accelerator, accelerators
from core.limits import cached
from core.messages import Message, message
from core.wording import listed

if TYPE_CHECKING:  # pydantic comes with it
    from core.benchmark.points import Point
    from core.benchmark.record import Record

_NOISE = frozenset({"NVIDIA", "TESLA", "GEFORCE", "GPU", "GENERATION", "EDITION", "BLACKWELL", "GB", "AC"})
_FORM = re.compile(r"(SXM|PCIE)\d?")
_MEMORY_TYPE = re.compile(r"(?:HBM|GDDR)\d\w*")
_MEMORY_SIZE = re.compile(r"\d+GB?")

_MEMORY_LOW, _MEMORY_HIGH = 0.97, 1.085
"""What a device reports, over the size its sheet prints: ECC takes a little, printed GB are often GiB (7.4 % more)."""

_SLICE = 0.9
"""What has less than this share of the least memory that its name comes with is not the whole of it."""


@dataclass(frozen=True, slots=True)
class Datasheet:
    """Rows of the accelerator table that match a device, usually one, and the reason if it is not exactly one.

    is_slice: whether the device is part of a GPU, whose rates are not those of an accelerator.
    """

    rows: tuple[Accelerator, ...]
    reason: Message | str = ""
    is_slice: bool = False

    @property
    def name(self) -> str:
        """Name of the row, or the names of all rows that match; empty if no row matches."""
        return listed([row.name for row in self.rows], "or")

    @property
    def bandwidth(self) -> float:
        """Memory bandwidth in bytes per second on which all rows agree, otherwise NaN."""
        values = {row.bandwidth for row in self.rows}
        return values.pop() if len(values) == 1 else math.nan

    def peak(self, dtype: str) -> float:
        """Return the dense peak of ``dtype`` in FLOP/s on which all rows agree, otherwise NaN."""
        peaks = {row.peak(dtype) for row in self.rows}
        return peaks.pop() if len(peaks) == 1 else math.nan


@dataclass(frozen=True, slots=True)
class _Name:
    """A device name taken apart: model words, form factor ("SXM", "PCIE" or empty) and memory type."""

    model: frozenset[str]
    form: str
    memory_type: str


@cached("results_kept")
def _take_apart(name: str) -> _Name:
    words = re.findall(r"[A-Z0-9]+", re.sub(r"\(.*?\)|\d+ GB\b", "", name.upper()))
    forms = [match[1] for word in words if (match := _FORM.fullmatch(word))]
    types = [word for word in words if _MEMORY_TYPE.fullmatch(word)]
    rest = {w for w in words if not (_FORM.fullmatch(w) or _MEMORY_TYPE.fullmatch(w) or _MEMORY_SIZE.fullmatch(w))}
    return _Name(frozenset(rest - _NOISE), forms[0] if forms else "", types[0] if types else "")


def _row_form(row: Accelerator) -> str:
    match = _FORM.match(row.form_factor.upper())
    return match[1] if match else ""


def _narrow(rows: list[Accelerator], fits: Callable[[Accelerator], bool]) -> list[Accelerator]:
    """Return the rows that fit, or all of them when none does: for clues that help but do not rule out."""
    return [row for row in rows if fits(row)] or rows


def match(name: str, memory_bytes: float | None, power_limit_w: float | None) -> Datasheet:
    """Return the datasheet of a GPU from what its driver reports: its name, memory in bytes, and default power limit in
    W.

    Model, form factor, and memory must match. Memory type and power limit decide among the remaining rows.
    """
    if not name:
        return Datasheet((), message("device.datasheet.unnamed"))
    given = _take_apart(name)
    rows = [row for row in accelerators() if row.vendor == "NVIDIA" and _take_apart(row.name).model == given.model]
    if given.form:
        rows = [row for row in rows if _row_form(row) == given.form]
    least = _MEMORY_LOW * min((row.sheet_bytes for row in rows), default=0.0)
    if "MIG" in given.model or (memory_bytes is not None and memory_bytes < _SLICE * least):
        return Datasheet((), message("device.datasheet.slice"), is_slice=True)
    if memory_bytes is not None:
        rows = [row for row in rows if _MEMORY_LOW <= memory_bytes / row.sheet_bytes <= _MEMORY_HIGH]
    if given.memory_type:
        rows = _narrow(rows, lambda row: row.memory_type.upper().split()[0] == given.memory_type)
    if power_limit_w is not None:
        rows = _narrow(rows, lambda row: abs(row.tdp_watts / power_limit_w - 1) < 0.03)
    if not rows:
        return Datasheet((), message("device.datasheet.missing"))
    if len(rows) > 1:
        return Datasheet(tuple(rows), message("device.datasheet.ambiguous", rows=[row.name for row in rows]))
    return Datasheet(tuple(rows))


_IN_SHEETS: Mapping[str, tuple[str, ...]] = {
    "fp64": ("fp64_tensor", "fp64"),
    "nvfp4": ("fp4",),
    "fp8 fast": ("fp8",),
}
"""Where a dtype's dense peak stands in a datasheet, where not under its own name; the first that is known. Matrix units
take fp64 where there are such."""


def datasheet_of(record: Record) -> Datasheet:
    """Return the datasheet of the measured device; without rows for a CPU, whose peak under load is not published."""
    if record.programme.device == "cpu" or record.facts is None:
        return Datasheet(())
    return match(record.facts.name, record.facts.memory_bytes, record.facts.power_limit_w)


def peak_of(sheet: Datasheet, dtype: str) -> float:
    """Return the dense peak of ``dtype`` as measured here, in FLOP/s; NaN if no datasheet gives it."""
    peaks = (sheet.peak(name) for name in _IN_SHEETS.get(dtype, (dtype,)))
    return next((peak for peak in peaks if not math.isnan(peak)), math.nan)


_PLAUSIBLE = 0.5
"""int8 below this share of its peak did not run on the units that the peak is of."""


def comparable_peak(sheet: Datasheet, point: Point) -> float:
    """Return the peak in FLOP/s with which a rate is compared; NaN if unknown, or if an int8 rate is too low for int8
    units."""
    peak = peak_of(sheet, point.item.name)
    return math.nan if point.item.name == "int8" and point.rate < _PLAUSIBLE * peak else peak


def best_published(sheet: Datasheet, dtype: str) -> float:
    """Return the best published matmul rate of this device, in FLOP/s; NaN if none is known."""
    bests = {row.best_measured(_IN_SHEETS.get(dtype, (dtype,))[0]) for row in sheet.rows}
    return bests.pop() if len(bests) == 1 else math.nan
