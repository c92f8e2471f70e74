"""Nine steps from a bit to 6ND: on each a page in a state that shows one thing, and a question about it."""

from __future__ import annotations

import random
from collections.abc import Mapping

from core.exercises import floats, flops, memory, views
from core.exercises.exercise import Exercise, Maker
from core.exercises.sheet import Sheet
from core.limits import cached

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


@cached("tables_kept")
def path() -> Sheet:
    """The steps as a sheet, the same for everybody."""
    made: list[Exercise] = [maker(random.Random(title)) for title, maker in _STEPS]  # noqa: S311 (no secret)
    return Sheet(0, ("path",), tuple(made))


def written(of: Sheet, chosen: Mapping[int, int]) -> str:
    """What was chosen on the exercises of ``of``, as an address keeps it: a digit for each, or a hyphen."""
    return _which(of) + "".join(str(chosen[step]) if step in chosen else "-" for step in range(len(of.exercises)))


def read(of: Sheet, text: str) -> dict[int, int]:
    """What an address kept of ``of``; whatever is of another sheet, or none of an exercise's options, is left out."""
    letters = text.rpartition(".")[2]
    options = [len(one.options) for one in of.exercises] if text.removesuffix(letters) == _which(of) else []
    return {
        step: int(letter)
        for step, (letter, count) in enumerate(zip(letters, options, strict=False))
        if letter.isascii() and letter.isdigit() and int(letter) < count
    }


def _which(of: Sheet) -> str:
    """The sheet of the choices that an address keeps, empty for the path."""
    return f"{of.seed}.{'.'.join(of.topics)}." if of.seed else ""
