"""A number in binary, digit by digit: the whole part by halving, the rest by doubling, and where a format cuts it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from core.floats.arithmetic.operations import GUARDS, Cut, cut_exact
from core.floats.codec import floor_log2
from core.floats.formats import FloatFormat
from core.limits import limit

_HEAD = 3
"""Steps shown before those that are left out, where there are too many."""


@dataclass(frozen=True, slots=True)
class Halving:
    """One step of the whole part: ``before`` = 2 · ``after`` + ``digit``; digits come out last to first."""

    before: int
    after: int
    digit: int


@dataclass(frozen=True, slots=True)
class Doubling:
    """One step of the rest: 2 · ``before`` = ``digit`` + ``after``. place: which digit after the point, from 1."""

    place: int
    before: Fraction
    digit: int
    after: Fraction


@dataclass(frozen=True, slots=True)
class Expansion:
    """The digits of a number. Made by `expand`.

    whole: digits before the point, "0" for none. halvings, doublings: the steps, with gaps where too many are alike or
    too far up to matter: the place of the next step tells how many are missing.
    lead_in, period: digits after the point before the repeating block, and of the block; period 0: the digits end;
    None: it is longer than was looked for. block: the block's digits, as many as there are steps at most.
    cut: where the format cuts; None where no bits decide, as for 0.
    """

    value: Fraction
    fmt: FloatFormat
    whole: str
    halvings: tuple[Halving, ...]
    doublings: tuple[Doubling, ...]
    lead_in: int
    period: int | None
    block: str
    cut: Cut | None

    @property
    def ends(self) -> bool:
        return self.period == 0


def expand(value: Fraction, fmt: FloatFormat) -> Expansion:
    """|``value``| in binary, as far as ``fmt`` needs it: to its last place and three digits beyond."""
    whole, rest = divmod(abs(value), 1)
    lead_in, period = repetition(rest)
    last = max(floor_log2(abs(value)), fmt.emin) - fmt.fraction_bits if value else 0
    return Expansion(
        value,
        fmt,
        f"{whole:b}",
        _halvings(int(whole)),
        _doublings(rest, GUARDS + max(0, -last), whole > 0),
        lead_in,
        period,
        digits_of(rest, lead_in + min(period or 0, limit("binary_steps")))[lead_in:],
        cut_exact(value, fmt),
    )


def digits_of(rest: Fraction, count: int) -> str:
    """The first ``count`` binary digits after the point of 0 ≤ ``rest`` < 1."""
    return f"{(rest.numerator << count) // rest.denominator:0{count}b}" if count else ""


def repetition(rest: Fraction) -> tuple[int, int | None]:
    """Digits of 0 ≤ ``rest`` < 1 before its repeating block, and of the block: 0 where the digits end.

    A denominator of 2^t · q with odd q gives t digits and then as many as the smallest k with q dividing 2^k − 1 (the
    order of 2 modulo q). Of a power of five, as every decimal has, that is 4 · 5^(j−1), because 2 generates all
    remainders that 5 does not divide; of other q it is found by counting. None: longer than the cap.
    Source: Hardy and Wright, An Introduction to the Theory of Numbers, 9.6.
    """
    odd = rest.denominator
    twos = (odd & -odd).bit_length() - 1
    odd >>= twos
    if odd == 1:
        return twos, 0
    fives, left = 0, odd
    while left % 5 == 0:
        fives, left = fives + 1, left // 5
    if left == 1:
        return twos, 4 * 5 ** (fives - 1)
    power = 2 % odd
    for count in range(1, limit("binary_period") + 1):
        if power == 1:
            return twos, count
        power = 2 * power % odd
    return twos, None


def _halvings(whole: int) -> tuple[Halving, ...]:
    count, most = whole.bit_length(), limit("binary_steps")
    places = range(count) if count <= most else [*range(_HEAD), *range(count - most + _HEAD, count)]
    return tuple(Halving(whole >> at, whole >> at + 1, whole >> at & 1) for at in places)


def _doublings(rest: Fraction, last: int, has_whole: bool) -> tuple[Doubling, ...]:
    """Until nothing is left, or to the digit ``last``; of many zeros in front only the first few."""
    if not rest:
        return ()
    first = 1 if has_whole else min(-floor_log2(rest), last)  # the place of the first digit that is 1
    places = range(1, last + 1) if first <= 2 * _HEAD else [*range(1, _HEAD + 1), *range(first - 1, last + 1)]
    steps: list[Doubling] = []
    for place in places:
        before = rest * 2 ** (place - 1) % 1
        if not before:
            break
        digit, after = divmod(2 * before, 1)
        steps.append(Doubling(place, before, int(digit), after))
    return tuple(steps)
