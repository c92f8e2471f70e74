"""What if: the answer is core's, lists that cannot be read say so, and what is chosen becomes the plan."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from streamlit.testing.v1 import AppTest

from core.planning.estimate import estimate
from core.planning.presets import SWEEP_PRESETS as PRESETS
from core.planning.sweep.axes import AXES, default_values, parse_values
from core.planning.sweep.sweep import Sweep, SweptAxis, plan_of_texts, recommend, sweep_plan, sweep_within
from core.views.sweep import text as sweep_text
from pages.common.registry import COMPUTE, MEMORY, PARALLEL, WHAT_IF, PageSpec
from pages.what_if.form import FORM
from tests.app.plan_pages import bodies, current_preset, linked, next_pages, opened, shown, stripped
from tests.app.plan_pages import words as said_on

FIRST = next(iter(PRESETS))
TYPED = {**PRESETS[FIRST], "xs": "512, 1,024, 2,048, 4,096", "ys": "30%, 40%, 50%"}


def of_form(texts: Mapping[str, str]) -> Sweep:
    """The sweep of these fields, without any page."""
    reading = FORM.parse(texts)
    plan = plan_of_texts(reading.texts)
    sides: list[SweptAxis] = []
    for side, values in (("x", "xs"), ("y", "ys")):
        axis = AXES[reading.values[side]]
        sides.append(
            SweptAxis(axis, parse_values(axis, reading.texts[values]) or default_values(axis, plan, reading.texts))
        )
    return sweep_plan(reading.texts, *sides, sweep_within(reading.values["due"], plan))


def told(made: Sweep) -> str:
    said = " ".join(sweep_text.answer(made, recommend(made)))
    return shown(said) + shown(sweep_text.plan_text(estimate(plan_of_texts(made.base))))


def answered(app: AppTest) -> str:
    (said,) = bodies(app, "np-answer")
    return stripped(said)


def errors(app: AppTest) -> list[str]:
    return [stripped(body) for body in bodies(app, "np-error")]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_told_by_the_form_alone(preset: str) -> None:
    app = opened(WHAT_IF, PRESETS[preset])
    assert answered(app) == told(of_form(PRESETS[preset]))
    assert errors(app) == []
    assert current_preset(app, "w:presets") == preset


@pytest.mark.parametrize(
    ("field", "text", "named"),
    [("xs", "1, two, 3", "“two”"), ("ys", "30%, 400%", "“400%”"), ("xs", "<b>9</b>", "“<b>9</b>”")],
)
def test_a_bad_list_says_so_and_the_last_good_one_stays(field: str, text: str, named: str) -> None:
    app = opened(WHAT_IF, TYPED)
    before = answered(app)
    app.text_input(key=f"w_{field}").set_value(text).run()
    (said,) = errors(app)
    assert FORM[field].label in said
    assert named in said
    assert TYPED[field] in said
    assert answered(app) == before
    app.text_input(key=f"w_{field}").set_value("").run()
    assert errors(app) == []


def test_a_list_of_one_axis_is_not_kept_for_another() -> None:
    app = opened(WHAT_IF, TYPED)
    app.selectbox(key="w_x").set_value("accelerator kind").run()
    (said,) = errors(app)
    assert FORM["xs"].label in said
    app.text_input(key="w_xs").set_value("H100 SXM, B200").run()
    assert errors(app) == []
    assert answered(app) == told(of_form({**TYPED, "x": "accelerator kind", "xs": "H100 SXM, B200"}))


def test_a_side_that_is_no_longer_swept_is_named_and_leaves_the_usual_one() -> None:
    app = opened(WHAT_IF, {"x": "optimizer", "y": "MFU"})
    (said,) = errors(app)
    assert "optimizer" in said
    assert answered(app)


@pytest.mark.parametrize("due", ["120 days", "$5M", ""])
def test_the_deadline_is_the_boards_own(due: str) -> None:
    app = opened(WHAT_IF, {"due": due})
    assert (f"within {due}" in said_on(app)) == bool(due)
    assert answered(app) == told(of_form({"due": due}))


def test_what_is_least_becomes_the_plan_and_the_board_stays_around_it() -> None:
    app = opened(WHAT_IF, PRESETS[FIRST])
    made = of_form(PRESETS[FIRST])
    picked = recommend(made)
    assert picked is not None
    app.button(key="w_least").click().run()
    fields = linked(app)
    assert (fields["p_count"], fields["p_mfu"]) == ("2,048", "40%")
    assert (fields["w_xs"], fields["w_ys"]) == (made.x.written, made.y.written)
    again = of_form({name.partition("_")[2]: text for name, text in fields.items() if name != "v"})
    assert (again.x.texts, again.y.texts) == (made.x.texts, made.y.texts)
    assert again.plan_cell == picked.cell
    assert answered(app) == told(again)
    assert not [one for one in app.button if one.key == "w_least"]


@pytest.mark.parametrize("page", [COMPUTE, MEMORY, PARALLEL], ids=lambda page: page.id)
def test_the_plan_goes_on_to_other_pages(page: PageSpec) -> None:
    (fields,) = next_pages(opened(WHAT_IF, {"count": "2,048", "tokens": "9T", "find": "tokens"}), page)
    assert (fields["count"], fields["tokens"], fields["find"]) == ("2,048", "9T", "time")


def test_a_plan_without_an_answer_says_why_and_the_page_stands() -> None:
    app = opened(WHAT_IF, {"rate1k": "MTBF 1 min", "back": "3 h", "pace": "steady steps"})
    assert any("No progress" in said for said in errors(app))
    assert answered(app)


def test_too_many_layouts_are_said_and_the_values_stay_typed() -> None:
    values = ", ".join(f"{1024 * (k + 1)}" for k in range(16))
    app = opened(WHAT_IF, {"x": "sequence length", "xs": values, "n": "1T", "count": "8,192"})
    assert len(errors(app)) == 1
    assert linked(app)["w_xs"] == values
    assert answered(app)
