"""Whether the visitor's screen is a projector's: one switch in the menu, one parameter in every link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

PROJECTOR = "projector"
"""The switch's key, and its name in a link."""


def projecting() -> bool:
    """Whether the page is drawn for a projector: the answer and its picture alone, in large type."""
    content: object = st.session_state.get(PROJECTOR)
    return st.query_params.get(PROJECTOR) == "true" if content is None else bool(content)


def in_link() -> dict[str, str]:
    """What a link carries of it."""
    return {PROJECTOR: "true"} if projecting() else {}


@dataclass(frozen=True, slots=True)
class Chip:
    """A story of the page in this run: its name, what makes it the page's, whether it is, and the part it is about.

    at: the name of that part, without prefix; empty for the page as it is.
    """

    name: str
    put: Callable[[], None]
    lit: Callable[[], bool]
    at: str = ""
