"""The messages of an experiment's process: one JSON object per line, checked when it is read."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from core.benchmark.points import Checked, Text
from core.experiments.found import Found
from core.jobs.lines import decoded
from core.limits import limit

Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
Name: TypeAlias = Annotated[str, Field(max_length=limit("measure_name_chars"))]
Numbers: TypeAlias = Annotated[list[Number], Field(max_length=limit("experiment_points"))]


_MOST = limit("experiment_figures")


class FoundLine(Checked):
    """A `Found` on one line."""

    event: Literal["found"] = "found"
    numbers: dict[Name, Number] = Field(default_factory=dict[str, float], max_length=_MOST)
    series: dict[Name, Numbers] = Field(default_factory=dict[str, list[float]], max_length=_MOST)
    words: dict[Name, Text] = Field(default_factory=dict[str, str], max_length=_MOST)


_LINES: TypeAdapter[FoundLine] = TypeAdapter(FoundLine)


def encode(found: Found) -> str:
    """Return ``found`` as one line of JSON, without the line end."""
    return FoundLine.model_validate({item.name: getattr(found, item.name) for item in fields(found)}).model_dump_json()


def decode(line: bytes) -> Found | None:
    """Return the result in a line, or None if it has none."""
    read = decoded(_LINES, line)
    return Found(read.numbers, read.series, read.words) if read else None
