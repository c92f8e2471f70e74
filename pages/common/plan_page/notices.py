"""What is to be said beside an answer: the most important notices under its picture."""

from __future__ import annotations

from collections.abc import Iterable

from pages.common import show

_MOST = 3
"""More notices than these are not read."""


def draw_notices(notices: Iterable[str]) -> list[str]:
    """Draw the first notices that are not empty, each once; return the others, for what explains the answer."""
    every = list(dict.fromkeys(filter(None, notices)))
    for notice in every[:_MOST]:
        show.note(notice)
    return every[_MOST:]
