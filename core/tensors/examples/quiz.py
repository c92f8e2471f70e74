"""A quiz on views: predict what an expression gives, then see torch's answer with its reason.

The expressions are assets/data/tensor_quiz.csv; answers are never stored, they are torch's, by running the expression.
Wrong options come from the mistakes people make: strides of a fresh copy, strides left where they were, bytes.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, zip_longest
from typing import Literal, TypeAlias

from core.limits import cached
from core.messages import Message, message
from core.rows import read_rows
from core.tensors.layout import TensorLayout, contiguous_strides
from core.tensors.parsing.text import read_shape
from core.tensors.tracing.steps import Scalar, Trace, TraceStep
from core.tensors.tracing.trace import trace

AskKind: TypeAlias = Literal["storage", "shape", "stride", "values"]

_WRONG = 3
_ASKS = ("shape", "stride", "storage", "values")

FIRST = "x.t()"
"""The expression that every order starts with: the simplest one with something to predict."""


@dataclass(frozen=True, slots=True)
class QuizItem:
    """A row of the quiz: an expression on x of a shape and dtype, and the rule it teaches.

    about: the questions that the lesson answers; every one where torch refuses.
    """

    category: str
    shape: tuple[int, ...]
    dtype: str
    source: str
    lesson: str
    about: tuple[str, ...]

    def run(self) -> Trace:
        """The expression run on torch."""
        return trace(self.source, self.shape, dtype=self.dtype)


@dataclass(frozen=True, slots=True)
class Ask:
    """One thing to predict. options: what to choose from, answer: the right one's place, reasons: one per option."""

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
    """Every row of the quiz."""
    return tuple(
        QuizItem(
            category=r["category"],
            shape=read_shape(r["shape"]),
            dtype=r["dtype"],
            source=r["expression"].replace("|", "\n"),
            lesson=f"{r['lesson']}.",
            about=_ASKS if r["about"] == "all" else tuple(r["about"].split()),
        )
        for r in read_rows("tensor_quiz")
    )


def categories() -> tuple[str, ...]:
    """The categories in order of appearance."""
    return tuple(dict.fromkeys(item.category for item in items()))


@cached("results_kept")
def question(number: int, seed: int = 0) -> Question:
    """The ``number``-th question of the order that ``seed`` gives; the same for everybody with the same two numbers.

    Each item comes once in as many questions as there are, then the order starts again; see `_order`.
    """
    order = _order(seed)
    return ask(order[number % len(order)], number, seed)


@cached("results_kept")
def _order(seed: int) -> tuple[QuizItem, ...]:
    """All items, a round through the categories at a time; those that are through are left out of later rounds."""
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
    """The question on ``item``; ``number`` and ``seed`` only decide the order of the options."""
    run = item.run()
    rng = random.Random(f"{item.source} {item.shape} {number} {seed}")  # noqa: S311
    if item.category == "alias":
        asks: tuple[Ask, ...] = (_ask_values(item, run, rng),)
    elif run.refusal is not None or item.about == ("storage",):
        asks = (_ask_storage(item, run),)  # so that a single question does not give away that torch refuses
    else:
        asks = (_ask_shape(item, run, rng), _ask_stride(item, run, rng), _ask_storage(item, run))
    return Question(item, asks, run)


# ---------------------------------------------------------------------------------------------------- asks


def _ask_storage(item: QuizItem, run: Trace) -> Ask:
    last = run.last
    options = (message("tensors.quiz.shared"), message("tensors.quiz.new"), message("tensors.quiz.error"))
    answer = 2 if last.kind == "refused" else 0 if last.storage == 0 else 1
    reasons = [""] * 3
    reasons[answer] = _why("storage", item, run)
    return Ask("storage", message("tensors.quiz.storage"), options, answer, tuple(reasons))


def _ask_shape(item: QuizItem, run: Trace, rng: random.Random) -> Ask:
    before, wanted = _before(run), run.last.layout.shape
    wrong = [
        (item.shape, message("tensors.quiz.shape_x")),
        (before.shape, message("tensors.quiz.shape_before")),
        (wanted[::-1], message("tensors.quiz.sizes_order")),
        *((tuple(p), message("tensors.quiz.sizes_order")) for p in permutations(wanted) if len(wanted) < 5),
        (tuple(size for size in wanted if size != 1), message("tensors.quiz.ones_stay")),
        ((1, *wanted), message("tensors.quiz.no_one_added")),
        ((*wanted, 1), message("tensors.quiz.no_one_added")),
        (_merged(wanted), message("tensors.quiz.no_merge")),
        ((*wanted[:-1], sum(wanted[-1:]) + 1), message("tensors.quiz.off_by_one")),
    ]
    return _choices("shape", message("tensors.quiz.shape"), item, run, wanted, wrong, rng)


