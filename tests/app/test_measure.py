"""The Measure page in each of its states, with a runner that stands still."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.benchmark import device
from core.benchmark.choices import CHOICES
from core.benchmark.device import Cpu, DeviceKind, Gpu, Machine
from core.benchmark.layer import DEFAULT_LAYER
from core.benchmark.points import Outcome
from core.benchmark.programme import Programme
from core.benchmark.record import Record
from core.benchmark.running.jobs import Snapshot
from core.jobs.process import NotStartedError
from core.messages import Message, message
from core.store.last_measured import keep
from core.views.benchmark.text import waiting_text
from pages.common.registry import MEASURE
from pages.measure import running
from tests.app.plan_pages import shown, stripped, words
from tests.core.measured_cases import CPU as CPU_FACTS
from tests.core.measured_cases import H200, copy, item, on_gpu, point, record, refusal, square
from tests.patience import PATIENCE_S

APP = str(Path(__file__).parents[2] / "app.py")

CPU = Cpu("AMD EPYC", "avx512_bf16", "", 2, 2.5e10)
NO_GPU = Machine((), CPU, message("device.cpu_only.no_gpu"))
WITH_GPU = Machine((Gpu("NVIDIA H200", 150.8e9, 700.0),), CPU, "")
GPU_BUTTON, CPU_BUTTON = message("measure.button.gpu"), message("measure.button.cpu")
FP32 = square("fp32", 1024, 2e11, error=1e-7)


def seen(of: Record) -> Snapshot:
    return Snapshot(record=of, place=0, progress=None, stderr="")


def cpu(*outcomes: Outcome, **options: Any) -> Record:
    return record("cpu", *outcomes, **options)


class StillRunner:
    """Has one latest job, perhaps one of the visitor's own, and remembers what was asked of it."""

    def __init__(self, latest: Record | None = None, own: Snapshot | None = None, **more: Any) -> None:
        self.job = seen(latest) if latest else None
        self.mine = own
        self.best: Record | None = more.get("best") or (latest if latest and latest.points else None)
        self.refuses: str = more.get("refuses", "")
        self.asked: list[object] = []

    def latest(self) -> Snapshot | None:
        return self.job

    def latest_with_results(self) -> Snapshot | None:
        return seen(self.best) if self.best else None

    def own(self, who: str) -> Snapshot | None:
        assert who
        return self.mine

    def start(self, programme: Programme, who: str) -> tuple[Snapshot, bool]:
        if self.refuses:
            raise NotStartedError(self.refuses)
        self.asked.append(programme)
        self.job = self.mine = seen(cpu(stage="running").model_copy(update={"programme": programme}))
        return self.job, True


Open = Callable[..., AppTest]


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch, database: Path) -> Iterator[Open]:
    """With a database of its own: measurements that are kept are shown."""

    def open_(runner: StillRunner, machine: Machine = NO_GPU, **fields: str) -> AppTest:
        st.cache_resource.clear()
        monkeypatch.setattr(running, "shared_runner", lambda: runner)
        monkeypatch.setattr(device, "machine", lambda: machine)
        app = AppTest.from_file(APP, default_timeout=PATIENCE_S)
        for name, text in fields.items():
            app.query_params[name] = text
        app.run().switch_page(MEASURE.path).run()
        assert not app.exception
        return app

    yield open_
    st.cache_resource.clear()


def button(app: AppTest, label: str) -> Any:
    (found,) = [b for b in app.button if b.label == label]
    return found


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@pytest.mark.parametrize("choice", CHOICES)
def test_every_choice_starts_its_own_programme(open_page: Open, choice: str, kind: DeviceKind) -> None:
    runner = StillRunner()
    app = open_page(
        runner, WITH_GPU if kind == "cuda" else NO_GPU, d_n="512", d_each="50 ms", d_what=CHOICES[choice].name
    )
    assert ("d_n" in {one.key for one in app.text_input}) == ("matmul" in CHOICES[choice].kinds), (
        "asked where it counts"
    )
    button(app, GPU_BUTTON if kind == "cuda" else CPU_BUTTON).click().run()
    (asked,) = runner.asked
    assert isinstance(asked, Programme)
    assert asked.device == kind
    assert asked.kinds == CHOICES[choice].kinds
    assert asked.seconds == 0.05
    assert asked.sizes[-1:] == ((512,) if "matmul" in asked.kinds else ())
    assert (asked.layer is None) == (not {"attention", "layer"} & set(asked.kinds))
    assert not app.exception
    assert button(app, GPU_BUTTON if kind == "cuda" else CPU_BUTTON).disabled


