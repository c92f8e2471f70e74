"""How a fine-tuning plan is launched, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from core.hardware.accelerators import Accelerator
from core.planning.fine_tuning.settings import FineTuning, FineTuningLaunch
from core.wording import listed, plural


def takeaway(plan: FineTuning, launches: Sequence[FineTuningLaunch], device: Accelerator) -> str:
    """What is launched, and by which programs; on what is no GPU, that these are settings for GPUs."""
    able = [launch.system for launch in launches if launch.text]
    frozen = plan.frozen.replace(", double", " with double quantisation")
    what = {
        "everything": "all weights",
        "adapters": f"adapters, r = {plan.rank}, on weights in {frozen}",
        "last layers": f"the last {plan.last} {plural(plan.last, 'layer')}",
        "named tensors": "the tensors that are named",
    }[plan.trained]
    name = f"**{plan.model}**" if plan.model else "the model"
    gpu = device.vendor in ("NVIDIA", "AMD")
    other = "" if gpu else f" These are settings for GPUs: whether they run on {device.name} is not known here."
    programs = f"as **{listed(able)}** have it; what a program does otherwise stands under it."
    return f"Training {what} of {name}, {programs}{other}"
