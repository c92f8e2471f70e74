"""torch in the server: loaded by the first page that needs it, once per process, behind a spinner."""

from __future__ import annotations

import gc

import streamlit as st

from core.messages import message
from core.tensors.sealed.namespace import load_torch


@st.cache_resource(show_spinner=message("server.pytorch"))
def torch_ready() -> None:
    """Import torch and move what it brought out of the garbage collector's sight; later calls return at once.

    On one thread: tensors here are small, and a second one waits in a busy loop, which takes the core from a user.
    """
    torch = load_torch()
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()
