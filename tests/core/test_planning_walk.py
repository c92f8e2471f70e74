"""The net: no preset, question or accelerator makes any panel raise, or say a number that is none."""

from __future__ import annotations

import re

import pytest

from core.fields import Form
from core.hardware.accelerators import accelerators
from core.models.catalog import catalog
from core.planning.form.plan_form import PLAN_FORM, plan_from
from core.planning.presets import PRESETS, SEARCH_PRESETS
from tests.core import plan_walk
from tests.core.plan_walk import COSTLY, QUICK, Walked, look_for, look_for_sizes, walk_all

CORNERS: dict[str, dict[str, str]] = {
    "one of everything": {"n": "1 parameter", "tokens": "1 token", "count": "1", "gpu": "T4", "mfu": "1"},
    "the largest": {"n": "1e16", "tokens": "1e18", "count": "10,000,000", "gpu": "GB300", "dtype": "fp4", "seq": "1"},
    "nothing fails": {"rate1k": "0", "find": "accelerators"},
    "nothing fails, saved all the same": {"rate1k": "0", "every": "30 min"},
    "fails every second": {"rate1k": "MTBF 1 s"},
    "fails every minute": {"rate1k": "MTBF 1 min", "mfu": "40%", "back": "0 s"},
    "one day of many": {"rate1k": "8 per day", "pace": "steady steps", "mfu": "30-45%", "find": "tokens"},
    "no price, for money": {"find": "parameters", "within": "$2M", "gpu": "TPU v4"},
    "for money": {"find": "MFU", "within": "$2M", "n": "8B"},
    "owned": {"price": "0", "find": "time", "gpu": "TPU v4"},
    "owned, for money": {"price": "0", "find": "tokens", "within": "$2M"},
    "windows far out": {"model": "Gemma 3 1B", "seq": "1000000", "attn": "full"},
    "a thousand years": {"find": "tokens", "within": "1000 years", "count": "10,000,000"},
    "a minute": {"find": "accelerators", "within": "1 min", "n": "1M", "tokens": "1M"},
    "twenty minutes": {"find": "accelerators", "within": "20 min"},
    "no power known": {"gpu": "TPU v4", "draw": "1%"},
    "replicated momentum": {"opt": "SGD", "prec": "bf16 throughout", "zero": "0", "model": "DeepSeek-V3"},
    "measured": {"gpu": "H100 SXM", "r16": "662 TFLOP/s", "r8": "2.5 PFLOP/s", "rmem": "2.9 TB/s", "rof": "H100, 2026"},
    "of a device that nobody knows": {"r16": "1 MFLOP/s", "rmem": "10 PB/s", "gpu": "TPU v4"},
    "measured elsewhere": {"r16": "662 TFLOP/s", "rof": "A100 80GB, 2026"},
    "stands still": {"other": "90%", "waits": "0%", "mfu": "40%"},
}


@pytest.mark.long
@pytest.mark.parametrize("ninth", [0, 4, 8])
def test_every_preset_question_and_accelerator_on_every_panel(ninth: int) -> None:
    """A third of them; `python -m tests.perf plans` takes them all."""
    walked = walk_all(costly_every=11, ninths=(ninth,))
    assert walked.faults == []
    assert walked.plans > 260
    assert walked.costly >= 2 * len(COSTLY)


@pytest.mark.sweep(7)
@pytest.mark.parametrize("name", CORNERS)
def test_the_corners_on_every_panel(name: str) -> None:
    walked = Walked()
    walked.step(name, plan_from(CORNERS[name]), costly=COSTLY)
    assert walked.faults == []


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_on_every_panel(name: str) -> None:
    walked = Walked()
    walked.step(name, plan_from(PRESETS[name]), costly=COSTLY)
    assert walked.faults == []
    assert walked.plans == 1


NO_LAYOUT = {"nothing fits": {"model": "DeepSeek-V3", "count": "16"}, "a prime": {"count": "1,021"}}


@pytest.mark.sweep(6)
@pytest.mark.parametrize("name", [*SEARCH_PRESETS, *CORNERS, *NO_LAYOUT])
def test_every_preset_and_corner_on_every_panel_of_a_search(name: str) -> None:
    walked = Walked()
    plan = plan_from({**SEARCH_PRESETS, **CORNERS, **NO_LAYOUT}[name])
    walked.look(name, look_for, plan)
    walked.look(name, look_for_sizes, plan)
    assert walked.faults == []


@pytest.mark.long
def test_searches_of_many_accelerators_and_models() -> None:
    """Every second accelerator with a small model, every third model on one cluster."""
    walked = Walked()
    for device in accelerators()[::2]:
        walked.look(device.name, look_for, plan_from({"gpu": device.name, "n": "1B", "count": "8", "gb": "64"}))
    for model in catalog()[::3]:
        walked.look(model.name, look_for, plan_from({"model": model.name, "count": "32", "seq": "2048", "gb": "64"}))
    assert walked.faults == []


@pytest.mark.parametrize("planted", ["It takes nan days.", "−inf", {"data": [], "layout": {"height": float("nan")}}])
def test_the_net_catches(planted: plan_walk.Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan_walk.wrong(planted)
    assert not plan_walk.wrong("Information on finances, 1 nanosecond.")

    def fails(_: object) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr(plan_walk, "QUICK", (*QUICK, fails))
    walked = walk_all(costly_every=1_000, stop_after=2)
    assert [re.search("ZeroDivisionError", fault) is not None for fault in walked.faults] == [True, True]


def test_every_field_of_a_plan_can_be_changed_without_harm() -> None:
    """Each field at the ends of what it takes, beside the usual rest."""
    walked = Walked()
    for name, texts in _ends(PLAN_FORM).items():
        for text in texts:
            walked.step(f"{name}={text}", plan_from({"mfu": "40%", "pace": "steady steps", name: text}))
    assert walked.faults == []
    assert walked.plans > 100


def _ends(form: Form) -> dict[str, tuple[str, ...]]:
    typed = ("1", "0", "2", "0.01", "1 s", "100%", "1e4", "1e16", "1e12 B/s", "1000 years", "$1", "3 per day")
    ends: dict[str, tuple[str, ...]] = {}
    for field in form.fields:
        good = [text for text in typed if not form.parse({field.id: text}).problems]
        ends[field.id] = field.options[:: max(1, len(field.options) // 4)] or tuple({*good[:2], *good[-1:]})
    return ends
