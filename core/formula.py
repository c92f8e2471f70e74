"""``@formula``: one function is one formula that can explain itself.

A formula is an ordinary function of numbers (scalars or numpy arrays) that also carries its LaTeX, the meaning
and kind of every symbol, and its sources. The LaTeX is written once, with ``\\v{name}`` for each parameter of
the function; it renders either with symbols or with the substituted values, so text and number share one origin.

    >>> @formula(
    ...     r"6 \\cdot \\v{params} \\cdot \\v{tokens}",
    ...     result=Symbol("C", "training compute", "flop"),
    ...     symbols={
    ...         "params": Symbol("N", "parameters", "count"),
    ...         "tokens": Symbol("D", "training tokens", "count"),
    ...     },
    ...     sources=(Source("Kaplan et al. 2020, Scaling Laws", "section 2.1", "https://arxiv.org/abs/2001.08361"),),
    ... )
    ... def train_flop(params: float, tokens: float) -> float:
    ...     "Training compute by the 6ND rule."
    ...     return 6 * params * tokens
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Generic, ParamSpec, cast

import numpy as np
import numpy.typing as npt

from core.number_text import FROM_SUPERSCRIPT, QuantityError
from core.quantities import parse_quantity
from core.units import (
    BINARY_POWERS,
    LETTER_POWERS,
    PREFIXED,
    SI_POWERS,
    UNIT,
    Kind,
    format_quantity,
    scientific,
    significant,
)

DOLLAR = r"\text{\textdollar}"
"""The sign without itself, which in Markdown would end the formula, a backslash before it or not."""

_PLAINLY: dict[Kind, str] = {
    "count": "",
    "seconds": " s",
    "accelerator_hours": " h",
    "usd": "",
    "usd_per_hour": " /h",
    "kg_co2": " kg",
}
"""Kinds whose text for reading changes the unit or drops digits, with the unit they are calculated in."""


def latex_exact(value: float, kind: Kind, digits: int = 4, *, most: int) -> tuple[str, bool]:
    """Return ``value`` as `latex_quantity` writes it, and whether that is all of it.

    All its digits where ``most`` of them are enough, or where it is a whole number below 10⁹, else only ``digits``;
    what a float's own rounding adds past the 14th digit does not count.
    """
    for tried in (digits, most):
        if math.isclose(_read(_plain(value, kind, tried), kind), value, rel_tol=1e-14):
            return latex_quantity(value, kind, tried), True
        if kind in ("count", "number", "flop") and abs(value) < 1e9 and float(value).is_integer():
            return _latex(f"{value:,.0f} {UNIT[kind]}"), True
    return latex_quantity(value, kind, digits), not math.isfinite(value)


def latex_quantity(value: float, kind: Kind, digits: int = 4) -> str:
    """Return ``value`` as LaTeX for substitution into a formula.

    Always in the kind's base unit or with a decimal prefix, so that the written arithmetic is right unchanged:
    durations in seconds, counts as powers of ten.
    """
    if math.isnan(value):
        return r"\text{unknown}"
    if math.isinf(value):
        return r"\infty" if value > 0 else r"-\infty"
    return _latex(_plain(value, kind, digits))


def _latex(text: str) -> str:
    match = _SHOWN.fullmatch(text)
    if match is None:
        return rf"\text{{{text}}}"
    number, power, letter, unit = match.groups()
    latex = number.replace(",", "{,}").replace("$", DOLLAR)
    if power:
        latex += rf" \times 10^{{{power.translate(FROM_SUPERSCRIPT)}}}"
    if letter:
        latex += rf"\text{{{letter}}}"
    unit = unit.strip().replace("%", r"\%")
    return rf"{latex}\,\text{{{unit}}}" if unit else latex


_SHOWN = re.compile(r"(-?\$?[\d.,]+)(?: × 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?([KMBT](?= ))?(.*)")
"""A quantity as `_plain` writes it: number, power of ten or letter, unit."""


def _read(text: str, kind: Kind) -> float:
    """Return the number that a text of `_plain` says, in base units; NaN if it says none."""
    match = _SHOWN.fullmatch(text)
    if match is None:
        return math.nan
    number, power, unit = match[1].replace("$", "").replace(",", ""), match[2] or "⁰", match[4].strip()
    prefix = unit.removesuffix(UNIT[kind]) if kind in ("bytes", "bytes_binary") or kind in PREFIXED else ""
    scale = 2 ** BINARY_POWERS[prefix] if kind == "bytes_binary" else 10 ** SI_POWERS[prefix]
    shift = int(power.translate(FROM_SUPERSCRIPT)) - (2 if unit == "%" else 0) + LETTER_POWERS[match[3] or ""]
    return float(Decimal(number).scaleb(shift) * scale)


def _plain(value: float, kind: Kind, digits: int) -> str:
    """Return ``value`` as text whose number and unit can be calculated with."""
    cents = kind == "usd_per_hour" and 0 <= value == round(value, 2)
    if cents or kind not in _PLAINLY or not math.isfinite(value):
        return format_quantity(value, kind, digits)
    money = "$" if kind in ("usd", "usd_per_hour") else ""
    small = value == 0 or 1e-3 <= abs(value) < 1e6
    number = significant(abs(value), max(digits, 6)) if small else scientific(abs(value), digits)
    return f"{'-' if value < 0 else ''}{money}{number}{_PLAINLY[kind]}"


P = ParamSpec("P")

_PLACEHOLDER = re.compile(r"\\v\{(\w+)\}")
_PLAIN = re.compile(r"[\d.]+(\{,\}\d+)*")
"""A number that can be raised to a power as it stands: digits, without sign, power of ten or unit."""


_PUT, _FOUND = 6, 10
"""A value of up to so many significant digits is written in full, put into a formula or found by it."""

_ABOUT = r"\approx"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a formula or figure comes from: title, place inside it, and a link when there is one."""

    title: str
    locator: str = ""
    url: str = ""

    def at(self, locator: str) -> Source:
        """Return this source with another locator inside it."""
        return replace(self, locator=locator)

    def __str__(self) -> str:
        return f"{self.title}, {self.locator}" if self.locator else self.title


