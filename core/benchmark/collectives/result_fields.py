"""A result of measuring collectives, checked by pydantic. Imported where one is made or read and not before."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from core.benchmark.collectives.spec import MOST_RUNS, Dtype, Name
from core.limits import limit

FORMAT = "napkin-collectives"
VERSION = 1
"""What a file says it is. Files of another version are not read."""

MOMENT = "%Y-%m-%dT%H:%M:%SZ"
"""How a file says when, in UTC."""

_CONFIG = ConfigDict(strict=True, frozen=True, extra="forbid")


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it has characters that cannot be shown")
    return text


def _moment(text: str) -> str:
    try:
        read = datetime.strptime(text, MOMENT)
    except ValueError:
        read = None
    if read is None or f"{read.isoformat()}Z" != text:
        raise ValueError("it is no time such as 2026-01-31T23:59:59Z")
    return text


_Ranks = Annotated[int, Field(ge=1, le=limit("collective_ranks"))]
_Bytes = Annotated[int, Field(ge=0, le=limit("collective_bytes"))]
_Short = Annotated[str, Field(max_length=limit("collective_name_chars")), AfterValidator(_printable)]
_Text = Annotated[str, Field(max_length=limit("collective_text_chars")), AfterValidator(_printable)]
_Moment = Annotated[str, Field(max_length=20), AfterValidator(_moment)]
# Nothing is exchanged within a nanosecond; a smaller time would make a rate that is no number.
_Seconds = Annotated[float, Field(ge=1e-9, le=limit("collective_seconds"), allow_inf_nan=False)]


class PointFields(BaseModel):
    """One size of one operation, measured: seconds of a run on the slowest rank, over ``runs`` runs.

    slowest_rank: the one on which a run took longest most often.
    """

    model_config = _CONFIG

    operation: Name
    bytes: Annotated[int, Field(ge=1, le=limit("collective_bytes"))]
    dtype: Dtype
    median_s: _Seconds
    best_s: _Seconds
    p10_s: _Seconds
    p90_s: _Seconds
    runs: Annotated[int, Field(ge=1, le=MOST_RUNS)]
    duration_s: _Seconds
    slowest_rank: Annotated[int, Field(ge=0, lt=limit("collective_ranks"))]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.best_s <= self.p10_s <= self.median_s <= self.p90_s:
            raise ValueError("best, p10, median and p90 of the times do not follow each other")
        return self


class RefusalFields(BaseModel):
    """An operation without results from ``bytes`` on; 0 for none at all.

    kind: ``refused`` has the library's own words, ``skipped`` our reason.
    """

    model_config = _CONFIG

    operation: Name
    bytes: _Bytes
    kind: Literal["refused", "skipped"]
    text: _Text


class ResultFields(BaseModel):
    """All that one measuring found, and where and when.

    devices: what the ranks run on, each kind once. problem: why it ended early, empty when it is complete.
    """

    model_config = _CONFIG

    format: Literal["napkin-collectives"]
    version: Literal[1]
    method: _Short
    when: _Moment
    complete: bool
    problem: _Text
    world_size: _Ranks
    nodes: _Ranks
    ranks_per_node: _Ranks
    devices: Annotated[tuple[_Short, ...], Field(max_length=limit("collective_devices"))]
    backend: Literal["nccl", "gloo"]
    torch: _Short
    cuda: _Short
    nccl: _Short
    points: Annotated[tuple[PointFields, ...], Field(max_length=limit("collective_points"))]
    refusals: Annotated[tuple[RefusalFields, ...], Field(max_length=limit("collective_points"))]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.world_size < 2 or self.nodes * self.ranks_per_node != self.world_size:
            raise ValueError("nodes times ranks of each are not the two or more ranks in all")
        if self.complete == bool(self.problem):
            raise ValueError("it is complete, or it says why not")
        if any(point.slowest_rank >= self.world_size for point in self.points):
            raise ValueError("the slowest rank is one of those that there are")
        if len({(point.operation, point.bytes, point.dtype) for point in self.points}) < len(self.points):
            raise ValueError("a size of an operation is there once")
        return self
