"""From a steady step to the whole run: failures, checkpoints, work lost and done again, restarts.

Failures come at a constant rate, independent of each other (Poisson), which is Young's and Daly's model. A failure
loses everything since the last checkpoint and costs one restart, and both may be hit by the next failure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from core.formula import Explanation, Source, Symbol, formula
from core.planning.budget.equations import wall_seconds
from core.planning.budget.rule import training_seconds
from core.planning.budget.solver import BudgetError
from core.rows import number, read_rows
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
_BLOOM = Source(
    "BigScience 2022, BLOOM 176B training notes",
    "checkpoint of 2.3 TB with optimizer states",
    "https://bigscience.notion.site/BigScience-176B-Model-ad073ca07cdf479398d5f95d88e218c4",
)

_COUNT = Symbol("n", "accelerators", "count")
_RATE = Symbol(r"\lambda", "failures that stop the run, per 1,000 accelerator-days", "number")
_MTBF = Symbol("M", "mean time between failures", "seconds")
_WRITE = Symbol(r"\delta", "time training stands still for one checkpoint", "seconds")
_INTERVAL = Symbol(r"\tau", "training time between checkpoints", "seconds")
_RESTART = Symbol("R", "time from a failure to training again", "seconds")
_BYTES = Symbol("S", "size of a checkpoint", "bytes")


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
    r"\v{params} \cdot \v{bytes_per_parameter}",
    result=_BYTES,
    symbols={
        "params": Symbol("N", "parameters, all experts included", "count"),
        "bytes_per_parameter": Symbol("b", "bytes saved per parameter", "bytes_per_parameter"),
    },
    sources=(_BLOOM,),
)
def checkpoint_bytes(params: float, bytes_per_parameter: float) -> float:
    """Size of a checkpoint.

    With Adam in mixed precision up to 14 bytes per parameter: 2 for the bf16 weight, 4 for its fp32 master and 4 for
    each of the two moments. BLOOM's 2.3 TB are 13.
    """
    return params * bytes_per_parameter


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
    """Time that training stands still for one checkpoint.

    Written in the background, only the copy out of the accelerators’ memory blocks.
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
    result=Symbol("g", "goodput, the share of the time on the wall that trains", "ratio"),
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


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """Published failures of a run or a cluster, per 1,000 accelerator-days in ``rate``.

    failures: of what the source counts; NaN where it prints a rate only. known: how the row is known.
    """

    name: str
    accelerators: float
    days: float
    failures: float
    rate: float
    counted: str
    source: str
    known: str


@lru_cache(maxsize=1)
def failure_records() -> tuple[FailureRecord, ...]:
    """Published failure rates, highest evidence first: one row of ``assets/data/failures.csv`` each."""
    records: list[FailureRecord] = []
    for row in read_rows("failures"):
        accelerators, days, failures = (number(row[name]) for name in ("accelerators", "days", "failures"))
        rate = number(row["per_1000_accelerator_days"])
        records.append(
            FailureRecord(
                name=row["name"],
                accelerators=accelerators,
                days=days,
                failures=failures,
                rate=failure_rate(failures, accelerators, days) if math.isnan(rate) else rate,
                counted=row["counted"],
                source=row["source"],
                known=row["confidence"],
            )
        )
    return tuple(records)


@dataclass(frozen=True, slots=True)
class Reliability:
    """What the whole run depends on beyond the steady step.

    rate: failures per 1,000 accelerator-days, 0 for none. write_each: bytes per second of writing for each accelerator.
    blocking: share of the writing during which training waits. restart: seconds from a failure to training again.
    interval: seconds of training between checkpoints; NaN takes Daly's. elsewhere: share of the wall time that goes to
    anything else (evaluation, planned stops, idle tails), on top.
    """

    rate: float = 0.474
    bytes_per_parameter: float = 14.0
    write_each: float = WRITE_EACH
    blocking: float = 1.0
    restart: float = 600.0
    interval: float = math.nan
    elsewhere: float = 0.0


@dataclass(frozen=True, slots=True)
class WholeRun:
    """A run with its failures: shares of the wall time sum to 1.

    steady: seconds of steps alone. wall: seconds on the wall. goodput: steady over wall. training, writing, lost,
    restarting, elsewhere: shares of the wall time. failures: expected number. young, daly: seconds; interval: the one
    in force. mtbf: seconds, infinite without failures.
    """

    steady: float
    wall: float
    goodput: float
    training: float
    writing: float
    lost: float
    restarting: float
    elsewhere: float
    failures: float
    mtbf: float
    checkpoint: float
    write: float
    young: float
    daly: float
    interval: float
    explanations: tuple[Explanation, ...]


