"""What was measured: rates of an accelerator, and training runs of one’s own.

One run a line: parameters, tokens, accelerators, how long. ``7B, 2T tokens, 256 H100 SXM, 19 days``; the cells of a CSV
are read as well. A time is of the clock (days, h), or of accelerators (GPU-hours); a rate (tokens/s) is that of steps.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from core.benchmark.datasheet import match
from core.benchmark.device import Gpu
from core.budget.equations import effective_utilisation
from core.hardware.accelerators import Accelerator, accelerators, ceiling_of
from core.hardware.accelerators import find as find_accelerator
from core.hardware.cluster import Cluster, RateName, Rates, cluster
from core.limits import cached, limit
from core.messages import message, pick_message
from core.models.flops import train_flop_6nd
from core.number_text import QuantityError
from core.quantities import parse_quantity
from core.runs.published import peak_16bit
from core.step_time.running import wide_peak
from core.suggest import suggestions
from core.units import Kind

if TYPE_CHECKING:
    from core.planning.plan import Plan

EXAMPLE = "7B, 2T tokens, 256 H100 SXM, 19 days"

_SLOWEST = 0.02
"""MFU below which a run is taken to be mistyped: the slowest published one reached more than twice as much."""

_COMMA = re.compile(r"[;\t]|(?<!\d),|,(?!\d{3}(?:\D|$))")
_CLUSTER = re.compile(r"([\d.,]+ ?[kM]?) ?(?:×|x|\*)? ?(\D.*)", re.IGNORECASE)
_RATE = re.compile(r"(.+?) ?tok(?:en)?s? ?(?:/|per) ?s(?:ec(?:ond)?)?", re.IGNORECASE)
_BILLED = re.compile(r"(.+?) ?(?:gpu|accelerator|device)s?[- ]{0,3}h(?:ou)?rs?", re.IGNORECASE)
"""Of cells with single blanks."""


@dataclass(frozen=True, slots=True)
class OwnRun:
    """A run that a user trained. hours: accelerator-hours. steady: whether these are in steady state."""

    parameters: float
    tokens: float
    accelerator: str
    accelerators: float
    hours: float
    steady: bool

    @property
    def mfu(self) -> float:
        """6 N D over the hours and the dense 16-bit peak."""
        flop = train_flop_6nd(self.parameters, self.tokens)
        return effective_utilisation(flop, self.hours, peak_16bit(self.accelerator))


def _count(text: str, most: str) -> float:
    return parse_quantity(text, "count", low=1, high=limit(most), whole=True, example=EXAMPLE)


def _named(text: str) -> str:
    names = {device.name.lower(): device.name for device in accelerators()}
    name = names.get(" ".join(text.split()).lower())
    if name is None:
        near = suggestions(text, list(names.values()))
        says = "runs.own.accelerator_near" if near else "runs.own.accelerator"
        raise QuantityError(pick_message(says, entered=text.strip(), near=near))
    return name


def _cluster(cells: list[str]) -> tuple[float, str]:
    """Return accelerators and their name, in one cell or in two of any order."""
    match = _CLUSTER.fullmatch(" ".join(sorted(cells, key=lambda cell: not cell.strip()[:1].isdigit())).strip())
    if not match:
        raise QuantityError(message("runs.own.cluster", entered=", ".join(cells).strip(), example=EXAMPLE))
    return _count(match[1], "accelerators"), _named(match[2])


def _hours(text: str, tokens: float, count: float) -> tuple[float, bool]:
    """Return accelerator-hours, and whether they are in steady state."""
    if rate := _RATE.fullmatch(text):
        return tokens / _count(rate[1], "tokens") / 3600 * count, True
    if billed := _BILLED.fullmatch(text):
        return parse_quantity(billed[1], "count", low=1, high=1e15, example="116,000 GPU-hours"), False
    return parse_quantity(text, "seconds", low=1.0, high=1e10, example="19 days") / 3600 * count, False


def _run(line: str) -> OwnRun:
    cells = [" ".join(cell.split()) for cell in _COMMA.split(line)]
    if len(cells) not in (4, 5):
        raise QuantityError(message("runs.own.cells", cells=float(len(cells)), example=EXAMPLE))
    parameters = _count(cells[0], "parameters")
    tokens = _count(re.sub(r"(?i) ?tokens?$", "", cells[1]), "tokens")
    count, name = _cluster(cells[2:-1])
    run = OwnRun(parameters, tokens, name, count, *_hours(cells[-1], tokens, count))
    device = find_accelerator(name)
    most = ceiling_of(device, device.usable("bf16"))
    if run.mfu > most:
        raise QuantityError(message("runs.own.fast", mfu=run.mfu, device=name, most=most))
    if run.mfu < _SLOWEST:
        raise QuantityError(message("runs.own.slow", mfu=run.mfu, least=_SLOWEST))
    return run


def parse_own_runs(text: str) -> tuple[OwnRun, ...]:
    """Return runs as entered, one a line; a first line without a number is a heading.

    Raises `QuantityError`, which names the line, for what cannot be read, for an unknown accelerator, for more runs
    than are taken, and for a run that is faster than its best matmul or ten times slower than usual.
    """
    lines = [(at, line) for at, line in enumerate(text.splitlines(), 1) if line.strip()]
    if lines and not re.search(r"\d", lines[0][1]):
        lines = lines[1:]
    if len(lines) > limit("own_runs"):
        raise QuantityError(message("runs.own.many", runs=float(len(lines)), most=float(limit("own_runs"))))
    runs: list[OwnRun] = []
    for at, line in lines:
        try:
            runs.append(_run(line))
        except QuantityError as problem:
            raise QuantityError(message("runs.own.line", line=float(at), problem=problem.args[0])) from problem
    return tuple(runs)


RatesOrigin: TypeAlias = Literal["none", "own", "stands in", "other"]
"""What a plan's rates are of: nothing, its own accelerator, a device that no datasheet is known of and which stands in
for it, or another accelerator."""


_SIZE = re.compile(r"(\d{1,4}) ?GB\b")


@cached("results_kept")
def rows_of(device: str) -> tuple[str, ...]:
    """Return the catalog names of accelerators that match the name a device reports; empty for an unknown device.

    A memory size in the name, such as 80GB, tells variants apart, unless it is the size of a module with its CPU.
    """
    size = _SIZE.search(device)
    sized = match(device, float(size[1]) * 1e9, None).rows if size else ()
    return tuple(row.name for row in sized or match(device, None, None).rows)


def is_this_machine(accelerator: str, gpu: Gpu) -> bool:
    """Return whether a GPU may be an accelerator of the catalog."""
    return accelerator in {row.name for row in match(gpu.name, gpu.memory_bytes, gpu.power_limit_w).rows}


def rates_origin(plan: Plan) -> RatesOrigin:
    """Return the device that a plan's rates belong to, relative to its accelerator."""
    if not plan.measured.rates.known:
        return "none"
    rows = rows_of(plan.measured.device)
    return "stands in" if not rows else "own" if plan.accelerator in rows else "other"


