"""One plan gives one number on every page, from the form alone as on the page, whatever is open or folded."""

from __future__ import annotations

import pytest

from core.fields import LINK_VERSION, Form
from core.messages import message
from core.planning.estimate import estimate
from core.planning.form.plan_form import PLAN_FIELDS, plan_from, plan_of
from core.planning.form.training import OWN_FIELDS, TRAINED_FIELDS
from core.planning.memory_estimate import memory_estimate
from core.planning.plan import OWN_POLICY, OWN_SHAPE, TYPED, Plan
from core.planning.presets import MEMORY_PRESETS, PRESETS
from core.views.plan import text as plan_text
from core.views.plan import text_fixes, text_memory
from core.views.report.rows import plan_rows
from core.views.report.tables import rows_csv
from pages.common.inputs import PLAN_TEXTS
from pages.common.registry import COMPUTE, HOME, MEMORY, PARALLEL, WHAT_IF, PageSpec
from pages.compute.form import FORM as COMPUTE_FORM
from pages.compute.form import PANELS
from pages.home.form import FORM as HOME_FORM
from pages.memory.form import FORM as MEMORY_FORM
from pages.what_if.form import FORM as WHAT_IF_FORM
from tests.app.plan_pages import (
    CLOSED,
    OPEN,
    bodies,
    downloads,
    fold,
    linked,
    next_pages,
    opened,
    opens_to_itself,
    shown,
    stripped,
)

PLAN_IDS = {field.id for field in PLAN_FIELDS if not field.omit_if_empty}

# ------------------------------------------------------------------------------------------ from the form alone


@pytest.mark.parametrize("page", [COMPUTE, MEMORY], ids=lambda page: page.id)
def test_where_no_layout_keeps_to_what_is_asked_the_last_answer_stays(page: PageSpec) -> None:
    """The fastest layout cannot be shown instead, since it is the one that is not there."""
    app = opened(page, {"model": "Llama 3.1 8B", "tokens": "2T", "count": "64"})
    before = bodies(app, "np-answer")
    app.session_state[PLAN_TEXTS] = {**app.session_state[PLAN_TEXTS], "ktp": "7"}
    app.run()
    assert bodies(app, "np-answer") == before
    assert "shows the last valid result" in stripped("\n".join(bodies(app, "np-error")))


@pytest.mark.parametrize("page", [HOME, COMPUTE, MEMORY, PARALLEL, WHAT_IF], ids=lambda page: page.id)
@pytest.mark.parametrize(
    "wrong",
    [{"lay": "own", "tp": "3"}, {"lay": "own", "ep": "4", "tp": "2"}, {"ft": "last layers", "lastn": "99"}],
    ids=lambda wrong: next(reversed(wrong)),
)
def test_of_a_plan_that_cannot_be_what_can_be_is_shown(page: PageSpec, wrong: dict[str, str]) -> None:
    texts = {"model": "Llama 3.1 8B", "tokens": "2T", "count": "64", **wrong}
    app = opened(page, texts)
    every = "\n".join(block.proto.body for block in app.get("html"))
    assert every.index('class="np-error"') < every.index('class="np-answer"'), "said before what it is about"
    said = stripped("\n".join(bodies(app, "np-answer")))
    assert "Llama 3.1 8B" in said or "64 H100" in said or page is WHAT_IF  # which names neither
    assert "1,024" not in said
    assert said != stripped("\n".join(bodies(opened(page, {}), "np-answer")))


def told(plan: Plan) -> tuple[str, str]:
    """Sentence and CSV of a plan, without any page."""
    a = estimate(plan)
    return plan_text.headline(a), rows_csv(plan_rows(a))


def told_by_compute(texts: dict[str, str]) -> tuple[str, str]:
    """The same as the page has them."""
    with downloads() as made:
        app = opened(COMPUTE, {**texts, "take": "true"})
    (said,) = bodies(app, "np-answer")
    return stripped(said.partition("<small>")[0]), made["csv"]().decode()


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_of_compute_is_told_by_the_form_alone(name: str) -> None:
    sentence, table = told(plan_from(PRESETS[name]))
    assert told_by_compute(dict(PRESETS[name])) == (shown(sentence), table)


@pytest.mark.parametrize("name", MEMORY_PRESETS)
def test_a_preset_of_training_memory_is_told_by_the_form_alone(name: str) -> None:
    preset = MEMORY_PRESETS[name]
    assert told_by_memory(dict(preset)) == told_of_memory(plan_of(MEMORY_FORM.parse(preset)))


