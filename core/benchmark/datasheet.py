"""Which row of the accelerator table a device is, so that a measured rate can stand beside a datasheet peak.

A name alone does not tell: "NVIDIA H100 80GB HBM3" is the SXM part, "NVIDIA GH200 480GB" counts the CPU's memory.
So the model must match exactly, and form factor, memory and power narrow down what is left. What stays open stays
unknown: a wrong peak is worse than none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.hardware.accelerators import Accelerator, accelerators
from core.limits import cached

if TYPE_CHECKING:  # pydantic comes with it
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
    """What the accelerator table knows about a device: the rows it may be (often one), or why there is none. part:
    whether it is a slice of a GPU, whose rates are no accelerator's."""

    rows: tuple[Accelerator, ...]
    reason: str
    part: bool = False

    @property
    def name(self) -> str:
        """The row, or the rows it may be; empty when there is none."""
        return " or ".join(row.name for row in self.rows)

    def peak(self, dtype: str) -> float:
        """Dense peak of ``dtype`` in FLOP/s on which all rows agree, otherwise NaN."""
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
    """The rows that fit, or all of them when none does: for clues that help but do not rule out."""
    return [row for row in rows if fits(row)] or rows


def match(name: str, memory_bytes: float | None, power_limit_w: float | None) -> Datasheet:
    """The datasheet of the GPU that calls itself ``name``. Memory and default power limit as the driver reports them.

    Model, form factor and memory must fit; memory type and power decide among what is left.
    """
    if not name:
        return Datasheet((), "the device has no name")
    given = _take_apart(name)
    rows = [row for row in accelerators() if row.vendor == "NVIDIA" and _take_apart(row.name).model == given.model]
    if given.form:
        rows = [row for row in rows if _row_form(row) == given.form]
    least = _MEMORY_LOW * min((row.sheet_bytes for row in rows), default=0.0)
    if "MIG" in given.model or (memory_bytes is not None and memory_bytes < _SLICE * least):
        return Datasheet((), f"{name} is a slice of a GPU here, so a plan cannot use its rates for a whole one", True)
    if memory_bytes is not None:
        rows = [row for row in rows if _MEMORY_LOW <= memory_bytes / row.sheet_bytes <= _MEMORY_HIGH]
    if given.memory_type:
        rows = _narrow(rows, lambda row: row.memory_type.upper().split()[0] == given.memory_type)
    if power_limit_w is not None:
        rows = _narrow(rows, lambda row: abs(row.tdp_watts / power_limit_w - 1) < 0.03)
    if not rows:
        return Datasheet((), f"the accelerator table has no row for {name}")
    if len(rows) > 1:
        return Datasheet(tuple(rows), f"{name} may be {' or '.join(row.name for row in rows)}")
    return Datasheet(tuple(rows), "")


NO_CPU_DATASHEET = Datasheet((), "no datasheet gives a processor's matmul rate per dtype")
"""For a CPU: its peak depends on clocks under load that nobody prints."""


_IN_SHEETS: Mapping[str, tuple[str, ...]] = {
    "fp64": ("fp64_tensor", "fp64"),
    "nvfp4": ("fp4",),
    "fp8 fast": ("fp8",),
}
"""Where a dtype's dense peak stands in a datasheet, where not under its own name; the first that is known. Matrix units
take fp64 where there are such."""


def datasheet_of(record: Record) -> Datasheet:
    """The datasheet of the device that was measured."""
    if record.programme.device == "cpu":
        return NO_CPU_DATASHEET
    if record.facts is None:
        return Datasheet((), "the device has not said yet what it is")
    return match(record.facts.name, record.facts.memory_bytes, record.facts.power_limit_w)


def peak_of(sheet: Datasheet, dtype: str) -> float:
    """Dense peak of ``dtype`` as measured here, in FLOP/s; NaN where no datasheet gives it."""
    peaks = (sheet.peak(name) for name in _IN_SHEETS.get(dtype, (dtype,)))
    return next((peak for peak in peaks if not math.isnan(peak)), math.nan)


def best_by_others(sheet: Datasheet, dtype: str) -> float:
    """The best matmul rate others measured on such a device, in FLOP/s; NaN where there is none at hand."""
    name = _IN_SHEETS.get(dtype, (dtype,))[0]
    rows: Iterable[Accelerator] = sheet.rows
    bests = {row.best_measured(name) for row in rows}
    return bests.pop() if len(bests) == 1 else math.nan