def _ask_stride(item: QuizItem, run: Trace, rng: random.Random) -> Ask:
    last, before = run.last, _before(run)
    shape, wanted = last.layout.shape, last.layout.stride
    fresh = contiguous_strides(shape)
    size = last.element_size
    x = run[0].layout.stride
    backwards = "::-" in item.source or "flip" in item.source
    wrong = [
        *([(tuple(-step for step in wanted), message("tensors.quiz.negative"))] * backwards),
        (fresh, message("tensors.quiz.strides_fresh")),
        (before.stride, message("tensors.quiz.strides_before")),
        (x, message("tensors.quiz.strides_x")),
        (wanted[::-1], message("tensors.quiz.strides_order")),
        (tuple(step * size for step in wanted), message("tensors.quiz.bytes")),
        *((tuple(p), message("tensors.quiz.strides_order")) for p in permutations(wanted) if len(wanted) < 5),
        (tuple(max(step, 1) for step in wanted), message("tensors.quiz.zero")),
        (tuple(shape), message("tensors.quiz.sizes")),
        ((*wanted, 1), message("tensors.quiz.one_each")),
        (tuple(2 * step for step in wanted), message("tensors.quiz.too_long")),
        (tuple(step + 1 for step in wanted), message("tensors.quiz.too_long")),
    ]
    return _choices("stride", message("tensors.quiz.strides"), item, run, wanted, wrong, rng)


def _ask_values(item: QuizItem, run: Trace, rng: random.Random) -> Ask:
    last, start = run.last, run[0]
    refused = last.kind == "refused"
    after: tuple[Scalar, ...] = start.values
    if not refused and last.storage == 0:
        cells: list[int] = start.layout.cells().tolist()
        after = tuple(last.storage_values[cell] for cell in cells)
    written = [at for at, (old, new) in enumerate(zip(start.values, after, strict=True)) if old != new]
    places = [*written, 0, 1, len(start.values) - 1, *range(len(start.values))]
    wrong = [(_whole(start.values), message("tensors.quiz.sees"))]
    for place in places:
        other = list(start.values)
        other[(place + (place in written)) % len(other)] = 100
        wrong.append((_whole(other), message("tensors.quiz.other_cell")))
    return _choices("values", message("tensors.quiz.values"), item, run, _whole(after), wrong, rng)


def _choices(
    kind: AskKind,
    prompt: Message,
    item: QuizItem,
    run: Trace,
    wanted: tuple[int, ...],
    wrong: Sequence[tuple[tuple[int, ...], Message]],
    rng: random.Random,
) -> Ask:
    """The right answer, ``wanted`` or the error, among different wrong ones, shuffled.

    The error is an option, the last, where no other question asks about it.
    """
    refused = run.refusal is not None
    if not wanted:
        wrong = [(option, message("tensors.quiz.single")) for option in ((1,), (0,), (1, 1))]
    table: dict[tuple[int, ...], str] = {wanted: "" if refused else _why(kind, item, run)}
    for option, why in wrong:
        if len(table) > _WRONG:
            break
        table.setdefault(option, "" if refused else why)
    options = list(table)
    rng.shuffle(options)
    texts, reasons = [str(option) for option in options], [table[option] for option in options]
    if kind == "values":
        texts.append(message("tensors.quiz.error"))
        reasons.append(_lesson(item, run.last) if refused else "")
    return Ask(kind, prompt, tuple(texts), len(options) if refused else options.index(wanted), tuple(reasons))


def _why(kind: AskKind, item: QuizItem, run: Trace) -> str:
    """Why the right answer is right: the lesson where it is about that, else what the step itself says."""
    last = run.last
    if last.kind == "refused" or (kind == "storage" and kind in item.about):
        return _lesson(item, last)
    if kind in item.about:
        return item.lesson
    if kind == "storage" and last.reason:
        return message("tensors.because", reason=last.reason)
    if kind == "stride" and last.layout.rank and last.layout.stride == contiguous_strides(last.layout.shape):
        return message("tensors.quiz.row_major")
    return ""


def _lesson(item: QuizItem, step: TraceStep) -> str:
    """Why torch refused or copied, in a sentence: the rule, and our account of the numbers where there is one."""
    edge = None if step.verdict is None else step.verdict.boundary
    return item.lesson if edge is None else message("tensors.quiz.lesson", lesson=item.lesson, rule=step.reason)


def _before(run: Trace) -> TensorLayout:
    """The layout the last step worked on."""
    inputs = run.last.inputs
    return run[inputs[0]].layout if inputs else run[0].layout


def _merged(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0] * shape[1], *shape[2:]) if len(shape) > 1 else (*shape, 2)


def _whole(values: Sequence[Scalar]) -> tuple[int, ...]:
    return tuple(int(value) for value in values if isinstance(value, int | float))
