"""A fine-tuning plan as the settings of torchtune, TRL with PEFT, Axolotl, LLaMA-Factory and Unsloth.

Every setting was read in the projects' own sources, at the commit that each source names. What a project has no
setting for is said, never guessed.
"""

from __future__ import annotations

from core.planning.fine_tuning.launch_llama_factory import llama_factory
from core.planning.fine_tuning.launch_torchtune import torchtune
from core.planning.fine_tuning.launch_unsloth import unsloth
from core.planning.fine_tuning.launch_yaml import axolotl, trl
from core.planning.fine_tuning.settings import FineTuning, FineTuningLaunch


def fine_tuning_launches(plan: FineTuning) -> tuple[FineTuningLaunch, ...]:
    """The plan's settings in each of the five."""
    return torchtune(plan), trl(plan), axolotl(plan), llama_factory(plan), unsloth(plan)
