"""How well a figure of the catalogs is known."""

from __future__ import annotations

from core.messages import Message, message

_KNOWN = {
    "verified": "common.known.verified",
    "recalled": "common.known.recalled",
    "quoted": "common.known.quoted",
    "assumed": "common.known.assumed",
}


def known(confidence: str) -> Message:
    """Return how the row of a catalog is known."""
    return message(_KNOWN[confidence])


def cited(source: str, confidence: str) -> Message:
    """Return a source, and how its figure is known."""
    return message("common.cited", source=source, known=known(confidence))