def rates_of(plan: Plan) -> Rates | None:
    """Return the measured rates that replace the datasheet's in every time; None without rates or for another
    accelerator's."""
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


@dataclass(frozen=True, slots=True)
class ReplacedRate:
    """A measured rate that a plan uses, and the datasheet value that it replaces, NaN if unknown."""

    id: RateName
    measured: float
    datasheet: float

    @property
    def kind(self) -> Kind:
        """What both are."""
        return KIND_OF[self.id]

    @property
    def doubtful(self) -> bool:
        """Whether the measured rate exceeds the datasheet value by more than clocks explain."""
        return self.measured > TOO_GOOD * self.datasheet


def replaced_rates(plan: Plan) -> tuple[ReplacedRate, ...]:
    """Return the measured rates that the plan uses, each with the dense peak or bandwidth of the datasheet."""
    rates = rates_of(plan)
    device = plan.device
    return tuple(ReplacedRate(name, rate, _datasheet(device, name)) for name, rate in (rates or Rates()).known)


def network_known(here: Cluster) -> float:
    """Return bytes per second one way of one accelerator to other nodes, as far as a system is known that has it; else
    NaN."""
    return math.nan if here.accelerator.network_confidence == "assumed" else here.link_between


def _datasheet(device: Accelerator, name: RateName) -> float:
    if name == "memory":
        return device.bandwidth
    if name in ("inside", "between"):
        here = cluster(device, 1)
        return here.link_inside if name == "inside" else network_known(here)
    return wide_peak(device) if name == "matmul16" else device.peak("fp8" if name == "matmul8" else "fp4")


@dataclass(frozen=True, slots=True)
class CarriedRates:
    """Rates that a plan carries. origin: on what they were measured and when, as text, of which nothing is known but
    that it is short."""

    rates: Rates = field(default_factory=Rates)
    origin: str = ""

    @property
    def device(self) -> str:
        """Device on which the rates were measured, as it names itself; empty if unknown."""
        return self.origin.rpartition(",")[0].strip() or self.origin
