"""Exercises on views: the quiz's questions about an expression, answered by torch."""

from __future__ import annotations

import random

from core.exercises.exercise import ChoiceExercise, Maker
from core.fields import Link
from core.tensors.examples.quiz import items, question


def view(rng: random.Random) -> ChoiceExercise:
    """Ask one thing about one expression."""
    asked = question(rng.randrange(len(items())), rng.randrange(1 << 16))
    one, item = rng.choice(asked.asks), asked.item
    start = ", ".join(map(str, item.shape))
    head = f"x = torch.arange({asked.run[0].layout.numel}, dtype=torch.{item.dtype}).view({start or '()'})"
    return ChoiceExercise(
        one.prompt.replace("does it have", "does the result have"),
        one.options,
        one.answer,
        one.reasons,
        code=f"{head}\n{item.source}",
        shown=Link("tensors", {"x": item.source, "shape": start, "dtype": item.dtype}),
    )


MAKERS: tuple[Maker, ...] = (view,)
"""All kinds of exercises on views."""
