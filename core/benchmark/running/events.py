"""What the measuring process says: one JSON object per line, each checked before it is believed."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from core.benchmark.points import Amount, Checked, DeviceFacts, Item, Outcome, Text
from core.jobs.lines import decoded


class Started(Checked):
    """The process runs: versions of method and torch."""

    event: Literal["start"] = "start"
    method: Text
    torch: Text


class DeviceFound(Checked):
    """The device is there. in_use: see `core.benchmark.device.other_users`."""

    event: Literal["device"] = "device"
    facts: DeviceFacts
    in_use: Text = ""


class Progress(Checked):
    """Which item is being measured, and how far it is, 0 to 1."""

    event: Literal["progress"] = "progress"
    item: Item
    fraction: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Tried(Checked):
    """An item is measured, rejected or skipped."""

    event: Literal["outcome"] = "outcome"
    outcome: Outcome


class Done(Checked):
    """Every item has been tried."""

    event: Literal["done"] = "done"
    elapsed_s: Amount


Event: TypeAlias = Started | DeviceFound | Progress | Tried | Done

_EVENTS: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


def encode(event: Event) -> str:
    """Return ``event`` as one line of JSON, without the line end."""
    return event.model_dump_json()


def decode(line: bytes) -> Event | None:
    """Return the event of one line; None for any other line that a library prints to the same output."""
    return decoded(_EVENTS, line)
