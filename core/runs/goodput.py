"""From a steady step to the whole run: failures, checkpoints, work lost and done again, restarts.

Failures come at a constant rate, independent of each other (Poisson), which is Young's and Daly's model. A failure
loses everything since the last checkpoint and costs one restart, and both may be hit by the next failure.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, fields, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core.budget.equations import BudgetError
from core.formula import Source, Symbol, formula
from core.limits import cached, limit
from core.quantities import parse_quantity
from core.rows import number, read_record, read_rows
from core.sources import OWN_CONSTRUCTION, PALM
from core.units import format_duration

_YOUNG = Source(
    "Young 1974, A first order approximation to the optimum checkpoint interval",
    "Communications of the ACM 17(9)",
    "https://doi.org/10.1145/361147.361115",
)
_DALY = Source(
    "Daly 2006, A higher order estimate of the optimum checkpoint interval for restart dumps",
    "Future Generation Computer Systems 22(3)",
    "https://doi.org/10.1016/j.future.2004.11.016",
)
_LLAMA3 = Source(
    "Grattafiori et al. 2024, The Llama 3 Herd of Models", "section 3.3.4", "https://arxiv.org/abs/2407.21783"
)
_STORAGE = Source(
    "Grattafiori et al. 2024, The Llama 3 Herd of Models",
    "section 3.3.1, 2 TB/s of storage sustained",
    "https://arxiv.org/abs/2407.21783",
)

_COUNT = Symbol("n", "accelerators", "count")
_RATE = Symbol(r"\lambda", "failures that stop the run, per 1,000 accelerator-days", "number")
_MTBF = Symbol("M", "mean time between failures", "seconds")
_WRITE = Symbol(r"\delta", "time training stands still for one checkpoint", "seconds")
_INTERVAL = Symbol(r"\tau", "training time between checkpoints", "seconds")
_RESTART = Symbol("R", "time from a failure to training again", "seconds")
_BYTES = Symbol("S", "size of a checkpoint", "bytes")
_GOODPUT = Symbol("g", "goodput, the share of the time on the wall that trains", "ratio")
_ALL = Symbol("u", "MFU over all hours", "ratio")
_STEPS = Symbol("u_s", "MFU of the steps themselves", "ratio")
_DEFINED = (OWN_CONSTRUCTION.at("from MFU as PaLM defines it"), PALM.at("section 4.1"))


@formula(
    r"\frac{1000 \cdot \v{failures}}{\v{accelerators} \cdot \v{days}}",
    result=_RATE,
    symbols={
        "failures": Symbol("f", "failures", "number"),
        "accelerators": _COUNT,
        "days": Symbol("d", "days", "number"),
    },
    sources=(_LLAMA3,),
)
def failure_rate(failures: float, accelerators: float, days: float) -> float:
    """Failures per 1,000 accelerator-days."""
    return 1000 * failures / (accelerators * days)


@formula(
    r"\frac{1000 \cdot 86400}{\v{rate} \cdot \v{accelerators}}",
    result=_MTBF,
    symbols={"rate": _RATE, "accelerators": _COUNT},
    sources=(_LLAMA3,),
)
def time_between_failures(rate: float, accelerators: float) -> float:
    """Mean time between failures of the cluster.

    Every accelerator is one more thing that can fail, with its share of host and network.
    """
    return 1000 * 86400 / (rate * accelerators)


@formula(
    r"\frac{1}{\frac{1}{\v{mtbf}} + \frac{\v{taken}}{3600}}",
    result=Symbol("M'", "mean time between stops of the run, of either kind", "seconds"),
    symbols={
        "mtbf": _MTBF,
        "taken": Symbol(r"\kappa", "times an hour that the whole pool is taken away", "number"),
    },
    sources=(OWN_CONSTRUCTION.at("rates of independent events add up"),),
)
def time_between_stops(mtbf: float, taken: float) -> float:
    """Mean time between stops where accelerators fail, and where spot capacity is taken away.

    Both lose what was trained since the last checkpoint, and cost a restart.
    """
    return 1 / (1 / mtbf + taken / 3600)


WRITE_EACH = 120e6
"""Bytes per second that each accelerator's share of the storage writes: Llama 3's 2 TB/s sustained for 16,384."""


@formula(
    r"\v{accelerators} \cdot \v{each}",
    result=Symbol(r"\beta", "bandwidth of writing, whole cluster", "bytes_per_s"),
    symbols={
        "accelerators": _COUNT,
        "each": Symbol(r"\beta_1", "bandwidth of writing for each accelerator", "bytes_per_s"),
    },
    sources=(_STORAGE,),
)
def write_bandwidth(accelerators: float, each: float) -> float:
    """Bandwidth of writing of the whole cluster.

    Storage is bought with the cluster: every accelerator writes its own part of a checkpoint.
    """
    return accelerators * each


@formula(
    r"\frac{\v{size}}{\v{bandwidth}} \cdot \v{blocking}",
    result=_WRITE,
    symbols={
        "size": _BYTES,
        "bandwidth": Symbol(r"\beta", "bandwidth of writing, whole cluster", "bytes_per_s"),
        "blocking": Symbol("q", "share of the writing during which training waits", "ratio"),
    },
    sources=(_DALY,),
)
def checkpoint_seconds(size: float, bandwidth: float, blocking: float) -> float:
    """Time for which one checkpoint blocks training.

    An asynchronous checkpoint blocks only while memory is copied out of the accelerators.
    """
    return size / bandwidth * blocking


@formula(
    r"\sqrt{2 \cdot \v{write} \cdot \v{mtbf}}",
    result=_INTERVAL,
    symbols={"write": _WRITE, "mtbf": _MTBF},
    sources=(_YOUNG,),
)
def young_interval(write: float, mtbf: float) -> float:
    """Checkpoint interval by Young.

    First order: right while writing takes much less time than passes between failures.
    """
    return np.sqrt(2 * write * mtbf)


@formula(
    r"\sqrt{2 \cdot \v{write} \cdot \v{mtbf}} \cdot (1 + \frac{1}{3} \cdot \sqrt{\frac{\v{write}}{2 \cdot \v{mtbf}}}"
    r" + \frac{\v{write}}{18 \cdot \v{mtbf}}) - \v{write}",
    result=_INTERVAL,
    symbols={"write": _WRITE, "mtbf": _MTBF},
    sources=(_DALY,),
)
def daly_interval(write: float, mtbf: float) -> float:
    """Checkpoint interval by Daly.

    Third order, for writing times under twice the time between failures. The time of writing itself is not in the
    interval.
    """
    return np.sqrt(2 * write * mtbf) * (1 + np.sqrt(write / (2 * mtbf)) / 3 + write / (18 * mtbf)) - write


@formula(
    r"\frac{\v{interval}}{\v{mtbf} \cdot (-1 + \exp(\frac{\v{interval} + \v{write}}{\v{mtbf}}))"
    r" \cdot \exp(\frac{\v{restart}}{\v{mtbf}})}",
    result=_GOODPUT,
    symbols={"interval": _INTERVAL, "write": _WRITE, "restart": _RESTART, "mtbf": _MTBF},
    sources=(_DALY,),
)
def goodput_with_failures(interval: float, write: float, restart: float, mtbf: float) -> float:
    """Goodput under failures.

    An interval of training over the time it takes on average until it is written: failures at a constant rate may
    strike training, writing and restarting alike, and what is not written is done again.
    """
    with np.errstate(over="ignore"):  # infinitely long, so no goodput at all
        return interval / (mtbf * np.exp(restart / mtbf) * np.expm1((interval + write) / mtbf))


@formula(
    r"\v{steps} \cdot \v{goodput}",
    result=_ALL,
    symbols={"steps": _STEPS, "goodput": _GOODPUT},
    sources=_DEFINED,
)
def mfu_of_all_hours(steps: float, goodput: float) -> float:
    """MFU over all hours, from that of the steps."""
    return steps * goodput


@formula(
    r"\frac{\v{mfu}}{\v{goodput}}",
    result=_STEPS,
    symbols={"mfu": _ALL, "goodput": _GOODPUT},
    sources=_DEFINED,
)
def mfu_of_steps(mfu: float, goodput: float) -> float:
    """MFU of the steps themselves.

    All the work falls into the part of the time that trains, so the steps are faster than all hours together.
    """
    return mfu / goodput


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """Published failures of a run or a cluster, per 1,000 accelerator-days in ``rate``.

    failures: of what the source counts; NaN if it prints a rate only. known: how the row is known.
    """

    name: str
    accelerators: float
    days: float
    failures: float
    rate: float
    counted: str
    source: str
    known: str


@cached("tables_kept")
def failure_records() -> tuple[FailureRecord, ...]:
    """Return published failure rates, highest evidence first: one row of ``assets/data/failures.csv`` each."""
    records: list[FailureRecord] = []
    for row in read_rows("failures"):
        accelerators, days, failures = (number(row[name]) for name in ("accelerators", "days", "failures"))
        rate = number(row["per_1000_accelerator_days"])
        rate = failure_rate(failures, accelerators, days) if math.isnan(rate) else rate
        records.append(read_record(FailureRecord, row, {"known": "confidence"}, rate=rate))
    return tuple(records)


@dataclass(frozen=True, slots=True)
class Failures:
    """How often the run fails: per 1,000 accelerator-days, or at times of the whole cluster; the other one is NaN.

    per_1000_days: 0 for never. between: mean seconds between failures of the cluster, whatever its size.
    """

    per_1000_days: float = 0.474
    between: float = math.nan


_PER_DAY = re.compile(r"(.+?) ?(?:/ ?|per |a )days?", re.IGNORECASE)


def parse_failures(text: str) -> Failures:
    """Return a typed rate: ``0.474`` per 1,000 accelerator-days, ``8 per day`` or an MTBF of ``3 h``, both of the
    cluster.

    Raises `QuantityError` with the rule and an example otherwise.
    """
    text = " ".join(text.split())
    example = "0.474 per 1,000 accelerator-days, 8 per day, or an MTBF such as 3 h"
    if match := _PER_DAY.fullmatch(text):
        a_day = parse_quantity(match[1], "number", low=0.0, high=1e5, example=example)
        return Failures(math.nan, 86400 / a_day) if a_day else Failures(0.0)
    mtbf = re.sub(r"(?i)^mtbf ?(?:of|=|:)? ?", "", text)
    if re.search(r"[a-z]", mtbf, re.IGNORECASE) and not re.fullmatch(r"[\d.]+e[-+]?\d+", mtbf, re.IGNORECASE):
        return Failures(math.nan, parse_quantity(mtbf, "seconds", low=1.0, high=1e10, example=example))
    return Failures(parse_quantity(mtbf, "number", low=0.0, high=1e4, example=example))


@dataclass(frozen=True, slots=True)
class Reliability:
    """Inputs of the end-to-end time beyond the steady-state time.

    write_each: checkpoint bandwidth per accelerator in bytes per second. blocking: share of the write time that blocks
    training. restart: seconds from a failure until training resumes. interval: seconds of training between checkpoints;
    NaN for Daly's. elsewhere: share of wall-clock time for anything else (evaluation, planned stops, idle tails).
    taken: interruptions of spot capacity per hour, each a failure of the run.
    """

    failures: Failures = field(default_factory=Failures)
    write_each: float = WRITE_EACH
    blocking: float = 1.0
    restart: float = 600.0
    interval: float = math.nan
    elsewhere: float = 0.0
    taken: float = 0.0


Array: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interruptions:
    """What stops a cluster, as shares of its time on the wall that sum to 1; arrays of one shape.

    goodput: share that trains. mtbf, write, young, daly, interval: seconds, infinite if nothing fails (then nothing is
    saved either, unless an interval is given). checkpoint: bytes.
    """

    goodput: Array
    writing: Array
    lost: Array
    restarting: Array
    elsewhere: float
    mtbf: Array
    checkpoint: Array
    write: Array
    young: Array
    daly: Array
    interval: Array
    reliability: Reliability
    accelerators: Array

    def at(self, i: int) -> Interruptions:
        """Return one of a row of them."""
        return replace(self, **{name: getattr(self, name)[i] for name in _EACH})


_EACH = tuple(item.name for item in fields(Interruptions) if item.name not in ("elsewhere", "reliability"))


def interruptions(accelerators: float | Array, checkpoint: float | Array, r: Reliability) -> Interruptions:
    """Return what checkpoints of ``checkpoint`` bytes, failures and restarts leave of the time. Arrays broadcast."""
    count, size = np.broadcast_arrays(np.asarray(accelerators, float), np.asarray(checkpoint, float))
    bandwidth = write_bandwidth.over(accelerators=count, each=r.write_each)
    written = size / bandwidth
    write = checkpoint_seconds.over(size=size, bandwidth=bandwidth, blocking=r.blocking)
    never = r.failures.per_1000_days == 0 and not r.taken
    if r.failures.per_1000_days == 0:
        mtbf = np.full(count.shape, math.inf)
    elif math.isnan(r.failures.per_1000_days):
        mtbf = np.full(count.shape, r.failures.between)
    else:
        mtbf = np.asarray(time_between_failures.over(rate=r.failures.per_1000_days, accelerators=count))
    if r.taken:
        mtbf = np.asarray(time_between_stops.over(mtbf=mtbf, taken=r.taken))
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        young = young_interval.over(write=write, mtbf=mtbf)
        # Beyond 2 M the expansion fails. Daly then takes M; what it comes to at 2 M is as good, and does not jump.
        daly = daly_interval.over(write=np.minimum(write, 2 * mtbf), mtbf=mtbf)
        if not math.isnan(r.interval):
            interval = np.full(count.shape, r.interval)
        elif never:
            interval = np.full(count.shape, math.inf)
        else:
            # What is written in the background has to be done before the next checkpoint.
            interval = np.maximum(np.maximum(daly, written * (1 - r.blocking)), 1.0)
        if never:
            running = np.where(np.isinf(interval), 1.0, interval / (interval + write))
            restarting = np.zeros(count.shape)
        else:
            running = goodput_with_failures.over(interval=interval, write=write, restart=r.restart, mtbf=mtbf)
            restarting = r.restart / mtbf
        goodput = running * (1 - r.elsewhere)
        writing = np.where(np.isinf(interval), 0.0, goodput * write / interval)
        rest = np.maximum(0.0, 1 - r.elsewhere - goodput - writing)
        restarting = np.minimum(restarting * (1 - r.elsewhere), rest)
    return Interruptions(
        goodput, writing, rest - restarting, restarting, r.elsewhere, mtbf, size, write, young, daly, interval, r, count
    )


@dataclass(frozen=True, slots=True)
class ClusterGoodput:
    """The goodput of any number of accelerators. checkpoint: bytes."""

    checkpoint: float
    reliability: Reliability

    def __call__(self, accelerators: Array) -> Array:
        return interruptions(accelerators, self.checkpoint, self.reliability).goodput


@cached("results_kept")
def most_useful(checkpoint: float, r: Reliability) -> float:
    """Return the number of accelerators beyond which failures cost more than another accelerator adds."""
    low, high = 0.0, math.log(limit("accelerators"))
    for _ in range(4):
        tried = np.linspace(low, high, 1024)
        best = int(np.argmax(np.exp(tried) * interruptions(np.exp(tried), checkpoint, r).goodput))
        low, high = tried[max(0, best - 1)], tried[min(1023, best + 1)]
    return math.exp(high)


LEAST_GOODPUT = 1e-3
"""Below this the cluster fails faster than it can make progress."""


def no_progress(result: Interruptions) -> BudgetError:
    """Return the message that failures leave no progress, and what would help."""
    return BudgetError(
        "rate1k",
        f"No progress: a failure every {format_duration(float(result.mtbf), 3)}, while a checkpoint takes "
        f"{format_duration(float(result.write), 3)} and a restart "
        f"{format_duration(result.reliability.restart, 3)}. Take "
        "fewer accelerators, faster storage or a lower failure rate.",
    )
