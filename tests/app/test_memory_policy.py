"""Training memory's precision, edited: what begins as the chosen one, counts at once, and stays where it is closed."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from core.planning.estimate import estimate
from core.planning.form.plan_form import plan_of
from core.planning.form.training import OWN_FIELDS
from core.planning.memory_estimate import memory_estimate
from core.planning.plan import OWN_POLICY
from core.training.custom_policy import own_like
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES
from core.views.plan import text_fixes
from core.views.report.rows import plan_rows
from core.views.report.tables import rows_csv
from core.views.training import text_precision
from pages.common.registry import COMPUTE, MEMORY
from pages.compute.form import FORM as COMPUTE_FORM
from pages.memory.form import FORM
from tests.app.plan_pages import bodies, downloads, fold, linked, next_pages, opened, shown, stripped

TYPES = {field.id for field in OWN_FIELDS.values()}


def pick(app: AppTest, field: str, option: str) -> None:
    """Choose a type, as a click on it does."""
    (widget,) = [one for one in app.get("button_group") if one.key == f"p_{field}"]
    widget.set_value(option).run()
    assert not app.exception


def sum_of(app: AppTest) -> str:
    return stripped(next(text for text in bodies(app, "np-takeaway") if "bytes per parameter" in text))


def texts_of(app: AppTest) -> dict[str, str]:
    return {name.partition("_")[2]: text for name, text in linked(app).items() if name != "v"}


@pytest.mark.sweep(5)
@pytest.mark.parametrize("prec", POLICIES)
def test_editing_begins_from_the_chosen_precision(prec: str) -> None:
    """The first change keeps all other types; answer, sum and link follow at once."""
    app = opened(MEMORY, {"policy": "true", "prec": prec, "opt": "Adam"})
    before = own_like(POLICIES[prec], find_optimizer("Adam"))
    assert texts_of(app)["prec"] == prec
    other = "fp16" if before.gradients != "fp16" else "bf16"
    pick(app, "pg", other)
    after = texts_of(app)
    assert after["prec"] == OWN_POLICY
    plan = plan_of(FORM.parse(after))
    assert plan.own_policy == own_like(plan.own_policy.under(find_optimizer("Adam")), find_optimizer("Adam"))
    assert (plan.own_policy.weights, plan.own_policy.master, plan.own_policy.states[:2]) == (
        before.weights,
        before.master,
        before.states[:2],
    )
    assert plan.own_policy.gradients == other
    assert sum_of(app) == shown(text_precision.adds_up(memory_estimate(plan)))
    assert shown(text_fixes.verdict(memory_estimate(plan))) in stripped(bodies(app, "np-answer")[0])


def test_bytes_add_up_live() -> None:
    """From 16 by the fp32 master copy to 12, by bf16 states to 8, with an fp32 buffer to 12, and back by the menu."""
    app = opened(MEMORY, {"policy": "true"})
    for field, option, total in (
        ("pm", "none", 12),
        ("ps1", "bf16", 10),
        ("ps2", "bf16", 8),
        ("pa", "fp32", 12),
        ("pg", "fp32", 14),
    ):
        pick(app, field, option)
        assert sum_of(app).startswith(f"{total} bytes per parameter")
    fold(app, "plan:precision", open=True)
    (menu,) = [box for box in app.selectbox if box.key == "p_prec"]
    assert menu.value == OWN_POLICY
    menu.set_value("fp32").run()
    assert sum_of(app).startswith("16 bytes per parameter")
    assert texts_of(app)["pg"] == "fp32"
    assert texts_of(app)["pa"] == "none"


def test_types_count_where_their_panel_is_closed() -> None:
    app = opened(MEMORY, {"policy": "true"})
    pick(app, "pm", "none")
    pick(app, "pv", "fp8")
    told, link = bodies(app, "np-answer"), texts_of(app)
    fold(app, "m_policy", open=False)
    assert not [one for one in app.get("button_group") if one.key == "p_pm"]
    app.text_input(key="p_seq").set_value("4,096").run()
    app.text_input(key="p_seq").set_value("8,192").run()
    assert bodies(app, "np-answer") == told
    assert {n: t for n, t in texts_of(app).items() if n != "policy"} == {n: t for n, t in link.items() if n != "policy"}
    fold(app, "m_policy", open=True)
    assert texts_of(app) == link
    assert sum_of(app).startswith("12 bytes per parameter")


def test_a_link_carries_the_types_to_every_page_and_back() -> None:
    """To Compute budget, whose remark on memory and whose table count them, and from its own link again."""
    own = {"prec": OWN_POLICY, "pm": "none", "pw": "fp32", "ps2": "8-bit blocks", "n": "70B", "count": "8", "zero": "0"}
    app = opened(MEMORY, own)
    (carried,) = next_pages(app, COMPUTE)
    assert carried.keys() >= TYPES
    plan = plan_of(COMPUTE_FORM.parse(carried))
    assert plan.own_policy == plan_of(FORM.parse(own)).own_policy
    with downloads() as made:
        opened(COMPUTE, {**carried, "take": "true"})
    assert made["csv"]().decode() == rows_csv(plan_rows(estimate(plan)))
    again = opened(MEMORY, texts_of(app))
    assert bodies(again, "np-answer") == bodies(app, "np-answer")
    assert linked(again) == linked(app)


def test_the_menu_alone_begins_ones_own_with_what_was_chosen() -> None:
    """On both pages, also where no editor stands: “own” changes no number by itself."""
    for page in (MEMORY, COMPUTE):
        app = opened(page, {"prec": "fp32", "n": "8B", "opt": "SGD momentum"})
        before = bodies(app, "np-answer")
        fold(app, "plan:precision", open=True)
        (menu,) = [box for box in app.selectbox if box.key == "p_prec"]
        menu.set_value(OWN_POLICY).run()
        assert not app.exception
        link = linked(app)
        assert (link["p_prec"], link["p_pw"], link["p_pm"]) == (OWN_POLICY, "fp32", "none")
        assert [stripped(text).partition("AdamW")[0].partition("SGD")[0] for text in bodies(app, "np-answer")] == [
            stripped(text).partition("AdamW")[0].partition("SGD")[0] for text in before
        ]
