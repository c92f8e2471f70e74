"""Every formula of the product is drawn whole in MathML, with symbols and with values."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest

from core.units_latex import latex_quantity
from core.views.report.mathml import mathml
from tests.core.formulas import FORMULAS
from tests.core.report_cases import PAGE_PRESETS
from tests.every import every

TAGS = {"p", "math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mfrac", "msqrt", "msub", "msup", "msubsup", "mover"}


def said(latex: str) -> str:
    """All signs of the MathML in order, in which nothing of LaTeX is left."""
    whole = ElementTree.fromstring(f"<p>{mathml(latex)}</p>")  # noqa: S314
    assert {node.tag for node in whole.iter()} <= TAGS, latex
    text = "".join(whole.itertext())
    assert not set("\\{}") & set(text), latex
    return text


@every("name", FORMULAS)
def test_a_formula_is_drawn_whole(name: str) -> None:
    f = FORMULAS[name]
    for latex in (f.symbolic(), f.result.latex, *(symbol.latex for symbol in f.symbols.values())):
        assert said(latex)


@every("name", PAGE_PRESETS)
def test_values_keep_their_digits(name: str) -> None:
    a = PAGE_PRESETS[name].answer
    for one in (*a.explain(), *a.memory.explain()):
        for latex in (one.substituted, one.found):
            assert re.findall(r"\d", said(latex)) == re.findall(r"\d", latex)


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"320{,}000.5 \cdot \text{50\% of\_it}", "320,000.5·50%\u00a0of_it"),
        (r"\text{\textdollar}2\,\text{/h}", "$2/h"),
        (r"\text{<b>&}", "<b>&"),
        (latex_quantity(math.inf, "bytes"), "∞"),
    ],
)
def test_what_is_written_is_what_is_read(latex: str, text: str) -> None:
    assert said(latex) == text


def test_a_minus_binds_as_it_is_meant() -> None:
    """In front of a number it is a sign, between two it is an operation."""
    forms = re.findall(r'<mo form="(\w+)">−', mathml(r"-1 - 2 \cdot (-3) = -4 + 10^{-5}"))
    assert forms == ["prefix", "infix", "prefix", "prefix", "prefix"]


def test_a_line_breaks_before_an_equals_sign_and_in_a_long_sum() -> None:
    assert mathml(r"a = (b + c) = d").count("<math") == 3
    assert mathml(" + ".join("abcdefghijklmnopqrstuvwxyz")).count("<math") > 1
