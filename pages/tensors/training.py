"""Tensor views, of programs that train: parameters with their gradients and optimizer state, and what is saved."""

from __future__ import annotations

from core.messages import message
from core.tensors.tracing.steps import Trace
from core.views.tensors.training import (
    parameter_headers,
    parameter_rows,
    saved_bytes,
    saved_headers,
    saved_rows,
)
from pages.common import show


def training(run: Trace) -> None:
    """Draw a fold with all parameters, and one with all that is saved for backward, where there are any."""
    if run.parameters:
        size = sum(one.bytes + one.gradient_bytes + one.state_bytes for one in run.parameters)
        title = message("tensors.panel.parameters", bytes=float(size))
        with show.fold(title, key="t:parameters", icon=":material/table:") as panel:
            if panel.open:
                show.small_table(parameter_headers(), parameter_rows(run), words=3)
    if saved := list(saved_rows(run)):
        title = message("tensors.panel.saved", bytes=float(saved_bytes(run)))
        with show.fold(title, key="t:saved", icon=":material/save:") as panel:
            if panel.open:
                show.note(message("tensors.saved.note"))
                show.small_table(saved_headers(), saved, words=3)
