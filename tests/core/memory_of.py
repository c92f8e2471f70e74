"""Memory of one accelerator, with what a setup takes from a plan at its default."""

from __future__ import annotations

from typing import Any

from core.models.spec import TransformerSpec
from core.training.device.inputs import usual
from core.training.device.memory import DeviceMemory, Setup
from core.training.device.ranks import StageName
from core.training.layout import Layout, check
from core.training.optimizers import Optimizer
from core.training.precision import PrecisionPolicy


def memory_per_device(
    spec: TransformerSpec,
    layout: Layout,
    *,
    policy: PrecisionPolicy | None = None,
    optimizer: Optimizer | None = None,
    stage: StageName | int | None = None,
    **more: Any,
) -> DeviceMemory:
    """Memory of one accelerator of ``stage``, or of the fullest one."""
    setup = Setup(spec, layout, *usual(policy, optimizer), **more)
    check(spec, layout, setup.seq_len)
    return setup.account(layout, stage=stage)
