"""Nine steps from a bit to 6ND: on each a page in a state that shows one thing, and a question about it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import lru_cache

from core.exercises import floats, flops, memory, views
from core.exercises.exercise import Exercise, Maker
from core.exercises.sheet import Sheet

_STEPS: tuple[tuple[str, Maker], ...] = (
    ("A number becomes bits", floats.stored),
    ("Numbers lie in steps", floats.spacing),
    ("A sum stalls", floats.stalls),
    ("A tensor has a weight", memory.tensor),
    ("A view costs nothing", views.view),
    ("A product has a price", flops.product),
    ("Compute or memory", flops.bound),
    ("Training keeps more than weights", memory.per_parameter),
    ("Six for every weight and token", flops.run),
)

TITLES: tuple[str, ...] = tuple(title for title, _ in _STEPS)
"""What each step is about, in order."""


@lru_cache(maxsize=1)
def path() -> Sheet:
    """The steps as a sheet, the same for everybody."""
    made: list[Exercise] = [maker(random.Random(title)) for title, maker in _STEPS]  # noqa: S311 (no secret)
    return Sheet(0, ("path",), tuple(made))


def written(chosen: Mapping[int, int]) -> str:
    """What was chosen on the steps, as an address keeps it: a digit for each, or a hyphen."""
    return "".join(str(chosen[step]) if step in chosen else "-" for step in range(len(_STEPS)))


def read(text: str) -> dict[int, int]:
    """What an address kept; whatever is none of a step's options is left out."""
    options = [len(one.options) for one in path().exercises]
    return {
        step: int(letter)
        for step, (letter, count) in enumerate(zip(text, options, strict=False))
        if letter.isascii() and letter.isdigit() and int(letter) < count
    }
