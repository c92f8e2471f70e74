"""Adding a small number many times: where a sum in a narrow format stalls, and what keeps it moving."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from core.floats.codec import decode, decode_exact, encode, encode_exact
from core.floats.formats import FORMATS, FloatFormat
from core.floats.rounding import ROUNDINGS, Rounding
from core.formula import Explanation, Source, Symbol, formula
from core.limits import cached, limit

REPLICAS = 256
"""Stochastic sums run side by side, for their mean and spread."""

TABLE_BITS = 16
"""Formats up to this many bits walk a table of all their sums; wider ones leap from binade to
binade and have no stochastic sums."""

SHOWN = ("fp32", "tf32", "fp16", "bf16", "fp8_e4m3fn", "fp8_e5m2")
"""The formats compared."""

DETERMINISTIC: tuple[Rounding, ...] = tuple(r for r in ROUNDINGS if r != "stochastic")

_SEED = 2
_POINTS = 400
_LEAP = 4096
_COARSE = 0.005
_ODD_BITS = 50
"""A float64 rounded to odd decides the rounding into formats with at least two fraction bits less than its 52."""

_CROCI = Source(
    "Croci et al. 2022, Stochastic rounding: implementation, error analysis and applications",
    "section 4, stagnation",
    "https://doi.org/10.1098/rsos.211631",
)


@formula(
    r"\frac{\v{ulp}}{2}",
    result=Symbol(r"a_\mathrm{min}", "smallest addend that changes the sum", "number"),
    symbols={"ulp": Symbol(r"\mathrm{ulp}", "spacing of the format at the sum", "number")},
    sources=(_CROCI,),
)
def half_step(ulp: float) -> float:
    """Smallest addend that changes the sum with round-to-nearest.

    With an addend of less than half the spacing, the exact sum is closer to the old sum than to the next value. At
    exactly half the spacing, the rule for ties decides.
    """
    return ulp / 2


@formula(
    r"\v{start} + \v{steps} \cdot \v{addend}",
    result=Symbol("s", "exact sum", "number"),
    symbols={
        "start": Symbol("s_0", "start", "number"),
        "steps": Symbol("n", "additions", "count"),
        "addend": Symbol("a", "addend", "number"),
    },
    sources=(_CROCI,),
)
def exact_sum(start: float, steps: float, addend: float) -> float:
    """Sum without rounding."""
    return start + steps * addend


@dataclass(frozen=True, slots=True)
class SummationRun:
    """One sum: start and addend as the format holds them, then ``steps`` additions, each rounded into the format.

    at, sums: step numbers and the sum there, thinned for drawing; the first is step 0, the last step ``steps``. final:
    the last sum. stalled: the step after which it never changed again, None while it still moved or where it
    overflowed. overflowed: the first step whose sum is infinity or NaN, 0 if the start is; None if all are finite.
    """

    fmt: FloatFormat
    rounding: Rounding
    addend: float
    at: npt.NDArray[np.int64]
    sums: npt.NDArray[np.float64]
    final: float
    stalled: int | None
    overflowed: int | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """Many stochastic sums: mean and standard deviation at each drawn step, no finite numbers once one overflowed.

    overflowed: how many of them are infinity or NaN at the end.
    """

    fmt: FloatFormat
    at: npt.NDArray[np.int64]
    mean: npt.NDArray[np.float64]
    deviation: npt.NDArray[np.float64]
    overflowed: int


@cached("small_results_kept")
def add_up(
    start: float, addend: float, steps: int, fmt: FloatFormat, rounding: Rounding = "nearest_even"
) -> SummationRun:
    """Add ``addend`` to ``start`` ``steps`` times in ``fmt``; both are stored in it first, rounded to nearest.

    Sums overflow as the format does: to infinity where it has one, else to NaN, else they stay at the largest value.
    Raises ``ValueError`` for stochastic rounding (see `spread`) and for steps out of range.
    """
    if rounding == "stochastic":
        raise ValueError("one stochastic sum says little; spread() gives mean and deviation of many")
    return _thinned(fmt, rounding, stored(addend, fmt), _all_sums(start, addend, steps, fmt, rounding))


def _all_sums(start: float, addend: float, steps: int, fmt: FloatFormat, rounding: Rounding) -> npt.NDArray[np.float64]:
    """Return the sum after every step, from step 0 on."""
    _check(steps)
    first, small = stored(start, fmt), stored(addend, fmt)
    if not (math.isfinite(first) and math.isfinite(small)):
        values = np.full(steps + 1, first + small)
        values[0] = first
    elif fmt.name in ("fp64", "fp32") and rounding == "nearest_even":
        dtype = np.float64 if fmt.name == "fp64" else np.float32
        terms = np.full(steps + 1, small, dtype=dtype)
        terms[0] = first
        with np.errstate(over="ignore"):
            values = np.add.accumulate(terms, dtype=dtype).astype(np.float64)
    elif fmt.bits <= TABLE_BITS:
        sums, to = _table(first, small, fmt, rounding)
        places = np.empty(steps + 1, dtype=np.int64)
        place, following = _place(sums, first), to.tolist()
        for step in range(steps + 1):
            places[step] = place
            place = following[place]
        values = sums[places]
    elif fmt.fraction_bits <= _ODD_BITS:
        values = _leaping(first, small, steps, fmt, rounding)
    else:
        values = _one_by_one(first, small, steps, fmt, rounding)
    return values


@cached("results_kept")
def spread(start: float, addend: float, steps: int, fmt: FloatFormat) -> Spread:
    """Return the mean and deviation of `REPLICAS` sums under stochastic rounding, always with the same seed.

    Raises ``ValueError`` for a format of more than `TABLE_BITS` bits and for steps out of range.
    """
    _check(steps)
    if fmt.bits > TABLE_BITS:
        raise ValueError(f"{fmt.title} is too wide for a table of its sums")
    first, small = stored(start, fmt), stored(addend, fmt)
    at = _steps(steps)
    if not (math.isfinite(first) and math.isfinite(small)):
        mean = np.where(at == 0, first, first + small)
        return Spread(fmt, at, mean, np.where(np.isfinite(mean), 0.0, np.nan), REPLICAS)
    sums, down = _table(first, small, fmt, "down")
    beyond, up = _table(first, small, fmt, "up")
    ended = sums[-1] if np.isinf(sums[-1]) else beyond[-1]
    sums = np.append(sums[:-1], ended)
    chance = _chances(sums, small, down, up, fmt)
    draw = np.random.default_rng(_SEED)
    wanted = {int(step): i for i, step in enumerate(at)}
    mean, deviation = np.empty(at.size), np.empty(at.size)
    places = last = np.full(REPLICAS, _place(sums, first))
    with np.errstate(invalid="ignore"):
        for step in range(steps + 1):
            if step in wanted:
                here = sums[places]
                mean[wanted[step]], deviation[wanted[step]] = here.mean(), here.std()
            last = places
            places = np.where(draw.random(REPLICAS) < chance[places], up[places], down[places])
    return Spread(fmt, at, mean, deviation, int(np.count_nonzero(~np.isfinite(sums[last]))))


def _chances(
    sums: npt.NDArray[np.float64],
    addend: float,
    down: npt.NDArray[np.int64],
    up: npt.NDArray[np.int64],
    fmt: FloatFormat,
) -> npt.NDArray[np.float64]:
    """Return, for each sum, the chance that stochastic rounding goes up.

    Beyond the largest value, it is the chance of the value that would follow, which then overflows.
    """
    outside = float(fmt.max_finite + fmt.quantum_max)
    low, high = sums[down], sums[up]
    low, high = np.where(np.isfinite(low), low, -outside), np.where(np.isfinite(high), high, outside)
    with np.errstate(invalid="ignore"):
        chance = np.where(high > low, (sums + addend - low) / np.where(high > low, high - low, 1.0), 0.0)
    chance[-1] = 0.0  # what has overflowed stays
    return np.clip(chance, 0.0, 1.0)


@cached("arrays_kept")
def compare(start: float, addend: float, steps: int) -> tuple[tuple[FloatFormat, tuple[SummationRun, ...]], ...]:
    """Return every format of `SHOWN` under every deterministic rounding."""
    return tuple(
        (FORMATS[name], tuple(add_up(start, addend, steps, FORMATS[name], mode) for mode in DETERMINISTIC))
        for name in SHOWN
    )


def master_copy(start: float, addend: float, steps: int, fmt: FloatFormat) -> SummationRun:
    """Return the sum kept in fp32 and read through ``fmt`` after every step, as mixed precision does with its weights.

    The addend is what ``fmt`` stores, as a gradient in that format would be. ``final`` and ``stalled`` are those of
    the copy itself, ``sums`` and ``overflowed`` of what is read.
    """
    sums = _all_sums(start, stored(addend, fmt), steps, FORMATS["fp32"], "nearest_even")
    copy = _thinned(FORMATS["fp32"], "nearest_even", stored(addend, fmt), sums)
    read = _thinned(fmt, copy.rounding, copy.addend, decode(encode(sums, fmt), fmt))
    return replace(read, final=copy.final, stalled=copy.stalled)


def own_exact(start: float, addend: float, run: SummationRun) -> tuple[float, float] | None:
    """Return start and addend as the format stores them, if these change the exact sum; otherwise None."""
    first = float(run.sums[0])
    if not (math.isfinite(first) and math.isfinite(run.addend) and run.addend):
        return None
    return (first, run.addend) if is_stored_coarsely(start, first) or is_stored_coarsely(addend, run.addend) else None


def is_stored_coarsely(value: float, stored: float) -> bool:
    return not math.isclose(value, stored, rel_tol=_COARSE)


def explain(start: float, addend: float, steps: int, fmt: FloatFormat) -> tuple[Explanation, ...]:
    """Return how the exact sum and the point of stalling are computed."""
    run = add_up(start, addend, steps, fmt)
    explanations = [exact_sum.explain(start=start, steps=steps, addend=addend)]
    if np.isfinite(run.final) and run.final:
        # Codes grow with magnitude: the next sum is at the code after this one, or before it where the sum shrinks.
        code = encode_exact(Fraction(run.final), fmt) + (1 if (addend < 0) == (run.final < 0) else -1)
        following = decode_exact(code, fmt) if code < 1 << fmt.bits else None
        if following is not None:
            explanations.append(half_step.explain(ulp=float(abs(following - Fraction(run.final)))))
    return tuple(explanations)


def _check(steps: int) -> None:
    most = limit("additions")
    if not 1 <= steps <= most:
        raise ValueError(f"{steps} additions: from 1 to {most:,}")


def stored(value: float, fmt: FloatFormat) -> float:
    """Return ``value`` as ``fmt`` holds it, rounded to nearest."""
    return float(decode(encode(np.array([value]), fmt), fmt)[0])


def _steps(steps: int) -> npt.NDArray[np.int64]:
    return np.unique(np.linspace(0, steps, min(steps + 1, _POINTS)).round().astype(np.int64))


def _thinned(fmt: FloatFormat, rounding: Rounding, addend: float, values: npt.NDArray[np.float64]) -> SummationRun:
    steps = values.size - 1
    at = _steps(steps)
    lost = np.flatnonzero(~np.isfinite(values))
    if lost.size:
        return SummationRun(fmt, rounding, addend, at, values[at], float(values[-1]), None, int(lost[0]))
    moved = np.flatnonzero(values[1:] != values[:-1])
    last = int(moved[-1]) + 1 if moved.size else 0
    # A sum that moved in the very last step is still moving as far as one can tell.
    return SummationRun(fmt, rounding, addend, at, values[at], float(values[-1]), last if last < steps else None)


def _place(sums: npt.NDArray[np.float64], value: float) -> int:
    return int(np.searchsorted(sums[:-1], value))


@cached("arrays_kept")
def _table(
    start: float, addend: float, fmt: FloatFormat, rounding: Rounding
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return every sum that can be reached, in order, and for each the place of the sum after one more addition.

    The last place stands for overflow, which no sum leaves. One call of the codec rounds all of them, so that a long
    sum is a walk through a table.
    """
    values = np.unique(_values(fmt))
    # No rounding takes a sum back past where it started; how far forward it gets depends on the rounding.
    sums = values[values >= start] if addend >= 0 else values[values <= start]
    following = _following(sums, addend, fmt, rounding)
    over = ~np.isfinite(following)
    to = np.where(over, sums.size, np.minimum(np.searchsorted(sums, following), sums.size - 1))
    beyond = following[over][0] if over.any() else np.nan
    return np.append(sums, beyond), np.append(to, sums.size)


