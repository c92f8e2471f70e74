"""One exercise: a question, options of which one is right, and why each of the others is not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from core.fields import Link
from core.formula import Explanation
from core.units import Kind, format_quantity

OPTIONS = 4
"""What there is to choose from, the right one among them."""
FAR = (
    (3.0, "That is three times as much."),
    (4.0, "That is four times as much."),
    (6.0, "That is six times as much."),
)
"""What fills up where mistakes come to the same."""


@dataclass(frozen=True, slots=True)
class Exercise:
    """A question with its options.

    prompt: in ``**bold**`` markup. code: lines of Python that it is about, may be empty. answer: the right option's
    place. reasons: for each option, why it is right or what mistake leads to it. explanations: how the answer is
    worked out. shown: the page that shows it.
    """

    prompt: str
    options: tuple[str, ...]
    answer: int
    reasons: tuple[str, ...]
    explanations: tuple[Explanation, ...] = ()
    code: str = ""
    shown: Link = field(default=Link("glossary"), hash=False)

    def right(self, choice: int | None) -> bool:
        """Whether this option is the right one; no choice never is."""
        return choice == self.answer

    def why(self, choice: int | None) -> str:
        """What to say to somebody who chose this option: the mistake, where it is one, and the reason."""
        right = self.reasons[self.answer]
        if choice is None or self.right(choice) or not self.reasons[choice]:
            return right
        return f"{self.reasons[choice]} {right}"


Maker: TypeAlias = Callable[[random.Random], Exercise]
"""Makes an exercise of one kind of whatever numbers the generator draws."""


def choose(
    rng: random.Random,
    prompt: str,
    right: tuple[str, str],
    wrong: Iterable[tuple[str, str]],
    *,
    explanations: Sequence[Explanation] = (),
    code: str = "",
    shown: Link,
) -> Exercise:
    """An exercise whose options are ``right`` and the first of ``wrong`` that read differently, in random order.

    Each option comes with its reason. Raises ``ValueError`` where there are too few different ones.
    """
    reasons = {str(right[0]): right[1]}
    for text, reason in wrong:
        if len(reasons) == OPTIONS:
            break
        reasons.setdefault(str(text), reason)
    if len(reasons) < OPTIONS:
        raise ValueError(f"only {len(reasons)} different options for “{prompt}”")
    options = list(reasons)
    rng.shuffle(options)
    return Exercise(
        prompt,
        tuple(options),
        options.index(str(right[0])),
        tuple(reasons[option] for option in options),
        tuple(explanations),
        code,
        shown,
    )


def choose_amount(
    rng: random.Random,
    prompt: str,
    kind: Kind,
    right: tuple[Explanation, str],
    wrong: Iterable[tuple[float, str]],
    *,
    digits: int = 3,
    shown: Link,
) -> Exercise:
    """An exercise on a quantity: the right one is what its formula gives, the others are what mistakes give."""
    explanation, why = right

    def written(value: float) -> str:
        return str(format_quantity(value, kind, digits))

    return choose(
        rng,
        prompt,
        (written(explanation.value), why),
        (
            *((written(value), reason) for value, reason in wrong),
            *((written(explanation.value * n), why_far) for n, why_far in FAR),
        ),
        explanations=(explanation,),
        shown=shown,
    )
