"""Memory of one accelerator, with what a setup takes from a plan at its default."""

from __future__ import annotations

from typing import Any

from core.models.spec import TransformerSpec
from core.training.device.inputs import usual
from core.training.device.memory import DeviceMemory, Setup
from core.training.layout import Layout, check


def memory_per_device(spec: TransformerSpec, layout: Layout, *, stage: Any = None, **more: Any) -> DeviceMemory:
    """Memory of one accelerator of ``stage``, or of the fullest one."""
    setup = Setup(spec, layout, *usual(more.pop("policy", None), more.pop("optimizer", None)), **more)
    check(spec, layout, setup.seq_len)
    return setup.account(layout, stage=stage)
