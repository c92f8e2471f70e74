"""What the process that runs a training step says: one JSON object per line, each checked before it is believed."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field, TypeAdapter

from core.benchmark.points import Amount, Checked, Text
from core.jobs.lines import decoded

Measure: TypeAlias = Literal["parameters", "gradients", "master", "optimizer", "activations", "casts", "peak"]
Phase: TypeAlias = Literal[
    "loading torch and transformers", "building the model", "forward", "backward", "optimizer step"
]

MEASURED: tuple[Measure, ...] = get_args(Measure)
"""What is measured, in the order in which it is shown."""

PHASES: tuple[Phase, ...] = get_args(Phase)


class Began(Checked):
    """The libraries are there: their versions, and the device as torch names it."""

    event: Literal["began"] = "began"
    torch: Text
    transformers: Text
    device: Text


class Advance(Checked):
    """What is being done."""

    event: Literal["advance"] = "advance"
    phase: Phase

    @property
    def fraction(self) -> float:
        """How far it is, 0 to 1."""
        return (PHASES.index(self.phase) + 1) / (len(PHASES) + 1)


class Measured(Checked):
    """Bytes of one part."""

    event: Literal["measured"] = "measured"
    part: Measure
    size: Amount


class Finished(Checked):
    """Everything is measured; how long it took."""

    event: Literal["done"] = "done"
    elapsed_s: Amount


Event: TypeAlias = Began | Advance | Measured | Finished

_EVENTS: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


def encode(event: Event) -> str:
    """``event`` as one line of JSON, without the line end."""
    return event.model_dump_json()


def decode(line: bytes) -> Event | None:
    """The event on one line, None when it is anything else."""
    return decoded(_EVENTS, line)
