"""Runs a program in the sealed process and gives what it reported."""

from __future__ import annotations

from typing import Any

from core.tensors.sealed.client import run_sealed


def run_program(source: str) -> tuple[list[dict[str, Any]], str]:
    """The events that a program's run reports, and why it did not end by itself; empty where it did."""
    report = run_sealed(source)
    return list(report.events), report.ended.message
