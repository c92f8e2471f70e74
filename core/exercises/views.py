"""Exercises on views: the quiz's questions about an expression, whose answers are torch's."""

from __future__ import annotations

import random

from core.exercises.exercise import Exercise, Maker
from core.fields import Link
from core.tensors.examples.quiz import items, question


def view(rng: random.Random) -> Exercise:
    """One thing to predict about one expression."""
    asked = question(rng.randrange(len(items())), rng.randrange(1 << 16))
    one = rng.choice(asked.asks)
    item = asked.item
    start = ", ".join(map(str, item.shape))
    head = f"x = torch.arange({asked.run[0].layout.numel}, dtype=torch.{item.dtype}).view({start or '()'})"
    return Exercise(
        one.prompt.replace("does it have", "does the result have"),
        one.options,
        one.answer,
        one.reasons,
        code=f"{head}\n{item.source}",
        shown=Link("tensors", {"x": item.source, "shape": start, "dtype": item.dtype}),
    )


MAKERS: tuple[Maker, ...] = (view,)
"""Every kind of exercise on views."""
