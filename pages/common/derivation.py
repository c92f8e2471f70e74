"""A step of a derivation as Markdown: the formula once, then its only values filled in, or a table of them."""

from __future__ import annotations

import re

from core.formula import DerivationStep, Explanation
from core.views.common.markup import markdown_text

_POWER = re.compile(r"(\(−?\w+\)|\w+)\^(\([^()]*\)|⌊[^⌋]*⌋|[−-]?\w+)")
_SIGNS = {"−": "-", "⌊": r"\lfloor ", "⌋": r"\rfloor "}
_SIGN = re.compile(f"([{''.join(_SIGNS)}])")


def step_markdown(step: DerivationStep) -> str:
    """Return title and method, formula, values, then what each symbol means and the sources."""
    several = len(step.uses) > 1
    values = _table(step) if several else _display(step.uses[0].substituted)
    detail = f" {_words(step.detail)}" if step.detail else ""
    about = f" ({markdown_text(step.used_for(step.uses[0]))})" if not several and step.uses[0].named else ""
    return "\n\n".join(
        [
            f"**{markdown_text(step.title)}**{about}.{detail}",
            _display(step.symbolic),
            values,
            f"{_where(step)} {_sources(step)}",
        ]
    )


def _display(latex: str) -> str:
    return f"$$\n{latex}\n$$"


def _table(step: DerivationStep) -> str:
    """Return one row a use: what it is for, the values that differ, the result."""
    first, differing = step.uses[0], step.differing
    named = any(use.named for use in step.uses)
    heads = [*(_cell(first.terms[i].latex) for i in differing), _cell(first.symbol)]
    rows = [[*(markdown_text(use.terms[i].text) for i in differing), _cell(_value(use))] for use in step.uses]
    sides = ["--:"] * len(heads)
    if named:
        rows = [[markdown_text(step.used_for(use)), *row] for use, row in zip(step.uses, rows, strict=True)]
        heads, sides = ["used for", *heads], [":--", *sides]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, sides, *rows))


def _cell(latex: str) -> str:
    unsplit = latex.replace("|", r"\|")
    return f"${unsplit}$"


def _value(use: Explanation) -> str:
    """Return the result; only what is rounded says so."""
    return use.found.removeprefix("= ")


def _where(step: DerivationStep) -> str:
    """Return what each symbol means, with its value where all uses share it, and what is to be said of a use."""
    differing = step.differing
    texts = [
        f"${term.latex}$ = {markdown_text(term.meaning)}" + ("" if i in differing else f" ({markdown_text(term.text)})")
        for i, term in enumerate(step.uses[0].terms)
    ]
    remarks = {remark: use for use, remark in reversed(list(zip(step.uses, step.remarks, strict=True))) if remark}
    noted = (f" {markdown_text(step.used_for(use))}: {_words(remark)}" for remark, use in reversed(remarks.items()))
    return f"Where {', '.join(texts)}.{''.join(noted)}"


def _sources(step: DerivationStep) -> str:
    links = (f"[{markdown_text(str(s))}]({s.url})" if s.url else markdown_text(str(s)) for s in step.sources)
    return f"Source: {'; '.join(links)}"


def _words(text: str) -> str:
    """Return a docstring's words in one line, its powers as superscripts."""
    flat = " ".join(text.split()).replace("$", r"\$")
    return _POWER.sub(lambda m: f"${m[1].replace('−', '-')}^{{{_raised(m[2].strip('()'))}}}$", flat)


def _raised(text: str) -> str:
    """Return a power in words as LaTeX, whose text knows no minus sign and no brackets of a floor."""
    parts = (part.strip() for part in _SIGN.split(text))
    return "".join(_SIGNS.get(part, rf"\text{{{part}}}") for part in parts if part)