def read_sources(cell: str) -> tuple[Source, ...]:
    """Return the sources in a cell of a table: one a line, ``title | locator | url``."""
    return tuple(Source(*line.split(" | ")) for line in cell.splitlines())


@dataclass(frozen=True, slots=True)
class Symbol:
    """One symbol of a formula: its LaTeX, what it means, and the kind that decides unit and display."""

    latex: str
    meaning: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class SubstitutedTerm:
    """One substituted symbol of an explanation."""

    latex: str
    meaning: str
    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """A formula together with one set of values: all that a "How is this computed" panel shows.

    symbol: LaTeX of what is computed. found: LaTeX of its value, behind its “=” or “≈”.
    """

    name: str
    title: str
    detail: str
    symbol: str
    symbolic: str
    substituted: str
    found: str
    value: float
    text: str
    kind: Kind
    terms: tuple[SubstitutedTerm, ...]
    sources: tuple[Source, ...]

    @property
    def named(self) -> bool:
        """Whether the title is not the formula's own, but says what this use of it is about."""
        return self.name in _REGISTRY and self.title != _REGISTRY[self.name].title

    def about(self, what: str) -> Explanation:
        """Return the same, with a title that says what this use of the formula is about."""
        return replace(self, title=f"{self.title}: {what}")


@dataclass(frozen=True, slots=True)
class DerivationStep:
    """One formula of a derivation, with every set of values that it is used with.

    title, detail: the formula's own. remarks: what the detail of each use adds to that.
    """

    title: str
    detail: str
    uses: tuple[Explanation, ...]
    remarks: tuple[str, ...]
    sources: tuple[Source, ...]

    @property
    def symbolic(self) -> str:
        return self.uses[0].symbolic

    @property
    def differing(self) -> tuple[int, ...]:
        """Places of the terms whose values the uses do not share."""
        places = range(len(self.uses[0].terms))
        return tuple(i for i in places if len({use.terms[i].text for use in self.uses}) > 1)

    def used_for(self, use: Explanation) -> str:
        """Return what a use is for: its title without what the formula's own title says already."""
        text = self.title[:1].lower() + self.title[1:]
        return use.title.removeprefix(f"{self.title}: ").removesuffix(f": {text}")


def derivation(explanations: Iterable[Explanation]) -> tuple[DerivationStep, ...]:
    """Return each formula once, in the order in which they first come, with all that it is used for.

    The same values under the same title count once.
    """
    uses_by_formula: dict[str, dict[tuple[str, tuple[str, ...], str], Explanation]] = {}
    for explanation in explanations:
        uses_by_formula.setdefault(explanation.name, {}).setdefault(
            (explanation.title, tuple(t.text for t in explanation.terms), explanation.found), explanation
        )
    return tuple(_step(tuple(uses.values())) for uses in uses_by_formula.values())


