"""What a calendar of runs asks beside a plan: its start and deadline, maintenance, spares, and up to eight runs.

Whatever a run leaves empty is the plan's: a calendar of one empty run is the plan itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal, TypeAlias

from core.fields import Field, ParsedForm, choice, optional, quantity, slider
from core.limits import limit
from core.models.catalog import catalog
from core.planning.calendar.dates import format_day, parse_closed, parse_day
from core.planning.calendar.schedule import Fleet, Run, Schedule, schedule
from core.planning.form.plan_form import COUNT, FIND, MODEL_NAME, PARAMETERS, SEQ_LEN, TRAINED, link_texts, named_plan
from core.planning.plan import TYPED
from core.suggest import suggestions
from core.units import QuantityError, format_count, parse_quantity
from core.wording import cleaned

CALENDAR, RUNS = "calendar", "runs"
"""Parts of the form: the fleet's days, and the runs."""

FIRST = "the start"
"""Of a run that waits for no other."""

_EIGHT = range(1, limit("calendar_runs") + 1)

START = Field(
    "start",
    "Start",
    "2027-01-15",
    parse_day,
    part=CALENDAR,
    help="The first day of the fleet, from its midnight on. All days are in UTC.",
)
DUE = optional(
    "due",
    "Deadline",
    parse_day,
    nothing=None,
    placeholder="none",
    part=CALENDAR,
    help="The day by whose end the last run has to be done, such as 2027-10-14.",
)
SPARE = quantity(
    "spare",
    "Spare nodes",
    "0",
    "count",
    high=limit("accelerators"),
    whole=True,
    part=CALENDAR,
    help="Nodes of the fleet that stand by for failed ones. No run gets them, and they are paid for as long as the "
    "fleet is held.",
)
CLOSED = Field(
    "closed",
    "Maintenance and holidays of the cluster",
    "",
    parse_closed,
    part=CALENDAR,
    placeholder="2027-07-05 to 2027-07-09, 2027-12-24",
    max_chars=limit("closed_chars"),
    help="Days on which nothing runs, the first and the last included. Runs pause and go on afterwards.",
)
MONTHLY = quantity(
    "mhours",
    "Monthly hours",
    "0",
    "number",
    high=limit("maintenance_hours"),
    part=CALENDAR,
    help="Maintenance that comes back: so many hours from 0:00 UTC of each month’s first Monday.",
)
COUNTED = slider("runs", "Runs", 1, limit("calendar_runs"), 1, part=RUNS)

Size: TypeAlias = str | float
"""A model of the catalogue by its name, or a number of parameters."""

Share: TypeAlias = tuple[Literal["count", "share"], float]
"""Accelerators of a run: so many, or a share of those that runs may take."""


def _name(text: str) -> str:
    """A run's name on one line."""
    return cleaned(" ".join(text.split()), limit("run_name"))


def _size(text: str) -> Size:
    stripped = text.strip()
    names = {m.name.lower(): m.name for m in catalog()}
    if stripped.lower() in names:
        return names[stripped.lower()]
    try:
        return parse_quantity(stripped, "count", low=1, high=limit("parameters"), whole=True, example="8B")
    except QuantityError as problem:
        if stripped[:1].isdigit() or stripped[:1] in "-+.":
            raise
        close = suggestions(stripped, list(names.values()))
        meant = f" Did you mean {' or '.join(close)}?" if close else ""
        raise QuantityError(
            f"“{stripped}” is neither a model of the catalogue nor a number of parameters, such as 8B.{meant}"
        ) from problem


def _share(text: str) -> Share:
    if text.strip().endswith("%"):
        return "share", parse_quantity(text, "ratio", low=0.0001, high=1.0, example="50%")
    high = limit("accelerators")
    return "count", parse_quantity(text, "count", low=1, high=high, whole=True, example="512 or 50%")


def _tokens(text: str) -> float:
    return parse_quantity(text, "count", low=1, high=limit("tokens"), whole=True, example="800B")


def _length(text: str) -> float:
    return parse_quantity(text, "count", low=1, high=limit("model_dimension"), whole=True, example="131,072")


