"""Training memory: its panels, old links, and buttons that change the plan."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from core.planning.presets import FIRST_TUNING, MEMORY_PRESETS
from pages.common.registry import MEMORY
from pages.memory.form import PANELS
from tests.app.plan_pages import bodies, linked, opened, stripped
from tests.app.test_pages import APP
from tests.patience import PATIENCE_S


@pytest.mark.parametrize(
    ("version", "shard", "zero"),
    [("", "replicated", "0"), ("1", "ZeRO-1", "1"), ("2", "ZeRO-2", "2"), ("2", "sharded", "3"), ("", "sharded", "3")],
)
def test_the_sharding_of_an_older_link_is_a_stage_of_zero(version: str, shard: str, zero: str) -> None:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run()
    app.switch_page(MEMORY.path)
    if version:
        app.query_params["v"] = version
    app.query_params["m_shard"] = shard
    app.run()
    assert not app.exception
    assert linked(app)["p_zero"] == zero
    assert "m_shard" not in linked(app)
    assert not [body for body in bodies(app, "np-error") if "m_shard" in body]


def test_every_panel_stands_whether_it_fits_or_not() -> None:
    panels = dict.fromkeys(PANELS, "true")
    for texts in ({}, {"n": "32B"}, {"model": "DeepSeek-V3", "count": "2048", "pp": "16", "ep": "64", "zero": "1"}):
        app = opened(MEMORY, {**panels, **texts})
        assert not bodies(app, "np-error")
        assert len(app.get("plotly_chart")) >= 5


def test_what_is_open_changes_no_answer_and_a_fix_makes_it_fit() -> None:
    texts = {"n": "32B", "count": "8", "lay": "own"}
    closed, app = (opened(MEMORY, {**texts, **dict.fromkeys(PANELS, text)}) for text in ("false", "true"))
    assert bodies(closed, "np-answer") == bodies(app, "np-answer")
    assert " fits on " not in stripped(bodies(app, "np-answer")[0])
    next(button for button in app.button if button.label == "Apply").click().run()
    assert " fits on " in stripped(bodies(app, "np-answer")[0])


def test_one_click_takes_the_largest_that_fits() -> None:
    app = opened(MEMORY, MEMORY_PRESETS[FIRST_TUNING])
    button = next(b for b in app.button if b.label.startswith("Sequence length"))
    length = button.label.removeprefix("Sequence length ")
    button.click().run()
    assert not app.exception
    assert linked(app)["p_seq"] == length


@pytest.mark.parametrize("bad", [{"svctx": "zero", "svkv": "fp8"}, {"model": "GPT-2 XL 1558M", "svtp": "8"}])
def test_bad_fields_of_serving_are_told_and_nothing_is_lost(bad: dict[str, str]) -> None:
    app = opened(MEMORY, {"model": "Llama 3.1 8B", "count": "8", "serve": "true", **bad})
    assert len(bodies(app, "np-error")) == 1
    assert bodies(app, "np-takeaway")
    field, text = list(bad.items())[-1]
    assert linked(app)[f"m_{field}"] == text