def _step(uses: tuple[Explanation, ...]) -> DerivationStep:
    own = _REGISTRY.get(uses[0].name, uses[0])
    return DerivationStep(
        title=own.title,
        detail=own.detail,
        uses=uses,
        remarks=tuple(use.detail.removeprefix(own.detail).strip() for use in uses),
        sources=tuple(dict.fromkeys(source for use in uses for source in use.sources)),
    )


_RECORD: ContextVar[list[tuple[Formula[Any], dict[str, float]]] | None] = ContextVar("record", default=None)
"""Uses of formulas on single numbers while they are recorded."""


def explain_run(run: Callable[[], object], *, zeros: bool = False) -> list[Explanation]:
    """Return every use of a formula's ``over`` on single numbers while ``run`` runs, in order.

    Uses without a finite number are left out, and without ``zeros`` also those that give 0.
    """
    record: list[tuple[Formula[Any], dict[str, float]]] = []
    token = _RECORD.set(record)
    try:
        run()
    finally:
        _RECORD.reset(token)
    steps: list[Explanation] = []
    for used, values in record:
        if all(math.isfinite(value) for value in values.values()):
            try:
                step = used.explain(**values)
            except ZeroDivisionError:  # plain numbers have no infinity to say it by
                continue
            if math.isfinite(step.value) and (zeros or step.value != 0):
                steps.append(step)
    return steps


