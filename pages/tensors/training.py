"""Tensor views, of programs that train: parameters with their gradients and optimizer state, and what is saved."""

from __future__ import annotations

from core.tensors.tracing.steps import Trace
from core.views.tensors.sizes import bytes_text
from core.views.tensors.training import PARAMETER_HEADERS, SAVED_HEADERS, parameter_rows, saved_bytes, saved_rows
from pages.common import show


def training(run: Trace) -> None:
    """A fold with all parameters, and one with all that is saved for backward, where there are any."""
    if run.parameters:
        size = sum(one.bytes + one.gradient_bytes + one.state_bytes for one in run.parameters)
        title = f"Parameters, gradients, and optimizer state: {bytes_text(size)}"
        with show.fold(title, key="t:parameters", icon=":material/table:") as panel:
            if panel.open:
                show.small_table(PARAMETER_HEADERS, parameter_rows(run), words=3)
    if saved := saved_rows(run):
        title = f"Saved for backward: {bytes_text(saved_bytes(run))}"
        with show.fold(title, key="t:saved", icon=":material/save:") as panel:
            if panel.open:
                show.note("Autograd saves these tensors until backward uses them. Tensors on one storage count once.")
                show.small_table(SAVED_HEADERS, saved, words=3)
