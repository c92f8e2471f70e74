"""Runs a program in the sealed process and gives what it reported."""

from __future__ import annotations

from typing import Any

from core.tensors.operations.values import ExpressionError
from core.tensors.sealed.client import run_sealed
from core.tensors.sealed.program import SPLIT


def run_program(source: str) -> tuple[list[dict[str, Any]], str]:
    """The events that a program's run reports, and why it did not end by itself; empty where it did.

    Whoever takes code from users or links asks `core.tensors.sealed.trust.decide` first: without a seal this runs it.
    """
    report = run_sealed(source, typed_here=True)
    return list(report.events), report.ended.message


def ask_torch(source: str) -> tuple[str, str]:
    """What lines of our own print, and the message of the error that ended them; empty for none.

    Raises `ExpressionError` where no program can run.
    """
    events, stopped = run_program(f"{SPLIT}\n{source}")
    if stopped:
        raise ExpressionError(stopped)
    said = "".join(str(event.get("value")) for event in events if event.get("e") == "print")
    errors = [event for event in events if event.get("e") == "error"]
    return said, "".join(str(event.get("message") or event.get("type")) for event in errors[:1])
