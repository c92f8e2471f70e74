"""Every formula of the product: its LaTeX says what its function does, and it can explain itself."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from sympy.parsing.latex import parse_latex

from core.formula import _PLACEHOLDER, Formula, Source, Symbol
from core.units import UNIT
from tests.core.formulas import FORMULAS
from tests.every import every


def evaluate(latex: str) -> float:
    """The value of an arithmetic LaTeX expression, by sympy's parser."""
    return float(parse_latex(latex).evalf(30))


@every("name", FORMULAS)
def test_latex_computes_what_the_function_computes(name: str) -> None:
    f = FORMULAS[name]
    rng = random.Random(name)
    values = {symbol: rng.randint(2, 9) for symbol in f.symbols}
    substituted = _PLACEHOLDER.sub(lambda m: f"({values[m.group(1)]})", f.latex)
    assert evaluate(substituted) == pytest.approx(float(f.function(**values)), rel=1e-12), substituted


@every("name", FORMULAS)
def test_formula_is_documented(name: str) -> None:
    f = FORMULAS[name]
    assert f.title
    assert f.sources
    assert all(source.title for source in f.sources)
    assert all(source.url.startswith("https://") for source in f.sources if source.url)
    for symbol in (f.result, *f.symbols.values()):
        assert symbol.latex
        assert symbol.meaning
        assert symbol.kind in UNIT


@every("name", FORMULAS)
def test_formula_works_on_arrays(name: str) -> None:
    f = FORMULAS[name]
    array = np.array([2.0, 3.0, 5.0])
    first = next(iter(f.symbols))
    others = dict.fromkeys(list(f.symbols)[1:], 4.0)
    whole = f.over(**{first: array}, **others)
    assert whole.shape == array.shape
    singly = [float(f.function(**{first: value}, **others)) for value in array]
    np.testing.assert_allclose(whole, singly, rtol=1e-12)


@every("name", FORMULAS)
def test_explanation_is_complete(name: str) -> None:
    f = FORMULAS[name]
    explained = f.explain(**dict.fromkeys(f.symbols, 3.0))
    assert math.isclose(explained.value, float(f.function(**dict.fromkeys(f.symbols, 3.0))))
    assert "\\v{" not in explained.symbolic + explained.substituted
    assert [term.latex for term in explained.terms] == [symbol.latex for symbol in f.symbols.values()]


SOURCE = (Source("A book", "page 1"),)
COUNT = Symbol("n", "a count", "count")


def test_calls_and_explanations() -> None:
    def area(width: float, height: float) -> float:
        """Area of a rectangle.

        Sides at right angles.
        """
        return width * height

    made = Formula(
        area,
        r"\v{width} \cdot \v{height}",
        Symbol("A", "area", "number"),
        {"width": Symbol("w", "width", "number"), "height": Symbol("h", "height", "count")},
        SOURCE,
    )
    assert made(3.0, height=4.0) == 12.0
    explained = made.explain(width=3.0, height=2_000_000)
    assert explained.title == "Area of a rectangle"
    assert explained.detail == "Sides at right angles."
    assert explained.symbolic == r"A = w \cdot h"
    assert explained.substituted == r"A = 3 \cdot 2 \times 10^{6} = 6{,}000{,}000"
    assert [term.text for term in explained.terms] == ["3", "2M"]
    with pytest.raises(TypeError):
        made.explain(width=3.0)