class Formula(Generic[P]):
    """A function that carries its LaTeX, symbols and sources. Call it like the function it wraps."""

    def __init__(
        self,
        function: Callable[P, float],
        latex: str,
        result: Symbol,
        symbols: Mapping[str, Symbol],
        sources: tuple[Source, ...],
    ) -> None:
        self.function = function
        self.latex = latex
        self.result = result
        self.symbols = dict(symbols)
        self.sources = sources
        self._signature: Any = inspect.signature(function)
        self.name = f"{function.__module__}.{function.__name__}"
        lines = (inspect.getdoc(function) or "").partition("\n")
        self.title = lines[0].rstrip(".")
        self.detail = lines[2].strip()
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        self._check()

    def _check(self) -> None:
        parameters = set(self._signature.parameters)
        values = set(_PLACEHOLDER.findall(self.latex))
        if not self.title:
            raise ValueError(f"formula {self.name} has no docstring")
        if not self.sources:
            raise ValueError(f"formula {self.name} names no source")
        if values != parameters or set(self.symbols) != parameters:
            raise ValueError(
                f"formula {self.name}: parameters {sorted(parameters)}, placeholders {sorted(values)} and "
                f"symbols {sorted(self.symbols)} must be the same set"
            )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> float:
        return self.function(*args, **kwargs)

    def over(self, **values: float | npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the same formula on numpy arrays, broadcast against each other; one call for a million values."""
        function: Callable[..., Any] = self.function
        record = _RECORD.get()
        if record is not None and all(np.size(value) == 1 for value in values.values()):
            numbers = {name: float(np.asarray(value).item()) for name, value in values.items()}
            record.append((cast("Formula[Any]", self), numbers))
        return np.asarray(function(**values), dtype=np.float64)

    def symbolic(self) -> str:
        """Return LaTeX of the formula in its symbols, ``C = 6 N D``."""
        return _symbolic(self.latex, self.result, self.symbols)

    def fill(self, **texts: str) -> str:
        """Return LaTeX of the right-hand side with ``texts`` for the parameters, where the caller must choose every
        digit."""
        return _substituted(self.latex, texts)

    def explain(self, kinds: Mapping[str, Kind] | None = None, /, **values: float) -> Explanation:
        """Evaluate at scalar ``values`` (by parameter name) and say how.

        kinds: by parameter, and by "" for the result, where not the formula's own. What is left out takes the
        function's default. Raises ``TypeError`` if a parameter is missing or unknown.
        """
        function: Callable[..., float] = self.function
        bound = self._signature.bind(**values)
        bound.apply_defaults()
        values = bound.arguments
        value = float(function(**values))
        own = {"": self.result, **self.symbols}
        result, *symbols = (replace(s, kind=(kinds or {}).get(name, s.kind)) for name, s in own.items())
        named = dict(zip(self.symbols, symbols, strict=True))
        return explanation(self.name, self.title, self.detail, self.latex, result, named, values, value, self.sources)


def explanation(
    name: str,
    title: str,
    detail: str,
    latex: str,
    result: Symbol,
    symbols: Mapping[str, Symbol],
    values: Mapping[str, float],
    value: float,
    sources: tuple[Source, ...],
) -> Explanation:
    """Return the explanation of ``value`` by LaTeX that has ``\\v{name}`` for each of its symbols."""
    put = {name: latex_exact(values[name], symbol.kind, most=_PUT) for name, symbol in symbols.items()}
    body = _substituted(latex, {name: text for name, (text, _) in put.items()})
    found = _result(value, result.kind, all(exact for _, exact in put.values()))
    return Explanation(
        name=name,
        title=title,
        detail=detail,
        symbol=result.latex,
        symbolic=_symbolic(latex, result, symbols),
        substituted=f"{result.latex} = {body} {found}",
        found=found,
        value=value,
        text=format_quantity(value, result.kind),
        kind=result.kind,
        terms=tuple(
            SubstitutedTerm(s.latex, s.meaning, float(values[name]), format_quantity(values[name], s.kind))
            for name, s in symbols.items()
        ),
        sources=sources,
    )


def _symbolic(latex: str, result: Symbol, symbols: Mapping[str, Symbol]) -> str:
    """Return LaTeX of a formula in its symbols, ``C = 6 N D``."""
    return f"{result.latex} = {_PLACEHOLDER.sub(lambda m: symbols[m.group(1)].latex, latex)}"


def _substituted(latex: str, texts: Mapping[str, str]) -> str:
    """Return ``latex`` with ``texts`` for its placeholders, in parentheses where the sum would otherwise be another
    one.

    Parentheses are put around whatever is raised to a power but a plain number (``6 \\times 10^{9}^{2}`` is no LaTeX),
    and around a negative number that follows anything but an opening bracket (``2 \\cdot -3``).
    """

    def put(match: re.Match[str]) -> str:
        text = texts[match.group(1)]
        before, after = latex[: match.start()].rstrip(), latex[match.end() :].lstrip()
        raised = after.startswith("^") and not _PLAIN.fullmatch(text)
        signed = text.startswith("-") and before != "" and before[-1] not in "({"
        return f"({text})" if raised or signed else text

    return _PLACEHOLDER.sub(put, latex)


def _result(value: float, kind: Kind, all_in_full: bool) -> str:
    """Return the result in its base unit, and for long durations once more in the unit people use.

    In full where it is short and ``all_in_full``: all that it was calculated from stands there in full. What is not all
    of a number follows “≈”.
    """
    latex, exact = latex_exact(value, kind, most=_FOUND) if all_in_full else (latex_quantity(value, kind), False)
    known = math.isfinite(value)
    latex = f"{'=' if exact or not known else _ABOUT} {latex}"
    number, _, unit = format_quantity(value, kind).partition(" ")
    if kind == "seconds" and value >= 60 and unit and known:
        sign = "=" if _says(f"{number} {unit}", kind, value) else _ABOUT
        latex += rf" {sign} {number.replace(',', '{,}')}\,\text{{{unit}}}"
    return latex


def _says(text: str, kind: Kind, value: float) -> bool:
    """Return whether ``text`` is the whole of ``value``; texts beyond every useful range are not."""
    try:
        return math.isclose(parse_quantity(text, kind), value, rel_tol=1e-14)
    except QuantityError:
        return False


_REGISTRY: dict[str, Formula[...]] = {}


def formula(
    latex: str,
    *,
    result: Symbol,
    symbols: Mapping[str, Symbol],
    sources: tuple[Source, ...],
) -> Callable[[Callable[P, float]], Formula[P]]:
    """Turn a function of numbers into a `Formula` and register it.

    latex: the right-hand side, with ``\\v{name}`` wherever the parameter ``name`` stands.
    Raises ``ValueError`` at import when placeholders, symbols and parameters differ, or docstring or source lack.
    """

    def wrap(function: Callable[P, float]) -> Formula[P]:
        wrapped = Formula(function, latex, result, symbols, sources)
        _REGISTRY[wrapped.name] = wrapped
        return wrapped

    return wrap


def all_formulas() -> Mapping[str, Formula[...]]:
    """Return every formula of the modules imported so far, by qualified name."""
    return dict(_REGISTRY)
