"""Reports as single HTML files that open and print without a network. The templates are ``assets/*report.html``."""

from __future__ import annotations

import base64
import datetime
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from core.data_version import data_version
from core.formula import DerivationStep, Explanation, derivation
from core.limits import cached
from core.messages import message
from core.planning.comparison.comparison import ComparedPlan, differing_fields, effective_fields
from core.planning.estimate import PlanEstimate
from core.planning.form.plan_form import PLAN_FORM
from core.planning.form.whole_run import ORIGIN, OWN_RUNS
from core.planning.nearest_runs import repeated_runs, similar_runs
from core.planning.plan_limits import limit_report
from core.search.request import explain
from core.views.common import markup
from core.views.common.chart import Figure
from core.views.common.palette import LIGHT
from core.views.comparison import text as comparison_text
from core.views.comparison.charts import bars
from core.views.plan import text as plan_text
from core.views.plan import text_limits, text_memory
from core.views.plan.charts import answer_strip
from core.views.report.formula_text import formula_text
from core.views.report.report import Report, concerns
from core.views.report.rows import HEADINGS
from core.views.report.style import style
from core.views.report.tables import address
from core.views.runs.text import repeated_run, similar_runs_text
from core.views.search import text as search_text
from core.views.search.text_step import launch_text
from core.views.training.charts_device import device_bars
from core.wording import plain

if TYPE_CHECKING:
    from jinja2 import Environment

_ASSETS = Path(__file__).parents[3] / "assets"


def _safe(write: Callable[..., str]) -> Callable[..., Markup]:
    """Return ``write``, whose HTML is safe, as one whose HTML is not escaped again."""
    return lambda *texts: Markup(write(*texts))  # noqa: S704 - it escapes what it is given


_rich, as_text, _typed, remarked = map(_safe, (markup.rich, markup.safe_text, markup.typed, markup.remarked))

_DRAW = """for (const place of document.querySelectorAll("[data-figure]")) {
  const figure = JSON.parse(place.dataset.figure)
  Plotly.newPlot(place, figure.data, figure.layout, { staticPlot: true })
}"""
"""Draws every picture of a document with plotly.js."""

_LABELS: Mapping[str, str] = {
    "no_answer": message("report.no_answer"),
    "link": message("report.link"),
    "how": message("report.how"),
    "comparison": message("report.section.comparison"),
    "each": message("report.section.each"),
    "shared": message("report.section.shared"),
    "run": message("report.section.run"),
    "launch": message("report.section.launch"),
    "runs": message("report.section.runs"),
    "memory": message("report.section.memory"),
    "numbers": message("report.section.numbers"),
    "inputs": message("report.section.inputs"),
    "bars_picture": message("report.picture.bars"),
    "runs_picture": message("report.picture.runs"),
    "memory_picture": message("report.picture.memory"),
    "scenario": message("row.caption"),
}
"""Texts of the templates."""

WIDTH = 670
"""Pixels of a picture: what a page of A4 has between its margins."""


def picture(figure: Figure, alt: str) -> Markup:
    """Return a figure, made with the palette `LIGHT`, for `rendered`; ``alt`` says what it shows."""
    from plotly import io  # pyright: ignore[reportMissingTypeStubs] - where a report is made and not before

    layout = figure["layout"]
    room = {"l": 96, "r": 56}  # for labels that begin or end outside the axes
    sized = {**figure, "layout": {**layout, "width": WIDTH, "margin": {**layout["margin"], **room}}}
    text = str(io.to_json(sized, validate=False))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    return Markup('<div class=picture role=img aria-label="{}" data-figure="{}"></div>').format(alt, text)


@cached("tables_kept")
def _scripts() -> tuple[Markup, str]:
    """Return plotly.js and what draws with it as HTML, and their hashes for the document's policy."""
    from plotly.offline import get_plotlyjs  # pyright: ignore[reportMissingTypeStubs]

    scripts = [get_plotlyjs().replace("</script", r"<\/script"), _DRAW]
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    html = Markup("").join(Markup("<script>{}</script>").format(Markup(script)) for script in scripts)  # noqa: S704
    return html, " ".join(f"'sha256-{digest}'" for digest in digests)


