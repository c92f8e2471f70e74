"""The budget equation, D · F = n · P · u · t, turned round for each of its quantities, with their ranges."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from core.formula import Source, Symbol, formula
from core.models.flops import train_flop_6nd
from core.sources import DEEPSEEK_V3, PALM


class BudgetError(ValueError):
    """A budget that cannot be computed. ``field`` names the quantity at fault; the message says why."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


_NORMAL = statistics.NormalDist()
_TENTH = _NORMAL.inv_cdf(0.9)
"""Standard deviations from the middle of a normal distribution to P90, and to P10."""


def quantile(low: Any, mid: Any, high: Any, level: float) -> Any:
    """Return the value that a share ``level`` of cases stays below, of which P10, P50 and P90 are known: numbers or
    arrays.

    Each half is taken as of a lognormal distribution through its end and the middle: of positive quantities.
    """
    deviations = _NORMAL.inv_cdf(level) / _TENTH
    if not deviations:
        return mid
    end = high if deviations > 0 else low
    return mid * (end / (mid + (mid == 0))) ** abs(deviations)


@dataclass(frozen=True, slots=True)
class Interval:
    """P10, P50 and P90 of a quantity, low ≤ mid ≤ high; all NaN when unknown."""

    low: float
    mid: float
    high: float

    def __post_init__(self) -> None:
        if not self.known:
            return
        if not self.low <= self.mid <= self.high:
            raise ValueError(f"an interval runs from low to high: {self.low:g}, {self.mid:g}, {self.high:g}")

    @property
    def known(self) -> bool:
        """Whether there is a range at all."""
        return not math.isnan(self.low + self.mid + self.high)

    def contains(self, value: float) -> bool:
        """Return whether ``value`` is inside, ends included."""
        return self.low <= value <= self.high

    def quantile(self, level: float) -> float:
        """Return the value that a share ``level`` of cases stays below."""
        return float(quantile(self.low, self.mid, self.high, level))

    def below(self, value: float) -> float:
        """Return the share of cases that stay below ``value``, by the same distribution; 0 or 1 without spread."""
        end = self.high if value > self.mid else self.low
        if end == self.mid or value <= 0:
            return float(value >= self.mid)
        return _NORMAL.cdf(
            _TENTH * abs(math.log(value / self.mid) / math.log(end / self.mid)) * math.copysign(1, value - self.mid)
        )

    def through(self, function: Callable[[float], float]) -> Interval:
        """Return the interval of a function that is monotonic over this one."""
        ends = (function(self.low), function(self.mid), function(self.high))
        return Interval(min(ends), ends[1], max(ends))

    @staticmethod
    def point(value: float) -> Interval:
        """Return a quantity without spread."""
        return Interval(value, value, value)


_PALM = PALM.at("section 4.1 and appendix B")
_NARAYANAN = Source("Narayanan et al. 2021, Megatron-LM", "section 5.1, eq. 4", "https://arxiv.org/abs/2104.04473")

_KAPLAN = Source("Kaplan et al. 2020, Scaling Laws", "section 1.3, C = 6NBS", "https://arxiv.org/abs/2001.08361")

_COMPUTE = Symbol("C", "training compute", "flop")
_PER_TOKEN = Symbol("F", "training FLOPs per token, forward and backward", "flop")
_PER_PARAMETER = Symbol("k", "training FLOPs per token and parameter, 6 by the rule", "number")
_PARAMETERS = Symbol("N", "parameters (active ones, with experts)", "count")
_TOKENS = Symbol("D", "training tokens", "count")
_COUNT = Symbol("n", "accelerators", "count")
_PEAK = Symbol("P", "dense peak of one accelerator", "flop_per_s")
_MFU = Symbol("u", "MFU, the share of the peak that model FLOPs use", "ratio")
_SECONDS = Symbol("t", "time spent training", "seconds")
_DAYS = Symbol("d", "days on the wall", "number")
_HOURS = Symbol("H", "accelerator-hours", "accelerator_hours")


@formula(
    r"\v{per_parameter} \cdot \v{parameters}",
    result=_PER_TOKEN,
    symbols={"per_parameter": _PER_PARAMETER, "parameters": _PARAMETERS},
    sources=train_flop_6nd.sources,
)
def flop_of_a_token(per_parameter: float, parameters: float) -> float:
    """Training FLOPs per token in proportion to the parameters.

    The rule takes 6; a count by layer of one model, divided by its parameters, carries that model’s shape over to
    another size.
    """
    return per_parameter * parameters


@formula(
    r"\v{per_token} \cdot \v{tokens}",
    result=_COMPUTE,
    symbols={"per_token": _PER_TOKEN, "tokens": _TOKENS},
    sources=(_PALM,),
)
def flop_of_a_run(per_token: float, tokens: float) -> float:
    """Training compute of all tokens."""
    return per_token * tokens


@formula(
    r"\frac{\v{accelerators} \cdot \v{peak} \cdot \v{mfu} \cdot \v{seconds}}{\v{per_token}}",
    result=replace(_TOKENS, kind="tokens"),
    symbols={"accelerators": _COUNT, "peak": _PEAK, "mfu": _MFU, "seconds": _SECONDS, "per_token": _PER_TOKEN},
    sources=(_PALM, _NARAYANAN),
)
def tokens_trainable(accelerators: float, peak: float, mfu: float, seconds: float, per_token: float) -> float:
    """Tokens that the cluster trains on in the time."""
    return accelerators * peak * mfu * seconds / per_token


