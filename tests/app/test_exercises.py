"""The Exercises page: predict, reveal, hand in; and what a lecturer pastes."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.exercises.path import TITLES, path, read, written
from core.exercises.sheet import LENGTH, TOPICS, hand_in, sheet
from pages.common.registry import EXERCISES
from tests.app.test_lecture_links import set_up
from tests.patience import PATIENCE_S

APP = str(Path(__file__).parents[2] / "app.py")
NUMBERS = ("floats", "FLOPs", "memory")
TYPED = ", ".join(NUMBERS)


def opened(**fields: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run()
    app.switch_page(EXERCISES.path)
    app.query_params.update({f"{EXERCISES.prefix}_{name}": text for name, text in fields.items()})
    return app.run()


def said(app: AppTest) -> str:
    return "\n".join(one.proto.body for one in app.get("html"))


def press(app: AppTest, label: str) -> AppTest:
    return next(button for button in app.button if button.label == label).click().run()


def test_an_exercise_is_revealed_after_a_choice_and_the_first_one_counts() -> None:
    app = opened(topics="memory", sheet="3")
    one = sheet(-3, ("memory",)).exercises[0]
    press(app, "Reveal")
    assert "Choose an answer first" in said(app)
    wrong = (one.answer + 1) % len(one.options)
    app.radio[0].set_value(wrong)
    press(app, "Reveal")
    assert "<b>0 of 1</b>" in said(app)
    assert one.reasons[one.answer] in said(app)
    (row,) = re.findall("<tbody>.*?</tbody>", said(app), re.DOTALL)
    given, right = (row.index(one.options[choice]) for choice in (wrong, one.answer))
    assert given < right < row.index('target="_blank"'), "the answer given, the right one, and the way to see it"
    assert not app.exception


def test_a_sheet_is_handed_in_whole_and_once() -> None:
    app = opened(topics=TYPED, sheet="11", how="hand in")
    exercises = sheet(11, NUMBERS).exercises
    assert len(app.radio) == LENGTH
    for radio, one in list(zip(app.radio, exercises, strict=True))[:-1]:
        radio.set_value(one.answer)
    press(app, "Hand in")
    assert "1 of 10 exercises have no answer yet" in said(app)
    app.radio[-1].set_value((exercises[-1].answer + 1) % 4)
    next(box for box in app.text_input if box.key == "e_name").set_value("Ada *L*")
    press(app, "Hand in")
    answers = [*(one.answer for one in exercises[:-1]), (exercises[-1].answer + 1) % 4]
    assert app.code[0].value == hand_in("Ada *L*", 11, NUMBERS, answers)
    assert "9 of 10" in said(app)
    assert not app.radio
    app.text_input(key="e_name:given:after").set_value("Ada L").run()
    assert app.code[0].value == hand_in("Ada L", 11, NUMBERS, answers)
    assert not app.exception


def test_what_was_handed_in_is_checked() -> None:
    app = opened(topics="memory", check="true")
    best = [one.answer for one in sheet(2, ("memory",)).exercises]
    good = hand_in("<b>Ada</b>", 2, ("memory",), best)
    app.text_area[0].set_value(f"{good}\n{good.replace('10 of 10', '9 of 10')}\nnothing").run()
    assert "2 sheets" in said(app)
    assert "as it was made" in said(app)
    assert "checksum" in said(app)
    assert "<b>Ada</b>" not in said(app)
    assert not app.exception


@pytest.mark.parametrize(("field", "text"), [("topics", "nonsense"), ("sheet", "1.5"), ("sheet", "-1"), ("how", "x")])
def test_bad_input_is_said_and_the_sheet_stays(field: str, text: str) -> None:
    app = opened(**{"topics": "memory", field: text})
    assert 'class="np-error"' in said(app)
    assert app.radio
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
    assert len(app.radio) == len(TITLES) == 9
    assert all(html.escape(title) in said(app) for title in TITLES)
    app.radio[0].set_value(steps[0].answer)
    press(app, "Reveal")
    assert "<b>1 of 1</b>" in said(app)
    assert app.query_params["steps"] == f"{steps[0].answer}--------"
    later = AppTest.from_file(APP, default_timeout=PATIENCE_S).run()
    later.switch_page(EXERCISES.path)
    later.query_params.update({"e_how": "follow the path", "steps": f"{steps[0].answer}9x-"})
    assert "<b>1 of 1</b>" in said(later.run())


def test_practice_outlasts_a_reload_and_belongs_to_its_sheet() -> None:
    practice = sheet(-3, ("memory",))
    app = opened(topics="memory", sheet="3")
    app.radio[0].set_value(practice.exercises[0].answer)
    press(app, "Reveal")
    kept = app.query_params["practice"]
    later = AppTest.from_file(APP, default_timeout=PATIENCE_S).run()
    later.switch_page(EXERCISES.path)
    later.query_params.update(
        {"e_topics": "memory", "e_sheet": "3", "practice": kept[0] if isinstance(kept, list) else kept}
    )
    assert "<b>1 of 1</b>" in said(later.run())
    text = written(practice, {0: 1})
    assert read(practice, text) == {0: 1}
    assert not read(sheet(-4, ("memory",)), text)
    assert not read(path(), text)
    assert not read(practice, written(path(), {0: 1}))
