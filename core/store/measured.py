"""Rows of the database as measurements. As with plans a row is untrusted: what cannot be read of it is said, never
raised."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from core.benchmark.device import Machine
from core.benchmark.points import Outcome, clip
from core.benchmark.record import Record
from core.fields import quoted
from core.limits import limit
from core.store.rows import LAST, Moment, RowText, moment, read_cells
from core.wording import cleaned, plural

LOST_S = 60
"""A measurement that nobody has written of for so long is lost: whoever measures says so every few seconds."""

_OUTCOME: TypeAdapter[Outcome] = TypeAdapter(Outcome)
_OPEN = ("queued", "running")


@dataclass(frozen=True, slots=True)
class StoredMeasurement:
    """A measurement as the database has it.

    record: None where it cannot be read. owner: who started it; empty without sign-in. server: the machine's name, of
    an imported one empty. kept: when it came into this database, in UTC. problems: what could not be read.
    """

    id: str
    record: Record | None
    owner: str
    server: str
    kept: datetime
    problems: tuple[str, ...] = ()


def seen_from(measurement: StoredMeasurement, here: Machine, node: str) -> Record | None:
    """The record as this machine, named ``node``, shows it. What another server of the database has measured, on a
    device that is not here, has that server as its origin."""
    record = measurement.record
    if record is None or record.origin is not None or record.facts is None or measurement.server in ("", node):
        return record
    if here.has(record.programme.device, record.facts.name):
        return record
    return record.model_copy(update={"origin": clip(measurement.server, limit("measure_name_chars"))})


@dataclass(frozen=True, slots=True)
class History:
    """A page of measurements, newest first, and how many there are in all."""

    measurements: tuple[StoredMeasurement, ...]
    total: int


class _MeasurementRow(BaseModel):
    """A row of measurements, of which ``head`` is read apart. The defaults stand in for what cannot be read."""

    id: RowText = ""
    owner: RowText = ""
    server: RowText = ""
    kept: Moment = 0
    beat: Moment = 0


def columns(record: Record) -> dict[str, Any]:
    """A measurement as columns of its row; ``head`` is all of it but its results."""
    return {
        "stage": record.stage,
        "imported": int(record.origin is not None),
        "started": min(int(record.started * 1e6), LAST),
        "kind": record.programme.device,
        "device": device_of(record),
        "head": json.dumps(record.model_copy(update={"outcomes": ()}).model_dump(mode="json"), allow_nan=False),
    }


def device_of(record: Record) -> str:
    """The device's name as measurements are found by it; empty where the process has not said it."""
    return cleaned(record.facts.name, limit("measure_text_chars")) if record.facts else ""


def outcome_text(outcome: Outcome) -> str:
    """A result as it is kept: JSON in ASCII, which any database carries."""
    return json.dumps(outcome.model_dump(mode="json"), allow_nan=False)


def read_kept(row: Mapping[str, Any], outcomes: Iterable[object], now: int) -> StoredMeasurement:
    """The measurement of a row of measurements and its cells of measurement_points, in order. now: microseconds since
    1970; one that runs and was not heard of for `LOST_S` is lost."""
    cells, bad = read_cells(_MeasurementRow, row)
    problems = [f"Of the row, {quoted(bad)} cannot be read."] if bad else []
    try:
        record = Record.model_validate_json(_text(row.get("head")))
    except ValidationError:
        record = None
    if record is None or record.id != cells.id:
        return StoredMeasurement(
            cells.id, None, cells.owner, cells.server, moment(cells.kept), (*problems, _UNREADABLE)
        )
    result: list[Outcome] = []
    unread = 0
    for cell in outcomes:
        try:
            result.append(_OUTCOME.validate_json(_text(cell)))
        except ValidationError:
            unread += 1
    if unread:
        problems.append(f"{unread} of its results cannot be read and {'is' if unread == 1 else 'are'} left out.")
    record = record.model_copy(update={"outcomes": tuple(result[: limit("measure_outcomes")])})
    if record.stage in _OPEN and now - cells.beat > LOST_S * 1_000_000:
        record = _lost(record)
    return StoredMeasurement(
        cells.id,
        record,
        cleaned(cells.owner, limit("plan_owner")),
        cleaned(cells.server, limit("plan_owner")),
        moment(cells.kept),
        tuple(problems),
    )


def _lost(record: Record) -> Record:
    """A measurement whose server has ended without a word."""
    n = len(record.outcomes)
    after = (
        f"after {n:,} {plural(n, 'result')}, which {'is' if n == 1 else 'are'} kept" if n else "without a result yet"
    )
    text = f"The server that ran it ended, or lost its database, {after}."
    return record.model_copy(update={"stage": "lost", "message": text})


_UNREADABLE = (
    "This measurement cannot be read: its row is damaged, or was written by a newer Napkin. It can only be removed."
)


def _text(cell: object) -> str:
    """A cell that should hold a text; what holds something else reads as none."""
    return cell if isinstance(cell, str) else ""
