"""Results of measuring collectives: read from a stranger's file, written whole or not at all, and their rates."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from core.limits import limit
from core.measure.collectives.formulas import algorithm_bandwidth, bus_bandwidth
from core.measure.collectives.spec import OPERATIONS
from core.measure.points import clip

if TYPE_CHECKING:
    from core.measure.collectives.result_fields import PointFields, ResultFields


_NONE = "The file is no result of measuring collectives"


class ResultError(ValueError):
    """A file that is no result of measuring collectives; the message says why."""


def algorithm_rate(point: PointFields) -> float:
    """Bytes of the message over its median time, per second."""
    return algorithm_bandwidth(point.bytes, point.median_s)


def bus_rate(result: ResultFields, point: PointFields, seconds: float | None = None) -> float:
    """Bus bandwidth of a point in bytes per second, one way, at its median time or at ``seconds``."""
    rate = algorithm_bandwidth(point.bytes, seconds or point.median_s)
    times = OPERATIONS[point.operation].times
    return bus_bandwidth(times, result.world_size, rate) if times else rate


def link_bandwidth(result: ResultFields) -> float:
    """What a link carries one way, in bytes per second: bus bandwidth of the largest all-reduce; NaN without one."""
    points = [point for point in result.points if point.operation == "all-reduce"]
    return bus_rate(result, max(points, key=lambda point: point.bytes)) if points else math.nan


def shown(text: str) -> str:
    """A library's words on one line, without characters that cannot be shown, as long as a result may have them."""
    plain = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
    return clip(plain, limit("collective_text_chars"))


def write_result(result: ResultFields, path: Path) -> None:
    """Write it whole or not at all; raises ``OSError`` where that cannot be."""
    torn = path.with_name(f"{path.name}.part")
    torn.write_text(result.model_dump_json(indent=1) + "\n", encoding="utf-8")
    os.replace(torn, path)


def read_result(data: bytes) -> ResultFields:
    """The result in a file. Raises `ResultError`, a ``ValueError``, for whatever is none, and nothing else.

    Beside what the fields allow, a key may stand once and a number must be finite, which JSON readers do not ask for.
    """
    from pydantic import ValidationError

    from core.measure.collectives.result_fields import FORMAT, VERSION, ResultFields

    most = limit("upload_bytes")
    if len(data) > most:
        raise ResultError(f"The file has {len(data):,} bytes; a result of measuring collectives has at most {most:,}.")
    try:
        found: Any = json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except ResultError:
        raise
    except UnicodeDecodeError:
        raise ResultError("The file is no text in UTF-8. A result of measuring collectives is JSON.") from None
    except RecursionError:
        raise ResultError("The file is nested deeper than any result of measuring collectives.") from None
    except ValueError as problem:
        raise ResultError(f"The file is no JSON: {clip(str(problem), 100)}.") from None
    values = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    if values.get("format") != FORMAT:
        raise ResultError(f"{_NONE}: its “format” is not “{FORMAT}”.")
    version = values.get("version")
    if version != VERSION or version is True:
        said = clip(json.dumps(version), 20)
        raise ResultError(f"The file has version {said} of its format; this Napkin reads version {VERSION}.")
    try:
        return ResultFields.model_validate_json(data)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        place = clip(shown(".".join(map(str, first["loc"]))), 60)
        why = first["msg"].removeprefix("Value error, ")
        raise ResultError(f"{_NONE}: {f'“{place}”, ' if place else ''}{why[:1].lower()}{why[1:]}.") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise ResultError(f"The file has “{clip(shown(twice), 60)}” twice in one place.")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ResultError(f"The file has {name}, which is no number.")
