"""A measurement as a file: written for another Napkin, and read from a stranger without believing it."""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

from pydantic import ValidationError

from core.benchmark.record import Record
from core.fields import quoted
from core.limits import limit
from core.models.configs.json_text import ConfigError, read_object
from core.wording import cleaned

_FORMAT: str = Record.model_fields["format"].default
_VERSION: int = Record.model_fields["version"].default


def written(record: Record) -> str:
    """``record`` as the text of a file, which `read_record` reads."""
    return json.dumps(record.model_dump(mode="json"), allow_nan=False, ensure_ascii=False, indent=1) + "\n"


def read_record(data: bytes, name: str = "") -> Record:
    """The measurement in a file, with its origin: ``name``, that of the file.

    Its id is made from all else that it says: what comes twice is one measurement, and what names the id of another
    does not take its place.
    One that was not over when the file was written never will be: it is lost, with what it has. Characters that cannot
    be shown, or that turn the direction of writing, are left out of its texts. Raises ``ValueError`` for anything that
    is no measurement.
    """
    most = limit("upload_bytes")
    if len(data) > most:
        raise ValueError(f"The file has {len(data):,} bytes; a measurement has at most {most:,}.")
    try:
        return _arrived(_checked(read_object(data.decode("utf-8-sig"), "measurement", most)), name)
    except UnicodeDecodeError:
        raise ValueError("This is no measurement: the file is no text in UTF-8.") from None
    except ValidationError as problem:
        raise ValueError(_misfits(problem)) from None
    except ConfigError as problem:
        field = f"{quoted([cleaned(problem.field, 40)])}: " if problem.field else ""
        raise ValueError(f"This is no measurement: {field}{problem.rule}") from None


def _checked(document: dict[str, Any]) -> Record:
    """What a file says, as a measurement; raises ``ValueError`` for anything else."""
    if document.get("format") != _FORMAT:
        raise ValueError(f"This is no measurement of Napkin: such a file says “format”: “{_FORMAT}”.")
    version = document.get("version")
    if isinstance(version, int) and version > _VERSION:
        raise ValueError(
            f"It was written by a newer Napkin (version {version} of the format; this one reads up to {_VERSION})."
        )
    outcomes = document.get("outcomes")
    if isinstance(outcomes, list) and len(cast("list[Any]", outcomes)) > limit("measure_outcomes"):
        # Before each of them is looked at, which takes a second for a hundred thousand.
        raise ValueError(f"This is no measurement: it has more than {limit('measure_outcomes')} “outcomes”.")
    # Through JSON once more: to a strict model a list is no tuple, and a JSON array is one.
    return Record.model_validate_json(json.dumps(_shown(document)))


def _arrived(record: Record, name: str) -> Record:
    """A measurement of elsewhere, as one that is here now."""
    origin = cleaned(name, limit("measure_name_chars")) or "a file"
    text = record.model_dump_json(exclude={"id", "origin"})
    now: dict[str, object] = {"id": hashlib.sha256(text.encode()).hexdigest()[:12], "origin": origin}
    if record.stage in ("queued", "running"):
        why = "It still ran when its file was written: what came later is not in it."
        now |= {"stage": "lost", "message": why}
    return record.model_copy(update=now)


def _misfits(problem: ValidationError) -> str:
    """Which fields of a file do not fit, as somebody finds them in it."""
    errors = problem.errors(include_url=False, include_context=False, include_input=False)
    # The place in a result begins with its number and the kind of result that it is read as.
    places = [loc[:2] + loc[3:] if loc[0] == "outcomes" else loc for loc in (error["loc"] for error in errors)]
    named = dict.fromkeys(".".join(map(str, place)) for place in places)
    return (
        "This is no measurement: of its fields, these are missing, unknown or out of range: "
        f"{quoted([cleaned(name, 80) for name in named])}."
    )


def _shown(value: Any) -> Any:
    """A value of JSON whose texts can all be shown."""
    if isinstance(value, str):
        return cleaned(value, len(value), lines=True)
    if isinstance(value, list):
        return [_shown(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _shown(item) for key, item in cast("dict[str, Any]", value).items()}
    return value
