"""Every formula, bare and with any values in it, is LaTeX that KaTeX knows: ASCII, or it warns."""

from __future__ import annotations

import math
import re

from core.floats.code_description import describe
from core.floats.formats import FORMATS
from core.formula import DerivationStep, Explanation, derivation, latex_exact, latex_quantity
from core.lecture.catalogue import findings
from core.units import UNIT
from core.views.common.palette import LIGHT
from core.views.floats.latex import value_latex
from pages.common.derivation import step_markdown
from tests.core.formulas import FORMULAS
from tests.every import every

VALUES = (0.0, 7.0, -3.0, -1.5e-9, 2.5e12, -12345.678, 1e300, math.nan, math.inf, -math.inf)
_MATH = re.compile(r"\$\$(.*?)\$\$|(?<!\\)\$(.+?)(?<!\\)\$", re.DOTALL)


def foreign(latex: str) -> str:
    """The characters of ``latex`` that KaTeX may not know."""
    return "".join(c for c in latex if not c.isascii())


def latex_of(one: Explanation) -> str:
    return " ".join((one.symbol, one.symbolic, one.substituted, one.found, *(term.latex for term in one.terms)))


def written(markdown: str) -> str:
    """What stands between dollar signs."""
    return " ".join(a or b for a, b in _MATH.findall(markdown))


@every("kind", UNIT)
def test_a_value_in_a_formula_is_ascii(kind: str) -> None:
    for value in VALUES:
        assert not foreign(latex_quantity(value, kind)), value  # type: ignore[arg-type]
        assert not foreign(latex_exact(value, kind, most=6)[0]), value  # type: ignore[arg-type]
    assert latex_quantity(-math.inf, kind) == r"-\infty"  # type: ignore[arg-type]


@every("name", FORMULAS)
def test_what_a_page_writes_of_a_formula_is_ascii(name: str) -> None:
    """With whatever the words of its docstring hold that become powers."""
    for step in shown(name):
        assert not foreign(written(step_markdown(step))), f"{step.title} {step.detail}"
        assert not any("$" in latex for latex in latex_in(step)), "in Markdown it ends the formula"


def shown(name: str) -> tuple[DerivationStep, ...]:
    """A formula as pages show it: with one set of values, and with several."""
    uses = [one for one in (explained(name, value) for value in (2.0, 3.0)) if one is not None]
    return derivation(uses[:1]) + derivation(uses)


def latex_in(step: DerivationStep) -> set[str]:
    """Every formula that a page has to draw of a step, whole."""
    first, several = step.uses[0], len(step.uses) > 1
    values = {first.symbol, *(use.found.removeprefix("= ") for use in step.uses)} if several else {first.substituted}
    return values | {step.symbolic, *(term.latex for term in first.terms)}


def explained(name: str, value: float) -> Explanation | None:
    try:
        return FORMULAS[name].explain(**dict.fromkeys(FORMULAS[name].symbols, value))
    except (ValueError, ArithmeticError):
        return None


def test_the_lecture_is_ascii() -> None:
    for claim, finding in findings().items():
        for one in finding.explanations:
            assert not foreign(latex_of(one)), claim
        for step in derivation(finding.explanations):
            assert not foreign(written(step_markdown(step))), claim


@every("name", FORMATS)
def test_the_value_of_a_code_is_ascii(name: str) -> None:
    fmt = FORMATS[name]
    count = 1 << fmt.bits
    for code in range(0, count, max(1, count // 256)):
        assert not any(map(foreign, value_latex(describe(code, fmt), LIGHT))), code
    assert not foreign(value_latex(describe(count - 1, fmt), LIGHT))
