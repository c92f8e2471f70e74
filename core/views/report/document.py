"""A report as one HTML file that needs nothing else, no network, script or font; for the screen and for paper."""

from __future__ import annotations

import html
from collections.abc import Sequence

from core.data_version import data_version
from core.formula import Explanation
from core.planning.applied_layout import AppliedLayout
from core.planning.comparison.comparison import ComparedPlan
from core.planning.comparison.differences import differing_fields, effective_fields
from core.planning.evaluation import Answer
from core.planning.form.plan_form import PLAN_FORM
from core.planning.nearest_runs import similar_runs
from core.search.derivation import explain
from core.views.common.markup import literal, remarked, rich, safe_text, typed
from core.views.comparison import text as compare
from core.views.comparison.charts import bars, days_against_dollars
from core.views.plan import text as plan_text
from core.views.plan import text_memory
from core.views.plan.charts import answer_strip
from core.views.report.derivations import steps
from core.views.report.plan_table import HEADINGS
from core.views.report.report import Report, concerns
from core.views.report.style import style
from core.views.report.svg import INK, svg
from core.views.report.tables import address
from core.views.runs.text import pace
from core.views.search import text as search
from core.views.search.text_step import launched
from core.views.training.charts_device import device_bars
from core.wording import plain

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def as_html(report: Report) -> str:
    """The whole file."""
    several = len(report.plans) > 1
    title = safe_text(report.title)
    body = _several(report) if several else _alone(report)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title} · Napkin</title><style>{style()}</style></head>\n"
        f"<body{' class=several' if several else ''}><main><p class=made>Napkin · {report.date.isoformat()}</p>"
        f"<h1>{title}</h1>\n{body}\n{_footer(report)}</main></body></html>\n"
    )


def _alone(report: Report) -> str:
    (plan,) = report.plans
    at = report.layout
    parts = [_in_force(at) if at else _said(plan)]
    if at:
        parts += [_section("The whole run", _said(plan)), _section("How it is launched", _launched(at))]
    if plan.answer:
        parts += [_beside_runs(plan.answer), _memory(plan), _section("The plan in numbers", _lines(report, plan))]
    parts.append(_section("What was asked", _asked(report)))
    if plan.answer:
        step = explain(at.request, at.result, at.plan.tokens) if at else []
        parts.append(_section("How this is computed", steps([*step, *_explained(plan)])))
    return "\n".join(parts)


def _in_force(at: AppliedLayout) -> str:
    """The layout in large type, as Parallel plan has it, and how it stands to the whole run."""
    text = search.sentence(at.plan, at.request, at.result)
    run = search.whole_run(at.plan, at.request, at.result)
    return (
        f"<p class=answer>{rich(text)}</p><p class=quiet>{rich(search.stepped(at.plan, at.request, at.result))}</p>"
        f"<p class=says>{rich(run)}</p>"
    )


def _launched(at: AppliedLayout) -> str:
    """The settings of each system, and what is to be said of them."""
    lines = at.launches
    parts = [f"<p class=says>{rich(launched(lines))}</p>"]
    for line in lines:
        notes = "".join(f"<p class=quiet>{rich(note)}</p>" for note in line.notes)
        parts.append(f"<h3>{safe_text(line.system)}</h3><pre class=wide>{safe_text(line.text)}</pre>{notes}")
    return "".join(parts)


def _several(report: Report) -> str:
    plans, base = report.plans, report.base
    head = f"<p class=answer>{rich(compare.sentence(plans, base))}</p>"
    head += f"<p class=quiet>{rich(compare.beside(plans, base))}</p>"
    head += "".join(f"<p class=wrong>{rich(line)}</p>" for line in compare.remarks(plans))
    alt = compare.bars_alt(plans, base)
    parts = [head + _picture(svg(bars(plans, base, INK), alt), "Days and dollars")]
    parts.append(_section("Beside each other", _beside(report)))
    if sum(plan.answer is not None and not plan.price_unknown for plan in plans) > 1:
        text = compare.frontier(plans)
        picture = _picture(svg(days_against_dollars(plans, base, INK), plain(text)), "Days against dollars")
        parts.append(_section("Days against dollars", f"<p class=says>{rich(text)}</p>{picture}"))
    each = "".join(f"<h3>{safe_text(plan.name)}</h3>{_said(plan)}" for plan in plans)
    parts.append(_section("Each plan", f"<div class=each>{each}</div>"))
    parts.append(_section("Every quantity", _quantities(report)))
    parts.append(_section("What they share", _asked(report)))
    explained = [used.about(plan.name) for plan in plans for used in _explained(plan)]
    if explained:
        parts.append(_section("How this is computed", steps(explained)))
    return "\n".join(parts)


def _section(title: str, inside: str) -> str:
    return f"<section><h2>{safe_text(title)}</h2>{inside}</section>"


