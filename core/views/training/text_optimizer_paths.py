"""What the walks of the optimizers say, in sentences and in a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.training.optimizer_paths.path import DECAY, OptimizerPath
from core.training.optimizer_paths.surfaces import SURFACES
from core.units import format_exact, format_quantity, scientific
from core.wording import listed

_NEAR = 0.01
"""A walk has come near when no more than this share of its first height is left."""


LESSONS = {
    "scales": "**What the state buys here:** curvatures of 400 and 1 stand for layers of different scale. One rate for "
    "both weights may not exceed 2/400, and at that the flat one crawls. A running square gives each weight a rate of "
    "its own; momentum adds up what points the same way.",
    "noise": "**What the state buys here:** the first weight’s gradient is mostly noise, as from a small batch. Its "
    "running square says so, and steps along it shrink while the other weight goes on. One rate for both is either "
    "too large for the noise or too small for the rest, unless it falls over the run.",
    "rare": "**What the state buys here:** the second weight has a gradient in one step of ten, as the embedding of a "
    "rare word. Divided by the root of what that weight has seen, it makes a full step; one rate for both is held "
    "down by the weight that every step moves.",
    "valley": "**When plain SGD wins:** the valley lies askew, so no rate of its own for each weight makes it round, "
    "and at a ratio of 25 between its curvatures one well-chosen rate is as fast as any, without a byte of state. Such "
    "are problems that are scaled well, and a rate that somebody tuned.",
    "saddle": "**What momentum buys here:** the walk starts beside the ridge, where almost nothing pulls along it. The "
    "steep walls hold the rate under 2/60, and at that plain SGD leaves slowly. Momentum adds up what little there is "
    "and carries through in about half of the steps. As the saddle lies askew, no rate for each weight helps.",
    "Rosenbrock": "**Momentum alone is best here:** the floor bends, so no rate for each weight suits it for long, and "
    "squares that remember the walls brake on the floor. What keeps its direction walks it fastest.",
}
"""What each surface teaches, under the rates that suit each optimizer there."""


def height_left(done: OptimizerPath, step: int) -> float:
    """How far the walk stands over the lowest point after ``step``; never below it, which only rounding could be."""
    return max(float(done.losses[step]) - SURFACES[done.surface].lowest, 0.0)


def standing(walks: Sequence[OptimizerPath], step: int) -> list[OptimizerPath]:
    """Those that have not diverged by ``step``, the lowest first."""
    return sorted((w for w in walks if w.steps >= step), key=lambda w: height_left(w, step))


def takeaway(walks: Sequence[OptimizerPath], step: int) -> str:
    """Who stands lowest after ``step`` and who highest, and who has diverged by then."""
    here = standing(walks, step)
    gone = [w for w in walks if 0 < w.diverged <= step]
    sentences: list[str] = []
    if here:
        sentences.append(f"After **{counted(step)}** {here[0].optimizer} stands lowest, {_above(here[0], step)}")
        sentences[0] += f"; {here[-1].optimizer} highest, {_above(here[-1], step)}." if len(here) > 1 else "."
    if gone:
        verb = "diverges" if len(gone) == 1 else "diverge"
        when = listed([f"{w.optimizer} in step {w.diverged:,} at a rate of {number(w.rate)}" for w in gone])
        sentences.append(f"**{listed([w.optimizer for w in gone])} {verb}:** the weights leave all bounds, {when}.")
    return " ".join(sentences)


def counted(step: int) -> str:
    """``1 step``, ``40 steps``."""
    return "1 step" if step == 1 else f"{step:,} steps"


def number(value: float) -> str:
    """A number of any size, to three digits."""
    return scientific(value, 3) if 0 < abs(value) < 1e-3 else format_quantity(value, "number", 3)


def _above(done: OptimizerPath, step: int) -> str:
    return f"{number(height_left(done, step))} over the minimum"


def rates(typed: float | None) -> str:
    """Which learning rates the walks have, and AdamW's decay."""
    each = "each with a rate that suits it there" if typed is None else "one rate for all"
    return (
        f"**Rates:** {each}. AdamW also shrinks the weights by η · {DECAY:g} a step, as language models are trained, "
        "and so is drawn towards (0, 0), which is no minimum here: it ends a little short of one."
    )


def agreement(share: float, steps: int) -> str:
    """How closely torch's steps and the formulas agree."""
    most = f"differ by at most {number(share)} of a value" if share else "do not differ"
    return f"torch.optim took these steps; its weights and states and our formulas {most}, over {counted(steps)}."


def near(done: OptimizerPath) -> str:
    """The first step after which at most a hundredth of the first height is left; a dash where none is."""
    lowest = SURFACES[done.surface].lowest
    left = done.losses - lowest
    result = np.flatnonzero(left <= _NEAR * left[0])
    return format_exact(int(result[0])) if result.size else "–"


def rows(walks: Sequence[OptimizerPath], step: int) -> list[tuple[str, ...]]:
    """One row an optimizer: rate, weights, height over the minimum, length of the step, when it came near."""
    return [(done.optimizer, number(done.rate), *_row(done, step), near(done)) for done in walks]


def _row(done: OptimizerPath, step: int) -> tuple[str, ...]:
    if done.steps < step:
        return (f"diverged in step {done.diverged:,}", "", "")
    x, y = done.points[step]
    return f"{number(x)}, {number(y)}", number(height_left(done, step)), number(float(done.lengths[step - 1]))


def equations_title(optimizer: str, step: int) -> str:
    """What the equations of one step are headed by."""
    return f"Step {step:,} of {optimizer}, with the numbers that torch had"


def no_numbers(done: OptimizerPath) -> str:
    """Why a step of a walk that has diverged has no numbers."""
    return (
        f"{done.optimizer} diverged in step {done.diverged:,}: at a rate of {number(done.rate)} each step overshoots "
        "by more than the one before, until no number holds the weights. It needs a smaller rate."
    )
