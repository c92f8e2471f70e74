"""Training memory's panels that run torch: optimizers in motion, and a real step with a runner that stands still."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.models.catalog import CATALOG
from core.training.optimizer_paths.path import MOVING
from core.training.precision import find_policy
from core.training.torch_check.events import Advance, Began
from core.training.torch_check.step import TorchCheck, Trial, trial_of
from pages.common.registry import MEMORY
from pages.memory import torch_check as panel
from tests.app.plan_pages import linked, opened, words

TRIAL = trial_of(None, "AdamW", find_policy("mixed bf16, fp32 master"), "cpu")


def charts(app: AppTest) -> list[Any]:
    return app.get("plotly_chart")


def test_walks_are_drawn_told_and_explained() -> None:
    app = opened(MEMORY, {"motion": "true", "land": "Rosenbrock", "who": "Adam", "at": "40"})
    said = words(app)
    assert "After <b>40 steps</b>" in said
    assert all(name in said for name in MOVING)
    assert "Step 40 of Adam" in said
    assert "torch.optim took these steps" in said
    derived = "\n".join(element.value for element in app.markdown)
    assert derived.count("$$") == 2 * 5  # five equations, each once
    for chart in charts(app)[-2:]:
        spec = json.loads(chart.proto.spec)
        go.Figure({name: part for name, part in spec.items() if name != "frames"})
    assert linked(app)["m_at"] == "40"


def test_the_slider_moves_the_picture_and_the_numbers() -> None:
    app = opened(MEMORY, {"motion": "true"})
    before = charts(app)[-2].proto.spec
    app.slider(key="m_at").set_value(60).run()
    assert not app.exception
    assert "After <b>60 steps</b>" in words(app)
    assert charts(app)[-2].proto.spec != before


def test_divergence_is_said_and_has_no_equations() -> None:
    said = words(opened(MEMORY, {"motion": "true", "lr": "1", "who": "SGD", "at": "100"}))
    assert "SGD diverged in step" in said
    assert "Step 100 of SGD" not in said


@pytest.mark.parametrize(("field", "text"), [("from", "1"), ("from", "9, 9"), ("lr", "-1"), ("lr", "nan"), ("at", "0")])
def test_a_bad_field_is_told_and_not_used(field: str, text: str) -> None:
    said = words(opened(MEMORY, {"motion": "true", field: text}))
    assert "np-error" in said
    assert "After <b>30 steps</b>" in said


class StillRunner:
    """Has one latest step and remembers what was asked of it."""

    def __init__(self, latest: TorchCheck | None) -> None:
        self.job = latest
        self.best = latest if latest and latest.measured else None
        self.asked: list[object] = []

    def latest(self) -> TorchCheck | None:
        return self.job

    def latest_with_results(self) -> TorchCheck | None:
        return self.best

    def poll(self, job_id: str) -> TorchCheck | None:
        return self.job

    def start(self, trial: Trial) -> tuple[TorchCheck, bool]:
        self.asked.append(trial)
        self.job = step(trial, state="running")
        return self.job, True

    def cancel(self, job_id: str) -> bool:
        self.asked.append(job_id)
        assert self.job
        self.job = replace(self.job, state="cancelled", message="The step was cancelled.")
        return True


def step(trial: Trial = TRIAL, **options: Any) -> TorchCheck:
    given: dict[str, Any] = {"state": "finished", "advance": None, "measured": {}, "message": "", **options}
    return TorchCheck(
        id="1", spec=trial, seconds=3.0, began=Began(torch="2.13.0", transformers="5.23.0", device="CPU"), **given
    )


Open = Callable[..., AppTest]


@pytest.fixture
def open_with(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    def open_(runner: StillRunner, **texts: str) -> AppTest:
        st.cache_resource.clear()
        monkeypatch.setattr(panel, "TorchCheckRunner", lambda: runner)
        return opened(MEMORY, {"torch": "true", **texts})

    yield open_
    st.cache_resource.clear()


def button(app: AppTest, label: str) -> Any:
    (found,) = [one for one in app.button if one.label == label]
    return found


def test_the_button_runs_the_plan_in_small(open_with: Open) -> None:
    runner = StillRunner(None)
    app = open_with(runner, model="Mixtral 8x7B", opt="Adam", prec="bf16 throughout")
    button(app, "See it on torch").click().run()
    (asked,) = runner.asked
    assert isinstance(asked, Trial)
    assert (asked.family, asked.optimizer, asked.policy) == ("mixtral", "Adam", "bf16 throughout")
    assert asked.shape.heads // asked.shape.kv_heads == CATALOG["Mixtral 8x7B"].spec.heads // 8
    assert button(app, "See it on torch").disabled
    assert "Somebody else" not in words(app)


def test_a_running_step_shows_what_it_does_and_can_be_cancelled(open_with: Open) -> None:
    runner = StillRunner(step(state="running", advance=Advance(phase="forward"), measured={"parameters": 8_900_000.0}))
    app = open_with(runner)
    assert "Somebody else started this step" in words(app)
    (bar,) = app.get("progress")
    assert bar.proto.text.startswith("Forward")
    assert "8.9 MB" in words(app)
    assert "torch agrees" not in words(app)
    button(app, "Cancel").click().run()
    assert runner.asked == ["1"]
    assert "The step was cancelled." in words(app)
    assert not button(app, "See it on torch").disabled


def test_what_was_measured_stands_beside_what_is_counted(open_with: Open) -> None:
    said = words(open_with(StillRunner(step(measured=dict(TRIAL.predicted)))))
    assert "torch agrees to the last byte" in said
    assert said.count("1.00000") == len(TRIAL.predicted)
    assert "torch 2.13.0" in said
    assert "other inputs" not in said


def test_what_was_measured_before_a_cancelled_step_stays_and_says_so(open_with: Open) -> None:
    runner = StillRunner(replace(step(state="cancelled", message="The step was cancelled."), id="2"))
    runner.best = step(measured=dict(TRIAL.predicted))
    said = words(open_with(runner))
    assert said.index("The step was cancelled.") < said.index("Measured before that") < said.index("torch agrees")


def test_other_inputs_are_said_to_be_others(open_with: Open) -> None:
    said = words(open_with(StillRunner(step(measured=dict(TRIAL.predicted))), opt="SGD"))
    assert "This was measured with other inputs" in said


def test_a_failure_is_told_in_the_processs_words(open_with: Open) -> None:
    message = "The process of the step ended with exit code 1. Its last words: No module named 'torch'"
    said = words(open_with(StillRunner(step(state="failed", message=message))))
    assert "No module named 'torch'" in said
    assert 'role="alert"' in said


def test_an_optimizer_that_torch_does_not_have(open_with: Open) -> None:
    app = open_with(StillRunner(None), opt="Lion")
    assert "torch.optim has no Lion" in words(app)
    assert not [one for one in app.button if one.label == "See it on torch"]


def test_the_button_runs_a_fine_tuning_plan_in_small_or_says_why_not(open_with: Open) -> None:
    runner = StillRunner(None)
    tuned = {"ft": "adapters", "frozen": "nf4", "opt": "AdamW", "prec": "bf16 throughout"}
    app = open_with(runner, model="Llama 3 8B", **tuned)
    assert "not nf4" in words(app)
    button(app, "See it on torch").click().run()
    (asked,) = runner.asked
    assert isinstance(asked, Trial)
    assert (asked.trained.method, asked.trained.rank, asked.trained.frozen) == ("adapters", 16, "bf16")
    app = open_with(StillRunner(None), model="Mixtral 8x7B", **tuned)
    assert "no routed experts" in words(app)
    assert not [one for one in app.button if one.label == "See it on torch"]
