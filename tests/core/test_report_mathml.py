"""Every formula of the product is the same in MathML as in LaTeX, with symbols and with values."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest

from core.units_latex import DOLLAR, latex_quantity
from core.views.report.mathml import LatexError, mathml
from tests.core.formulas import FORMULAS
from tests.core.report_cases import CHIPS
from tests.every import every

LETTERS = {
    "α": "alpha", "β": "beta", "δ": "delta", "ϵ": "epsilon", "η": "eta", "θ": "theta", "κ": "kappa", "λ": "lambda",
    "μ": "mu", "ρ": "rho", "σ": "sigma",
    "τ": "tau", "Δ": "Delta", "Σ": "Sigma", "ℓ": "ell", "exp": "exp", "log": "log", "max": "max",
}  # fmt: skip
SIGNS = {
    "−": "-",
    "·": r"\cdot",
    "×": r"\times",
    "≈": r"\approx",
    "∑": r"\sum",
    "↓": r"\downarrow",
    "↑": r"\uparrow",
    "⌊": r"\lfloor",
    "⌋": r"\rfloor",
}
SIGNS |= {"′": "'", "″": "''", "^": r"\hat", "¯": r"\overline"}


def back(xml: ElementTree.Element) -> str:
    """The LaTeX of MathML, without blanks, every script in braces."""
    inner = [back(child) for child in xml]
    text = xml.text or ""
    match xml.tag:
        case "p" | "math" | "mrow":
            return "".join(inner)
        case "mi" if xml.get("mathvariant") == "normal":
            return rf"\mathrm{{{text.replace('_', chr(92) + '_')}}}"
        case "mi":
            return f"\\{LETTERS[text]}" if text in LETTERS else text
        case "mn":
            return text.replace(",", "{,}")
        case "mo":
            return SIGNS.get(text, text)
        case "mtext":
            return DOLLAR if text == "$" else rf"\text{{{text.replace(' ', '').replace('%', chr(92) + '%')}}}"
        case "mspace":
            return r"\,"
        case "mfrac":
            return rf"\frac{{{inner[0]}}}{{{inner[1]}}}"
        case "msqrt":
            return rf"\sqrt{{{''.join(inner)}}}"
        case "mover":
            return f"{inner[1]}{{{inner[0]}}}"
        case "msub":
            return f"{inner[0]}_{{{inner[1]}}}"
        case "msup":
            return f"{inner[0]}'" if inner[1] == "'" else f"{inner[0]}^{{{inner[1]}}}"
        case "msubsup":
            raised = "'" if inner[2] == "'" else f"^{{{inner[2]}}}"
            return f"{inner[0]}_{{{inner[1]}}}{raised}"
        case _:
            raise AssertionError(xml.tag)


def canonical(latex: str) -> str:
    """The same form of what a formula writes."""
    text = re.sub(r"\\(left|right)(?![a-z])", "", latex)
    text = re.sub(r"\\hat (\w)", r"\\hat{\1}", text)
    text = re.sub(r"([_^])(\\[a-zA-Z]+\{[^{}]*\}|\\[a-zA-Z]+|[^{\\ ])", r"\1{\2}", text.replace(r"\ell", r"\ell "))
    text = re.sub(r"(\\log_\{\d+\})\{(.*)\}$", r"\1\2", text)
    return re.sub(r"\s", "", text)


def same(latex: str) -> None:
    assert back(ElementTree.fromstring(f"<p>{mathml(latex)}</p>")) == canonical(latex)  # noqa: S314


@every("name", FORMULAS)
def test_a_formula_is_the_same_in_mathml(name: str) -> None:
    f = FORMULAS[name]
    for latex in (f.symbolic(), f.result.latex, *(symbol.latex for symbol in f.symbols.values())):
        same(latex)


@every("name", CHIPS)
def test_values_are_the_same_in_mathml(name: str) -> None:
    a = CHIPS[name].answer
    for one in (*a.explain(), *a.memory.explain()):
        same(one.substituted)
        same(one.found)


def test_a_minus_binds_as_it_is_meant() -> None:
    """In front of a number it is a sign, between two it is an operation."""
    forms = re.findall(r'<mo form="(\w+)">−', mathml(r"-1 - 2 \cdot (-3) = -4 + 10^{-5}"))
    assert forms == ["prefix", "infix", "prefix", "prefix", "prefix"]


@pytest.mark.parametrize("latex", [r"\input{x}", r"\frac{1}", "{", "}", r"\text{a", "a_1_2", "<b>", r"\left[x\right]"])
def test_other_latex_is_refused(latex: str) -> None:
    with pytest.raises(LatexError):
        mathml(latex)


def test_text_is_escaped() -> None:
    assert "<b>" not in mathml(r"\text{<b>&}")


def test_infinity_is_written_as_a_formula_has_it() -> None:
    assert "<mi>∞</mi>" in mathml(latex_quantity(math.inf, "bytes"))