def told_of_memory(plan: Plan) -> str:
    return shown(text_fixes.verdict(memory_estimate(plan)))


def told_by_memory(texts: dict[str, str]) -> str:
    (said,) = bodies(opened(MEMORY, texts), "np-answer")
    return stripped(said.partition("<small>")[0])


# ------------------------------------------------------------------------------------------ open or folded

FOLDED = {"rate1k": "5", "each": "60 MB/s", "back": "20 min", "every": "1 h", "waits": "50%", "other": "3%"}
FOLDED |= {"draw": "80%", "pue": "1.2", "grid": "0.1", "moved": "dollars", "sway": "30", "mb": "10", "rate": "2M"}
PACED = {"mfu": "38-42%", "pace": "steady steps"}


def exported(texts: dict[str, str]) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Files, link and answer; of the link all but what is open."""
    with downloads() as made:
        app = opened(COMPUTE, texts)
    link = {name: text for name, text in linked(app).items() if name.removeprefix("c_") not in PANELS}
    files = {name: made[name]().decode().partition(f"{message('report.link')}:")[0] for name in ("csv", "md") if made}
    return files, link, bodies(app, "np-answer")


def test_every_panel_that_is_asked_for_is_drawn() -> None:
    assert {panel.label for panel in PANELS.values()} <= {drawn.label for drawn in opened(COMPUTE, {}).expander}


FOLDED_OF_PLAN = {name: text for name, text in FOLDED.items() if name in PLAN_IDS}
SOUGHT = {"gb": "512", "kzero": "1", "krc": "full", "knode": "false", "koff": "true"}
SOUGHT |= {"free": "10%", "sure": "P75", "node": "4"}
SOUGHT |= dict.fromkeys(("ktp", "kpp", "kvpp", "kcp", "kep", "ketp", "kmbs"), "up to 8")


def test_all_panels_open_or_closed_export_the_same() -> None:
    """Fields of closed panels count; none is lost, whatever is open."""
    closed = exported({**CLOSED, "take": "true", **FOLDED, **PACED})
    assert exported({**OPEN, "take": "true", **FOLDED, **PACED}) == closed
    files, link, _ = closed
    assert files["csv"] == told(plan_from({**FOLDED_OF_PLAN, **PACED}))[1]
    assert {name: link[COMPUTE_FORM.key(name)] for name in FOLDED} == FOLDED


def test_folding_a_panel_by_hand_keeps_its_fields() -> None:
    """What was typed in a panel counts on after it was closed, and stands there when it opens again."""
    app = opened(COMPUTE, {**CLOSED, "whole": "true", **PACED})
    before = bodies(app, "np-answer")
    app.text_input(key="p_rate1k").set_value("5").run()
    typed = bodies(app, "np-answer")
    assert typed != before
    fold(app, "c_whole", open=False)
    assert "p_rate1k" not in {box.key for box in app.text_input}
    assert (bodies(app, "np-answer"), linked(app)["p_rate1k"]) == (typed, "5")
    fold(app, "c_whole", open=True)
    assert app.text_input(key="p_rate1k").value == "5"


def test_a_link_names_every_field_and_opens_to_the_same_page() -> None:
    opens_to_itself(COMPUTE, COMPUTE_FORM, {**OPEN, **FOLDED, **PACED})


@pytest.mark.long
@pytest.mark.parametrize(("page", "form"), [(HOME, HOME_FORM), (MEMORY, MEMORY_FORM), (WHAT_IF, WHAT_IF_FORM)])
def test_a_link_to_everything_open_opens_to_it(page: PageSpec, form: Form) -> None:
    opens_to_itself(page, form, {field.id: "true" for field in form.fields if field.kind == "switch"})


def test_a_link_of_version_1_is_translated() -> None:
    app = opened(COMPUTE, {"find": "cost", "which": "true", "cost": "12", "n": "8B", "mfu": "40%"}, version=1)
    assert not bodies(app, "np-error")
    link = linked(app)
    assert (link["v"], link["p_find"], link["c_flops"], link["p_pace"], link["p_n"]) == (
        str(LINK_VERSION),
        "time",
        "true",
        "all hours",
        "8B",
    )


# ------------------------------------------------------------------------------------------ one plan on every page

PLANS: dict[str, dict[str, str]] = {
    "as it opens": {},
    "typed": {"mfu": "50%", "n": "405B", "tokens": "15.6T", "count": "16384", "gpu": "H100 SXM"},
    "a mixture": {"model": "DeepSeek-V3", "tokens": "14.8T", "count": "2048", "gpu": "H800 SXM", "dtype": "fp8"},
    "momentum, replicated": {"opt": "SGD", "prec": "bf16 throughout", "zero": "0", "n": "1B", "rate1k": "9"},
    "laid out": {"model": "Llama 3.1 405B", "count": "16384", "tp": "8", "pp": "16", "zero": "1", "rc": "full"},
    "own precision": {"prec": "own", "pm": "none", "pg": "fp16", "ps1": "fp8", "pv": "fp8", "model": "Llama 3.1 8B"},
    "does not fit": {"model": "DeepSeek-V3", "gpu": "T4", "count": "8", "mfu": "30%", "pace": "steady steps"},
}


@pytest.mark.sweep(5)
@pytest.mark.parametrize("counted", ["everything", "model states alone"])
@pytest.mark.parametrize("name", PLANS)
def test_the_largest_model_of_home_is_that_of_training_memory(name: str, counted: str) -> None:
    """The link from Home's second answer opens Training memory at the same bytes: it fits, by states alone or all."""
    texts = {**PLANS[name], "of": counted, "k": "16"}
    app = opened(HOME, texts)
    there = next_pages(app, MEMORY)[-2]  # the last one fine-tunes
    here = memory_estimate(plan_of(MEMORY_FORM.parse(there)))
    assert (here.fits if counted == "everything" else here.states_fit) == "fits"
    said = stripped(bodies(app, "np-answer")[1])
    assert text_memory.gib(float(here.device_memory.states)) in said or counted != "everything"
    assert there["n"].removesuffix("B") in said


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", PLANS)
def test_a_plan_survives_the_way_to_training_memory_and_back(name: str) -> None:
    texts = {**FOLDED_OF_PLAN, **SOUGHT, **PLANS[name]}
    there = next_pages(opened(COMPUTE, texts), MEMORY)[-1]
    (back,) = next_pages(opened(MEMORY, there), COMPUTE)
    model = plan_from(texts).model
    silent = {name for name, one in (("shape", OWN_SHAPE), ("n", TYPED)) if model != one}
    silent |= {field.id for field in OWN_FIELDS.values()} if plan_from(texts).policy != OWN_POLICY else set[str]()
    silent |= {field.id for field in TRAINED_FIELDS if texts.get(field.id, field.default) == field.default}
    assert set(there) == set(back) == (PLAN_IDS | {"node"}) - silent
    assert plan_from(back) == plan_from(there) == plan_from(texts)
    assert plan_from(texts) in map(plan_from, next_pages(opened(HOME, texts), COMPUTE))


