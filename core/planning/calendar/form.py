"""What a calendar of runs asks beside a plan: its start and deadline, maintenance, spares, and up to nine runs.

Whatever a run leaves empty is the plan's: a calendar of one empty run is the plan itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal, TypeAlias

from core.budget.equations import BudgetError
from core.dates import format_day, is_day, parse_day
from core.fields import Field, ParsedForm, choice, optional, quantity, slider
from core.hardware.offers import EXAMPLES
from core.limits import limit
from core.messages import message
from core.models.catalog import catalog
from core.models.configs.custom import read_config, read_model
from core.models.spec_text import EXAMPLE, write_spec
from core.planning.calendar.dates import last_day, parse_closed
from core.planning.calendar.pools import OWN_CLUSTER, Pool, parse_pools, plan_on
from core.planning.calendar.schedule import Fleet, Run, Schedule, schedule
from core.planning.form.layout import PER_NODE
from core.planning.form.links import link_texts
from core.planning.form.plan_form import (
    ACCELERATOR,
    COUNT,
    FIND,
    MODEL_NAME,
    PARAMETERS,
    PRICE,
    SEQ_LEN,
    SHAPE,
    SPOT_INTERRUPTIONS,
    TRAINED,
    changes_on,
    plan_as_given,
)
from core.planning.form.whole_run import OWN_DEADLINE
from core.planning.plan import OWN_SHAPE, TYPED, Plan
from core.suggest import suggestions
from core.units import QuantityError, format_count, parse_quantity
from core.wording import cleaned, listed

CALENDAR, RUNS = "calendar", "runs"
"""Parts of the form: the fleet's days, and the runs."""

FIRST = "the start"
"""Of a run that waits for no other."""

_EVERY = range(1, limit("calendar_runs") + 1)


def _due(text: str) -> date | float:
    """The day of a deadline, or days from the start on."""
    if is_day(text) or not text.strip()[:1].isdigit():
        return parse_day(text)
    if not text.strip()[-1].isalpha():
        raise QuantityError(f"“{text.strip()}” has no unit. Did you mean {text.strip()} days?")
    return parse_quantity(text, "seconds", low=86400.0, high=3e9, example="2027-10-14 or 90 days") / 86400


