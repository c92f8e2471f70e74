"""A formula with its values filled in is arithmetic that holds: large, small, negative and unknown values."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pytest
from sympy.parsing.latex import parse_latex

from core.formula import DOLLAR, Formula, Source, Symbol, latex_quantity
from core.units import UNIT
from tests.core.formulas import FORMULAS
from tests.every import every

PREFIXES = {"": 1.0} | {prefix: 1e3**power for power, prefix in enumerate("kMGTPEZY", start=1)}
PREFIXES |= {f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTPE", start=1)}
FACTORS = {f"{prefix}{unit}": factor for unit in {*UNIT.values(), "/h"} for prefix, factor in PREFIXES.items()}
FACTORS |= {"kg": 1.0, "kg/kWh": 1.0, r"\%": 0.01}

LETTERS = {"K": "1e3", "M": "1e6", "B": "1e9", "T": "1e12"}

WAYS = {
    "large": lambda k: k * 1e11,
    "small": lambda k: k * 1e-9,
    "negative": lambda k: -k,
    "unknown": lambda k: math.nan,
}
BINDING = [name for name, f in FORMULAS.items() if re.search(r"\\v\{\w+\}\s*\^|-\s*\\v|\\v\{\w+\}\s*-", f.latex)]
"""Formulas with a value beside a power or a minus sign, which would bind a part of it only."""


def sums(latex: str) -> str:
    """Substituted LaTeX as sympy reads it: units as factors, the unknown as x, no whole numbers (powers of them
    would be worked out to the last digit)."""
    text = latex.replace("{,}", "").replace(DOLLAR, "").replace(r"\text{unknown}", "x")
    text = re.sub(r"\\,\\text\{(.*?)\}", lambda m: rf" \times {FACTORS[m[1]]!r}".replace("e+", "e"), text)
    text = re.sub(r"\\text\{([KMBT])\}", lambda m: rf" \times {LETTERS[m[1]]}", text)
    text = re.sub(r"([\d.]+)e(-?\d+)", r"\1 \\times 10^{\2}", text)
    return re.sub(r"(?<![\d._])(\d+)(?![\d.])", r"\1.0", text)


def said(latex: str) -> float:
    """The number that one substituted value says, worked out without a parser."""
    factors = re.sub(r"10\.0\^\{(-?\d+)\.0\}", r"1e\1", sums(latex)).split(r"\times")
    return math.prod(float(factor) for factor in factors)


def check(f: Formula[...], values: dict[str, float]) -> None:
    texts = {name: latex_quantity(value, f.symbols[name].kind) for name, value in values.items()}
    body = f.fill(**texts)
    read = parse_latex(sums(body)).evalf()
    if any(math.isnan(value) for value in values.values()):
        assert {str(symbol) for symbol in read.free_symbols} <= {"x"}
        return
    numbers = {name: said(text) for name, text in texts.items()}
    for name, value in values.items():
        assert numbers[name] == pytest.approx(value, rel=1e-3), texts[name]
    expected = result(f, numbers)
    if math.isfinite(expected):
        assert float(read) == pytest.approx(expected, rel=1e-9), body


def result(f: Formula[...], values: dict[str, float]) -> float:
    """What the function gives; NaN where such values give no number."""
    try:
        return float(f.function(**values))
    except (ArithmeticError, ValueError, TypeError, RuntimeWarning):
        return math.nan


_LATER = ("core.experiments.",)
_TURN = {name: place for place, name in enumerate(sorted(FORMULAS, key=lambda name: name.startswith(_LATER)))}
"""Where each formula's turns begin; packages that came later stand behind, so that the others' turns stay."""


@pytest.mark.long
@every("name", FORMULAS)
def test_large_small_and_negative_values_in_turns(name: str) -> None:
    f = FORMULAS[name]
    turns = [WAYS["large"], WAYS["small"], WAYS["negative"]]
    start = _TURN[name]
    check(f, {symbol: turns[(start + i) % 3](2 + i % 7) for i, symbol in enumerate(f.symbols)})


@pytest.mark.long
@every("way", ["large", "negative", "unknown"])  # small ones are written as large ones are
@every("name", BINDING)
def test_every_value_beside_a_power_or_a_minus(name: str, way: str) -> None:
    f = FORMULAS[name]
    check(f, {symbol: WAYS[way](2 + i % 7) for i, symbol in enumerate(f.symbols)})


VALUES = (
    [3, 4, 5, 6, 7, 8, 9],
    [70e9, 15e12, 1024, 9.894e14, 0.5, 3, 7],
    [1 / 3, 1e9 / 7, 2, 11 / 13, 5, 1, 9],
)


def signs(name: str, values: Sequence[float]) -> str:
    """The sign between a formula with these values and its result, which is checked; empty where there is none."""
    f = FORMULAS[name]
    try:
        line = f.explain(**{symbol: values[i % 7] for i, symbol in enumerate(f.symbols)}).substituted
    except (ArithmeticError, ValueError, TypeError):
        return ""
    left, sign, right = re.split(r" (=|\\approx) (?!.*\\frac)", line.split(" = ", 1)[1], maxsplit=1)
    if not math.isfinite(found := float(parse_latex(sums(left)).evalf())):
        return ""
    assert said(right.split(" = ")[0].split(r" \approx ")[0]) == pytest.approx(
        found, rel=1e-12 if sign == "=" else 1e-2, abs=1e-300
    ), line
    return sign


@every("name", FORMULAS)
def test_an_equals_sign_stands_only_between_equals(name: str) -> None:
    """By turns of the values."""
    signs(name, VALUES[_TURN[name] % 3])
    if name == "core.floats.laws.normal_value":
        assert "=" in [signs(name, values) for values in VALUES]


@pytest.mark.long
@every("name", FORMULAS)
def test_an_equals_sign_stands_only_between_equals_whatever_the_values(name: str) -> None:
    for values in VALUES:
        signs(name, values)


def test_parentheses_stand_where_they_are_needed_and_nowhere_else() -> None:
    def difference(a: float, b: float) -> float:
        """A square less something."""
        return a**2 - b

    number = Symbol("n", "a number", "number")
    f = Formula(difference, r"\v{a}^{2} - \v{b}", number, {"a": number, "b": number}, (Source("A book"),))
    assert f.fill(a="4{,}096", b="0.5") == r"4{,}096^{2} - 0.5"
    assert f.fill(a=r"6 \times 10^{9}", b="-3") == r"(6 \times 10^{9})^{2} - (-3)"
    assert f.fill(a=r"2\,\text{s}", b=r"6 \times 10^{9}") == r"(2\,\text{s})^{2} - 6 \times 10^{9}"
    assert f.fill(a="-3", b="1") == r"(-3)^{2} - 1"
    assert f.explain(a=math.nan, b=1).substituted == r"n = (\text{unknown})^{2} - 1 = \text{unknown}"
