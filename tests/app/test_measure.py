"""The Measure page in each of its states, with a runner that stands still."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.benchmark import device
from core.benchmark.choices import CHOICES
from core.benchmark.device import Cpu, DeviceKind, Gpu, Machine
from core.benchmark.layer import default_layer
from core.benchmark.points import Outcome
from core.benchmark.programme import Programme
from core.benchmark.record import Record
from core.benchmark.running.events import Progress
from core.benchmark.running.jobs import Snapshot
from core.jobs.process import NotStartedError
from core.store.last_measured import keep
from pages.common.registry import MEASURE
from pages.measure import running
from tests.core.measured_cases import CPU as CPU_FACTS
from tests.core.measured_cases import copy, item, on_gpu, point, record, refusal, square
from tests.core.sentence_facts import says
from tests.patience import PATIENCE_S

APP = str(Path(__file__).parents[2] / "app.py")

CPU = Cpu("AMD EPYC", "bf16 instructions: avx512_bf16, fp16 instructions: none", 2, 2.5e10)
NO_GPU = Machine((), CPU, "There is no CUDA GPU on this machine, so Napkin measures the CPU.")
WITH_GPU = Machine((Gpu("NVIDIA H200", 150.8e9, 700.0),), CPU, "")
FP32 = square("fp32", 1024, 2e11, error=1e-7)


def seen(of: Record, *, place: int = 0, progress: Progress | None = None) -> Snapshot:
    return Snapshot(record=of, place=place, progress=progress, stderr="", ignored_lines=0)


def cpu(*outcomes: Outcome, **options: Any) -> Record:
    return record("cpu", *outcomes, **options)


class StillRunner:
    """Has one latest job, perhaps one of the visitor's own, and remembers what was asked of it."""

    def __init__(self, latest: Record | None = None, own: Snapshot | None = None, **more: Any) -> None:
        self.job = seen(latest, progress=more.get("progress")) if latest else None
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
            raise NotStartedError(self.refuses, 12)
        self.asked.append(programme)
        self.job = self.mine = seen(cpu(stage="running").model_copy(update={"programme": programme}))
        return self.job, True

    def cancel(self, job_id: str) -> bool:
        self.asked.append(job_id)
        assert self.job
        done = self.job.record.model_copy(update={"stage": "cancelled", "message": "It was cancelled."})
        self.job = self.mine = seen(done)
        self.best = done
        return True


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


def words(app: AppTest) -> str:
    """Everything said in HTML, without the stylesheet and with ordinary spaces."""
    bodies = [element.proto.body for element in app.get("html")]
    return "\n".join(body for body in bodies if not body.startswith("<style>")).replace("\u00a0", " ")


def button(app: AppTest, label: str) -> Any:
    (found,) = [b for b in app.button if b.label == label]
    return found


def test_idle_without_a_gpu(open_page: Open) -> None:
    app = open_page(StillRunner())
    said = words(app)
    assert "There is no CUDA GPU on this machine" in said
    assert "how fast this CPU multiplies matrices" in said
    assert not button(app, "Measure on this CPU").disabled
    assert app.text_input(key="d_n").value == "2048"
    assert not app.get("plotly_chart")


def test_idle_with_a_gpu(open_page: Open) -> None:
    app = open_page(StillRunner(), WITH_GPU)
    assert not button(app, "Measure on this GPU").disabled
    assert "datasheet H200 SXM" in words(app)
    assert "nvfp4 will be tried" in words(app)
    assert app.text_input(key="d_n").value == "16384"


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
    button(app, "Measure on this GPU" if kind == "cuda" else "Measure on this CPU").click().run()
    (asked,) = runner.asked
    assert isinstance(asked, Programme)
    assert asked.device == kind
    assert asked.kinds == CHOICES[choice].kinds
    assert asked.seconds == 0.05
    assert asked.sizes[-1:] == ((512,) if "matmul" in asked.kinds else ())
    assert (asked.layer is None) == (not {"attention", "layer"} & set(asked.kinds))
    assert not app.exception
    assert button(app, "Measure on this GPU" if kind == "cuda" else "Measure on this CPU").disabled


