"""Compute budget with every panel open, over questions, models and accelerators: no exception, every chart valid."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from core.jobs.queue import WaitingLine
from core.models.building.jobs import BuildRunner
from core.models.spec_text import EXAMPLE
from pages.common import shape
from pages.common.registry import CALENDAR, COMPUTE, HOME, PageSpec
from tests.app.plan_pages import CLOSED, CONFIG, OPEN, bodies, fold, opened, stripped

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
        "win": "full attention",
        "basis": "steady",
    },
    "one token": {"n": "1 parameter", "tokens": "1 token", "count": "1", "gpu": "T4", "mfu": "1"},
    "the largest": {"n": "1e16", "tokens": "1e18", "count": "10,000,000", "gpu": "GB300", "dtype": "fp4", "seq": "1"},
}

SAID = {
    "no price, fp16": ("Using its fp16 peak",),
    "one token": ("Using its fp16 peak", "Impossible", "6\u00a0FLOP"),
    "the largest": ("No progress",),
}
"""What is wrong with a case; nothing is with the others."""


@pytest.mark.parametrize("name", CASES)
def test_every_panel_answers(name: str) -> None:
    app = opened(COMPUTE, {**OPEN, **CASES[name]})
    assert not app.exception
    assert len(bodies(app, "np-answer")) == 1
    assert "nan" not in bodies(app, "np-answer")[0]
    errors = bodies(app, "np-error")
    assert len(errors) == len(SAID.get(name, ()))
    assert all(said in error for said, error in zip(SAID.get(name, ()), errors, strict=True))
    charts = app.get("plotly_chart")
    assert len(charts) >= 6
    for chart in charts:
        assert len(chart.proto.alt) > 30
        go.Figure(json.loads(chart.proto.spec))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"find": "MFU", "within": "3 days"}, "Cannot be met: it would take an MFU of"),
        ({"find": "accelerators", "within": "$5M"}, "money alone does not say how many"),
        ({"find": "tokens", "within": "$5M", "gpu": "TPU v4"}, "Money buys nothing without a price"),
        ({"find": "tokens", "within": "soon"}, "“soon” is not a duration"),
        ({"mfu": "145"}, "“145” is out of range"),
        ({"model": OWN, "shape": EXAMPLE.replace("heads=32", "heads=31")}, "31 query heads cannot share 8"),
        ({"model": OWN, "shape": "layers=0"}, "Missing: hidden, heads"),
        ({"count": "0"}, "“0” is out of range"),
        ({"n": "1e999"}, "is outside every useful range"),
        ({"gpu": "B200 SXM"}, "Did you mean B200? Still using H100 SXM."),
        ({"find": "tokens", "within": "90"}, "Did you mean 90 days?"),
    ],
)
def test_bad_input_is_said_and_an_answer_stays(fields: dict[str, str], said: str) -> None:
    app = opened(COMPUTE, {**OPEN, **fields})
    assert not app.exception
    assert any(said in message for message in bodies(app, "np-error"))
    assert len(bodies(app, "np-answer")) == 1


def test_a_config_becomes_the_shape_and_a_bad_one_does_not() -> None:
    app = opened(COMPUTE, {"model": OWN})
    app.text_area(key="plan:config").set_value(CONFIG).run()
    assert "Read as LLaMA" in bodies(app, "np-good")[0]
    fold(app, "plan:shape", open=True)
    fold(app, "c_fold_config", open=True)
    assert "layers=2 hidden=64" in app.text_input(key="p_shape").value
    assert app.text_area(key="plan:config").value == CONFIG
    app.text_area(key="plan:config").set_value("x" * 100_001).run()
    assert any("100,001 characters" in message for message in bodies(app, "np-error"))
    app.text_area(key="plan:config").set_value("[" * 10_000 + "]" * 10_000).run()
    assert "layers=2 hidden=64" in app.text_input(key="p_shape").value
    assert any("nested 10,000 deep" in message for message in bodies(app, "np-error"))
    app.number_input(key="c_e_heads").set_value(8).run()
    assert "heads=8" in app.text_input(key="p_shape").value
    app.number_input(key="c_e_kv_heads").set_value(3).run()
    assert any("8 query heads cannot share 3" in message for message in bodies(app, "np-error"))
    assert app.number_input(key="c_e_kv_heads").value == 4
    app.toggle(key="c_e_glu").set_value(False).run()
    assert "glu=no" in app.text_input(key="p_shape").value
    app.toggle(key="c_e_mtp_modules").set_value(True).run()
    assert "mtp_modules=1" in app.text_input(key="p_shape").value
    app.toggle(key="c_e_mtp_modules").set_value(False).run()
    assert "mtp_modules" not in app.text_input(key="p_shape").value


def test_fields_that_were_hidden_come_back_with_their_text() -> None:
    app = opened(COMPUTE, {"tokens": "3T"})
    for wanted in ("tokens", "accelerators", "time"):
        app.button_group(key="p_find").set_value(wanted).run()
        assert not app.exception
    assert app.text_input(key="p_tokens").value == "3T"


@pytest.mark.parametrize("page", [COMPUTE, HOME, CALENDAR], ids=lambda page: page.id)
def test_a_plan_that_repeats_a_published_run_says_what_it_took(page: PageSpec) -> None:
    texts = {"model": "DeepSeek-V3", "tokens": "14.8T", "gpu": "H800 SXM", "count": "2,048"}

    def said(**other: str) -> list[str]:
        notes = bodies(opened(page, texts | other), "np-note")
        return [note for body in notes if "was trained in" in (note := stripped(body))]

    (note,) = said()
    assert "54.2 days on 2,048 H800 SXM (2.66M accelerator-hours" in note
    assert "arXiv:2412.19437" in note
    assert said(tokens="18T") == []


def test_a_link_that_cannot_be_answered_says_whose_answer_it_shows() -> None:
    app = opened(COMPUTE, {"find": "MFU", "n": "30B", "tokens": "6T", "count": "64", "within": "60 days"})
    (message,) = (text for text in bodies(app, "np-error") if "Cannot be met" in text)
    assert "not your plan" in message
    assert "last answer" not in message


@pytest.mark.parametrize(
    ("fields", "drawn", "fields_drawn"),
    [
        ({}, "One layer of Llama 3 70B, forward", set[str]()),
        ({"model": "Mistral 7B v0.1"}, "Mistral 7B v0.1 (window of 4,096, all 32 layers)", set[str]()),
        ({"model": "Gemma 3 12B text decoder"}, "text decoder (window of 1,024, 40 of 48 layers)", {"c_win"}),
        ({"model": "Gemma 3 12B text decoder", "seq": "1024"}, "text decoder, forward", set[str]()),
        ({"model": "gpt-oss 20B", "win": "full attention"}, "(full attention, 12 of 24 layers)", {"c_win"}),
        ({"model": "DeepSeek-V3", "ffn": "dense", "dtype": "fp8"}, "(dense, 3 of 61 layers)", {"c_ffn"}),
        (
            {"model": OWN, "shape": f"{MIXTURE} experts.dense_layers=4 window.size=64"},
            "(window of 64, all 32; experts, 28 of 32 layers)",
            {"c_ffn"},
        ),
    ],
)
def test_a_model_with_several_kinds_of_layers_asks_which(
    fields: dict[str, str], drawn: str, fields_drawn: set[str]
) -> None:
    app = opened(COMPUTE, {**CLOSED, "roof": "true", **fields})
    assert not app.exception
    captions = (re.findall("<caption>(.+?)</caption>", block.proto.body) for block in app.get("html"))
    assert any(drawn in caption for found in captions for caption in found)
    assert {group.key for group in app.button_group} & {"c_win", "c_ffn"} == fields_drawn
    assert app.toggle(key="c_flash").value
    divided = [text for text in bodies(app, "np-note") if "run in fp8" in text]
    assert len(divided) == (fields.get("dtype") == "fp8")


def in_line(app: AppTest) -> str:
    [said] = [stripped(note) for note in bodies(app, "np-note") if "In line" in note]
    return said


@pytest.mark.process
def test_who_waits_for_a_model_to_be_built_sees_the_place_in_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Behind two of other servers."""
    line = WaitingLine(tmp_path)
    others = [line.join(9), line.join(9)]
    runner = BuildRunner(line, ["echo", '{"refused": "It was only a test."}'])
    monkeypatch.setattr(shape, "builder", lambda: runner)
    app = opened(COMPUTE, {"model": OWN})
    app.text_area(key="plan:config").set_value('{"model_type": "brand_new"}').run()
    assert in_line(app) == "In line to be built without weights, one at a time: 2 models before it."
    for other, said in zip(others, ("1 model before it.", ""), strict=True):
        assert other
        other.leave()
        if said:
            assert in_line(app.run()).endswith(said)
    until = time.monotonic() + 60
    while not any("It was only a test." in message for message in bodies(app, "np-error")):
        assert time.monotonic() < until
        app.run()
