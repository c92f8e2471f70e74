"""Symbols of a model’s sizes, and whole numbers that carry them, so that one sum gives a count and its formula."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import reduce
from typing import TypeAlias, TypeVar

from core.formula import Symbol
from core.models.mixer import Mixer
from core.models.spec import Experts, LatentAttention, TransformerSpec
from core.rows import read_record, read_rows


def count(latex: str, meaning: str) -> Symbol:
    """Return a symbol that counts things."""
    return Symbol(latex, meaning, "count")


SYMBOLS: Mapping[str, Symbol] = {row["name"]: read_record(Symbol, row) for row in read_rows("model_symbols")}
"""Name of a size → its symbol, in the order in which factors are written."""

LAYERS, HIDDEN, HEADS, HEAD_DIM, VOCAB = map(SYMBOLS.__getitem__, ("layers", "hidden", "heads", "head_dim", "vocab"))

_ORDER = {name: place for place, name in enumerate(SYMBOLS)}

Part = TypeVar("Part", TransformerSpec, Experts, LatentAttention, Mixer)


Factor: TypeAlias = tuple[str, int]
"""A symbol's name and its value."""


class Size(int):
    """A whole number with the polynomial that it is the value of.

    terms: the factors of each term → its coefficient. A size equals and hashes like its number, so it must never reach
    a cache.
    """

    terms: Mapping[tuple[Factor, ...], int]

    def __add__(self, other: int, /) -> Size:
        terms = Counter(self.terms)
        terms.update(_terms(other))
        return _size(int(self) + int(other), terms)

    def __mul__(self, other: int, /) -> Size:
        terms: Counter[tuple[Factor, ...]] = Counter()
        for left, a in self.terms.items():
            for right, b in _terms(other).items():
                terms[tuple(sorted((*left, *right), key=_place))] += a * b
        return _size(int(self) * int(other), terms)

    __radd__, __rmul__ = __add__, __mul__

    @property
    def values(self) -> dict[str, int]:
        """Each symbol's value, in the order in which factors are written."""
        return dict(sorted({factor for term in self.terms for factor in term}, key=_place))

    @property
    def latex(self) -> str:
        """The polynomial with common factors first and ``\\v{name}`` for each symbol."""
        number = math.gcd(*self.terms.values())
        first, *others = (Counter(term) for term in self.terms)
        shared = reduce(lambda one, other: one & other, others, first)
        rest = [_product(n // number, Counter(term) - shared) for term, n in self.terms.items()]
        outer = _product(number, shared)
        if len(rest) == 1:
            return outer
        total = " + ".join(rest)
        return total if outer == "1" else rf"{outer} \cdot ({total})"


def _size(value: int, terms: Mapping[tuple[Factor, ...], int]) -> Size:
    size = Size(value)
    size.terms = terms
    return size


def _terms(number: int) -> Mapping[tuple[Factor, ...], int]:
    return number.terms if isinstance(number, Size) else {(): int(number)} if number else {}


def _place(factor: Factor) -> int:
    return _ORDER[factor[0]]


def _product(number: int, factors: Counter[Factor]) -> str:
    powers = [rf"\v{{{name}}}" + (f"^{{{power}}}" if power > 1 else "") for (name, _), power in factors.items()]
    return r" \cdot ".join([str(number)] * (number != 1 or not powers) + powers)


def symbol(name: str, value: int) -> Size:
    """Return a number that is one of `SYMBOLS`. One run, layer, or module needs none."""
    return _size(value, {((name, value),) if value > 1 else (): 1})


def symbolic(spec: TransformerSpec) -> TransformerSpec:
    """Return ``spec`` with a symbol on every size above 1."""
    parts = {name: getattr(spec, name) for name in ("experts", "latent", "mixer")}
    return replace(_marked(spec, ""), **{name: _marked(part, f"{name}_") for name, part in parts.items() if part})


def _marked(part: Part, prefix: str) -> Part:
    names = [f.name for f in fields(part) if prefix + f.name in SYMBOLS and f.name != "layers"]
    return replace(part, **{n: symbol(prefix + n, getattr(part, n)) for n in names if getattr(part, n) > 1})
