"""torch in the server: loaded by the first page that needs it, once per process, behind a spinner."""

from __future__ import annotations

import gc

import streamlit as st

from core.tensors import load_torch


@st.cache_resource(show_spinner="Loading torch. This happens once, at the first visit after a start.")
def torch_ready() -> None:
    """Import torch and move what it brought out of the garbage collector's sight; later calls return at once."""
    load_torch()
    gc.collect()
    gc.freeze()
