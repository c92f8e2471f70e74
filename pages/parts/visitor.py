"""Who a visitor is: the same one after a reload, and nobody that anything is known of."""

from __future__ import annotations

from uuid import uuid4

import streamlit as st


def visitor() -> str:
    """An opaque id of this browser."""
    return str(st.session_state.setdefault("visitor", uuid4().hex))