@pytest.mark.parametrize(
    ("key", "bad"), [("d_n", "8"), ("d_n", "64.5"), ("d_n", "1e9"), ("d_each", "0.001"), ("d_each", "2 h")]
)
def test_a_bad_input_is_explained_and_not_used(open_page: Open, key: str, bad: str) -> None:
    runner = StillRunner()
    app = open_page(runner)
    app.text_input(key=key).set_value(bad).run()
    assert bad in words(app)
    button(app, CPU_BUTTON).click().run()
    (asked,) = runner.asked
    assert isinstance(asked, Programme)
    assert (asked.sizes[-1], asked.seconds) == (2048, 0.5)


def test_a_full_line_is_said_and_starts_nothing(open_page: Open) -> None:
    app = open_page(StillRunner(refuses="8 wait already."))
    button(app, CPU_BUTTON).click().run()
    assert "8 wait already." in words(app)
    assert not button(app, CPU_BUTTON).disabled
    app.text_input(key="d_n").set_value("256").run()
    assert "8 wait already." not in words(app), "said once"


def test_who_waits_for_another_server_is_told(open_page: Open) -> None:
    waiting = seen(cpu(stage="queued"))
    app = open_page(StillRunner(own=waiting))
    assert shown(waiting_text(0, 0.0)) in stripped(words(app))
    assert button(app, CPU_BUTTON).disabled
    later = open_page(StillRunner(own=dataclasses.replace(waiting, place=1)))
    assert shown(waiting_text(1, 0.0)) in stripped(words(later))


@pytest.mark.parametrize(
    ("gpu", "reason"),
    [
        (Gpu("NVIDIA GB10", None, None), message("device.datasheet.missing")),
        (Gpu("NVIDIA H100 80GB HBM3 MIG", None, 700.0), message("device.datasheet.slice")),
        (Gpu("", None, None), message("device.datasheet.unnamed")),
    ],
)
def test_a_gpu_that_is_not_known_well_can_be_measured(open_page: Open, gpu: Gpu, reason: str) -> None:
    app = open_page(StillRunner(), Machine((gpu,), CPU, ""))
    assert gpu.name in words(app)
    assert reason in words(app)
    assert not button(app, GPU_BUTTON).disabled


def test_rates_of_a_gpu_in_use_are_doubted_and_no_plan_takes_them(open_page: Open) -> None:
    alone, used = (words(open_page(StillRunner(on_gpu(in_use=by)), WITH_GPU)) for by in ("", "3 other processes"))
    assert ("p_r16=" in alone, "p_r16=" in used) == (True, False)
    assert ("np-error" in alone, "np-error" in used) == (False, True)
    assert "3 other processes" in used
    assert "670 TFLOP/s" in used


def test_what_was_measured_in_use_takes_no_place_of_what_was_not(open_page: Open, database: Path) -> None:
    keep(on_gpu(id="1" * 12, started=86_400.0))
    keep(record("cuda", copy("1 GiB", 2**30, 3e12), id="2" * 12, started=172_800.0, in_use="1 other process"))
    keep(record("cuda", square("bf16", 8192, 6e14), id="3" * 12, started=259_200.0))
    said = words(open_page(StillRunner(), WITH_GPU))
    assert "np-error" not in said
    assert ("4 TB/s" in said, "3 TB/s" in said) == (True, False)


def test_a_failure_is_told_in_the_processes_words_and_keeps_earlier_results(open_page: Open) -> None:
    failed = record("cuda", stage="failed", message="The process ended with exit code 1. <b>CUDA</b> error")
    app = open_page(StillRunner(failed, own=seen(failed), best=on_gpu()), WITH_GPU)
    assert 'role="alert"' in words(app)
    assert "exit code 1. &lt;b&gt;CUDA&lt;/b&gt; error" in "".join(element.proto.body for element in app.get("html"))
    assert "<b>670 TFLOP/s</b>" in words(app)


