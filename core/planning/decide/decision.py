"""What a decision asks, as a form over the plan's fields, and everything that follows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from core.dates import parse_day
from core.fields import CATALOG, Field, ParsedForm, choice, optional, text
from core.limits import cached, limit
from core.messages import message
from core.number_text import QuantityError
from core.planning.decide.assignment import GOALS, Assigned, Assignment, Goal, assign
from core.planning.decide.matrix import OfferMatrix, added, matrix
from core.planning.decide.offers import OFFER_COLUMNS, OfferTable, read_offers, read_table
from core.planning.decide.record import CALENDAR_GONE, cluster, dropped_parts, from_calendar, pack
from core.planning.decide.runs import RUN_COLUMNS, RunTable, read_runs
from core.planning.form.links import link_texts
from core.planning.form.plan_form import plan_as_given, plan_form
from core.quantities import parse_quantity


def _short_enough(typed: str) -> str:
    if len(typed) > limit("decision_chars"):
        most = float(limit("decision_chars"))
        raise QuantityError(message("input.too_long", length=float(len(typed)), most=most))
    return typed


START = Field("start", CATALOG, "2027-01-15", parse_day)
OFFERS = Field("offers", CATALOG, "", _short_enough, "lines", max_chars=limit("decision_chars"))
RUNS = Field("train", CATALOG, "", _short_enough, "lines", max_chars=limit("decision_chars"))
GOAL = choice("goal", CATALOG, GOALS, "probable", few=True)
KWH = optional(
    "kwh", CATALOG, lambda typed: parse_quantity(typed, "number", high=100, example="0.08"), nothing=math.nan
).with_default("0.0806")
CHOSEN = text("chosen", CATALOG, "", max_chars=limit("decision_chosen_chars"))
BECAUSE = text("because", CATALOG, "", max_chars=limit("plan_note"), lines=True)
BY = text("by", CATALOG, "", max_chars=limit("plan_owner"))
ON = text("on", CATALOG, "", max_chars=limit("number_chars"))

RECORD_FIELDS = (CHOSEN, BECAUSE, BY, ON)
"""What was chosen, why, by whom, and when."""

DECISION_FIELDS = (START, OFFERS, RUNS, GOAL, KWH, *RECORD_FIELDS)
DECIDE_FORM = plan_form("y", *DECISION_FIELDS, imply=from_calendar, gone=CALENDAR_GONE, dropped=dropped_parts)


@dataclass(frozen=True, eq=False, slots=True)
class DecisionResult:
    """Offers, runs, every run on every offer, and the best assignment."""

    start: date
    offers: OfferTable
    runs: RunTable
    matrix: OfferMatrix
    answer: Assigned
    chosen_key: str

    @property
    def options(self) -> tuple[Assignment, ...]:
        """The best assignment and its alternatives."""
        return (self.answer.best, *self.answer.alternatives) if self.answer.best else ()

    @property
    def chosen(self) -> Assignment | None:
        """The option that was chosen. None where none was, or it is no longer one."""
        return next((option for option in self.options if option.key == self.chosen_key), None)


def decide(reading: ParsedForm) -> DecisionResult:
    """Return what a form of `DECIDE_FORM` comes to. Cells that cannot be read are problems of its tables."""
    parts = _matrix(tuple(reading.texts[field.id] for field in DECIDE_FORM.fields if field.id not in _SILENT))
    start, offers, runs, every = parts
    return DecisionResult(
        start, offers, runs, every, _assigned(every, reading.values[GOAL.id]), reading.texts[CHOSEN.id]
    )


_SILENT = frozenset(field.id for field in (GOAL, *RECORD_FIELDS))
"""Fields that change no cell."""


@cached("decisions_kept")
def _matrix(texts: tuple[str, ...]) -> tuple[date, OfferTable, RunTable, OfferMatrix]:
    names = [field.id for field in DECIDE_FORM.fields if field.id not in _SILENT]
    reading = DECIDE_FORM.parse(dict(zip(names, texts, strict=True)))
    start: date = reading.values[START.id]
    rows = read_table(reading.texts[OFFERS.id], OFFER_COLUMNS) or (cluster(reading.texts),)
    offers = read_offers(rows, plan_as_given(reading), start)
    runs = read_runs(read_table(reading.texts[RUNS.id], RUN_COLUMNS), reading, start)
    return start, offers, runs, matrix(reading, runs.runs, offers.offers, start, reading.values[KWH.id])


@cached("decisions_kept")
def _assigned(every: OfferMatrix, goal: Goal) -> Assigned:
    return assign(every, goal)


def decision_results(reading: ParsedForm) -> dict[str, float]:
    """Return what is kept of a decision beside its texts: of the chosen assignment, or the best. Unknown ones are
    missing."""
    decision = decide(reading)
    option = decision.chosen or decision.answer.best
    if option is None:
        return {}
    cells = [placement.cell for placement in option.placements]
    values = {
        "days": option.ends.mid,
        "dollars": option.cost.mid,
        "accelerators": float(sum(cell.accelerators for cell in cells)),
        "watt_hours": added([cell.answer.energy for cell in cells if cell.answer]).mid,
    }
    return {name: value for name, value in values.items() if math.isfinite(value)}


def packed_texts(texts: Mapping[str, str]) -> str:
    """Return texts of `DECIDE_FORM` for a link without a database."""
    own = {
        field.id: texts[field.id] for field in DECISION_FIELDS if texts.get(field.id, field.default) != field.default
    }
    return pack({**link_texts(texts), **own})
