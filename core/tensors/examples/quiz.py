"""A quiz on views: predict what an expression gives, then see torch's answer with its reason.

The expressions are assets/data/tensor_quiz.csv; answers are never stored, they are torch's, by running the expression.
Wrong options come from the mistakes people make: strides of a fresh copy, strides left where they were, bytes.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, zip_longest
from math import prod
from typing import Literal, TypeAlias

from core.limits import cached
from core.messages import Message, find_message, message
from core.rows import read_rows
from core.tensors.layout import contiguous_strides
from core.tensors.parsing.text import read_shape
from core.tensors.tracing.steps import Scalar, Trace
from core.tensors.tracing.trace import trace

AskKind: TypeAlias = Literal["storage", "shape", "stride", "values"]

Sizes: TypeAlias = tuple[int, ...]

_WRONG = 3
_ASKS = ("shape", "stride", "storage", "values")

FIRST = "x.t()"
"""The expression that every order starts with: the simplest one with something to predict."""


@dataclass(frozen=True, slots=True)
class QuizItem:
    """A row of the quiz: an expression on x of a shape and dtype.

    about: the questions that its lesson answers; every one where torch rejects.
    """

    id: str
    category: str
    shape: tuple[int, ...]
    dtype: str
    source: str
    about: tuple[str, ...]

    @property
    def lesson(self) -> str:
        """The rule that it teaches."""
        return find_message(f"quiz.{self.id}") or ""

    def run(self) -> Trace:
        """Return the expression run on torch."""
        return trace(self.source, self.shape, dtype=self.dtype)


@dataclass(frozen=True, slots=True)
class Ask:
    """One thing to predict. options: choices. answer: index of the right one. reasons: one per option."""

    kind: AskKind
    prompt: str
    options: tuple[str, ...]
    answer: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """An expression with what to predict about it; ``run`` is what torch did, to be shown afterwards."""

    item: QuizItem
    asks: tuple[Ask, ...]
    run: Trace


@cached("tables_kept")
def items() -> tuple[QuizItem, ...]:
    """Return every row of the quiz."""
    return tuple(
        QuizItem(
            row["id"],
            row["category"],
            read_shape(row["shape"]),
            row["dtype"],
            row["expression"],
            _ASKS if row["about"] == "all" else tuple(row["about"].split()),
        )
        for row in read_rows("tensor_quiz")
    )


def categories() -> tuple[str, ...]:
    """Return the categories in order of appearance."""
    return tuple(dict.fromkeys(item.category for item in items()))


@cached("results_kept")
def question(number: int, seed: int = 0) -> Question:
    """Return the ``number``-th question in the order of ``seed``; the same for every user.

    Every item appears once before any repeats; see `_order`.
    """
    order = _order(seed)
    return ask(order[number % len(order)], number, seed)


@cached("results_kept")
def _order(seed: int) -> tuple[QuizItem, ...]:
    """Return all items, a round through the categories at a time; those that are through are left out of later
    rounds."""
    rng = random.Random(f"order {seed}")  # noqa: S311 (a quiz, no secret)
    rounds: list[list[QuizItem]] = []
    for kind in categories():
        of_kind = [item for item in items() if item.category == kind]
        rng.shuffle(of_kind)
        rounds.append(of_kind)
    rng.shuffle(rounds)
    first = next(item for item in items() if item.source == FIRST)
    for of_kind in rounds:
        of_kind.sort(key=lambda item: item is not first)
    rounds.sort(key=lambda of_kind: of_kind[0] is not first)
    return tuple(item for turn in zip_longest(*rounds) for item in turn if item is not None)


def ask(item: QuizItem, number: int = 0, seed: int = 0) -> Question:
    """Return the question about ``item``. number, seed: the order of the options."""
    rng = random.Random(f"{item.source} {item.shape} {number} {seed}")  # noqa: S311
    asking = _Asking(item, item.run(), rng)
    if item.category == "alias":
        asks: tuple[Ask, ...] = (asking.values(),)
    elif asking.refused or item.about == ("storage",):
        asks = (asking.storage(),)  # so that a single question does not give away that torch refuses
    else:
        asks = (asking.shape(), asking.stride(), asking.storage())
    return Question(item, asks, asking.run)


# ---------------------------------------------------------------------------------------------------- asks


class _Asking:
    """What is asked of one expression."""

    def __init__(self, item: QuizItem, run: Trace, rng: random.Random) -> None:
        self.item, self.run, self.rng = item, run, rng
        self.last, self.refused = run.last, run.refusal is not None
        self.before = run[(*self.last.inputs, 0)[0]].layout
        """What the last step worked on."""

    def storage(self) -> Ask:
        options = (message("tensors.quiz.shared"), message("tensors.quiz.new"), message("tensors.quiz.error"))
        answer = 2 if self.refused else int(self.last.storage != 0)
        reasons = [""] * 3
        reasons[answer] = self._why("storage")
        return Ask("storage", message("tensors.quiz.storage"), options, answer, tuple(reasons))

    def shape(self) -> Ask:
        wanted, order = self.last.layout.shape, message("tensors.quiz.sizes_order")
        wrong = [
            (self.item.shape, message("tensors.quiz.shape_x")),
            (self.before.shape, message("tensors.quiz.shape_before")),
            (wanted[::-1], order),
            *((tuple(p), order) for p in permutations(wanted) if len(wanted) < 5),
            (tuple(size for size in wanted if size != 1), message("tensors.quiz.ones_stay")),
            ((1, *wanted), message("tensors.quiz.no_one_added")),
            ((*wanted, 1), message("tensors.quiz.no_one_added")),
            ((prod(wanted[:2]), *(wanted[2:] or (2,) * (len(wanted) < 2))), message("tensors.quiz.no_merge")),
            ((*wanted[:-1], sum(wanted[-1:]) + 1), message("tensors.quiz.off_by_one")),
        ]
        return self._choices("shape", message("tensors.quiz.shape"), wanted, wrong)

    def stride(self) -> Ask:
        shape, wanted = self.last.layout.shape, self.last.layout.stride
        order, size = message("tensors.quiz.strides_order"), self.last.element_size
        backwards = "::-" in self.item.source or "flip" in self.item.source
        wrong = [
            *([(tuple(-step for step in wanted), message("tensors.quiz.negative"))] * backwards),
            (contiguous_strides(shape), message("tensors.quiz.strides_fresh")),
            (self.before.stride, message("tensors.quiz.strides_before")),
            (self.run[0].layout.stride, message("tensors.quiz.strides_x")),
            (wanted[::-1], order),
            (tuple(step * size for step in wanted), message("tensors.quiz.bytes")),
            *((tuple(p), order) for p in permutations(wanted) if len(wanted) < 5),
            (tuple(max(step, 1) for step in wanted), message("tensors.quiz.zero")),
            (tuple(shape), message("tensors.quiz.sizes")),
            ((*wanted, 1), message("tensors.quiz.one_each")),
            (tuple(2 * step for step in wanted), message("tensors.quiz.too_long")),
            (tuple(step + 1 for step in wanted), message("tensors.quiz.too_long")),
        ]
        return self._choices("stride", message("tensors.quiz.strides"), wanted, wrong)

    def values(self) -> Ask:
        start = self.run[0]
        after: tuple[Scalar, ...] = start.values
        if not self.refused and self.last.storage == 0:
            cells: list[int] = start.layout.cells().tolist()
            after = tuple(self.last.storage_values[cell] for cell in cells)
        written = [at for at, (old, new) in enumerate(zip(start.values, after, strict=True)) if old != new]
        wrong = [(_whole(start.values), message("tensors.quiz.sees"))]
        for place in [*written, 0, 1, len(start.values) - 1, *range(len(start.values))]:
            other = list(start.values)
            other[(place + (place in written)) % len(other)] = 100
            wrong.append((_whole(other), message("tensors.quiz.other_cell")))
        return self._choices("values", message("tensors.quiz.values"), _whole(after), wrong)

    def _choices(self, kind: AskKind, prompt: Message, wanted: Sizes, wrong: Sequence[tuple[Sizes, Message]]) -> Ask:
        """Return the right answer, ``wanted`` or the error, among different wrong ones, shuffled.

        The error is an option, the last, where no other question asks about it.
        """
        if not wanted:
            wrong = [(option, message("tensors.quiz.single")) for option in ((1,), (0,), (1, 1))]
        table: dict[Sizes, str] = {wanted: "" if self.refused else self._why(kind)}
        for option, why in wrong:
            if len(table) > _WRONG:
                break
            table.setdefault(option, "" if self.refused else why)
        options = list(table)
        self.rng.shuffle(options)
        texts, reasons = [str(option) for option in options], [table[option] for option in options]
        if kind == "values":
            texts.append(message("tensors.quiz.error"))
            reasons.append(self._lesson() if self.refused else "")
        answer = len(options) if self.refused else options.index(wanted)
        return Ask(kind, prompt, tuple(texts), answer, tuple(reasons))

    def _why(self, kind: AskKind) -> str:
        """Return why the right answer is right: the lesson where it is about that, else what the step itself says."""
        layout = self.last.layout
        if self.refused or (kind == "storage" and kind in self.item.about):
            return self._lesson()
        if kind in self.item.about:
            return self.item.lesson
        if kind == "storage" and self.last.reason:
            return message("tensors.because", reason=self.last.reason)
        if kind == "stride" and layout.rank and layout.stride == contiguous_strides(layout.shape):
            return message("tensors.quiz.row_major")
        return ""

    def _lesson(self) -> str:
        """Return why torch rejected or copied, in a sentence: the rule, and our account of the numbers where there is
        one."""
        verdict, lesson = self.last.verdict, self.item.lesson
        if verdict is None or verdict.boundary is None:
            return lesson
        return message("tensors.quiz.lesson", lesson=lesson, rule=self.last.reason)


def _whole(values: Sequence[Scalar]) -> tuple[int, ...]:
    return tuple(int(value) for value in values if isinstance(value, int | float))
