"""How numbers of a report are computed: each formula with its values and its source, as HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable

from core.formula import Explanation, Source, Step, derivation
from core.views.common.markup import rich, safe_text
from core.views.report.mathml import mathml


def steps(explanations: Iterable[Explanation]) -> str:
    """Each formula once, with all values that it is used with."""
    return "".join(_step(step) for step in derivation(explanations))


def _step(step: Step) -> str:
    first, several = step.uses[0], len(step.uses) > 1
    about = f" <span>({safe_text(step.used_for(first))})</span>" if not several and first.named else ""
    values = _uses(step) if several else f"<p>{mathml(first.substituted)}</p>"
    detail = f"<p class=quiet>{rich(' '.join(step.detail.split()))}</p>" if step.detail else ""
    return (
        f"<div class=step><h3>{safe_text(step.title)}{about}</h3>{detail}"
        f"<div class=math><p>{mathml(step.symbolic)}</p>{values}</div>"
        f"<p class=quiet>{_where(step)} {_sources(step.sources)}</p></div>"
    )


def _uses(step: Step) -> str:
    """One row a use: what it is for, the values that differ, the result."""
    first, named = step.uses[0], any(use.named for use in step.uses)
    heads = [mathml(first.terms[i].latex) for i in step.differing] + [mathml(first.symbol)]
    head = "".join(f'<th scope="col" class=num>{head}</th>' for head in heads)
    rows = "".join(
        "<tr>"
        + (f'<th scope="row">{safe_text(step.used_for(use))}</th>' if named else "")
        + "".join(f"<td class=num>{safe_text(use.terms[i].text)}</td>" for i in step.differing)
        + f"<td class=num>{mathml(use.found.removeprefix('= '))}</td></tr>"
        for use in step.uses
    )
    corner = '<th scope="col">used for</th>' if named else ""
    return f"<table class=uses><thead><tr>{corner}{head}</tr></thead><tbody>{rows}</tbody></table>"


def _where(step: Step) -> str:
    """What each symbol means, with its value where all uses share it, and what is to be said of a use."""
    texts = [
        f"{mathml(term.latex)} = {safe_text(term.meaning)}"
        + ("" if i in step.differing else f" ({safe_text(term.text)})")
        for i, term in enumerate(step.uses[0].terms)
    ]
    noted = dict.fromkeys(
        f"{safe_text(step.used_for(use))}: {rich(' '.join(remark.split()))}"
        for use, remark in zip(step.uses, step.remarks, strict=True)
        if remark
    )
    return " ".join((f"Where {', '.join(texts)}.", *noted))


def _sources(sources: Iterable[Source]) -> str:
    return f"Source: {'; '.join(_source(source) for source in sources)}"


def _source(source: Source) -> str:
    text = safe_text(str(source))
    return f'<a href="{html.escape(source.url, quote=True)}">{text}</a>' if source.url else text
