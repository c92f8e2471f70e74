"""The process that runs code: started by the first page that needs it, behind a spinner."""

from __future__ import annotations

import streamlit as st

from core.tensors.sealed.client import POOL


@st.cache_resource(show_spinner="Starting PyTorch. This happens once, at the first visit after a start.")
def programs_ready() -> str:
    """Start the process; why no code can run, empty where it can."""
    return POOL.warm()
