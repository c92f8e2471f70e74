"""A measurement as it is shown and kept: one form, whether it runs or has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from core.benchmark.points import Amount, Checked, DeviceFacts, Outcome, Point, Refusal, Text
from core.benchmark.programme import Programme
from core.limits import limit

Stage: TypeAlias = Literal["queued", "running", "finished", "cancelled", "failed"]


class Record(Checked):
    """One measurement.

    id: 12 hexadecimal digits. started: seconds since 1970, UTC. method, torch: versions, empty until the process has
    reported them. facts: None until then. message: reason why it failed or was cancelled; empty otherwise. in_use: what
    else used the device at its start, empty if unknown; a plan takes no rates of such a measurement.
    """

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
    in_use: Text = ""

    @property
    def points(self) -> tuple[Point, ...]:
        """What was measured, in order."""
        return tuple(outcome for outcome in self.outcomes if isinstance(outcome, Point))

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """What was not, in order."""
        return tuple(outcome for outcome in self.outcomes if isinstance(outcome, Refusal))


def merge_records(records: Sequence[Record]) -> Record:
    """Return the first record, completed with the kinds that it lacks.

    A missing kind comes from the first other record that has it, with the same method, on the same device, and without
    other users of the device.
    """
    first, *others = records
    outcomes, programme = [*first.outcomes], first.programme
    have = {point.item.kind for point in first.points}
    for other in others:
        same = other.facts and first.facts and other.facts.name == first.facts.name
        if not same or other.method != first.method or other.in_use:
            continue
        kinds = {point.item.kind for point in other.points} - have
        outcomes += [outcome for outcome in other.outcomes if outcome.item.kind in kinds]
        have |= kinds
        names = ("dtypes", "sizes") * ("matmul" in kinds) + ("layer",) * ("layer" in kinds)
        programme = programme.model_copy(update={name: getattr(other.programme, name) for name in names})
    return first.model_copy(update={"outcomes": tuple(outcomes), "programme": programme})
