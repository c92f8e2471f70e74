"""A measurement as it is kept, shown, exported and imported: one form, whether it runs, has ended or came in a file."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from core.benchmark.points import Amount, Checked, DeviceFacts, Name, Outcome, Point, Refusal, Text
from core.benchmark.programme import Programme
from core.limits import limit

Stage: TypeAlias = Literal["queued", "running", "finished", "cancelled", "failed", "lost"]
"""lost: the server that ran it ended without a word."""


class Record(Checked):
    """One measurement.

    id: 12 hexadecimal digits. started: seconds since 1970, UTC. method, torch: versions, empty until the process has
    said them. facts: None until then. message: why it failed, was cancelled or lost; empty otherwise. origin: the file
    that it came in, or the server that measured it; None of one that was measured here.
    """

    format: Literal["napkin-measurement"] = "napkin-measurement"
    version: Literal[1] = 1
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
    programme: Programme
    stage: Stage
    started: Amount
    elapsed_s: Amount
    method: Text
    torch: Text
    facts: DeviceFacts | None
    outcomes: tuple[Outcome, ...] = Field(max_length=limit("measure_outcomes"))
    message: Text = ""
    origin: Name | None = None

    @property
    def points(self) -> tuple[Point, ...]:
        """What was measured, in order."""
        return tuple(outcome for outcome in self.outcomes if isinstance(outcome, Point))

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """What was not, in order."""
        return tuple(outcome for outcome in self.outcomes if isinstance(outcome, Refusal))
