"""What is replaced in Streamlit while the server runs; README.md beside this file says what and why.

All of it or nothing: it is applied to the one version that it was written for, and not where `SWITCH` says "off".
"""

from __future__ import annotations

import logging
import os
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module

import streamlit
from streamlit.runtime.scriptrunner import StopException

LOG = logging.getLogger(__name__)

VERSION = "1.67.0"
SWITCH = "NAPKIN_PATCHES"
PATCHES = ["overdue", "rejoin", "stale_values", "turns"]
"""Modules of this folder, each with a function ``patch``. Another Streamlit may lack what they import."""

applied: list[str] = []


class OverdueError(StopException):
    """Ends a run that takes too long, as `st.stop` does. No `Exception`, so that no part of a page keeps it."""


def apply() -> None:
    """Put all patches in place; a second call changes nothing."""
    if applied or os.environ.get(SWITCH, "").lower() == "off":
        return
    if streamlit.__version__ != VERSION:
        LOG.warning("Streamlit %s is not %s: it stays as it is, unpatched", streamlit.__version__, VERSION)
        return
    for module in [import_module(f"{__name__}.{name}") for name in PATCHES]:
        module.patch()
    applied.extend(PATCHES)


def answered() -> int:
    """Return the number of the answer that ends here; every page draws it into its link. 0: nobody listens for it."""
    return import_module(f"{__name__}.stale_values").answered() if "stale_values" in applied else 0


def uninterrupted() -> AbstractContextManager[None]:
    """Let no other change of the user interrupt the script inside. Nothing if the patches are left out."""
    return import_module(f"{__name__}.stale_values").uninterrupted() if "stale_values" in applied else nullcontext()