START = Field(
    "start",
    "Start",
    "2027-01-15",
    parse_day,
    part=CALENDAR,
    help="The first day of the fleet, from its midnight on. All days are in UTC.",
)
DUE = optional(
    OWN_DEADLINE,
    "Deadline",
    _due,
    nothing=None,
    placeholder="none",
    part=CALENDAR,
    help="The day by whose end the last run has to be done, such as 2027-10-14; or 90 days from the start. Empty: the "
    "plan’s deadline.",
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
POOLS = Field(
    "pools",
    "Additional pools (one per line)",
    "",
    parse_pools,
    "lines",
    part=CALENDAR,
    placeholder="\n".join(EXAMPLES),
    max_chars=limit("spec_chars"),
    omit_if_empty=True,
    help="How many accelerators, which, and whether they are owned, rented, reserved, or spot. There are no more than "
    "the number, unless you write **at least**. Optional, in any order: a name and a colon first, **$2.60/h**, "
    "**$30,000 over 4 years** for each that is owned, **idle $0.40/h**, **8 per node**, **from** and **to** a day, "
    "**for 90 days**, **2 spare nodes**, **64 out from 2027-05-01 to 2027-05-03**, **0.05 interruptions/h**, **in** a "
    "place. A run uses one pool.",
)
MOST = replace(
    optional(
        "most",
        "Budget ($)",
        lambda text: parse_quantity(text, "usd", low=1.0, high=float(limit("dollars")), example="$12M"),
        nothing=math.nan,
        placeholder="any",
        part=CALENDAR,
        help="What the plan may cost on the pool that it runs on, such as $12M. Empty: the plan’s budget.",
    ),
    omit_if_empty=True,
)
CLUSTER_POOL = replace(
    optional(
        "cpool",
        "Pool of the plan’s cluster",
        lambda text: _name(text),
        nothing="",
        placeholder="none",
        part=CALENDAR,
        help="The pool that the accelerators in the sidebar belong to. They then have its days and terms, and "
        "are counted once. Empty: they belong to no pool.",
    ),
    omit_if_empty=True,
)
COUNTED = slider("runs", "Runs", 1, limit("calendar_runs"), 1, part=RUNS)

Model: TypeAlias = Mapping[str, Any]
"""What of a plan its model sets: a name of the catalogue, a number of parameters, or an own shape."""

Share: TypeAlias = tuple[Literal["count", "share"], float]
"""Accelerators of a run: so many, or a share of those that runs may take."""


def _name(text: str) -> str:
    """A run's name on one line."""
    return cleaned(" ".join(text.split()), limit("run_name"))


def shape_text(text: str) -> str:
    """An own shape as text, of such a text or of a config.json. Raises `QuantityError` where it is neither, and for a
    config.json with keys that may change the count."""
    if text.startswith("{"):
        config = read_config(text)
        if config.spec is None or not config.clean:
            raise QuantityError(config.text.replace("**", "").removesuffix(" The shape stays as it was."))
        return write_spec(config.spec)
    read_model(text)
    return text


def _model(text: str) -> Model:
    stripped = text.strip()
    if "=" in stripped or stripped.startswith("{"):
        return {"model": OWN_SHAPE, "shape": shape_text(stripped)}
    names = {m.name.lower(): m.name for m in catalog()}
    if stripped.lower() in names:
        return {"model": names[stripped.lower()]}
    try:
        count = parse_quantity(stripped, "parameters", low=1, high=limit("parameters"), whole=True, example="8B")
    except QuantityError as problem:
        if stripped[:1].isdigit() or stripped[:1] in "-+.":
            raise
        close = suggestions(stripped, list(names.values()))
        meant = f" Did you mean {' or '.join(close)}?" if close else ""
        raise QuantityError(
            f"“{stripped[: limit('number_chars')]}” is neither a model of the catalogue, nor a number of parameters, "
            f"such as 8B, nor a shape, such as {EXAMPLE}.{meant}"
        ) from problem
    return {"model": TYPED, "parameters": count}


def _share(text: str) -> Share:
    if text.strip().endswith("%"):
        return "share", parse_quantity(text, "ratio", low=0.0001, high=1.0, example="50%")
    high = limit("accelerators")
    return "count", parse_quantity(text, "accelerators", low=1, high=high, whole=True, example="512 or 50%")


def _tokens(text: str) -> float:
    return parse_quantity(text, "tokens", low=1, high=limit("tokens"), whole=True, example="800B")


def _length(text: str) -> float:
    return parse_quantity(text, "length", low=1, high=limit("model_dimension"), whole=True, example="131,072 or 128k")


def _run(k: int) -> dict[str, Field]:
    """The fields of the run ``k``, by what they are."""

    def field(letter: str, label: str, read: Any, placeholder: str, help: str) -> Field:
        about = f"Run {k}, {label}"
        return optional(f"r{k}{letter}", about, read, nothing=None, placeholder=placeholder, part=RUNS, help=help)

    return {
        "name": field("n", "name", _name, f"Run {k}", ""),
        "model": replace(
            field(
                "m",
                "model",
                _model,
                "the plan’s",
                "A model of the catalogue, parameters such as 8B, or a shape of its own: its config.json, or text such "
                f"as {EXAMPLE}. Empty: the plan’s.",
            ),
            max_chars=limit("config_chars"),
        ),
        "tokens": field("t", "tokens", _tokens, "the plan’s", "Empty: the plan’s."),
        "seq": field("s", "sequence", _length, "the plan’s", f"{message('quantity.lengths')} Empty: the plan’s."),
        "count": field("c", "how many", _share, "all", "So many, or a share of the fleet without its spares: 50%."),
        "after": choice(
            f"r{k}a",
            f"Run {k}, waits for",
            (FIRST, *(f"run {other}" for other in _EVERY)),
            FIRST,
            part=RUNS,
            help="Runs that wait for the start go beside each other where the fleet has room for all of them; a later "
            "row waits where it has not.",
        ),
        "earliest": field("d", "not before", parse_day, "any day", "The first day on which it may start."),
        "pool": replace(
            field("p", "pool", _name, "the plan’s", "A run uses one pool: no job mixes accelerators of two."),
            omit_if_empty=True,
        ),
    }


RUN_FIELDS = {k: _run(k) for k in _EVERY}
"""Number of a run → its fields by what they are."""

CALENDAR_FIELDS: tuple[Field, ...] = (
    START,
    DUE,
    SPARE,
    CLOSED,
    MONTHLY,
    POOLS,
    CLUSTER_POOL,
    MOST,
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
    """What the values of a form over the plan's fields and `CALENDAR_FIELDS` describe. Raises `BudgetError` for a run
    on a pool that is none."""
    v: Mapping[str, Any] = reading.values
    plan = plan_as_given(reading)
    count, spares = int(plan.accelerators), int(v[SPARE.id]) * plan.device.node_size
    pools = v[POOLS.id].pools(max(1, count - spares), v[START.id])
    fleet = Fleet(
        accelerator=plan.accelerator,
        accelerators=count,
        spares=spares,
        closed=v[CLOSED.id],
        monthly_hours=v[MONTHLY.id],
        pools=pools,
        source=_source(plan, pool_named(pools, v[CLUSTER_POOL.id])) if _on_cluster(v) else None,
    )
    runs: list[Run] = []
    for k in range(1, v[COUNTED.id] + 1):
        given = {name: v[field.id] for name, field in RUN_FIELDS[k].items()}
        name = given["name"] or f"Run {k}"
        pool = _pool_of(given["pool"], fleet, f"Run {k}, “{name}”,") if given["pool"] else None
        usable = pool.usable if pool else fleet.usable
        own: dict[str, Any] = {"accelerators": float(_accelerators_taken(given["count"], usable))}
        own |= given["model"] or {}
        own |= {name: given[name] for name in ("tokens",) if given[name] is not None}
        own |= {"seq_len": int(given["seq"])} if given["seq"] is not None else {}
        after = None if given["after"] == FIRST else int(given["after"].removeprefix("run ")) - 1
        here = replace(plan, **own)
        runs.append(Run(name, plan_on(pool, here) if pool else here, after, given["earliest"], pool))
    due: date | float | None = v[DUE.id]
    if due is None and not math.isnan(plan.limits.days):
        due = plan.limits.days
    last = due if due is None or isinstance(due, date) else last_day(v[START.id], due)
    return CalendarRequest(fleet, tuple(runs), v[START.id], last)


def _accelerators_taken(share: Share | None, usable: int) -> int:
    """Accelerators of a run; never less than one, so that a fleet without any is said of the fleet."""
    if share is None:
        return max(1, usable)
    kind, value = share
    return int(value) if kind == "count" else max(1, int(value * usable + 1e-9))


def pool_named(pools: Iterable[Pool], name: str) -> Pool | None:
    """The pool of this name, whatever its case."""
    return next((pool for pool in pools if pool.name.casefold() == name.strip().casefold()), None)


def _source(plan: Plan, pool: Pool | None) -> Pool | None:
    """The pool that the plan's cluster is part of: one on which the plan is as it is, with enough accelerators."""
    return pool if pool and plan.accelerators <= pool.most and plan_on(pool, plan) == plan else None


def _on_cluster(values: Mapping[str, Any]) -> bool:
    """Whether a run names no pool."""
    return not all(values[RUN_FIELDS[k]["pool"].id] for k in range(1, values[COUNTED.id] + 1))


def _pool_of(name: str, fleet: Fleet, run: str) -> Pool | None:
    """The pool that a run names; None for the plan's own cluster, also where that is all of the pool."""
    pool = pool_named(fleet.others, name)
    if pool or name.casefold() == OWN_CLUSTER or (fleet.source and pool_named([fleet.source], name)):
        return pool
    names = [pool.name for pool in fleet.pools]
    close = suggestions(name, names)
    meant = f" Did you mean {' or '.join(close)}?" if close else ""
    there = listed([f"“{name}”" for name in names]) if names else "none"
    raise BudgetError("pool", f"{run} is on the pool “{name}”, and the pools are {there}.{meant}")


def texts_of(reading: ParsedForm, run: Run) -> dict[str, str]:
    """The plan of one run as texts of a plan's fields, for a link to a page about one plan."""
    plan = run.plan
    return link_texts(
        dict(reading.texts)
        | (pool_texts(run.pool, reading.values[ACCELERATOR.id]) if run.pool else {})
        | {
            FIND.id: "time",
            MODEL_NAME.id: plan.model,
            SHAPE.id: plan.shape,
            PARAMETERS.id: f"{plan.parameters:,.0f}",
            TRAINED.id: f"{plan.tokens:,.0f}",
            SEQ_LEN.id: f"{plan.seq_len:,}",
            COUNT.id: f"{plan.accelerators:,.0f}",
        }
    )


def pool_texts(pool: Pool, accelerator: str, owned_price: float = 0.0) -> dict[str, str]:
    """What `plan_on` changes of a plan, as texts of its fields. accelerator: the plan's own. owned_price: dollars that
    an accelerator-hour of an owned pool comes to, where that is asked."""
    price = "-".join(f"{price:g}" for price in dict.fromkeys(pool.prices or ()))
    if pool.holding == "owned":
        price = "0" if math.isnan(owned_price) else f"{owned_price:.4g}"
    taken = f"{pool.interruptions:g}" if pool.interruptions else ""
    node = {PER_NODE.id: f"{pool.per_node}"} if pool.per_node else {}
    return changes_on(
        accelerator, {ACCELERATOR.id: pool.accelerator, PRICE.id: price, SPOT_INTERRUPTIONS.id: taken, **node}
    )


def described(run: Run) -> str:
    """What a run trains: ``Llama 3.1 405B, 15.6T tokens of 8,192``."""
    plan = run.plan
    shape = plan.catalog_model if plan.model == OWN_SHAPE else None
    size = f"{format_count(plan.parameters)} parameters" if plan.model == TYPED else plan.model
    size = f"{shape.name} ({shape.sized})" if shape else size
    return f"{size}, {format_count(plan.tokens)} tokens at {plan.seq_len:,}"


def not_before(run: Run) -> str:
    """The first day on which a run may start; empty where any is."""
    return format_day(run.earliest) if run.earliest else ""
