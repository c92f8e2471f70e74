"""The Measure page in each of its states, with a runner that stands still."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.measure import device, jobs
from core.measure.device import Cpu, Gpu, Machine
from core.measure.events import DeviceFacts, Outcome, Progress, Refusal, Result
from core.measure.jobs import Snapshot
from core.measure.spec import METHOD, DeviceKind, Spec
from pages.parts.registry import DEVICE
from tests.core.said import says

APP = str(Path(__file__).parents[2] / "app.py")

CPU = Cpu("AMD EPYC", "bf16 instructions: avx512_bf16, fp16 instructions: none", 2, 2.5e10)
NO_GPU = Machine((), CPU, "There is no CUDA GPU on this machine, so Napkin measures the CPU.")
WITH_GPU = Machine((Gpu("NVIDIA H200", 150.8e9, 700.0),), CPU, "")


def result(dtype: str, n: int, rate: float) -> Result:
    seconds = 2 * n**3 / rate
    return Result(dtype, n, seconds, 0.9 * seconds, 0.95 * seconds, 1.1 * seconds, 50, 2.0, 1e-3)


def job(kind: DeviceKind, *outcomes: Outcome, **options: Any) -> Snapshot:
    facts = DeviceFacts("NVIDIA H200", "", 0, 150.1e9, 700.0) if kind == "cuda" else None
    given: dict[str, Any] = {"id": "1", "state": "finished", "message": "", "progress": None, **options}
    return Snapshot(
        spec=Spec(kind, 1024, 2.0),
        started=time.time(),
        elapsed_s=4.0,
        method=METHOD,
        torch="2.13.0",
        facts=facts,
        outcomes=outcomes,
        stderr="",
        ignored_lines=0,
        **given,
    )


class StillRunner:
    """Has one latest job and remembers what was asked of it."""

    def __init__(self, latest: Snapshot | None, best: Snapshot | None = None) -> None:
        self.job = latest
        self.best = best or (latest if latest and latest.outcomes else None)
        self.asked: list[object] = []

    def latest(self) -> Snapshot | None:
        return self.job

    def latest_with_results(self) -> Snapshot | None:
        return self.best

    def poll(self, job_id: str) -> Snapshot | None:
        return self.job if self.job and self.job.id == job_id else None

    def start(self, spec: Spec) -> tuple[Snapshot, bool]:
        self.asked.append(spec)
        self.job = job(spec.device, id="2", state="running")
        return self.job, True

    def cancel(self, job_id: str) -> bool:
        self.asked.append(job_id)
        assert self.job
        self.job = replace(self.job, state="cancelled", message="The measurement was cancelled.")
        return True


Open = Callable[..., AppTest]


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    def open_(runner: StillRunner, machine: Machine = NO_GPU) -> AppTest:
        st.cache_resource.clear()
        monkeypatch.setattr(jobs, "Runner", lambda: runner)
        monkeypatch.setattr(device, "machine", lambda: machine)
        app = AppTest.from_file(APP, default_timeout=60).run().switch_page(DEVICE.path).run()
        assert not app.exception
        return app

    yield open_
    st.cache_resource.clear()


def words(app: AppTest) -> str:
    """Everything said in HTML, without the stylesheet and with ordinary spaces."""
    bodies = [element.proto.body for element in app.get("html")]
    return "\n".join(body for body in bodies if not body.startswith("<style>")).replace("\u00a0", " ")


def button(app: AppTest, label: str) -> Any:
    (found,) = [b for b in app.button if b.label == label]
    return found


def test_idle_without_a_gpu(open_page: Open) -> None:
    app = open_page(StillRunner(None))
    said = words(app)
    assert "There is no CUDA GPU on this machine" in said
    assert "<b>10 s</b> you will know how fast this CPU" in said
    assert "What will happen" in said
    assert not button(app, "Measure on this CPU").disabled
    assert app.text_input(key="d_n").value == "1024"
    assert not app.get("plotly_chart")


def test_idle_with_a_gpu(open_page: Open) -> None:
    app = open_page(StillRunner(None), WITH_GPU)
    assert not button(app, "Measure on this GPU").disabled
    assert "datasheet H200 SXM" in words(app)
    assert app.text_input(key="d_n").value == "8192"


def test_starting_runs_what_was_typed(open_page: Open) -> None:
    runner = StillRunner(None)
    app = open_page(runner)
    app.text_input(key="d_n").set_value("2^9").run()
    app.text_input(key="d_s").set_value("500 ms").run()
    button(app, "Measure on this CPU").click().run()
    assert runner.asked == [Spec("cpu", 512, 0.5)]
    assert button(app, "Measure on this CPU").disabled
    assert "Somebody else" not in words(app)


@pytest.mark.parametrize(
    ("key", "bad", "good"),
    [("d_n", "8", "1024"), ("d_n", "64.5", "1024"), ("d_n", "1e9", "1024"), ("d_s", "0.1", "2"), ("d_s", "2 h", "2")],
)
def test_a_bad_input_is_explained_and_not_used(open_page: Open, key: str, bad: str, good: str) -> None:
    runner = StillRunner(None)
    app = open_page(runner)
    app.text_input(key=key).set_value(bad).run()
    assert bad in words(app)
    assert f"Still using {float(good):,.0f}" in words(app)
    button(app, "Measure on this CPU").click().run()
    assert runner.asked == [Spec("cpu", 1024, 2.0)]


def test_running_shows_progress_to_everybody_and_lets_them_cancel(open_page: Open) -> None:
    runner = StillRunner(
        job("cpu", result("fp32", 1024, 2e11), state="running", progress=Progress("fp16", "timing", 0.5))
    )
    app = open_page(runner)
    assert button(app, "Measure on this CPU").disabled
    assert "Somebody else started this measurement" in words(app)
    (bar,) = app.get("progress")
    says(bar.proto.text, "fp16 (2 of 3)", "5 s left")
    assert "<b>200 GFLOP/s</b> in fp32" in words(app)
    button(app, "Cancel").click().run()
    assert runner.asked == ["1"]
    says(words(app), "<b>Cancelled</b> after 4 s", "Kept: fp32", "Not measured: fp16 and bf16")
    assert "<b>200 GFLOP/s</b> in fp32" in words(app)
    assert not button(app, "Measure on this CPU").disabled


def test_a_failure_is_told_in_the_processes_words_and_keeps_earlier_results(open_page: Open) -> None:
    failed = job("cuda", state="failed", message="The measuring process ended with exit code 1. <b>CUDA</b> error")
    app = open_page(StillRunner(failed, best=job("cuda", result("bf16", 8192, 790e12), id="0")), WITH_GPU)
    said = words(app)
    assert 'role="alert"' in said
    assert "exit code 1. &lt;b&gt;CUDA&lt;/b&gt; error" in said
    assert "<b>790 TFLOP/s</b> in bf16, <b>80 %</b> of its datasheet peak" in said


def test_results_with_a_refusal(open_page: Open) -> None:
    done = job("cuda", result("fp32", 8192, 51e12), Refusal("tf32", "refused", "RuntimeError: no `tf32` <here>"))
    app = open_page(StillRunner(done), WITH_GPU)
    assert "<b>tf32 refused</b>: RuntimeError: no <code" in words(app)
    assert "&lt;here&gt;" in words(app)
    (chart,) = app.get("plotly_chart")
    assert "fp32 51 TFLOP/s of 66.9 TFLOP/s peak" in chart.proto.alt


def test_a_job_in_which_everything_was_refused_has_no_answer_but_its_reasons(open_page: Open) -> None:
    done = job("cuda", *(Refusal(dtype, "refused", "RuntimeError: no") for dtype in ("fp32", "tf32", "fp16", "bf16")))
    app = open_page(StillRunner(done), WITH_GPU)
    assert "np-answer" not in words(app)
    assert words(app).count("RuntimeError: no") == 4
    assert not button(app, "Measure on this GPU").disabled


def test_a_result_of_other_inputs_is_said_to_be_one(open_page: Open) -> None:
    app = open_page(StillRunner(job("cpu", result("fp32", 1024, 2e11))))
    assert "A run takes about 10 s." in words(app)
    assert "Last measured on this server" not in words(app)
    app.text_input(key="d_n").set_value("512").run()
    assert re.search(r"<b>Last measured on this server:</b> [\d: -]+ UTC, n = 1,024, 2 s per dtype", words(app))


def test_without_a_datasheet_nothing_is_said_of_a_share(open_page: Open) -> None:
    app = open_page(StillRunner(job("cpu", result("fp32", 1024, 2e11))))
    said = words(app)
    assert "Of datasheet peak" not in said
    assert said.count("unknown") == said.count("Peak unknown: no datasheet") == 1
    with_sheet = words(open_page(StillRunner(job("cuda", result("bf16", 8192, 790e12))), WITH_GPU))
    assert "Of datasheet peak" in with_sheet
