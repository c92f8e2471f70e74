"""The Exercises page: predict, reveal, hand in; and what a lecturer pastes."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.exercises.exercise import LETTERS, NumberExercise
from core.exercises.path import TITLES, path, read_answers, write_answers
from core.exercises.sheet import LENGTH, TOPICS, hand_in, sheet
from core.messages import message
from pages.common.registry import EXERCISES
from tests.app.test_lecture_links import set_up
from tests.patience import PATIENCE_S

APP = str(Path(__file__).parents[2] / "app.py")
NUMBERS = ("floats", "FLOPs", "memory")
TYPED = ", ".join(NUMBERS)
CHECK, HAND_IN = message("exercises.button.reveal"), message("exercises.button.hand_in")


def opened(**fields: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run()
    app.switch_page(EXERCISES.path)
    app.query_params.update({f"{EXERCISES.prefix}_{name}": text for name, text in fields.items()})
    return app.run()


def answer(app: AppTest, number: int, given: str) -> None:
    """Give an answer to the exercise with this index: a letter, or a number."""
    key = next(
        one.key for kind in (app.radio, app.text_input) for one in kind if (one.key or "").endswith(f":{number}")
    )
    if any(one.key == key for one in app.radio):
        app.radio(key=key).set_value(LETTERS.index(given))
    else:
        app.text_input(key=key).set_value(given)


def said(app: AppTest) -> str:
    return "\n".join(one.proto.body for one in app.get("html"))


def press(app: AppTest, label: str) -> AppTest:
    return next(button for button in app.button if button.label == label).click().run()


def test_an_exercise_is_revealed_after_a_choice_and_the_first_one_counts() -> None:
    app = opened(topics="memory", sheet="3")
    one = sheet(-3, ("memory",)).exercises[0]
    assert isinstance(one, NumberExercise)
    for nonsense in ("", "many"):
        answer(app, 0, nonsense)
        press(app, CHECK)
        assert 'class="np-error"' in said(app)
        assert "<tbody>" not in said(app)
    wrong, slip = next(slip for slip in one.slips if not one.is_right(f"{slip[0]:.12g}"))
    answer(app, 0, f"{wrong:.12g}")
    press(app, CHECK)
    assert "<b>0 of 1</b>" in said(app)
    (row,) = re.findall("<tbody>.*?</tbody>", said(app), re.DOTALL)
    places = [html.unescape(row).index(text) for text in (f"{wrong:.12g}", one.solution, slip, one.why, "_blank")]
    assert places == sorted(places), "the answer, the solution, the slip, the reason, and the way to see it"
    assert not app.exception


def test_a_sheet_is_handed_in_whole_and_once() -> None:
    app = opened(topics=TYPED, sheet="11", how="hand in")
    exercises = sheet(11, NUMBERS).exercises
    answers = [*(one.right_answer for one in exercises[:-1]), "b" if exercises[-1].right_answer == "a" else "a"]
    if isinstance(exercises[-1], NumberExercise):
        answers[-1] = "123456789"
    for number, given in list(enumerate(answers))[:-1]:
        answer(app, number, given)
    press(app, HAND_IN)
    assert 'class="np-error"' in said(app)
    assert not app.code
    answer(app, LENGTH - 1, answers[-1])
    next(box for box in app.text_input if box.key == "e_name").set_value("Ada *L*")
    press(app, HAND_IN)
    assert app.code[0].value == hand_in("Ada *L*", 11, NUMBERS, answers)
    assert "9 of 10" in said(app)
    assert not any(button.label == HAND_IN for button in app.button)
    app.text_input(key="e_name:given:after").set_value("Ada L").run()
    assert app.code[0].value == hand_in("Ada L", 11, NUMBERS, answers)
    assert not app.exception


def test_what_was_handed_in_is_checked() -> None:
    app = opened(topics="memory", check="true")
    best = [one.right_answer for one in sheet(2, ("memory",)).exercises]
    good = hand_in("<b>Ada</b>", 2, ("memory",), best)
    app.text_area[0].set_value(f"{good}\n{good.replace('10 of 10', '9 of 10')}\nnothing").run()
    assert message("exercises.received.valid") in said(app)
    assert message("exercises.problem.checksum") in said(app)
    assert "<b>Ada</b>" not in said(app)
    assert not app.exception


@pytest.mark.parametrize(("field", "text"), [("topics", "nonsense"), ("sheet", "1.5"), ("sheet", "-1"), ("how", "x")])
def test_bad_input_is_said_and_the_sheet_stays(field: str, text: str) -> None:
    app = opened(**{"topics": "memory", field: text})
    assert 'class="np-error"' in said(app)
    assert any(button.label == CHECK for button in app.button)
    assert not app.exception


@pytest.mark.sweep(4)
@pytest.mark.parametrize("seed", range(1, 13))
def test_the_page_that_shows_an_exercise_has_what_its_link_sets(seed: int) -> None:
    topic = tuple(TOPICS)[seed % len(TOPICS)]
    for one in sheet(seed, (topic,)).exercises[:2]:
        assert set_up(one.shown)


def test_the_path_has_nine_steps_that_are_checked_and_kept_in_the_address() -> None:
    steps = path().exercises
    app = opened(how="follow the path")
    assert not app.exception
    assert sum(button.label == CHECK for button in app.button) == len(TITLES) == 9
    assert all(html.escape(title) in said(app) for title in TITLES)
    answer(app, 0, steps[0].right_answer)
    press(app, CHECK)
    assert "<b>1 of 1</b>" in said(app)
    assert app.query_params["steps"] == f"{steps[0].right_answer};;;;;;;;"
    later = AppTest.from_file(APP, default_timeout=PATIENCE_S).run()
    later.switch_page(EXERCISES.path)
    later.query_params.update({"e_how": "follow the path", "steps": f"{steps[0].right_answer};x;-;;;;;;"})
    assert "<b>1 of 1</b>" in said(later.run())


def test_practice_outlasts_a_reload_and_belongs_to_its_sheet() -> None:
    practice = sheet(-3, ("memory",))
    app = opened(topics="memory", sheet="3")
    answer(app, 0, practice.exercises[0].right_answer)
    press(app, CHECK)
    kept = app.query_params["practice"]
    later = AppTest.from_file(APP, default_timeout=PATIENCE_S).run()
    later.switch_page(EXERCISES.path)
    later.query_params.update(
        {"e_topics": "memory", "e_sheet": "3", "practice": kept[0] if isinstance(kept, list) else kept}
    )
    assert "<b>1 of 1</b>" in said(later.run())
    text = write_answers(practice, {0: "12"})
    assert read_answers(practice, text) == {0: "12"}
    assert not read_answers(sheet(-4, ("memory",)), text)
    assert not read_answers(path(), text)
    assert not read_answers(practice, write_answers(path(), {0: "a"}))
    assert not read_answers(path(), "1--------"), "a link of an older edition"
