"""Compute budget with every panel open, over questions, models and accelerators: no exception, every chart valid."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from core.jobs.lock import try_lock
from core.models.building.jobs import BuildRunner
from core.models.spec_text import EXAMPLE
from core.planning.form.plan_form import plan_from
from core.planning.largest_model import fewest_that_hold
from pages.common import shape
from pages.common.registry import COMPUTE, HOME, PageSpec
from tests.app.plan_pages import CONFIG, OPEN, bodies, fold, opened, said_by, stripped, words
from tests.core.plan_walk import NO_NUMBER

MIXTURE = f"{EXAMPLE} experts.count=64 experts.per_token=6 experts.width=1408 latent.query_rank=0 latent.kv_rank=512 "
MIXTURE += "latent.nope_dim=128 latent.rope_dim=64 latent.value_dim=128"
STATE = "layers=32 hidden=4096 heads=32 kv_heads=8 head_dim=128 ffn=14336 vocab=65536 glu=yes tied_head=no "
STATE += "mixer.kind=mamba mixer.layers=28 mixer.heads=8192 mixer.width=1 mixer.state=16 mixer.rank=256"
OWN = "Own (config.json)"

CASES: dict[str, dict[str, str]] = {
    "first sight": {},
    "a mixture": {"model": "DeepSeek-V3", "gpu": "H800 SXM", "dtype": "fp8", "attn": "full"},
    "tokens for money": {"find": "tokens", "within": "$2M", "n": "8B", "count": "256"},
    "parameters in a month": {"find": "parameters", "within": "30 days", "model": "Mixtral 8x7B"},
    "fewest accelerators": {"find": "accelerators", "within": "8 weeks", "mfu": "35-45%", "gpu": "B200"},
    "MFU needed": {"find": "MFU", "within": "400 days", "gpu": "MI300X"},
    "own mixture": {"model": OWN, "shape": MIXTURE, "gpu": "TPU v5p", "moved": "dollars"},
    "layers with a state": {"model": OWN, "shape": STATE, "attn": "full"},
    "no price, fp16": {"gpu": "V100 SXM 32 GB", "model": "GPT-2 124M", "moved": "dollars", "mb": "0"},
    "windows": {
        "model": "Gemma 3 1B",
        "seq": "1000000",
        "flash": "false",
        "basis": "steady",
    },
    "one token": {"n": "1 parameter", "tokens": "1 token", "count": "1", "gpu": "T4", "mfu": "1"},
    "the largest": {"n": "1e16", "tokens": "1e18", "count": "10,000,000", "gpu": "GB300", "dtype": "fp4", "seq": "1"},
}

MESSAGES = {"no price, fp16": 1, "one token": 3, "the largest": 1}
"""How many things are wrong with a case; nothing is with the others."""


@pytest.mark.parametrize("name", CASES)
def test_every_panel_answers(name: str) -> None:
    app = opened(COMPUTE, {**OPEN, **CASES[name]})
    assert len(bodies(app, "np-answer")) == 1
    assert not NO_NUMBER.search(stripped(words(app)))
    assert len(bodies(app, "np-error")) == MESSAGES.get(name, 0)
    charts = app.get("plotly_chart")
    assert len(charts) >= 6
    for chart in charts:
        assert len(chart.proto.alt) > 30
        go.Figure(json.loads(chart.proto.spec))


def test_a_config_becomes_the_shape_and_a_bad_one_does_not() -> None:
    app = opened(COMPUTE, {"model": OWN})
    app.text_area(key="plan:config").set_value(CONFIG).run()
    assert bodies(app, "np-good")
    fold(app, "plan:shape", open=True)
    fold(app, "c_fold_config", open=True)
    assert "layers=2 hidden=64" in app.text_input(key="p_shape").value
    assert app.text_area(key="plan:config").value == CONFIG
    for bad in ("x" * 100_001, "[" * 10_000 + "]" * 10_000):
        app.text_area(key="plan:config").set_value(bad).run()
        assert "layers=2 hidden=64" in app.text_input(key="p_shape").value
        assert bodies(app, "np-error")
    app.number_input(key="c_e_heads").set_value(8).run()
    assert "heads=8" in app.text_input(key="p_shape").value
    app.number_input(key="c_e_kv_heads").set_value(3).run()
    assert bodies(app, "np-error")
    assert app.number_input(key="c_e_kv_heads").value == 4
    app.toggle(key="c_e_glu").set_value(False).run()
    assert "glu=no" in app.text_input(key="p_shape").value


@pytest.mark.parametrize("page", [COMPUTE, HOME])
def test_a_plan_that_does_not_fit_is_shown_on_as_many_accelerators_as_it_needs(page: PageSpec) -> None:
    texts = {"model": "Llama 3.1 405B", "count": "8"}
    app, needed = opened(page, texts), fewest_that_hold(plan_from(texts))
    assert f"needs {needed}" in stripped(bodies(app, "np-error")[0])
    assert f"on {needed} H100" in stripped(bodies(app, "np-answer")[0])


def test_fields_that_were_hidden_come_back_with_their_text() -> None:
    app = opened(COMPUTE, {"tokens": "3T"})
    for wanted in ("tokens", "accelerators", "time"):
        app.button_group(key="p_find").set_value(wanted).run()
        assert not app.exception
    assert app.text_input(key="p_tokens").value == "3T"


def in_line(app: AppTest) -> str:
    return said_by(app, "sidebar.build_queued")


@pytest.mark.process
def test_who_waits_for_a_model_to_be_built_sees_the_place_in_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Behind two of this server, the first of which waits for another server."""
    held = try_lock(tmp_path / "lock")
    runner = BuildRunner(tmp_path / "lock", ["echo", '{"refused": "It was only a test."}'])
    for who in ("Ada", "Bo"):
        runner.submit(f'{{"model_type": "{who}"}}', 8, who)
    monkeypatch.setattr(shape, "builder", lambda: runner)
    app = opened(COMPUTE, {"model": OWN})
    app.text_area(key="plan:config").set_value('{"model_type": "brand_new"}').run()
    assert "2 models" in in_line(app)
    assert held
    os.close(held)
    until = time.monotonic() + 60
    while not any("It was only a test." in message for message in bodies(app, "np-error")):
        assert time.monotonic() < until
        app.run()
