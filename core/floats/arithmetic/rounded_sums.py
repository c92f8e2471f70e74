"""Sums in a format that no library adds in: float64 adds, and each sum is rounded into the format, once."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core.floats.codec import decode, encode
from core.floats.formats import FloatFormat, FormatError
from core.messages import message

Sums: TypeAlias = npt.NDArray[np.float64]

MOST_BITS = 24
"""Fraction bits. A sum that float64 has rounded already rounds as the exact one does to at most half of its digits."""

_LARGEST = 1023
"""The exponent of the largest number of float64."""

_LEAST, _MOST = 64, 1 << 16
"""Additions that are tried at once. Where sums leave their binade within few, as many and more are taken alone."""


class RoundedSums:
    """Adds numbers of ``fmt``, which float64 holds. Raises `FormatError` for a format in which sums cannot be kept."""

    def __init__(self, fmt: FloatFormat) -> None:
        if not (fmt.signed and fmt.zero and fmt.gradual and 0 < fmt.fraction_bits <= MOST_BITS) or fmt.twos_complement:
            raise FormatError(message("sums.error.format", fmt=fmt.title, bits=float(MOST_BITS)))
        self._fmt, self._drop = fmt, 52 - fmt.fraction_bits
        self._most, self._low = float(fmt.max_finite), math.ldexp(1.0, fmt.emin)
        self._beyond = [float(decode(encode([sign * math.inf], fmt), fmt)[0]) for sign in (1, -1)]
        self._shifts = [self._shift(exponent) for ends in (range(1025), range(-1074, 0)) for exponent in ends]

    def _shift(self, exponent: int) -> float:
        """What a number below two to the ``exponent`` is rounded by, where it is added and taken away again: beside it
        float64 has no finer steps than the format at that number. Infinite where float64 has none so large.

        The list has negative exponents at its end, as Python counts.
        """
        power = max(exponent - 1, self._fmt.emin) + self._drop
        return math.ldexp(1.5, power) if power <= _LARGEST else math.inf

    def plus(self, first: Sums, second: Sums) -> Sums:
        """Each of ``first`` with its one of ``second``."""
        total = first + second
        raw = total.view(np.int64)
        half = (1 << (self._drop - 1)) - 1
        sums = ((raw + half + ((raw >> self._drop) & 1)) & (-1 << self._drop)).view(np.float64)
        size = np.abs(sums)
        usual = (size <= self._most) & (size >= self._low)
        if not usual.all():
            sums[~usual] = decode(encode(total[~usual], self._fmt), self._fmt)
        return sums

    def one_by_one(self, given: Sums) -> float:
        """Each added to the sum of all before it.

        Inside a binade all sums are multiples of one step, so that many are added at once; where sums stay in none for
        long, each is rounded alone.
        """
        total, done, many, alone = float(given[0]), 1, _LEAST, 1
        while done < given.size and math.isfinite(total):
            exponent = max(math.frexp(total)[1] - 1, self._fmt.emin) if total else self._fmt.emin
            shift, floor, values = self._shifts[exponent + 1], math.ldexp(1.0, exponent), given[done : done + many]
            with np.errstate(invalid="ignore"):  # infinity less itself is no sum
                sums = np.add.accumulate(np.concatenate([[shift + total], values])) - shift
                exact = np.abs(sums[:-1] + values)  # a sum just below the binade is rounded by finer steps
            sums = sums[1:]
            inside = (exact < 2 * floor) & (np.abs(sums) <= self._most)
            if exponent > self._fmt.emin:
                inside &= exact >= floor
            count = int(np.argmin(inside)) if not inside.all() else sums.size
            if count:
                total, done = float(sums[count - 1]), done + count
            if count == many:
                many, alone = min(2 * many, _MOST), 1
                continue
            many, alone = _LEAST, min(2 * alone, _MOST) if count < _LEAST // 2 else 1
            total, taken = self._alone(total, given[done : done + alone].tolist())
            done += taken
        return total if math.isfinite(total) else self._lost(total, given[done:])

    def _alone(self, total: float, values: list[float]) -> tuple[float, int]:
        """The sum of ``total`` and of each value after the other, and how many were taken until it was infinite."""
        shifts, frexp, most = self._shifts, math.frexp, self._most
        for at, value in enumerate(values, 1):
            exact = total + value
            shift = shifts[frexp(exact)[1]]
            total = (exact + shift) - shift
            if not -most <= total <= most:
                total = self._rounded(exact)
                if not math.isfinite(total):
                    return total, at
        return total, len(values)

    @staticmethod
    def _lost(total: float, rest: Sums) -> float:
        """What a sum that is no finite number comes to: NaN where it was, or where infinity meets the other one."""
        return total if (rest[np.isinf(rest)] == total).all() and not np.isnan(rest).any() else math.nan

    def _rounded(self, total: float) -> float:
        if not math.isfinite(total):
            return total
        step = max(math.frexp(total)[1] - 1, self._fmt.emin) - self._fmt.fraction_bits
        value = math.ldexp(round(math.ldexp(total, -step)), step)
        return value if abs(value) <= self._most else self._beyond[total < 0]