@formula(
    r"\frac{\v{flop}}{\v{peak} \cdot \v{mfu} \cdot \v{seconds}}",
    result=Symbol("n_0", "accelerators that would do, parts of one included", "number"),
    symbols={"flop": _COMPUTE, "peak": _PEAK, "mfu": _MFU, "seconds": _SECONDS},
    sources=(_PALM, _NARAYANAN),
)
def accelerators_needed(flop: float, peak: float, mfu: float, seconds: float) -> float:
    """Accelerators that do the work in the time, at an MFU that does not fall as they grow in number."""
    return flop / (peak * mfu * seconds)


@formula(
    r"\frac{\v{flop}}{\v{accelerators} \cdot \v{peak} \cdot \v{seconds}}",
    result=_MFU,
    symbols={"flop": _COMPUTE, "accelerators": _COUNT, "peak": _PEAK, "seconds": _SECONDS},
    sources=(_PALM,),
)
def mfu_needed(flop: float, accelerators: float, peak: float, seconds: float) -> float:
    """MFU that does the work in the time. Above 1 the cluster is too small for it at any efficiency."""
    return flop / (accelerators * peak * seconds)


@formula(
    r"\frac{\v{dollars}}{\v{price}}",
    result=_HOURS,
    symbols={
        "dollars": Symbol(r"\text{cost}", "money for accelerators", "usd"),
        "price": Symbol("p", "price per accelerator-hour", "usd_per_hour"),
    },
    sources=(DEEPSEEK_V3.at("table 1"),),
)
def hours_affordable(dollars: float, price: float) -> float:
    """Accelerator-hours that the money rents."""
    return dollars / price


@formula(
    r"\frac{\v{hours}}{24 \cdot \v{accelerators}}",
    result=replace(_DAYS, kind="days"),
    symbols={"hours": _HOURS, "accelerators": _COUNT},
    sources=(DEEPSEEK_V3.at("table 1"),),
)
def days_of(hours: float, accelerators: float) -> float:
    """Days in which the accelerators use up their hours."""
    return hours / (24 * accelerators)


@formula(
    r"\frac{\v{tokens} \cdot \v{seconds}}{86400 \cdot \v{sequences} \cdot \v{seq_len}}",
    result=replace(_DAYS, meaning="days of steps, one after the other", kind="days"),
    symbols={
        "tokens": replace(_TOKENS, kind="tokens"),
        "seconds": Symbol(r"t_\text{step}", "time of one step", "seconds"),
        "sequences": Symbol("B", "sequences of one step", "count"),
        "seq_len": Symbol("s", "tokens of a sequence", "count"),
    },
    sources=(_KAPLAN,),
)
def days_of_steps(tokens: float, seconds: float, sequences: float, seq_len: float) -> float:
    """Steady-state days: the optimizer steps that all tokens need, back to back."""
    return tokens * seconds / (86400 * sequences * seq_len)


_DEEPSEEK_V3 = DEEPSEEK_V3.at("table 1")

_TRAINING_TIME = Symbol("t", "training time", "seconds")


@formula(
    r"\frac{\v{flop}}{\v{accelerators} \cdot \v{peak} \cdot \v{mfu}}",
    result=_TRAINING_TIME,
    symbols={"flop": _COMPUTE, "accelerators": _COUNT, "peak": _PEAK, "mfu": _MFU},
    sources=(_PALM, _NARAYANAN),
)
def training_seconds(flop: float, accelerators: float, peak: float, mfu: float) -> float:
    """Training time at an MFU.

    With the end-to-end MFU, this is the wall-clock time. With the steady-state MFU, it is the steady-state time.
    """
    return flop / (accelerators * peak * mfu)


@formula(
    r"\frac{\v{accelerators} \cdot \v{seconds}}{3600}",
    result=_HOURS,
    symbols={"accelerators": _COUNT, "seconds": _TRAINING_TIME},
    sources=(_DEEPSEEK_V3,),
)
def accelerator_hours(accelerators: float, seconds: float) -> float:
    """Accelerator-hours.

    Every accelerator of the cluster counts for the whole time.
    """
    return accelerators * seconds / 3600


@formula(
    r"\v{hours} \cdot \v{price}",
    result=Symbol(r"\text{cost}", "rent of the accelerators", "usd"),
    symbols={"hours": _HOURS, "price": Symbol("p", "price per accelerator-hour", "usd_per_hour")},
    sources=(_DEEPSEEK_V3,),
)
def rent(hours: float, price: float) -> float:
    """Rent of the accelerators.

    Storage, network, staff and failed experiments are not in it.
    """
    return hours * price


@formula(
    r"\frac{\v{tokens}}{\v{seconds}}",
    result=Symbol("r", "tokens per second, whole cluster", "tokens_per_s"),
    symbols={"tokens": _TOKENS, "seconds": _TRAINING_TIME},
    sources=(_PALM,),
)
def tokens_per_second(tokens: float, seconds: float) -> float:
    """Tokens per second of the whole cluster."""
    return tokens / seconds


@formula(
    r"\frac{\v{flop}}{\v{hours} \cdot 3600 \cdot \v{peak}}",
    result=Symbol("u", "effective utilisation", "ratio"),
    symbols={"flop": _COMPUTE, "hours": _HOURS, "peak": _PEAK},
    sources=(_PALM,),
)
def effective_utilisation(flop: float, hours: float, peak: float) -> float:
    """Effective utilisation of a whole run.

    Its compute over what the billed hours could have done at peak. Lower than the MFU of a steady step, because
    the hours also hold restarts, evaluation, other stages and waiting.
    """
    return flop / (hours * 3600 * peak)
