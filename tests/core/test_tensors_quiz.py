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


def test_the_same_numbers_give_the_same_question() -> None:
    first = [question(n, 7) for n in range(4)]
    question.cache_clear()
    assert [question(n, 7) for n in range(4)] == first
    assert [q.item for q in (question(n, 8) for n in range(4))] != [q.item for q in first]


@pytest.mark.parametrize("seed", range(5))
def test_there_are_as_many_questions_as_items(seed: int) -> None:
    order = [question(n, seed).item for n in range(len(items()))]
    assert len(set(order)) == len(items())
    assert question(len(items()), seed).item == order[0]
    assert {item.category for item in order[: len(categories())]} == set(categories())
