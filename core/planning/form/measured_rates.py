"""A plan that uses what a measurement found: the texts of its fields, for a link to a page about a plan."""

from __future__ import annotations

from datetime import UTC, datetime

from core.benchmark.datasheet import datasheet_of
from core.benchmark.rates import measured_rates
from core.benchmark.record import Record
from core.planning.form.plan_form import ACCELERATOR
from core.planning.form.whole_run import ORIGIN, RATE_FIELDS, origin_text
from core.planning.measured import KIND_OF
from core.units import format_quantity


def with_measured_rates(record: Record) -> dict[str, str]:
    """Return the rates of ``record`` as texts of a plan's fields by id, with its accelerator if one catalog row is this
    device.

    Empty if the record has no rate, the device was in use, or it is a slice of a GPU. The texts are values instead of
    the measurement's name, so that they mean the same on every server.
    """
    rates, sheet = measured_rates(record).rates.known, datasheet_of(record)
    if record.in_use or not rates or sheet.is_slice:
        return {}
    texts: dict[str, str] = {}
    for name, rate in rates:
        texts[RATE_FIELDS[name].id] = format_quantity(rate, KIND_OF[name])
    day = datetime.fromtimestamp(record.started, UTC)
    texts[ORIGIN.id] = origin_text(record.facts.name if record.facts else "", f"{day.day} {day:%b %Y}")
    if len(sheet.rows) == 1:
        texts[ACCELERATOR.id] = sheet.rows[0].name
    return texts
