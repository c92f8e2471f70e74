"""What a test holds on to in a sentence: its numbers, names and verdict, in their order, whatever stands between."""

from __future__ import annotations


def says(text: str, *parts: str) -> None:
    """Fail unless ``text``, without its bold type, holds every one of ``parts``, one after the other."""
    plain, at = text.replace("**", ""), 0
    for part in parts:
        found = plain.find(part, at)
        assert found >= 0, f"{part!r} is not in {plain[at:]!r}, the rest of {plain!r}"
        at = found + len(part)
