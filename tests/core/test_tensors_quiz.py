"""The quiz: answers are torch's, options differ, order follows the seed alone, and all categories come up."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from core.tensors.examples.quiz import QuizItem, ask, categories, items, question
from tests.every import every

REFERENCE = (Path(__file__).parents[1] / "data" / "tensor_views.csv").read_text(encoding="utf-8")


def test_every_category_of_the_reference_table_is_covered() -> None:
    wanted = {row["category"] for row in csv.DictReader(io.StringIO(REFERENCE))}
    assert set(categories()) == wanted
    assert all(sum(item.category == kind for item in items()) >= 4 for kind in wanted)
    assert len({(item.source, item.shape, item.dtype) for item in items()}) == len(items()) > 90


@every("item", items(), ids=[f"{item.category} {item.source}" for item in items()])
def test_answers_are_those_of_torch(item: QuizItem) -> None:
    posed = ask(item)
    last = posed.run.last
    kinds = [part.kind for part in posed.asks]
    if item.category == "alias":
        assert kinds == ["values"]
    elif last.kind == "refused" or item.about == ("storage",):
        assert kinds == ["storage"]
    else:
        assert kinds == ["shape", "stride", "storage"]
    for part in posed.asks:
        assert len(set(part.options)) == len(part.options) == len(part.reasons) >= 3
        right = part.options[part.answer]
        if last.kind == "refused":
            assert right == part.options[-1] == "torch raises an error"
        elif part.kind == "shape":
            assert right == str(last.layout.shape)
        elif part.kind == "stride":
            assert right == str(last.layout.stride)
        elif part.kind == "storage":
            assert part.answer == (0 if last.storage == 0 else 1)
        else:
            x = list(range(posed.run[0].layout.numel))
            if last.storage == 0:
                for cell in last.written:
                    x[cell] = 100
            assert right == str(tuple(x))
        about = last.kind == "refused" or part.kind in item.about
        assert part.reasons[part.answer].startswith(item.lesson) == about
        assert item.lesson.endswith(".")
        assert item.lesson.count(".") - item.lesson.count(".view") < 3


def test_no_answer_follows_from_how_many_questions_there_are() -> None:
    """Where torch refuses there is nothing but that to predict; as many single questions end otherwise."""
    single = [ask(item) for item in items() if item.category != "alias" and len(ask(item).asks) == 1]
    ends = [posed.asks[0].answer for posed in single]
    assert len(single) / 2 > max(ends.count(place) for place in range(3))
    assert min(ends.count(place) for place in range(3)) >= 10
    for posed in map(ask, items()):
        assert sum(part.options[part.answer] == "torch raises an error" for part in posed.asks) == bool(
            posed.run.refusal
        )


def test_four_options_where_there_is_something_to_choose() -> None:
    few = [
        (item.source, part.kind)
        for item in items()
        for part in ask(item).asks
        if part.kind != "storage" and len(part.options) < 4 + (part.kind == "values")
    ]
    assert few == []


def test_the_same_numbers_give_the_same_question() -> None:
    first = [question(n, 7) for n in range(4)]
    question.cache_clear()
    assert [question(n, 7) for n in range(4)] == first
    assert [q.item for q in (question(n, 8) for n in range(4))] != [q.item for q in first]


def test_all_categories_come_up_before_one_comes_again() -> None:
    count = len(categories())
    assert {question(n, 3).item.category for n in range(count)} == set(categories())
    fourth = [question(n, 3).item for n in range(3 * count)]
    assert len(set(fourth)) == 3 * count


@pytest.mark.parametrize("seed", range(5))
def test_there_are_as_many_questions_as_items(seed: int) -> None:
    order = [question(n, seed).item for n in range(len(items()))]
    assert len(set(order)) == len(items())
    assert order[0].source == "x.t()"
    assert question(len(items()), seed).item == order[0]


def test_a_lesson_stands_where_it_is_the_reason() -> None:
    """x[:0] teaches that an empty slice keeps the strides, which says nothing of its shape."""
    item = next(item for item in items() if item.source == "x[:0]")
    reasons = {part.kind: part.reasons[part.answer] for part in ask(item).asks}
    assert reasons["stride"] == item.lesson
    assert reasons["shape"] == ""
    assert reasons["storage"] == "A part of the same cells: only offset, sizes and strides change."
    assert all(item.about and set(item.about) <= {"shape", "stride", "storage", "values"} for item in items())


def test_right_answers_are_in_every_place() -> None:
    places = {question(n, 1).asks[0].answer for n in range(36) if len(question(n, 1).asks) > 1}
    assert {0, 1, 2, 3} <= places


def test_each_answer_has_its_reason() -> None:
    (posed,) = ask(next(item for item in items() if item.source == "x.t().view(2, 3)")).asks
    assert posed.options[posed.answer] == "torch raises an error"
    assert posed.reasons[posed.answer].endswith("Here dimensions 0 and 1 cannot merge: stride 1 ≠ 3 × 2.")
    strides = ask(next(item for item in items() if item.source == "x.t()" and item.shape == (2, 3))).asks[1]
    row_major = strides.reasons[strides.options.index("(2, 1)")]
    assert row_major == "Those are the strides of a fresh, row-major tensor of this shape."
