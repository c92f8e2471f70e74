"""What a measurement says: numbers and verdicts, doubts before headlines, and nothing that contradicts the points."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.benchmark.datasheet import best_by_others, datasheet_of, peak_of
from core.benchmark.device import DeviceKind
from core.benchmark.points import Point
from core.views.benchmark import charts, common, matmul, others, roofline, state
from core.views.common.palette import LIGHT
from tests.core.measured_cases import copy, item, on_gpu, point, record, refusal, square

GPU = on_gpu()


def test_runs_that_spread_too_widely_give_a_reason_and_no_headline() -> None:
    busy = record("cpu", square("fp32", 1024, 5.7e9, spread=30.0))
    sentence, detail = matmul.answer(busy)
    assert "too unevenly" in sentence
    assert "reached **" not in sentence
    assert "6.33 GFLOP/s" in detail.replace("\u00a0", " "), "the best run is told, and not led with"
    assert matmul.warning(busy) == ""


def test_rates_whose_runs_do_not_agree_are_not_compared_with_fp32() -> None:
    at = matmul.headings(GPU).index("Times fp32") - len(matmul.headings(GPU))
    for wide in ("fp32", "bf16"):
        found = [square(name, 1024, 1e11, spread=4.0 if name == wide else 1.1) for name in ("fp32", "bf16", "fp64")]
        cells = {row[0]: row[at] for row in matmul.rows(record("cuda", *found))}
        assert cells["fp32"] == "1 ×"
        assert cells["bf16"] == "unknown"
        assert cells["fp64"] == ("unknown" if wide == "fp32" else "1 ×")


def test_another_dtypes_wide_runs_are_a_warning() -> None:
    mixed = record("cuda", square("bf16", 4096, 6e14), square("fp16", 4096, 3e14, spread=4.0))
    assert "fp16" in matmul.warning(mixed)
    assert "fp16" not in matmul.answer(mixed)[0]


def test_the_fastest_size_is_the_one_of_the_highest_rate() -> None:
    found = record("cpu", square("fp32", 512, 1e11), square("fp32", 1024, 2e11, spread=5.0))
    top = matmul.best_square(found, "fp32")
    assert top is not None
    assert top.shape[0] == 1024


def _step(rate: float, note: str) -> Point:
    return point(item("layer", "step", "eager", (1, 512)), 1e10 / rate, flop=1e10, bytes=1e4, note=note)


@pytest.mark.parametrize(("device", "n"), [("cpu", 1024), ("cuda", 4096)])
def test_what_runs_above_the_squares_is_the_roof_and_is_said(device: DeviceKind, n: int) -> None:
    slow = square("fp32", n, 3.36e10)
    found = record(device, slow, _step(4.53e11, "in fp32, fused AdamW"))
    assert roofline.measured(found, 1e10).peaks == {"fp32": pytest.approx(4.53e11)}
    said = matmul.disturbed(found).replace("\u00a0", " ")
    assert "453 GFLOP/s" in said
    assert "33.6 GFLOP/s" in said
    assert roofline.measured(found, 1e10).place(found.points[-1]).attainable >= found.points[-1].rate
    for other in (_step(3.5e10, "in fp32"), _step(4.53e11, "in bf16, fused AdamW")):
        assert matmul.disturbed(record(device, slow, other)) == "", "alike, or of another dtype"
    assert matmul.disturbed(record(device, square("fp32", 64, 1e9), _step(4.53e11, "in fp32"))) == "", "a small square"


@pytest.mark.parametrize(
    ("device", "wide", "narrow", "times", "marked"),
    [
        ("cpu", "fp64", "fp32", 1.62, "fp64"),
        ("cpu", "fp64", "fp32", 1.1, ""),
        ("cpu", "fp32", "bf16", 9.0, ""),
        ("cuda", "fp64", "fp32", 1.62, "fp64"),
        ("cuda", "fp64", "fp32", 1.3, ""),
        ("cuda", "fp32", "bf16", 1.62, "bf16"),
        ("cuda", "fp32", "bf16", 1.1, ""),
    ],
)
def test_a_wider_dtype_well_above_a_narrower_one_is_marked(
    device: DeviceKind, wide: str, narrow: str, times: float, marked: str
) -> None:
    found = record(device, square(wide, 4096, times * 1e12), square(narrow, 4096, 1e12))
    assert [row[0] for row in matmul.rows(found) if "disturbed" in " ".join(row)] == [marked] * bool(marked)
    assert (f"{times} times" in matmul.disturbed(found)) == bool(marked)
    assert not marked or " times " not in matmul.answer(found)[0]


def test_the_headline_is_bf16_on_a_gpu_and_fp32_on_a_cpu() -> None:
    both = (square("fp32", 1024, 1e11), square("bf16", 1024, 4e11))
    assert [matmul.headline(record(kind, *both)).item.name for kind in ("cpu", "cuda")] == ["fp32", "bf16"]  # type: ignore[arg-type, union-attr]
    assert matmul.headline(record("cuda", square("fp8", 1024, 1e15))).item.name == "fp8"  # type: ignore[union-attr]
    assert matmul.headline(record("cuda", refusal("bf16", 1024, "no"))) is None


def test_a_share_over_the_peak_asks_to_check_the_peak() -> None:
    (row,) = matmul.rows(record("cuda", square("bf16", 8192, 1.2e15)))
    assert matmul.CHECK in " ".join(row)
    (row,) = matmul.rows(record("cuda", square("bf16", 8192, 9e14)))
    assert matmul.CHECK not in " ".join(row)


def test_the_table_has_as_many_cells_as_headings_and_peaks_of_their_own_dtype() -> None:
    for found in (GPU, record("cpu", square("fp32", 512, 1e11), square("fp64", 512, 5e10))):
        for row in matmul.rows(found):
            assert len(row) == len(matmul.headings(found))
    sheet = datasheet_of(GPU)
    assert peak_of(sheet, "fp64") == sheet.peak("fp64_tensor")
    assert math.isnan(peak_of(sheet, "nvfp4"))
    assert best_by_others(sheet, "bf16") == sheet.rows[0].best_measured("bf16")


def test_bars_say_why_there_is_none() -> None:
    bars = {bar.dtype: bar for bar in matmul.bars(GPU)}
    assert bars["nvfp4"].note.startswith("refused: RuntimeError")
    assert math.isnan(bars["nvfp4"].peak)
    assert [size for size, _ in bars["bf16"].others] == ["n = 1,024", "n = 4,095"]
    half = record("cuda", square("fp32", 512, 1e13), stage="running")
    half = half.model_copy(update={"programme": half.programme.model_copy(update={"dtypes": ("fp32", "bf16", "fp16")})})
    assert [bar.note for bar in matmul.bars(half, doing="bf16")] == ["", "measuring …", "waiting"]
    assert [bar.note for bar in matmul.bars(half.model_copy(update={"stage": "cancelled"}))][1] == "not measured"


def test_figures_hold_every_point() -> None:
    drawn = charts.rates(matmul.bars(GPU), LIGHT)
    assert len(drawn["data"][0]["x"]) == 3
    full, bare = (charts.rates_key(matmul.bars(of)) for of in (GPU, record("cpu", square("fp32", 512, 1e11))))
    assert all(mark in full and mark not in bare for mark in ("ring", "stroke"))
    assert "p10" in bare
    lines = charts.curves(GPU, LIGHT)
    assert sum(len(trace["x"]) for trace in lines["data"]) == 6, "sustained runs are no part of the curve"
    assert "8,192" in charts.curves_alt(GPU)
    assert "1,024" in lines["layout"]["xaxis"]["ticktext"]
    assert charts.curves(record("cpu", refusal("fp32", 64, "no")), LIGHT)["data"] == []


def test_the_roofline_names_what_memory_limits() -> None:
    roof = roofline.measured(GPU, 4e12)
    assert roof.peaks == {"bf16": 6.7e14, "fp32": 5e13}
    rows = {row[0]: row for row in roofline.rows(GPU, roof)}
    assert next(row for name, row in rows.items() if "math" in name)[-1] == "memory"
    assert next(row for name, row in rows.items() if "flash" in name)[-1] == "compute"
    said = roofline.takeaway(GPU, roof, roofline.Roof({"bf16": 9.89e14}, 4.8e12))
    assert "math" in said
    assert "168" in said
    drawn = roofline.picture(GPU, roof, roofline.Roof({"bf16": 9.89e14}, 4.8e12), LIGHT)
    assert sum(trace["mode"] == "markers" for trace in drawn["data"]) == 2
    assert any(trace.get("line", {}).get("dash") == "dash" for trace in drawn["data"])
    assert not roofline.Roof({}, 1e12).known


def test_a_matmul_stands_under_a_peak_of_its_own_dtype_or_nowhere() -> None:
    qkv = item("matmul", "bf16", "QKV", (512, 768, 2304))
    shape = point(qkv, 1e-3, flop=2 * 512 * 768 * 2304, bytes=6e6)
    other = record("cuda", square("fp32", 4096, 5e13), shape)
    assert roofline.rows(other, roofline.measured(other, 3e12)) == ()
    sure = record("cuda", square("bf16", 4096, 6e14), shape)
    assert len(roofline.rows(sure, roofline.measured(sure, 3e12))) == 1


@given(st.lists(st.tuples(st.floats(1e-6, 1), st.floats(1e3, 1e13), st.floats(1e3, 1e11)), max_size=6))
def test_any_points_can_stand_on_a_roofline(points: list[tuple[float, float, float]]) -> None:
    found = record(
        "cuda",
        square("bf16", 4096, 5e14),
        *(point(item("attention", f"op {i}", "x"), s, flop=f, bytes=b) for i, (s, f, b) in enumerate(points)),
    )
    roof = roofline.measured(found, 3e12)
    drawn = roofline.picture(found, roof, roofline.Roof({}, math.nan), LIGHT)
    assert sum(len(trace["x"]) for trace in drawn["data"] if trace["mode"] == "markers") == len(points)
    assert len(roofline.rows(found, roof)) == len(points)


def test_memory_says_the_largest_copy_and_the_fastest() -> None:
    said = others.says(GPU, "memory").replace("\u00a0", " ")
    for part in ("1 GiB", "4 TB/s", "83 %", "1 MiB", "2 times"):
        assert part in said, part
    drawn = others.bandwidths(GPU, LIGHT)
    assert drawn["data"][0]["x"] == ["1 MiB", "1 GiB"]
    assert drawn["layout"]["shapes"], "the datasheet's bandwidth"
    assert not others.bandwidths(record("cpu", copy("1 MiB", 2**20, 8e10)), LIGHT)["layout"]["shapes"]


def test_rows_leave_out_columns_in_which_nothing_stands() -> None:
    points = common.of_kind(GPU, "memory")
    assert "Rate" not in others.headings(points)
    assert all(len(row) == len(others.headings(points)) for row in others.rows(points))
    assert others.says(record("cpu", square("fp32", 64, 1e9)), "memory") == ""
    shape = point(item("matmul", "bf16", "QKV", (512, 768, 2304)), 1e-3, flop=1e9)
    assert others.rows([shape, square("bf16", 64, 1e9, regime="sustained")])[0][1] == "QKV, 512 × 768 × 2,304"


@pytest.mark.parametrize(("stage", "word"), [("cancelled", "Cancelled"), ("failed", "Failed")])
def test_an_end_before_the_end_says_what_is_kept_and_what_is_not(stage: str, word: str) -> None:
    cut = record("cpu", square("fp32", 512, 1e11), stage=stage, message="It was killed.")
    items = [cut.outcomes[0].item, item("matmul", "bf16", "n = 512", (512, 512, 512))]
    kind, said = state.ended(cut, items)
    assert word in said
    assert "1 measured result." in said
    assert "Not measured: bf16" in said
    assert kind == ("note" if stage == "cancelled" else "error")
    assert state.ended(GPU, items) == ("", "")


def test_the_answer_names_rate_size_share_and_how_far_dtypes_lie_apart() -> None:
    sentence, detail = matmul.answer(GPU)
    for said in ("NVIDIA H200", "670 TFLOP/s", "bf16", "n = 8,192", "68 %", "fp8", "1.9 times", "fp32", "13 times"):
        assert said in sentence.replace("\u00a0", " "), said
    assert "620 TFLOP/s" in detail.replace("\u00a0", " ")
    assert "93 %" in detail.replace("\u00a0", " ")
    assert "H200 SXM" in detail


def test_refusals_alike_are_said_once() -> None:
    same = record("cuda", *(refusal("fp8", n, "RuntimeError: no kernel") for n in (256, 512, 1024)))
    assert sum("no kernel" in remark for remark in matmul.remarks(same)) == 1
    room = record("cuda", square("bf16", 512, 1e14), refusal("bf16", 16384, "no room", "skipped"))
    (said,) = [remark for remark in matmul.remarks(room) if "no room" in remark]
    assert "n = 16,384" in said


def test_a_lowered_clock_is_said_with_its_share() -> None:
    (said,) = [remark for remark in matmul.remarks(GPU) if "MHz" in remark]
    assert "71 %" in said.replace("\u00a0", " ")
    assert "690 W" in said