def test_a_measurement_with_everything_shows_each_kind_and_its_panels(open_page: Open) -> None:
    app = open_page(StillRunner(on_gpu()), WITH_GPU, d_roof="true")
    said = words(app)
    assert all(part in said for part in ("4 TB/s", "flash, forward"))
    assert len(app.get("plotly_chart")) == 3
    assert "np-error" not in said


def test_gpu_without_bf16_is_led_by_fp16_and_held_against_fp16_peaks(open_page: Open) -> None:
    step = point(item("layer", "training step", "compiled", (1, 2048)), 0.1, flop=1e12, dtype="fp16")
    facts = H200.model_copy(update={"name": "Tesla T4", "memory_bytes": 15.6e9, "power_limit_w": 70.0})
    timed = square("fp16", 4096, 4e13), square("int8", 4096, 7e13), copy("4 GiB", 2**32, 2.6e11), step
    machine = Machine((Gpu("Tesla T4", 15.6e9, 70.0),), CPU, "")
    said = words(open_page(StillRunner(record("cuda", *timed, facts=facts)), machine, d_roof="true"))
    assert "<b>40 TFLOP/s</b> in fp16" in said
    assert "203 FLOP/B" in said, "65 TFLOP/s over 320 GB/s"
    assert message("measure.step.ratio") in said


def test_everything_refused_has_no_answer_but_its_reasons(open_page: Open) -> None:
    none = record("cuda", *(refusal(dtype, 512, "RuntimeError: no") for dtype in ("fp32", "tf32", "fp16", "bf16")))
    app = open_page(StillRunner(none, best=none), WITH_GPU)
    assert "np-answer" not in words(app)
    assert words(app).count("RuntimeError: no") == 4
    assert not button(app, GPU_BUTTON).disabled


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty one of its own."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("NAPKIN_DATA", str(tmp_path))
    return tmp_path / "napkin.db"


def test_the_last_result_of_each_kind_is_shown_together(open_page: Open, database: Path) -> None:
    shape = DEFAULT_LAYER.model_copy(update={"model": "Ours"})
    step = point(item("layer", "step", "eager", (1, shape.seq_len)), 1e-2, flop=1e12)
    layer = record("cuda", step, id="0" * 12, started=1.0)
    keep(layer.model_copy(update={"programme": layer.programme.model_copy(update={"layer": shape})}))
    keep(on_gpu(id="1" * 12, started=86_400.0))
    keep(record("cuda", copy("1 GiB", 2**30, 3e12), id="2" * 12, started=172_800.0))
    keep(record("cuda", square("bf16", 8192, 9e14), id="3" * 12, started=259_200.0, facts=CPU_FACTS))
    app = open_page(StillRunner(), WITH_GPU, d_roof="true")
    said = words(app)
    dates = [f"1970-01-0{day}" for day in (1, 2, 3)]
    parts = ("3 TB/s", "flash, forward", "one Ours layer", "620 TFLOP/s", "p_rmem=3+TB", *dates)
    assert [part for part in parts if part not in said] == []
    assert "900 TFLOP/s" not in said, "of another device"
    assert "4 TB/s" not in said, "a newer one has taken its place"


def test_a_file_of_results_that_cannot_be_read_or_written_is_said(open_page: Open, database: Path) -> None:
    keep(on_gpu())
    (database.parent / "measured.json").write_text("[{")
    said = words(open_page(StillRunner(), WITH_GPU))
    assert message("measure.unreadable") in said
    assert "670 TFLOP/s" not in said, "as before the first measurement"
    (database.parent / "measured.json").unlink()
    (database.parent / "measured.json").mkdir()
    keeper = running.Keeper()
    keeper(seen(on_gpu()))
    assert isinstance(keeper.problem, Message)


def test_links_with_panels_that_are_gone_open(open_page: Open) -> None:
    usual = {"d_nodes": "1", "d_gpus": "8", "d_past": "false", "d_several": "false", "d_file": "false", "v": "5"}
    assert "np-error" not in words(open_page(StillRunner(), d_n="512", **usual))
    said = words(open_page(StillRunner(), d_n="512", **usual | {"d_nodes": "4", "d_past": "true"}))
    assert all(name in said.replace("\u2060", "") for name in ("“d_nodes”", "“d_past”"))
    assert "d_gpus" not in said
