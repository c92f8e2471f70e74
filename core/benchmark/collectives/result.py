"""Results of measuring collectives: read from a stranger's file, written whole or not at all, and their rates."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from core.benchmark.best import WIDE
from core.benchmark.collectives.formulas import algorithm_bandwidth, bus_bandwidth
from core.benchmark.collectives.spec import OPERATIONS, Name
from core.benchmark.file import read_object
from core.benchmark.points import clip
from core.hardware.rates import Rates
from core.limits import limit

if TYPE_CHECKING:
    from core.benchmark.collectives.result_fields import PointFields, ResultFields


_NONE = "The file is no result of measuring collectives"


def algorithm_rate(point: PointFields) -> float:
    """Bytes of the message over its median time, per second."""
    return algorithm_bandwidth(point.bytes, point.median_s)


def bus_rate(result: ResultFields, point: PointFields, seconds: float | None = None) -> float:
    """Bus bandwidth of a point in bytes per second, one way, at its median time or at ``seconds``."""
    rate = algorithm_bandwidth(point.bytes, seconds or point.median_s)
    times = OPERATIONS[point.operation].times
    return bus_bandwidth(times, result.world_size, rate) if times else rate


LINK_BYTES = 64 * 2**20
"""A smaller message takes its time to begin rather than to pass."""

_SUMS: tuple[Name, ...] = ("all-reduce", "all-gather", "reduce-scatter")


def link_rates(result: ResultFields) -> Rates:
    """What collectives reach on one rank's links, one way: inside a node where all ranks are on one, else on its share
    of the network, which the ranks of a node have together; nothing where large messages were not measured, or spread
    widely.

    It is the slowest of all-reduce, all-gather and reduce-scatter at the largest message: which of them a training step
    waits for depends on its layout.
    """
    slowest = link_point(result)
    if slowest is None:
        return Rates()
    rate = bus_rate(result, slowest)
    return Rates(inside=rate) if result.nodes == 1 else Rates(between=rate / result.ranks_per_node)


def link_point(result: ResultFields) -> PointFields | None:
    """The point that `link_rates` are of; None where they are of nothing."""
    largest = [max(points, key=lambda point: point.bytes) for name in _SUMS if (points := points_of(result, name))]
    if not largest or any(wide(point) or point.bytes < LINK_BYTES for point in largest):
        return None
    return min(largest, key=lambda point: bus_rate(result, point))


def points_of(result: ResultFields, name: Name) -> tuple[PointFields, ...]:
    """What was measured of one operation."""
    return tuple(point for point in result.points if point.operation == name)


def wide(point: PointFields) -> bool:
    """Whether its runs spread so widely that something else probably used the links."""
    return point.p90_s >= WIDE * point.p10_s


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
    """The result in a file. Raises ``ValueError`` for whatever is none, and nothing else."""
    from pydantic import ValidationError

    from core.benchmark.collectives.result_fields import FORMAT, VERSION, ResultFields

    values = read_object(data, "result of measuring collectives", FORMAT)
    version: object = values.get("version")
    if version != VERSION or isinstance(version, bool):
        text = f"version {clip(shown(str(version)), 20)}" if isinstance(version, int | str) else "no version"
        raise ValueError(f"The file has {text} of its format; this Napkin reads version {VERSION}.")
    try:
        return ResultFields.model_validate_json(data)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        place = clip(shown(".".join(map(str, first["loc"]))), 60)
        why = first["msg"].removeprefix("Value error, ")
        raise ValueError(f"{_NONE}: {f'“{place}”, ' if place else ''}{why[:1].lower()}{why[1:]}.") from None
