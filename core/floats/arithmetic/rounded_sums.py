"""Sums in a format that no library adds in: float64 adds, and each sum is rounded into the format, once."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core.floats.codec import decode, encode
from core.floats.formats import FloatFormat, FormatError

Sums: TypeAlias = npt.NDArray[np.float64]

MOST_BITS = 24
"""Fraction bits. A sum that float64 has rounded already rounds as the exact one does to at most half of its digits."""

_LEAST, _MOST, _ONE_BY_ONE = 64, 1 << 16, 256
"""Additions that are tried at once, and those that are taken one by one where so many leave their binade at once."""


class RoundedSums:
    """Adds numbers of ``fmt``, which float64 holds. Raises `FormatError` for a format in which sums cannot be kept."""

    def __init__(self, fmt: FloatFormat) -> None:
        if not (fmt.signed and fmt.zero and fmt.gradual and 0 < fmt.fraction_bits <= MOST_BITS) or fmt.twos_complement:
            raise FormatError(
                f"{fmt.title} keeps no sums here: that takes a sign, subnormals and 1 to {MOST_BITS} fraction bits. "
                "For example bf16."
            )
        self._fmt, self._drop = fmt, 52 - fmt.fraction_bits
        self._most, self._low = float(fmt.max_finite), math.ldexp(1.0, fmt.emin)
        self._beyond = [float(decode(encode([sign * math.inf], fmt), fmt)[0]) for sign in (1, -1)]

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

        Inside a binade all sums are multiples of one step. Float64 rounds to these by itself beside a number so large
        that they are its own steps; where a sum leaves the binade, that one is added anew.
        """
        total, done, many = float(given[0]), 1, _LEAST
        while done < given.size and math.isfinite(total):
            exponent = max(math.frexp(total)[1] - 1, self._fmt.emin)
            shift = math.ldexp(1.5, exponent + self._drop)
            sums = np.add.accumulate(np.concatenate([[shift + total], given[done : done + many]]))[1:] - shift
            size = np.abs(sums)
            inside = (size < math.ldexp(1.0, exponent + 1)) & (
                (size >= math.ldexp(1.0, exponent)) | (exponent == self._fmt.emin)
            )
            count = int(np.argmin(inside)) if not inside.all() else sums.size
            if count:
                total, done = float(sums[count - 1]), done + count
            if count == many:
                many = min(2 * many, _MOST)
                continue
            short = count < _LEAST // 2
            many = _LEAST
            for value in given[done : done + (_ONE_BY_ONE if short else 1)].tolist():
                total, done = self._rounded(total + value), done + 1
        return total if math.isfinite(total) else self._lost(total, given[done:])

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
