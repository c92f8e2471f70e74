"""A measurement as a file: written for another Napkin, and read from a stranger without believing it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NoReturn, cast
from uuid import uuid4

from pydantic import ValidationError

from core.fields import quoted
from core.limits import limit
from core.measure.record import Record
from core.wording import cleaned

_FORMAT: str = Record.model_fields["format"].default
_VERSION: int = Record.model_fields["version"].default


def written(record: Record) -> str:
    """``record`` as the text of a file, which `read_record` reads."""
    return json.dumps(record.model_dump(mode="json"), allow_nan=False, ensure_ascii=False, indent=1) + "\n"


def read_record(data: bytes, name: str = "") -> Record:
    """The measurement in a file, under a new id and with its origin: ``name``, that of the file.

    One that was not over when the file was written never will be: it is lost, with what it has. Characters that cannot
    be shown, or that turn the direction of writing, are left out of its texts. Raises ``ValueError`` for anything that
    is no measurement.
    """
    most = limit("upload_bytes")
    if len(data) > most:
        raise ValueError(f"The file has {len(data):,} bytes; a measurement has at most {most:,}.")
    try:
        said: object = json.loads(
            data.decode("utf-8-sig"), parse_constant=_no_constant, parse_int=_whole, object_pairs_hook=_unique
        )
        return _arrived(_checked(said), name)
    except RecursionError:
        raise ValueError("This is no measurement: its brackets are nested too deep.") from None
    except UnicodeDecodeError:
        raise ValueError("This is no measurement: the file is no text in UTF-8.") from None
    except json.JSONDecodeError as problem:
        raise ValueError(f"This is no JSON: {problem.msg} at line {problem.lineno}.") from None
    except ValidationError as problem:
        raise ValueError(_misfits(problem)) from None


def _checked(said: object) -> Record:
    """What a file says, as a measurement; raises ``ValueError`` for anything else."""
    if not isinstance(said, dict) or cast("dict[str, Any]", said).get("format") != _FORMAT:
        raise ValueError(f"This is no measurement of Napkin: such a file says “format”: “{_FORMAT}”.")
    told = cast("dict[str, Any]", said)
    version = told.get("version")
    if isinstance(version, int) and version > _VERSION:
        raise ValueError(
            f"It was written by a newer Napkin (version {version} of the format; this one reads up to {_VERSION})."
        )
    outcomes = told.get("outcomes")
    if isinstance(outcomes, list) and len(cast("list[Any]", outcomes)) > limit("measure_outcomes"):
        # Before each of them is looked at, which takes a second for a hundred thousand.
        raise ValueError(f"This is no measurement: it has more than {limit('measure_outcomes')} “outcomes”.")
    # Through JSON once more: to a strict model a list is no tuple, and a JSON array is one.
    return Record.model_validate_json(json.dumps(_shown(told)))


def _arrived(record: Record, name: str) -> Record:
    """A measurement of elsewhere, as one that is here now."""
    origin = cleaned(name, limit("measure_name_chars")) or "a file"
    now: dict[str, object] = {"id": uuid4().hex[:12], "origin": origin}
    if record.stage in ("queued", "running"):
        said = "It still ran when its file was written: what came later is not in it."
        now |= {"stage": "lost", "message": said}
    return record.model_copy(update=now)


def _misfits(problem: ValidationError) -> str:
    """Which fields of a file do not fit, as somebody finds them in it."""
    errors = problem.errors(include_url=False, include_context=False, include_input=False)
    if any(one["type"] == "json_invalid" for one in errors):
        return "This is no measurement: its brackets are nested too deep."
    places = [one["loc"] for one in errors]
    # A result is tried as each kind of result, named after its number; it is meant as the one that it misses by least.
    tried = Counter(place[:3] for place in places if _is_tried(place))
    meant = {kind[:2]: kind for kind, _ in tried.most_common()}
    named: dict[str, None] = {}
    for place in places:
        if not _is_tried(place):
            named[".".join(map(str, place))] = None
        elif meant[place[:2]] == place[:3]:
            named[".".join(map(str, place[:2] + place[3:]))] = None
    return (
        "This is no measurement: of its fields, these are missing, unknown or out of range: "
        f"{quoted([cleaned(name, 80) for name in named])}."
    )


def _is_tried(place: tuple[int | str, ...]) -> bool:
    return len(place) > 2 and place[0] == "outcomes"


def _shown(value: Any) -> Any:
    """A value of JSON whose texts can all be shown."""
    if isinstance(value, str):
        return cleaned(value, len(value), lines=True)
    if isinstance(value, list):
        return [_shown(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _shown(one) for key, one in cast("dict[str, Any]", value).items()}
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"This is no measurement: {quoted([cleaned(twice, 40)])} stands in it twice.")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"This is no measurement: {name} is no JSON number.")


def _whole(digits: str) -> int:
    if len(digits) > limit("number_chars"):
        raise ValueError(f"This is no measurement: it has a number of {len(digits):,} digits.")
    return int(digits)