def test_parameters_that_were_found_are_of_no_model_of_the_catalogue() -> None:
    texts = {"find": "parameters", "model": "Llama 3.1 405B", "count": "512"}
    found = estimate(plan_from(texts)).middle.parameters
    there = next_pages(opened(COMPUTE, texts), MEMORY)[-1]
    assert there["model"] == TYPED
    assert plan_from(there).parameters == pytest.approx(found, abs=1)


@pytest.mark.parametrize("page", [MEMORY, PARALLEL], ids=lambda page: page.id)
def test_a_model_that_is_named_is_the_one_that_counts_whatever_another_page_finds(page: PageSpec) -> None:
    texts = {"model": "Llama 3.1 8B", "n": "10B", "count": "512"}
    said, other = (bodies(opened(page, {**texts, "find": find}), "np-answer") for find in ("time", "parameters"))
    assert said == other
    assert "Llama 3.1 8B" in stripped(said[0])


def test_the_address_keeps_what_stands_in_a_closed_fold() -> None:
    app = opened(COMPUTE, {"seq": "4,096"})
    app.text_input(key="p_tokens").set_value("9T").run()
    assert app.query_params["p_seq"] == "4,096"
    assert app.query_params["p_tokens"] == "9T"


def test_every_story_of_the_compute_budget_fits_as_it_is_laid_out() -> None:
    for name, preset in {"": {}, **PRESETS}.items():
        a = estimate(plan_from(preset))
        assert plan_text.does_not_fit(a) == "", name
