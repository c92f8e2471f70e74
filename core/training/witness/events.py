"""What the process that runs a training step says: one JSON object per line, each checked before it is believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from core.measure.events import read, written

MEASURED = ("parameters", "gradients", "master", "optimizer", "activations", "peak")
"""What is measured, in the order in which it is shown."""

PHASES = ("loading torch and transformers", "building the model", "forward", "backward", "optimizer step")


@dataclass(frozen=True, slots=True)
class Began:
    """The libraries are there: their versions, and the device as torch names it."""

    torch: str
    transformers: str
    device: str


@dataclass(frozen=True, slots=True)
class Advance:
    """What is being done."""

    phase: str

    def __post_init__(self) -> None:
        if self.phase not in PHASES:
            raise ValueError(f"no such phase: {self.phase}")

    @property
    def fraction(self) -> float:
        """How far it is, 0 to 1."""
        return (PHASES.index(self.phase) + 1) / (len(PHASES) + 1)


@dataclass(frozen=True, slots=True)
class Measured:
    """Bytes of one part."""

    part: str
    size: float

    def __post_init__(self) -> None:
        if self.part not in MEASURED:
            raise ValueError(f"no such part: {self.part}")


@dataclass(frozen=True, slots=True)
class Done:
    """Everything is measured; how long it took."""

    elapsed_s: float


Event: TypeAlias = Began | Advance | Measured | Done

_KINDS: Mapping[str, type[Any]] = {"began": Began, "advance": Advance, "measured": Measured, "done": Done}


def encode(event: Event) -> str:
    """``event`` as one line of JSON, without the line end."""
    return written(event, _KINDS)


def decode(line: bytes) -> Event | None:
    """The event on one line, None when it is anything else."""
    return read(line, _KINDS)