@pytest.mark.parametrize(
    ("key", "bad", "good"),
    [
        ("d_n", "8", "2,048"),
        ("d_n", "64.5", "2,048"),
        ("d_n", "1e9", "2,048"),
        ("d_each", "0.001", "500 ms"),
        ("d_each", "2 h", "500 ms"),
    ],
)
def test_a_bad_input_is_explained_and_not_used(open_page: Open, key: str, bad: str, good: str) -> None:
    runner = StillRunner()
    app = open_page(runner)
    app.text_input(key=key).set_value(bad).run()
    assert bad in words(app)
    assert "Still using" in words(app)
    button(app, "Measure on this CPU").click().run()
    (asked,) = runner.asked
    assert isinstance(asked, Programme)
    assert (asked.sizes[-1], asked.seconds) == (2048, 0.5)


def test_a_pause_or_a_full_line_is_said_and_starts_nothing(open_page: Open) -> None:
    app = open_page(StillRunner(refuses="You can start the next one in 12 s."))
    button(app, "Measure on this CPU").click().run()
    assert "You can start the next one in 12 s." in words(app)
    assert not button(app, "Measure on this CPU").disabled
    app.text_input(key="d_n").set_value("256").run()
    assert "12 s." not in words(app), "said once"


def test_running_shows_progress_to_everybody_and_lets_them_cancel(open_page: Open) -> None:
    whole = cpu(FP32, square("fp32", 512, 1e11)).programme.model_copy(update={"dtypes": ("fp32", "bf16")})
    now = cpu(FP32, stage="running", programme=whole)
    at = Progress(item=refusal("bf16", 512, "").item, phase="timing", fraction=0.5)
    runner = StillRunner(now, progress=at)
    app = open_page(runner)
    assert not button(app, "Measure on this CPU").disabled, "one may get in line"
    assert "Somebody else measures on this device" in words(app)
    (bar,) = app.get("progress")
    says(bar.proto.text, "bf16, n = 512 (2 of 4)", "s left")
    assert len(app.get("plotly_chart")) == 2
    button(app, "Cancel").click().run()
    assert runner.asked == [now.id]
    says(words(app), "<b>Cancelled</b> after 20 s", "1 measured result", "Not measured: bf16 and the rest of fp32")
    assert "<b>200 GFLOP/s</b> in fp32" in words(app)


def test_ones_own_measurement_is_nobody_elses(open_page: Open) -> None:
    now = cpu(FP32, stage="running")
    app = open_page(StillRunner(now, own=seen(now)))
    assert "Somebody else" not in words(app)
    assert button(app, "Measure on this CPU").disabled


def test_waiting_in_line_says_the_place_and_lets_one_leave(open_page: Open) -> None:
    now, mine = cpu(FP32, stage="running"), cpu(stage="queued", id="ba9876543210")
    runner = StillRunner(now, own=seen(mine, place=2))
    app = open_page(runner)
    assert "1 more is before it" in words(app)
    assert button(app, "Measure on this CPU").disabled
    button(app, "Leave the line").click()
    app.run()
    assert runner.asked == [mine.id]


def test_a_failure_is_told_in_the_processes_words_and_keeps_earlier_results(open_page: Open) -> None:
    failed = record("cuda", stage="failed", message="The process ended with exit code 1. <b>CUDA</b> error")
    app = open_page(StillRunner(failed, own=seen(failed), best=on_gpu()), WITH_GPU)
    said = words(app)
    assert 'role="alert"' in said
    assert "exit code 1. &lt;b&gt;CUDA&lt;/b&gt; error" in said
    assert "<b>670 TFLOP/s</b> in bf16 at n = 8,192, <b>68 %</b> of its datasheet peak" in said


