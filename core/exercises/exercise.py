"""An exercise: a question that is answered by one of a few options or by a number, with a reason for wrong answers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from core.fields import Link
from core.floats.formats import FORMATS
from core.floats.typed_numbers import parse
from core.formula import Explanation
from core.limits import limit
from core.messages import Message, message
from core.number_text import QuantityError
from core.quantities import parse_quantity
from core.units import UNIT, Kind, format_quantity

OPTIONS = 4
"""Options of a choice that is drawn with `choose`."""

LETTERS = "abcdef"
"""How options are named in an answer."""

TOLERANCE = 0.02
"""Relative error up to which a number is right, unless an exercise asks for more digits."""

Reasoned: TypeAlias = tuple[str, Message]
"""The text of an option, with the reason why it is right or the slip that leads to it."""

Slip: TypeAlias = tuple[float, Message]
"""A wrong number, and the slip that leads to it."""


@dataclass(frozen=True, slots=True)
class ChoiceExercise:
    """A question with options. Answers are letters, ``a`` for the first option.

    answer: index of the right option. reasons: one per option, or empty texts. code: Python that the question is about,
    or empty. explanations: how the answer is computed. shown: the page that shows it.
    """

    prompt: str
    options: tuple[str, ...]
    answer: int
    reasons: tuple[str, ...]
    explanations: tuple[Explanation, ...] = ()
    code: str = ""
    shown: Link = field(default=Link("glossary"), hash=False)

    @property
    def solution(self) -> str:
        """Return the right option."""
        return self.options[self.answer]

    @property
    def right_answer(self) -> str:
        """Return the answer that is right."""
        return LETTERS[self.answer]

    def check_answer(self, given: str) -> None:
        """Raise `QuantityError` if no option has this letter."""
        if len(given) != 1 or given not in LETTERS[: len(self.options)]:
            raise QuantityError(message("exercises.error.option"))

    def is_right(self, given: str) -> bool:
        """Return whether this is the right letter."""
        return given == self.right_answer

    def written(self, given: str) -> str:
        """Return the option of a letter."""
        return self.options[LETTERS.index(given)]

    def feedback(self, given: str) -> list[str]:
        """Return the slip behind a wrong answer if it is known, and why the solution is right."""
        wrong = [] if self.is_right(given) else [self.reasons[LETTERS.index(given)]]
        return [reason for reason in (*wrong, self.reasons[self.answer]) if reason]


@dataclass(frozen=True, slots=True)
class NumberExercise:
    """A question that is answered with a number, right within the relative ``tolerance``.

    value: the solution in the base unit of ``kind``. why: the reason for it. slips: wrong numbers that mistakes give;
    one that equals the solution never counts. The other fields are those of `ChoiceExercise`.
    """

    prompt: str
    value: float
    kind: Kind
    why: Message
    slips: tuple[Slip, ...]
    explanations: tuple[Explanation, ...] = ()
    code: str = ""
    shown: Link = field(default=Link("glossary"), hash=False)
    tolerance: float = TOLERANCE

    @property
    def solution(self) -> str:
        """Return the right number with its unit."""
        return str(format_quantity(self.value, self.kind, 6 if self.kind == "number" else 4))

    @property
    def right_answer(self) -> str:
        """Return an answer that is right."""
        return f"{self.value:.6g}"

    @property
    def example(self) -> str:
        """Return an answer to another question, which shows the format."""
        return _EXAMPLES.get(self.kind, "0.375")

    def read(self, given: str) -> float:
        """Return the number that was entered. Raises `QuantityError` if it is not a number."""
        if self.kind in _EXAMPLES:
            return parse_quantity(given, self.kind, high=1.5 if self.kind == "ratio" else 1e40)
        if len(given) > limit("number_chars"):
            raise QuantityError(message("exercises.error.number", example=self.example))
        try:
            value = parse(given.strip().removesuffix(UNIT[self.kind]).strip(), FORMATS["fp64"]).value
        except ValueError:
            value = None
        if value is None:
            raise QuantityError(message("exercises.error.number", example=self.example))
        return float(value)

    def check_answer(self, given: str) -> None:
        """Raise `QuantityError` if the answer cannot be read."""
        self.read(given)

    def is_right(self, given: str) -> bool:
        """Return whether the number that was entered is close enough. One that cannot be read is wrong."""
        try:
            return math.isclose(self.read(given), self.value, rel_tol=self.tolerance)
        except QuantityError:
            return False

    def written(self, given: str) -> str:
        """Return what was entered."""
        return given

    def feedback(self, given: str) -> list[str]:
        """Return the slip behind a wrong number, or how far off it is, and why the solution is right."""
        if self.is_right(given):
            return [self.why]
        value = self.read(given)
        known = [slip for wrong, slip in self.slips if math.isclose(value, wrong, rel_tol=self.tolerance)]
        apart = [message("exercises.slip.factor", factor=value / self.value)] if value > 0 else []
        return [*(known[:1] or apart), self.why]


_EXAMPLES: Mapping[Kind, str] = {
    "count": "1,536",
    "parameters": "13B",
    "days": "12 days",
    "ratio": "25%",
    "flop": "4.2e21",
    "bytes": "24 GB",
    "bytes_binary": "24 GiB",
}
"""Kinds that are typed with their unit, each with an example. All others are plain numbers."""

Exercise: TypeAlias = ChoiceExercise | NumberExercise
Maker: TypeAlias = Callable[[random.Random], Exercise]
"""Makes an exercise of one kind, with the numbers that the generator draws."""


def is_readable(one: Exercise, given: str) -> bool:
    """Return whether an answer can be read."""
    try:
        one.check_answer(given)
    except QuantityError:
        return False
    return True


def choose(
    rng: random.Random, prompt: Message, right: Reasoned, wrong: Iterable[Reasoned], shown: Link
) -> ChoiceExercise:
    """Return an exercise whose options are ``right`` and the first different ones of ``wrong``, in random order.

    Raises ``ValueError`` if there are fewer than `OPTIONS` different ones.
    """
    reasons = {str(right[0]): right[1]}
    for text, reason in wrong:
        if len(reasons) < OPTIONS:
            reasons.setdefault(str(text), reason)
    if len(reasons) < OPTIONS:
        raise ValueError(f"Only {len(reasons)} different options for “{prompt}”.")
    options = list(reasons)
    rng.shuffle(options)
    answer = options.index(str(right[0]))
    return ChoiceExercise(prompt, tuple(options), answer, tuple(reasons[option] for option in options), shown=shown)
