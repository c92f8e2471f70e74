"""The last measurement of each kind on each device, as one JSON file in the data folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json

from core.benchmark.record import Record
from core.limits import cached, limit
from core.messages import message
from core.store.locations import data_folder

_RECORDS: TypeAdapter[tuple[Record, ...]] = TypeAdapter(tuple[Record, ...])


def last_measured() -> tuple[tuple[Record, ...], str]:
    """Return the saved measurements, the newest first, and the error if the file cannot be read."""
    try:
        return _read(_path().read_bytes()), ""
    except FileNotFoundError:
        return (), ""
    except (OSError, ValueError, TypeError, LookupError):
        return (), message("measure.unreadable")


def keep(record: Record) -> None:
    """Keep an ended measurement, and no older one whose device and kinds newer ones all have. Raises `OSError`."""
    result = [record]
    covered = _kinds(record)
    for old in last_measured()[0]:
        if not _kinds(old) <= covered:
            result.append(old)
            covered |= _kinds(old)
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_suffix(f".{os.getpid()}")
    part.write_bytes(_RECORDS.dump_json(tuple(result[: limit("measurements_kept")])))
    part.replace(path)


def _path() -> Path:
    return data_folder() / "measured.json"


@cached("large_results_kept")
def _read(data: bytes) -> tuple[Record, ...]:
    records: Any = from_json(data)
    for record in records if _GONE.encode() in data else ():
        record["programme"]["kinds"] = [kind for kind in record["programme"]["kinds"] if kind != _GONE]
        record["outcomes"] = [one for one in record["outcomes"] if one["item"]["kind"] != _GONE]
    return _RECORDS.validate_json(json.dumps(records))


_GONE = "operations"
"""A kind that files of before may have, and that is measured no more."""


def _kinds(record: Record) -> set[tuple[str, str, bool]]:
    device = record.facts.name if record.facts else ""
    return {(device, point.item.kind, bool(record.in_use)) for point in record.points}