def test_a_measurement_with_everything_shows_each_kind_and_its_panels(open_page: Open) -> None:
    app = open_page(StillRunner(on_gpu()), WITH_GPU, d_roof="true", d_every="true")
    said = words(app)
    for part in ("4 TB/s", "flash, forward", "math", "RuntimeError: not on this device", "memory is the limit"):
        assert part in said, part
    assert len(app.get("plotly_chart")) == 4
    assert "np-error" not in said


def test_without_matmuls_the_answer_is_of_what_was_timed_and_comes_first(open_page: Open) -> None:
    said = words(open_page(StillRunner(record("cuda", copy("1 GiB", 2**30, 4e12))), WITH_GPU))
    assert said.count("<b>4 TB/s</b>") == 1, "said once"
    places = [said.index(part) for part in ("np-answer", "<b>4 TB/s</b>", "move bytes?", "mean for a plan?")]
    assert places == sorted(places)


def test_everything_refused_has_no_answer_but_its_reasons(open_page: Open) -> None:
    none = record("cuda", *(refusal(dtype, 512, "RuntimeError: no") for dtype in ("fp32", "tf32", "fp16", "bf16")))
    app = open_page(StillRunner(none, best=none), WITH_GPU)
    assert "np-answer" not in words(app)
    assert words(app).count("RuntimeError: no") == 4
    assert not button(app, "Measure on this GPU").disabled


def test_without_a_datasheet_nothing_is_said_of_a_share(open_page: Open) -> None:
    said = words(open_page(StillRunner(cpu(FP32))))
    assert "Of the peak" not in said
    assert "Peak unknown: no datasheet" in said
    assert "Of the peak" in words(open_page(StillRunner(on_gpu()), WITH_GPU))


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty one of its own."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("NAPKIN_DATA", str(tmp_path))
    return tmp_path / "napkin.db"


def test_the_last_result_of_each_kind_is_shown_together(open_page: Open, database: Path) -> None:
    shape = default_layer("cuda").model_copy(update={"model": "Ours"})
    step = point(item("layer", "step", "eager", (1, shape.seq_len)), 1e-2, flop=1e12)
    layer = record("cuda", step, id="0" * 12, started=1.0)
    keep(layer.model_copy(update={"programme": layer.programme.model_copy(update={"layer": shape})}))
    keep(on_gpu(id="1" * 12, started=86_400.0))
    keep(record("cuda", copy("1 GiB", 2**30, 3e12), id="2" * 12, started=172_800.0))
    keep(record("cuda", square("bf16", 8192, 9e14), id="3" * 12, started=259_200.0, facts=CPU_FACTS))
    app = open_page(StillRunner(), WITH_GPU, d_roof="true", d_every="true")
    said = words(app)
    for part in (
        "3 TB/s",
        "flash, forward",
        "step of one layer of Ours",
        "620 TFLOP/s",
        "p_rmem=3+TB",
        "Measured 1970-01-02",
        "Measured 1970-01-03",
    ):
        assert part in said, part
    assert "900 TFLOP/s" not in said, "of another device"
    assert "4 TB/s" not in said, "a newer one has taken its place"


def test_a_file_of_results_that_cannot_be_read_or_written_is_said(open_page: Open, database: Path) -> None:
    keep(on_gpu())
    (database.parent / "measured.json").write_text("[{")
    said = words(open_page(StillRunner(), WITH_GPU))
    assert "cannot be read" in said
    assert "you will know" in said, "as before the first measurement"
    (database.parent / "measured.json").unlink()
    (database.parent / "measured.json").mkdir()
    keeper = running.Keeper()
    keeper(seen(on_gpu()))
    assert "cannot be kept" in keeper.problem


def test_links_with_panels_that_are_gone_open(open_page: Open) -> None:
    usual = {"d_nodes": "1", "d_gpus": "8", "d_past": "false", "d_several": "false", "d_file": "false", "v": "5"}
    assert "np-error" not in words(open_page(StillRunner(), d_n="512", **usual))
    said = words(open_page(StillRunner(), d_n="512", **usual | {"d_nodes": "4", "d_past": "true"}))
    assert "“d_nodes”, “d_past”" in said
    assert "d_gpus" not in said
