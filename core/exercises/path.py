"""Nine steps from a bit to 6ND, each a page in a state that shows one thing and a question about it."""

from __future__ import annotations

import random
from collections.abc import Mapping

from core.exercises import floats, flops, memory, views
from core.exercises.exercise import Exercise, Maker, is_readable
from core.exercises.sheet import Sheet, clean_answer
from core.limits import cached
from core.messages import message

_STEPS: tuple[tuple[str, str, Maker], ...] = (
    ("A number becomes bits", message("exercises.path.bits"), floats.stored),
    ("Numbers lie in steps", message("exercises.path.steps"), floats.spacing),
    ("A sum stalls", message("exercises.path.sum"), floats.stalls),
    ("A tensor has a weight", message("exercises.path.tensor"), memory.tensor),
    ("A view costs nothing", message("exercises.path.view"), views.view),
    ("A product has a price", message("exercises.path.matmul"), flops.product),
    ("Compute or memory", message("exercises.path.bound"), flops.bound),
    ("Training keeps more than weights", message("exercises.path.states"), memory.per_parameter),
    ("Six for every weight and token", message("exercises.path.rule"), flops.run),
)
"""The seed of each step, its title, and its kind of exercise."""

TITLES: tuple[str, ...] = tuple(title for _, title, _ in _STEPS)
"""The titles of the steps in order."""


@cached("tables_kept")
def path() -> Sheet:
    """Return the steps as a sheet, the same for every user."""
    made: list[Exercise] = [maker(random.Random(seed)) for seed, _, maker in _STEPS]  # noqa: S311 (no secret)
    return Sheet(0, ("path",), tuple(made))


def write_answers(of: Sheet, given: Mapping[int, str]) -> str:
    """Return the answers as an address keeps them, one per exercise."""
    return _prefix(of) + ";".join(clean_answer(given.get(step, "")) for step in range(len(of.exercises)))


def read_answers(of: Sheet, text: str) -> dict[int, str]:
    """Return the answers that an address keeps. Skips those of another sheet and those that cannot be read."""
    prefix = _prefix(of)
    answers = text.removeprefix(prefix).split(";") if text.startswith(prefix) else []
    if len(answers) != len(of.exercises):
        return {}
    return {step: given for step, given in enumerate(answers) if is_readable(of.exercises[step], given)}


def _prefix(of: Sheet) -> str:
    """Return what names the sheet in an address, empty for the path."""
    return f"{of.seed}.{'.'.join(of.topics)}." if of.seed else ""