@cached("arrays_kept")
def _values(fmt: FloatFormat) -> npt.NDArray[np.float64]:
    values = decode(np.arange(1 << fmt.bits, dtype=np.uint64), fmt)
    return values[np.isfinite(values)] + 0.0


def sum_to_odd(first: npt.NDArray[np.float64], second: float) -> npt.NDArray[np.float64]:
    """Return ``first + second`` in float64, rounded to odd: rounding once more into a narrow format is then as good as
    once.

    Where float64 cannot hold the exact sum, the neighbor with an odd last bit stands for everything between two
    float64 values. Source: Boldo and Melquiond 2008, Emulation of FMA and correctly rounded sums.
    """
    total = first + second
    part = total - first
    error = (first - (total - part)) + (second - part)
    even = (total.view(np.int64) & 1) == 0
    toward = np.where(error > 0, np.inf, -np.inf)
    return np.where((error != 0) & even, np.nextafter(total, toward), total)


def _leaping(start: float, addend: float, steps: int, fmt: FloatFormat, rounding: Rounding) -> npt.NDArray[np.float64]:
    """Return the sums of a format too wide for a table: inside a binade every addition moves the sum by the same
    amount.

    Each leap guesses that, lets the codec check the whole run of guesses at once, and keeps those that hold.
    """
    values = np.empty(steps + 1)
    values[0] = start
    done = 0
    while done < steps:
        here = values[done : done + 1]
        moved = float(_following(here, addend, fmt, rounding)[0])
        step = moved - float(here[0])
        if step == 0 or not np.isfinite(moved):
            values[done + 1 :] = moved
            break
        guess = here[0] + step * np.arange(min(_LEAP, steps - done))
        good = _following(guess, addend, fmt, rounding) == guess + step
        count = max(int(np.argmin(good)) if not good.all() else good.size, 1)
        values[done + 1 : done + 1 + count] = guess[:count] + step
        values[done + 1] = moved
        done += count
    return values


def _following(
    sums: npt.NDArray[np.float64], addend: float, fmt: FloatFormat, rounding: Rounding
) -> npt.NDArray[np.float64]:
    return decode(encode(sum_to_odd(sums, addend), fmt, rounding=rounding), fmt)


def _one_by_one(
    start: float, addend: float, steps: int, fmt: FloatFormat, rounding: Rounding
) -> npt.NDArray[np.float64]:
    """Add exactly and round once per step, for formats as fine as float64."""
    values = np.empty(steps + 1)
    total, small = Fraction(start), Fraction(addend)
    for step in range(steps + 1):
        values[step] = float(total)
        code = encode_exact(total + small, fmt, rounding=rounding)
        following = decode_exact(code, fmt)
        if following is None or following == total:
            values[step + 1 :] = decode(np.array([code], dtype=np.uint64), fmt)[0]
            break
        total = following
    return values