@cached("tables_kept")
def _environment() -> Environment:
    """Return what fills in the documents of ``assets``."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # where a report is made and not before

    environment = Environment(loader=FileSystemLoader(_ASSETS), autoescape=True, undefined=StrictUndefined)
    filters: dict[str, Any] = environment.filters  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    filters |= {"rich": _rich, "text": as_text, "literal": _safe(markup.literal), "formula": formula_text}
    filters["remarks"] = _remarks
    return environment


def rendered(template: str, title: str, date: datetime.date, link: str, **values: Any) -> str:
    """Return a document of ``assets``. link: the whole address that opens it again."""
    scripts, hashes = _scripts()
    return (
        _environment()
        .get_template(template)
        .render(
            style=Markup(style()),  # noqa: S704 - our own sheet
            scripts=scripts,
            hashes=hashes,
            title=title,
            date=date.isoformat(),
            link=address(link),
            labels={**_LABELS, "made": message("report.made_data", date=date.isoformat(), edition=data_version())},
            **values,
        )
    )


def as_html(report: Report) -> str:
    """Return the report as a complete HTML file."""
    several = len(report.plans) > 1
    at = report.layout
    explained = [
        used.about(plan.name) if several else used for plan in report.plans for used in _explanations(plan, at)
    ]
    return rendered(
        "report.html",
        report.title,
        report.date,
        report.link,
        plans=[_plan(plan) for plan in report.plans],
        shared=_shared(report),
        steps=derivation(explained) if explained else (),
        comparison=_comparison(report) if several else None,
        **({} if several else _alone(report, report.plans[0])),
    )


def _plan(plan: ComparedPlan) -> Mapping[str, Any]:
    """Return a plan's answer, or why there is none, and what is to be said beside it."""
    a = plan.answer
    written: dict[str, Callable[[PlanEstimate], str]] = {
        "sentence": plan_text.headline,
        "range": plan_text.range_text,
        "times": plan_text.times_text,
        "published": lambda a: " ".join(repeated_run(a, run) for run in repeated_runs(a)),
        "mfu": plan_text.mfu_text,
        "limits": lambda a: text_limits.limits_line(a, limit_report(a)),
    }
    texts = {name: write(a) for name, write in written.items()} if a else {}
    return {"name": plan.name, "answer": a, "problem": plan.problem, "concerns": concerns(plan), **texts}


def _alone(report: Report, plan: ComparedPlan) -> Mapping[str, Any]:
    """Return what a report on one plan has besides its answer."""
    at, a, h = report.layout, plan.answer, plan.memory
    layout = runs = memory = None
    if at:
        texts = {"sentence": search_text.headline, "stepped": search_text.step_text}
        layout: Any = {name: write(at) for name, write in texts.items()}
        layout["launched"] = " ".join(launch_text(at.launches, at.whole.software, at.whole.device))
        layout["launches"] = at.launches
    if a:
        similar = similar_runs(a)
        text = similar_runs_text(a, similar)
        runs = {"text": text, "picture": picture(answer_strip(a, similar, LIGHT), plain(text))}
    if a and h:
        text = text_memory.sentence(h)
        memory = {
            "text": text,
            "picture": picture(device_bars([("", h.device_memory)], h.usable, LIGHT), plain(text)),
            "notes": [text_memory.counted(h), *text_memory.remarks(h)],
        }
    rows = [(_typed(row.label, row.note), *map(as_text, row.cells()[1:4])) for row in report.rows(plan)]
    return {"layout": layout, "runs": runs, "memory": memory, "line_heads": HEADINGS[:4], "lines": rows}


def _comparison(report: Report) -> Mapping[str, Any]:
    """Return what a report on several plans has besides their answers."""
    plans, base = report.plans, report.base
    differences = differing_fields([plan.reading for plan in plans])
    rows = [*comparison_text.result_rows(plans, base), *comparison_text.input_rows(differences)]
    first = message("comparison.table.base", plan=plans[base].name)
    return {
        "sentence": " ".join(comparison_text.answer(plans, base)),
        "remarks": comparison_text.notices(plans),
        "bars": picture(bars(plans, base, LIGHT), plain(comparison_text.bars_alt(plans, base))),
        "names": ["", *(plan.name for plan in plans[:base]), first, *(plan.name for plan in plans[base + 1 :])],
        "rows": [[as_text(label), *(remarked(*cell) for cell in cells)] for label, cells in rows],
    }


def _shared(report: Report) -> list[tuple[str, str]]:
    """Return what counts of a plan's fields; of several plans those that all share, after what the table of results
    says."""
    readings = [plan.reading for plan in report.plans]
    apart = {field.field.id for field in differing_fields(readings)}
    first, counts = readings[0], [effective_fields(reading) for reading in readings]
    return [
        (field.label, first.texts[field.id] or field.placeholder or message("report.empty"))
        for field in PLAN_FORM.fields
        if field.id not in apart
        and all(field.id in fields for fields in counts)
        and (first.texts[field.id] or field not in (OWN_RUNS, ORIGIN))
    ]


def _explanations(plan: ComparedPlan, at: PlanEstimate | None) -> list[Explanation]:
    """Return every formula on the way to the answer, and to what one accelerator holds; those of a layout's step
    first."""
    if plan.answer is None:
        return []
    step = explain(at.request, at.step, at.whole.tokens) if at else []
    return [*step, *plan.answer.explain(), *(plan.memory.explain() if plan.memory else ())]


def _remarks(step: DerivationStep) -> list[Markup]:
    """Return what is to be said of the uses of a formula, each once."""
    noted = [
        as_text(step.used_for(use)) + ": " + _rich(" ".join(remark.split()))
        for use, remark in zip(step.uses, step.remarks, strict=True)
        if remark
    ]
    return list(dict.fromkeys(noted))