def _said(plan: ComparedPlan) -> str:
    """The answer in large type, what it rests on, and what is to be said beside it."""
    if plan.answer:
        text = f"<p class=answer>{rich(plan_text.sentence(plan.answer))}</p>"
        text += f"<p class=quiet>{rich(plan_text.assumptions(plan.answer))}</p>"
    else:
        text = f"<p class=answer>No answer.</p><p class=wrong>{literal(plan.problem)}</p>"
    return text + "".join(
        f"<p class=wrong>{rich(text) if ours else literal(text)}</p>" for text, ours in concerns(plan)
    )


def _picture(drawn: str, label: str) -> str:
    return f'<figure class=wide role="region" aria-label="{label}" tabindex="0">{drawn}</figure>'


def _beside_runs(a: Answer) -> str:
    similar = similar_runs(a)
    text = pace(a, similar)
    picture = svg(answer_strip(a, similar, INK), plain(text))
    return _section("Beside published runs", f"<p class=says>{rich(text)}</p>{_picture(picture, 'Published runs')}")


def _memory(plan: ComparedPlan) -> str:
    if plan.memory is None:
        return ""
    h = plan.memory
    text = text_memory.sentence(h)
    picture = svg(device_bars([("", h.device_memory)], h.usable, INK), plain(text))
    notes = [text_memory.counted(h), *text_memory.remarks(h), text_memory.checkpoint(h)]
    rest = "".join(f"<p class=quiet>{rich(note)}</p>" for note in notes)
    return _section("On one accelerator", f"<p class=says>{rich(text)}</p>{_picture(picture, 'Memory')}{rest}")


def _beside(report: Report) -> str:
    """The results by which plans are compared, and the inputs in which they differ."""
    plans = report.plans
    names = [f"{plan.name}, baseline" if i == report.base else plan.name for i, plan in enumerate(plans)]
    differences = differing_fields([plan.reading for plan in plans])
    rows = [*compare.result_rows(plans, report.base), *compare.input_rows(differences, report.base)]
    cells = [[remarked(*cell) for cell in (head, *row)] for head, row in rows]
    return f"<p class=says>{rich(compare.inputs_in_words(plans, differences))}</p>" + _table(["", *names], cells)


def _lines(report: Report, plan: ComparedPlan) -> str:
    rows = [(line.cells(), line.note) for line in report.lines(plan)]
    caption = "In each column MFU, price and all that follows belong together."
    return _table(
        HEADINGS[:4],
        [[typed(cells[0], note), *(safe_text(cell) for cell in cells[1:4])] for cells, note in rows],
        caption=caption,
    )


def _quantities(report: Report) -> str:
    rows: list[list[str]] = []
    for name in report.quantities():
        cells = [line.cells() if (line := report.line(plan, name)) else None for plan in report.plans]
        parts = [typed(c[2], f"{c[1]} … {c[3]}" if c[1] else "") if c else "–" for c in cells]
        rows.append([safe_text(name), *parts])
    names = [plan.name for plan in report.plans]
    caption = "The median, and from the pessimistic to the optimistic end where there is a range."
    return _table(["quantity", *names], rows, caption=caption)


def _asked(report: Report) -> str:
    """What counts of a plan's fields; of several plans those that all share, after what the table of results says."""
    readings = [plan.reading for plan in report.plans]
    apart = {field.field.id for field in differing_fields(readings)}
    first, counts = readings[0], effective_fields(readings[0])
    shared = [
        (field.label, first.texts[field.id] or field.placeholder or _EMPTY)
        for field in PLAN_FORM.fields
        if field.id in counts - apart
    ]
    items = "".join(
        f"<div><dt>{safe_text(name)}</dt><dd class=num>{safe_text(text)}</dd></div>" for name, text in shared
    )
    return f"<dl>{items}</dl>"


_EMPTY = "empty"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "") -> str:
    """Heads are text, cells safe HTML; the first cell of a row names it."""
    first, *others = (safe_text(head) for head in heads)
    head = f'<th scope="col">{first}</th>' + "".join(f'<th scope="col" class=num>{other}</th>' for other in others)
    body = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td class=num>{cell}</td>" for cell in cells)}</tr>'
        for name, *cells in rows
    )
    text = f"<caption>{safe_text(caption)}</caption>" if caption else ""
    label = html.escape(caption or heads[0], quote=True)
    return (
        f'<div class=wide role="region" aria-label="{label}" tabindex="0"><table>{text}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _explained(plan: ComparedPlan) -> list[Explanation]:
    """Every formula on the way to the answer, and to what one accelerator holds."""
    if plan.answer is None:
        return []
    return [*plan.answer.explain(), *(plan.memory.explain() if plan.memory else ())]


def _footer(report: Report) -> str:
    link = address(report.link)
    again = f'<p><a class=open href="{html.escape(link, quote=True)}">Open it again in Napkin</a></p>' if link else ""
    edition = f"Data and formulas: edition {data_version()}."
    return f"<footer>{again}<p>Made by Napkin on {report.date.isoformat()}. {edition}</p></footer>"
