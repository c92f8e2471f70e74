"""Training memory: what the page says for links and for hardware that need a word."""

from __future__ import annotations

import html

import pytest
from streamlit.testing.v1 import AppTest

from pages.common.registry import MEMORY
from pages.memory.form import PANELS
from tests.app.plan_pages import bodies, linked, stripped
from tests.app.test_home import words
from tests.app.test_pages import APP
from tests.patience import PATIENCE_S

BF16 = "mixed bf16, fp32 master"


def opened(**linked: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run()
    app.switch_page(MEMORY.path)
    for name, text in linked.items():
        app.query_params[f"m_{name}"] = text
    app.run()
    assert not app.exception
    return app


@pytest.mark.parametrize(
    ("field", "linked", "said"),
    [
        ("prec", "xx", "not one of “fp32”, “fp32, bf16 autocast”, “mixed bf16, fp32 master”, “mixed bf16,"),
        ("prec", "xx", "Still using mixed bf16, fp32 master."),
        ("opt", "xx", "“SGD”"),
        ("opt", "xx", "Still using AdamW."),
        ("opt", "LOMO", "LOMO is left out, because it has no state"),
        ("opt", "AdamX", "Did you mean Adam"),
        ("tp", "3", "must divide the 64 query heads."),
        ("count", "0", "out of range"),
        ("mbs", "0", "out of range"),
        ("shard", "nonsense", "were left aside: “m_shard”"),
    ],
)
def test_a_link_to_no_choice_is_told_the_choices(field: str, linked: str, said: str) -> None:
    assert said in html.unescape(words(opened(**{field: linked})))


def test_missing_matrix_units_and_measurements_in_another_format() -> None:
    plain = words(opened(prec="fp32", optims="true"))
    assert "Measured, in fp32" in plain
    assert "no bf16 matrix units" not in plain
    assert "V100 SXM 32 GB has no bf16 matrix units" in words(opened(gpu="V100 SXM 32 GB", prec=BF16))
    assert "Measured, in fp32" not in words(opened(opt="Prodigy", prec="bf16 throughout", optims="true"))


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
        app = opened(**panels, **texts)
        assert not bodies(app, "np-error")
        assert len(app.get("plotly_chart")) >= 5


def test_what_is_open_changes_no_answer_and_a_fix_makes_it_fit() -> None:
    closed, app = (opened(n="32B", count="8", lay="own", **more) for more in ({}, {"why": "true"}))
    assert bodies(closed, "np-answer") == bodies(app, "np-answer")
    assert "fits on" not in stripped(bodies(app, "np-answer")[0])
    next(button for button in app.button if button.label == "Apply").click().run()
    assert " fits on " in stripped(bodies(app, "np-answer")[0])