def _run(k: int) -> dict[str, Field]:
    """The fields of the run ``k``, by what they are."""

    def field(letter: str, label: str, read: Any, placeholder: str, help: str) -> Field:
        about = f"Run {k}, {label}"
        return optional(f"r{k}{letter}", about, read, nothing=None, placeholder=placeholder, part=RUNS, help=help)

    return {
        "name": field("n", "name", _name, f"Run {k}", ""),
        "model": field(
            "m", "model", _size, "the plan’s", "A model of the catalogue, or parameters such as 8B. Empty: the plan’s."
        ),
        "tokens": field("t", "tokens", _tokens, "the plan’s", "Empty: the plan’s."),
        "seq": field("s", "sequence", _length, "the plan’s", ""),
        "count": field("c", "how many", _share, "all", "So many, or a share of the fleet without its spares: 50%."),
        "after": choice(
            f"r{k}a",
            f"Run {k}, waits for",
            (FIRST, *(f"run {other}" for other in _EIGHT)),
            FIRST,
            part=RUNS,
            help="Runs that wait for the start go beside each other where the fleet has room for all of them; a later "
            "row waits where it has not.",
        ),
        "earliest": field("d", "not before", parse_day, "any day", "The first day on which it may start."),
    }


RUN_FIELDS = {k: _run(k) for k in _EIGHT}
"""Number of a run → its fields by what they are."""

CALENDAR_FIELDS: tuple[Field, ...] = (
    START,
    DUE,
    SPARE,
    CLOSED,
    MONTHLY,
    COUNTED,
    *(field for fields in RUN_FIELDS.values() for field in fields.values()),
)


@dataclass(frozen=True, slots=True)
class CalendarRequest:
    """What a calendar is made of."""

    fleet: Fleet
    runs: tuple[Run, ...]
    start: date
    due: date | None

    def schedule(self) -> Schedule:
        """When each run starts and ends. Raises `BudgetError` where that cannot be said."""
        return schedule(self.fleet, self.runs, self.start, self.due)


def calendar_request(reading: ParsedForm) -> CalendarRequest:
    """What the values of a form over the plan's fields and `CALENDAR_FIELDS` describe."""
    v: Mapping[str, Any] = reading.values
    plan = named_plan(reading)
    fleet = Fleet(
        accelerator=plan.accelerator,
        accelerators=int(plan.accelerators),
        spares=int(v[SPARE.id]) * plan.device.node_size,
        closed=v[CLOSED.id],
        monthly_hours=v[MONTHLY.id],
    )
    runs: list[Run] = []
    for k in range(1, v[COUNTED.id] + 1):
        given = {name: v[field.id] for name, field in RUN_FIELDS[k].items()}
        size: Size | None = given["model"]
        own: dict[str, Any] = {"accelerators": float(_accelerators_taken(given["count"], fleet))}
        if isinstance(size, str):
            own["model"] = size
        elif size is not None:
            own |= {"model": TYPED, "parameters": size}
        own |= {name: given[name] for name in ("tokens",) if given[name] is not None}
        own |= {"seq_len": int(given["seq"])} if given["seq"] is not None else {}
        after = None if given["after"] == FIRST else int(given["after"].removeprefix("run ")) - 1
        runs.append(Run(given["name"] or f"Run {k}", replace(plan, **own), after, given["earliest"]))
    return CalendarRequest(fleet, tuple(runs), v[START.id], v[DUE.id])


def _accelerators_taken(share: Share | None, fleet: Fleet) -> int:
    """Accelerators of a run; never less than one, so that a fleet without any is said of the fleet."""
    if share is None:
        return max(1, fleet.usable)
    kind, value = share
    return int(value) if kind == "count" else max(1, int(value * fleet.usable + 1e-9))


def texts_of(reading: ParsedForm, run: Run) -> dict[str, str]:
    """The plan of one run as texts of a plan's fields, for a link to a page about one plan."""
    plan = run.plan
    return link_texts(
        dict(reading.texts)
        | {
            FIND.id: "time",
            MODEL_NAME.id: plan.model,
            PARAMETERS.id: f"{plan.parameters:,.0f}",
            TRAINED.id: f"{plan.tokens:,.0f}",
            SEQ_LEN.id: f"{plan.seq_len:,}",
            COUNT.id: f"{plan.accelerators:,.0f}",
        }
    )


def described(run: Run) -> str:
    """What a run trains: ``Llama 3.1 405B, 15.6T tokens of 8,192``."""
    plan = run.plan
    size = f"{format_count(plan.parameters)} parameters" if plan.model == TYPED else plan.model
    return f"{size}, {format_count(plan.tokens)} tokens at {plan.seq_len:,}"


def not_before(run: Run) -> str:
    """The first day on which a run may start; empty where any is."""
    return format_day(run.earliest) if run.earliest else ""
