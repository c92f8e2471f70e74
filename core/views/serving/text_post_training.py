"""What post-training needs on one accelerator, in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.messages import Message, message
from core.planning.fine_tuning import ANSWERS, PostTraining
from core.planning.memory_estimate import MemoryEstimate


def takeaway(h: MemoryEstimate, rows: Sequence[PostTraining]) -> list[Message]:
    """Return how much each method adds, and which of them fit."""
    more = [message("serving.post.more", more=row.total - h.total, method=row.method.method) for row in rows]
    said = message("serving.post.takeaway", total=h.total, more=more)
    if math.isnan(h.usable):
        return [said]
    fitting = [row.method.method for row in rows if row.total <= h.usable * (1 - h.plan.limits.free)]
    if len(fitting) == len(rows):
        return [said, message("serving.post.all_fit")]
    if not fitting:
        return [said, message("serving.post.none_fits")]
    return [said, message("serving.post.some_fit", methods=fitting, n=float(len(fitting)))]


_FROZEN = {
    "reference": "serving.post.reference",
    "reward": "serving.post.reward",
    "both": "serving.post.reference_and_reward",
}


def adds(row: PostTraining) -> Message:
    """Return what a method adds, with its bytes."""
    kind = "both" if row.copies > 1 else "reference" if row.method.frozen == 1 else "reward"
    tensor = float(row.served.tensor) if row.served else 1.0
    parts = [
        *([message("serving.post.pairs", size=row.pairs)] if row.pairs else ()),
        *([message(_FROZEN[kind], size=row.frozen)] if row.frozen else ()),
        *([message("serving.post.critic", size=row.critic)] if row.critic else ()),
        *([message("serving.post.engine", size=row.engine, tensor=tensor)] if row.engine else ()),
        *([message("serving.post.cache", size=row.cache, answers=float(ANSWERS))] if row.cache else ()),
    ]
    if not parts:
        return message("serving.post.nothing", method=row.method.method)
    return message("serving.post.method", method=row.method.method, parts=parts)