def _check(reliability: Reliability) -> None:
    r, inf = reliability, math.inf
    for field, value, low, high, example in (
        ("rate", r.rate, 0.0, 1e6, "0.5"),
        ("bytes_per_parameter", r.bytes_per_parameter, 0.0, 1e3, "14"),
        ("write_each", r.write_each, 1.0, inf, "120 MB/s"),
        ("blocking", r.blocking, 0.0, 1.0, "1"),
        ("restart", r.restart, 0.0, inf, "10 min"),
        ("elsewhere", r.elsewhere, 0.0, 0.99, "5%"),
    ):
        if not low <= value <= high or math.isinf(value):
            raise BudgetError(field, f"{field} is {value:g}, outside {low:g} to {high:g}. For example: {example}.")
    if r.interval <= 0:
        raise BudgetError("interval", f"The checkpoint interval is {r.interval:g} s. For example: 1 h.")


def whole_run(
    *, flop: float, accelerators: float, peak: float, mfu: float, params_total: float, reliability: Reliability
) -> WholeRun:
    """The run's time on the wall with checkpoints, failures and restarts.

    params_total: all parameters, experts included, which is what a checkpoint holds.
    Raises `BudgetError` for impossible input, and where the cluster fails faster than it can make progress.
    """
    _check(reliability)
    r = reliability
    steady = training_seconds.explain(flop=flop, accelerators=accelerators, peak=peak, mfu=mfu)
    size = checkpoint_bytes.explain(params=params_total, bytes_per_parameter=r.bytes_per_parameter)
    band = write_bandwidth.explain(accelerators=accelerators, each=r.write_each)
    write = checkpoint_seconds.explain(size=size.value, bandwidth=band.value, blocking=r.blocking)
    steps: list[Explanation] = [steady, size, band, write]
    if r.rate == 0:
        mtbf, young, daly = math.inf, math.inf, math.inf
        interval = steady.value if math.isnan(r.interval) else r.interval
        running = interval / (interval + (write.value if not math.isnan(r.interval) else 0.0))
        restarting = 0.0
    else:
        between = time_between_failures.explain(rate=r.rate, accelerators=accelerators)
        mtbf = between.value
        first = young_interval.explain(write=write.value, mtbf=mtbf)
        third = daly_interval.explain(write=write.value, mtbf=mtbf)
        young = first.value
        # Daly: beyond that the expansion fails, and one checkpoint per failure is best.
        daly = third.value if write.value < 2 * mtbf else mtbf
        # What is written in the background has to be done before the next checkpoint.
        behind = size.value / band.value * (1 - r.blocking)
        interval = r.interval if not math.isnan(r.interval) else max(daly, behind, 1.0)
        share = goodput_with_failures.explain(interval=interval, write=write.value, restart=r.restart, mtbf=mtbf)
        running = share.value
        restarting = r.restart / mtbf
        steps += [between, first, third, share]
        if not running > 1e-3:
            raise BudgetError(
                "rate",
                f"No progress: a failure every {format_duration(mtbf, 3)}, while a checkpoint takes "
                f"{format_duration(write.value, 3)} and a restart {format_duration(r.restart, 3)}. Take fewer "
                "accelerators, faster storage or a lower failure rate.",
            )
    training = running * (1 - r.elsewhere)
    wall = wall_seconds.explain(seconds=steady.value, goodput=training)
    writing = training * write.value / interval if math.isfinite(mtbf) or not math.isnan(r.interval) else 0.0
    restarting = min(restarting * (1 - r.elsewhere), max(0.0, 1 - r.elsewhere - training - writing))
    return WholeRun(
        steady=steady.value,
        wall=wall.value,
        goodput=training,
        training=training,
        writing=writing,
        lost=max(0.0, 1 - r.elsewhere - training - writing - restarting),
        restarting=restarting,
        elsewhere=r.elsewhere,
        failures=wall.value * (1 - r.elsewhere) / mtbf,
        mtbf=mtbf,
        checkpoint=size.value,
        write=write.value,
        young=young,
        daly=daly,
        interval=interval,
        explanations=(*steps, wall),
    )
