"""What post-training holds on one accelerator, in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.planning.fine_tuning import ANSWERS, PostTraining
from core.planning.memory_estimate import MemoryEstimate
from core.views.plan.text_memory import gib
from core.wording import listed, percent

REWARD = (
    "A reward model in training holds no second model: one score stands in place of its head, and an example is a "
    "pair. TRL keeps no reference where adapters are trained, where DPO works its answers out beforehand "
    "(`precompute_ref_log_probs`), or where GRPO’s `beta` is 0; an engine that sleeps "
    "(`vllm_enable_sleep_mode`) leaves its memory to the training step."
)


def takeaway(h: MemoryEstimate, rows: Sequence[PostTraining]) -> str:
    """How much each method adds, and which of them fit."""
    more = [f"**{row.method.method} {gib(row.total - h.total)} more**" for row in rows]
    if math.isnan(h.usable):
        verdict = "how much memory there is, is unknown"
    else:
        room = h.usable * (1 - h.plan.limits.free)
        fits = [row.method.method for row in rows if row.total <= room]
        none = "none of them fits" if len(rows) > len(fits) == 0 else ""
        verdict = none or ("all of them fit" if len(fits) == len(rows) else f"{listed(fits)} fits beside it")
        verdict = verdict.replace(" fits beside it", " fit") if len(fits) > 1 else verdict
    kept = "" if math.isnan(h.usable) or not h.plan.limits.free else f" with {percent(h.plan.limits.free)} to stay free"
    return f"Beside the {gib(h.total)} of this plan each accelerator holds for {listed(more)}; {verdict}{kept}."


def adds(h: MemoryEstimate, row: PostTraining) -> str:
    """What a method adds, with its bytes."""
    parts = [
        (row.pairs, "for the second answer of each pair"),
        (row.frozen, f"of {_frozen(row)}"),
        (row.critic, "of a critic with its gradients and states"),
        (row.engine, f"of weights that write answers{_over(row)}"),
        (row.cache, f"of cache for {ANSWERS} answers"),
    ]
    sizes = listed([f"{gib(size)} {what}" for size, what in parts if size])
    own = " Its reference is the model with its adapters off." if h.plan.trained.adapters else ""
    return f"**{row.method.method}:** {sizes or 'nothing more'}.{own}"


def _frozen(row: PostTraining) -> str:
    if row.copies > 1:
        return "frozen reference and reward model"
    return "a frozen reference" if row.method.frozen == 1 else "a frozen reward model"


def _over(row: PostTraining) -> str:
    shared = row.served.tensor if row.served else 1
    return f", shared by {shared} accelerators" if shared > 1 else ""
