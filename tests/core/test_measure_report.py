"""What is said and drawn about a measurement follows from its numbers."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core.measure import report
from core.measure.device import Cpu, Gpu, Machine
from core.measure.events import DeviceFacts, Outcome, Progress, Refusal, Result
from core.measure.figures import rates
from core.measure.jobs import Snapshot
from core.measure.spec import METHOD, DeviceKind, Spec
from core.palette import LIGHT

EPYC = DeviceFacts("AMD EPYC", "bf16 instructions: avx512_bf16, fp16 instructions: none", 2, 2.5e10, None)
H200 = DeviceFacts("NVIDIA H200", "compute capability 9.0, CUDA 13.0", 0, 150.1e9, 700.0)


def result(dtype: str, rate: float, n: int = 1024, **options: Any) -> Result:
    """A result at ``rate`` FLOP/s with a spread of a few percent."""
    seconds = 2 * n**3 / rate
    given = {"p10_s": 0.98 * seconds, "p90_s": 1.05 * seconds, "runs": 100, "duration_s": 2.0, **options}
    return Result(dtype, n, median_s=seconds, best_s=0.95 * seconds, relative_error=1e-3, **given)


def job(device: DeviceKind, *outcomes: Outcome, **options: Any) -> Snapshot:
    given: dict[str, Any] = {
        "state": "finished",
        "progress": None,
        "message": "",
        "facts": EPYC if device == "cpu" else H200,
        **options,
    }
    return Snapshot(
        id="1",
        spec=Spec(device, 1024 if device == "cpu" else 8192, 2.0),
        started=1763640000.0,
        elapsed_s=3.2,
        method=METHOD,
        torch="2.13.0",
        outcomes=outcomes,
        stderr="",
        ignored_lines=0,
        **given,
    )


NOTE = "timed at n = 512: at n = 1,024 one run would take about 800 ms, and 5 runs about 4 s"
ON_CPU = job("cpu", result("fp32", 195e9), result("fp16", 5.0625e9, 512, note=NOTE), result("bf16", 810e9))
ON_GPU = job(
    "cuda",
    result("fp32", 51e12, 8192),
    result("tf32", 402e12, 8192),
    Refusal("fp16", "refused", "RuntimeError: not today"),
    result("bf16", 790e12, 8192, clock_before_mhz=1980.0, clock_after_mhz=1755.0),
)


def test_the_answer_on_a_cpu() -> None:
    sentence, detail = report.answer(ON_CPU)
    assert sentence == "This CPU reached **195 GFLOP/s** in fp32."  # fp16 was timed at another size
    assert (
        "fp16 came out about 150 times slower than bf16, the fastest with 810 GFLOP/s, but at n = 512 against 1,024."
        in detail
    )
    assert "n = 1,024" in detail
    assert "a burst (under 10 s, and a device may not hold its rate for longer)" in detail
    assert "on 2 threads" in detail
    assert f"fp16 was {NOTE}; this processor has no instructions for fp16." in detail
    assert detail.count("Peak unknown: no datasheet gives a processor's matmul rate per dtype.") == 1
    assert f"2025-11-20 12:00 UTC with torch 2.13.0, method {METHOD}" in detail


def test_the_answer_on_a_gpu() -> None:
    sentence, detail = report.answer(ON_GPU)
    assert sentence == (
        "This NVIDIA H200 reached **790 TFLOP/s** in bf16, **80 %** of its datasheet peak; "
        "fp32 is **about 15 times slower** than bf16."
    )
    assert "dense datasheet rates of H200 SXM" in detail


def test_the_answer_with_one_result_compares_nothing() -> None:
    sentence, _ = report.answer(job("cuda", result("tf32", 400e12, 8192)))
    assert sentence == "This NVIDIA H200 reached **400 TFLOP/s** in tf32, **81 %** of its datasheet peak."


def test_equal_rates_are_not_called_slower() -> None:
    sentence, _ = report.answer(job("cpu", result("fp32", 200e9), result("bf16", 210e9)))
    assert "slower" not in sentence


def test_the_fastest_is_named_with_its_rate_where_it_is_compared_with() -> None:
    sentence, detail = report.answer(job("cpu", result("fp32", 215e9), result("fp16", 1e9), result("bf16", 619e9)))
    assert sentence == (
        "This CPU reached **215 GFLOP/s** in fp32; fp16 is **about 600 times slower** than bf16, the fastest with "
        "619 GFLOP/s."
    )
    assert "came out" not in detail


def test_runs_that_scatter_are_not_compared_in_the_headline() -> None:
    seconds = 2 * 1024**3 / 268e9
    scattered = result("bf16", 268e9, p10_s=0.96 * seconds, p90_s=2 * seconds)
    sentence, detail = report.answer(job("cpu", result("fp32", 100e9), scattered))
    assert sentence == "This CPU reached **100 GFLOP/s** in fp32."
    assert "fp32 came out about 2.7 times slower than bf16, the fastest with 268 GFLOP/s, but in runs that" in detail


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (1.1, ""),
        (1.24, "about 1.2 times"),
        (13.4, "about 13 times"),
        (99.4, "about 99 times"),
        (101, "about 100 times"),
        (160, "about 150 times"),
        (619, "about 600 times"),
        (1300, "about 1,500 times"),
    ],
)
def test_no_ratio_has_more_digits_than_timing_can_tell(ratio: float, said: str) -> None:
    sentence, _ = report.answer(job("cpu", result("fp32", ratio * 1e9), result("bf16", 1e9)))
    assert said in sentence
    assert ("about" in sentence) == bool(said)


def test_a_result_of_other_inputs_says_when_and_how_it_was_measured() -> None:
    assert report.earlier(ON_CPU, Spec("cpu", 1024, 2.0)) == ""
    assert report.earlier(ON_CPU, Spec("cpu", 2048, 0.5)) == (
        "**Last measured on this server:** 2025-11-20 12:00 UTC, n = 1,024, 2 s per dtype."
    )
    short = replace(ON_CPU, spec=Spec("cpu", 512, 0.5))
    assert report.earlier(short, ON_CPU.spec).endswith("n = 512, 0.5 s per dtype.")
    fresh = replace(ON_CPU, started=time.time())
    assert re.search(r"server:\*\* \d\d:\d\d UTC, n", report.earlier(fresh, Spec("cpu", 2048, 0.5)))
    assert report.estimate(Spec("cpu", 1024, 2.0)) == "A run takes about 10 s."


def test_an_unknown_gpu_has_no_share() -> None:
    facts = DeviceFacts("NVIDIA Mystery", "", 0, 1e10, None)
    sentence, detail = report.answer(job("cuda", result("bf16", 1e12, 8192), facts=facts))
    assert "peak" not in sentence
    assert "Peak unknown: the accelerator table has no row for NVIDIA Mystery." in detail


def test_rates_that_scatter_are_doubted() -> None:
    assert report.warning(ON_CPU) == ""
    seconds = 2 * 1024**3 / 268e9
    scattered = job("cpu", result("bf16", 268e9, p10_s=0.96 * seconds, p90_s=2 * seconds))
    assert "bf16 p10–p90 134–279 GFLOP/s" in report.warning(scattered)


def test_the_table() -> None:
    rows = report.rows(ON_GPU)
    assert [row.dtype for row in rows] == ["fp32", "tf32", "bf16"]
    assert rows[-1].cells == (
        *("bf16", "8,192", "790 TFLOP/s", "832 TFLOP/s", "752–806 TFLOP/s"),
        *("100", "2 s", "79.8 %", "1 × 10⁻³"),
    )
    assert report.headings(ON_GPU)[7] == "Of datasheet peak"
    assert {row.share for row in report.rows(ON_CPU)} == {None}
    assert "Of datasheet peak" not in report.headings(ON_CPU)
    for snapshot in (ON_CPU, ON_GPU):
        assert {len(row.cells) for row in report.rows(snapshot)} == {len(report.headings(snapshot))}
    assert report.remarks(ON_GPU) == (
        "**fp16 refused**: RuntimeError: not today",
        "Before and after: bf16 1,980 → 1,755 MHz. The clock fell to 89 % of the 1,980 MHz seen here (bf16), as it "
        "does at a power or temperature limit. A datasheet peak supposes a clock that holds.",
    )


def test_a_clock_that_holds_is_not_remarked_on() -> None:
    held = job("cuda", result("bf16", 790e12, 8192, clock_before_mhz=1980.0, clock_after_mhz=1965.0))
    assert report.remarks(held) == ("Before and after: bf16 1,980 → 1,965 MHz.",)


def test_runs_as_short_as_a_launch_are_remarked_on() -> None:
    (said,) = report.remarks(job("cuda", result("fp32", 15e12, 512), result("bf16", 36e12, 512)))
    assert said.startswith("**A run of fp32 and bf16 takes 18 \u00b5s or less**")
    assert report.remarks(job("cpu", result("bf16", 36e12, 512))) == ()


CANCELLED = job("cpu", result("fp32", 195e9), state="cancelled", message="The measurement was cancelled.")


@pytest.mark.parametrize(
    ("snapshot", "kind", "text"),
    [
        (ON_CPU, "", ""),
        (CANCELLED, "note", "**Cancelled** after 3.2 s. Kept: fp32. Not measured: fp16 and bf16."),
        (
            job("cpu", state="cancelled"),
            "note",
            "**Cancelled** after 3.2 s. Nothing had been measured yet. Not measured: fp32, fp16 and bf16.",
        ),
        (
            job("cuda", state="failed", message="It broke."),
            "error",
            "**Failed** after 3.2 s. It broke. Nothing had been measured yet. Not measured: fp32, tf32, fp16 and bf16.",
        ),
    ],
)
def test_how_a_job_ended(snapshot: Snapshot, kind: str, text: str) -> None:
    assert report.status(snapshot) == (kind, text)


def test_what_a_running_job_does() -> None:
    running: Callable[..., Snapshot] = lambda **o: job("cpu", result("fp32", 2e11), state="running", **o)  # noqa: E731
    at = Progress("fp16", "timing", 0.5)
    assert report.progress_line(running(progress=at)) == "fp16 (2 of 3): timing, about 5 s left"
    assert report.progress_line(running()).startswith("preparing the next dtype, about")
    everything = job("cpu", *(result(dtype, 2e11) for dtype in ("fp32", "fp16", "bf16")), state="running")
    assert report.progress_line(everything) == "finishing, about 1 s left"
    notes = [bar.note for bar in report.bars(running(progress=at))]
    assert notes == ["", "timing …", "waiting"]
    assert [bar.note for bar in report.bars(CANCELLED)] == ["", "not measured", "not measured"]


def test_every_number_can_be_opened() -> None:
    titles = [explanation.title for explanation in report.explanations(ON_GPU)]
    assert titles == [
        "Work of a matrix product: n = 8,192",
        *("Achieved rate of a timed matmul: fp32, median", "Share of the datasheet peak that arrives: fp32, H200 SXM"),
        *("Achieved rate of a timed matmul: tf32, median", "Share of the datasheet peak that arrives: tf32, H200 SXM"),
        *("Achieved rate of a timed matmul: bf16, median", "Share of the datasheet peak that arrives: bf16, H200 SXM"),
        "Speed of one dtype relative to another: bf16 and fp32",
    ]
    values = {explanation.title: explanation.value for explanation in report.explanations(ON_GPU)}
    assert values[titles[-2]] == pytest.approx(790 / 989.4)
    assert report.preview(Spec("cpu", 1024, 2.0))[0].value == 2 * 1024**3
    assert [e.title for e in report.explanations(ON_CPU)][:2] == [
        "Work of a matrix product: n = 1,024",
        "Work of a matrix product: n = 512",
    ]


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_the_method_is_told(kind: DeviceKind) -> None:
    told = " ".join(report.method(kind))
    for word in ("random normal", "float64", "Warm-up", "median", "p10", "burst", METHOD):
        assert word in told
    assert ("L2" in told) == (kind == "cuda")


NO_GPU = Machine((), Cpu("AMD EPYC", EPYC.detail, 2, 2.5e10), "There is no CUDA GPU on this machine.")
WITH_GPU = Machine((Gpu("NVIDIA H200", 150.8e9, 700.0), Gpu("NVIDIA H200", 150.8e9, 700.0)), NO_GPU.cpu, "")


def test_the_invitation() -> None:
    sentence, _ = report.invitation(NO_GPU, Spec("cpu", 1024, 2.0))
    assert sentence == "In about **10 s** you will know how fast this CPU really multiplies matrices."
    sentence, detail = report.invitation(WITH_GPU, Spec("cuda", 8192, 2.0))
    assert "this NVIDIA H200" in sentence
    assert "fp32, tf32, fp16 and bf16" in detail
    assert report.machine_line(NO_GPU).startswith("**There is no CUDA GPU on this machine.** AMD EPYC · 2 logical")
    assert report.machine_line(WITH_GPU) == (
        "**NVIDIA H200**, 140 GiB; datasheet H200 SXM; 2 GPUs here, the first one CUDA names is measured."
    )


@pytest.mark.parametrize("spec", [Spec("cpu", 1024, 2.0), Spec("cuda", 64, 0.2), Spec("cuda", 8192, 60.0)])
def test_the_steps_add_up_to_the_expected_time(spec: Spec) -> None:
    seconds = [float(step[2].strip("≈ s")) for step in report.steps(spec)]
    assert sum(seconds) == pytest.approx(spec.expected_s, abs=0.21)


def texts(figure: Any) -> list[str]:
    return [note["text"] for note in figure["layout"]["annotations"]]


def test_the_chart_of_a_cpu() -> None:
    figure = rates(report.bars(ON_CPU), LIGHT)
    bars, peaks = figure["data"]
    assert list(bars["x"]) == pytest.approx([195, 5.0625, 810])
    assert list(bars["error_x"]["array"]) == pytest.approx([r * (1 / 0.98 - 1) for r in (195, 5.0625, 810)])
    assert list(bars["error_x"]["arrayminus"]) == pytest.approx([r * (1 - 1 / 1.05) for r in (195, 5.0625, 810)])
    assert len(peaks["x"]) == 0
    assert figure["layout"]["xaxis"]["title"]["text"] == "achieved rate, GFLOP/s"
    assert "n = 512" in figure["layout"]["yaxis"]["ticktext"][1]
    assert texts(figure) == [
        "<b>195 GFLOP/s</b>",
        "<b>5.06 GFLOP/s</b>",
        "<b>810 GFLOP/s</b>",
    ]


def test_no_label_reaches_under_the_tools_of_the_chart() -> None:
    for snapshot in (ON_CPU, ON_GPU):
        layout = rates(report.bars(snapshot), LIGHT)["layout"]
        assert layout["margin"]["t"] >= 28  # what the icons take from the top
        assert all(a["y"] >= 0 and a.get("yshift", 0) <= 0 for a in layout["annotations"])


def test_the_chart_of_a_gpu() -> None:
    figure = rates(report.bars(ON_GPU), LIGHT)
    bars, peaks = figure["data"]
    assert list(bars["x"]) == pytest.approx([51, 402, 790])
    assert list(bars["y"]) == [0, 1, 3]
    assert list(peaks["x"]) == pytest.approx([66.9, 494.7, 989.4])
    assert figure["layout"]["xaxis"]["range"][1] > 1.2 * 989.4
    said = texts(figure)
    assert "refused: RuntimeError: not today" in said
    assert "peak 989 TFLOP/s" in said


def test_the_chart_before_anything_is_measured() -> None:
    figure = rates(report.bars(job("cpu", state="running")), LIGHT)
    assert [len(trace["x"]) for trace in figure["data"]] == [0, 0]
    assert not figure["layout"]["xaxis"]["showticklabels"]
    assert texts(figure).count("waiting") == 3


def test_a_peak_missing_for_one_dtype_is_said_in_its_row() -> None:
    v100 = DeviceFacts("Tesla V100-SXM2-16GB", "", 0, 16160.0 * 2**20, 300.0)
    figure = rates(report.bars(job("cuda", result("fp16", 90e12), result("bf16", 10e12), facts=v100)), LIGHT)
    assert "peak unknown" in texts(figure)
    assert "peak 125 TFLOP/s" in texts(figure)


def test_the_alternative_text_names_every_rate() -> None:
    assert report.chart_alt(ON_GPU).endswith(
        "fp32 51 TFLOP/s of 66.9 TFLOP/s peak, tf32 402 TFLOP/s of 495 TFLOP/s peak, "
        "bf16 790 TFLOP/s of 989 TFLOP/s peak."
    )
    assert "nothing measured yet" in report.chart_alt(job("cpu"))
    assert not any(math.isnan(bar.rate) for bar in report.bars(ON_CPU))
