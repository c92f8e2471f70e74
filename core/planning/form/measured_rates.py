"""A plan that uses what a measurement found: the texts of its fields, for a link to a page about a plan."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime

from core.benchmark.collectives import Collectives
from core.benchmark.datasheet import datasheet_of
from core.benchmark.rates import measured_rates
from core.benchmark.record import Record
from core.hardware.accelerators import find
from core.hardware.cluster import cluster
from core.planning.form.plan_form import ACCELERATOR
from core.planning.form.rates import ORIGIN, RATE_FIELDS, origin_text
from core.planning.rates import KIND_OF, network_known, rows_of
from core.units import format_quantity


def with_measured_rates(record: Record) -> dict[str, str]:
    """The rates of ``record`` as texts of a plan's fields by id, with its accelerator where one row of the catalogue
    is this device; nothing where it gives no rate.

    Values and not the measurement's name: the texts mean the same where nobody has it.
    """
    rates = measured_rates(record)
    if not rates.rates.known:
        return {}
    texts: dict[str, str] = {}
    for name, rate in rates.rates.known:
        texts[RATE_FIELDS[name].id] = format_quantity(rate, KIND_OF[name])
    texts[ORIGIN.id] = origin_text(rates.device, _day(datetime.fromtimestamp(rates.started, UTC)))
    rows = datasheet_of(record).rows
    if len(rows) == 1:
        texts[ACCELERATOR.id] = rows[0].name
    return texts


def with_measured_links(result: Collectives, record: Record | None = None) -> dict[str, str]:
    """The links of measured collectives as texts of a plan's fields, likewise; with the rates of ``record`` where it is
    of the same device. Nothing where they were measured between different devices."""
    rates = result.link_rates.known
    if not rates or len(result.devices) != 1:
        return {}
    (device,) = result.devices
    alike = record is not None and record.facts is not None and record.facts.name == device
    texts = {
        ORIGIN.id: origin_text(device, _day(result.day)),
        **(with_measured_rates(record) if record is not None and alike else {}),
    }
    if len(rows := rows_of(device)) == 1:
        texts[ACCELERATOR.id] = rows[0]
    return texts | {RATE_FIELDS[name].id: format_quantity(rate, KIND_OF[name]) for name, rate in rates}


def promised(result: Collectives) -> float:
    """Bytes per second one way that datasheets say of the links which measured collectives passed; NaN when unknown.

    Over several nodes all ranks of one have its network together.
    """
    rows = {row for device in result.devices for row in rows_of(device)}
    if not all(rows_of(device) for device in result.devices):
        return math.nan
    values: set[float] = set()
    for row in rows:
        here = cluster(find(row), 1)
        far = network_known(here) * result.ranks_per_node
        values.add(here.link_inside if result.nodes == 1 else min(here.link_inside, far))
    return values.pop() if len(values) == 1 else math.nan


def _day(moment: date) -> str:
    return f"{moment.day} {moment:%b %Y}"


def named(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """The rates among such texts, by what a plan calls them."""
    return [
        (field.label.removeprefix("Measured, "), texts[field.id]) for field in RATE_FIELDS.values() if field.id in texts
    ]
