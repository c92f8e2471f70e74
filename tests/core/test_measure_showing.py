"""What a measurement says: numbers and verdicts, doubts before headlines, and nothing that contradicts the points."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.benchmark.datasheet import best_by_others, datasheet_of, peak_of
from core.benchmark.device import DeviceKind
from core.benchmark.points import Point, State
from core.views.benchmark import charts, matmul, others, roofline
from core.views.common import dot_labels
from core.views.common.palette import LIGHT
from tests.core.measured_cases import H200, item, on_gpu, point, record, refusal, square

GPU = on_gpu()


def test_rates_whose_runs_do_not_agree_are_not_compared_with_fp32() -> None:
    at = matmul.headings(GPU).index("Times fp32") - len(matmul.headings(GPU))
    for wide in ("fp32", "bf16"):
        found = [square(name, 1024, 1e11, spread=4.0 if name == wide else 1.1) for name in ("fp32", "bf16", "fp64")]
        cells = {row[0]: row[at] for row in matmul.rows(record("cuda", *found))}
        assert cells["fp32"] == "1 ×"
        assert cells["bf16"] == "unknown"
        assert cells["fp64"] == ("unknown" if wide == "fp32" else "1 ×")


def _step(rate: float, note: str) -> Point:
    return point(item("layer", "step", "eager", (1, 512)), 1e10 / rate, flop=1e10, bytes=1e4, note=note)


@pytest.mark.parametrize(("device", "n"), [("cpu", 1024), ("cuda", 4096)])
def test_what_runs_above_the_squares_is_the_roof_and_is_said(device: DeviceKind, n: int) -> None:
    slow = square("fp32", n, 3.36e10)
    found = record(device, slow, _step(4.53e11, "in fp32, fused AdamW"))
    assert roofline.measured(found, 1e10).peaks == {"fp32": pytest.approx(4.53e11)}
    assert matmul.disturbed(found)
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
    assert bool(matmul.disturbed(found)) == bool(marked)


def test_the_headline_is_bf16_on_a_gpu_and_fp32_on_a_cpu() -> None:
    both = (square("fp32", 1024, 1e11), square("bf16", 1024, 4e11))
    assert [matmul.headline(record(kind, *both)).item.name for kind in ("cpu", "cuda")] == ["fp32", "bf16"]  # type: ignore[arg-type, union-attr]
    assert matmul.headline(record("cuda", square("fp8", 1024, 1e15))).item.name == "fp8"  # type: ignore[union-attr]
    assert matmul.headline(record("cuda", refusal("bf16", 1024, "no"))) is None


def test_the_table_has_as_many_cells_as_headings_and_peaks_of_their_own_dtype() -> None:
    for found in (GPU, record("cpu", square("fp32", 512, 1e11), square("fp64", 512, 5e10))):
        for row in matmul.rows(found):
            assert len(row) == len(matmul.headings(found))
    sheet = datasheet_of(GPU)
    assert peak_of(sheet, "fp64") == sheet.peak("fp64_tensor")
    assert peak_of(sheet, "fp8 fast") == peak_of(sheet, "fp8") > 0
    assert math.isnan(peak_of(sheet, "nvfp4"))
    assert best_by_others(sheet, "bf16") == sheet.rows[0].best_measured("bf16")


@pytest.mark.parametrize(("rate", "shown"), [(1.6e14, False), (1.5e15, True)])
def test_int8_has_a_share_only_where_its_units_may_have_run(rate: float, shown: bool) -> None:
    found = record("cuda", square("int8", 8192, rate), square("bf16", 8192, 7e14))
    at = matmul.headings(found).index("Of the peak")
    shares = {row[0]: row[at] for row in matmul.rows(found)}
    assert shares["bf16"].endswith("%")
    assert shares["int8"].endswith("%") == shown
    assert shares["int8"] != "unknown", "its datasheet has it"
    assert ("1.98 POP/s" in " ".join(matmul.remarks(found))) != shown
    assert [not math.isnan(bar.peak) for bar in matmul.bars(found)] == [shown, True]
    assert sum("int8, H200" in one.title for one in matmul.explanations(found)) == shown


def test_rates_of_integers_are_operations_per_second_everywhere() -> None:
    found = record("cuda", *(square(name, n, 2e15) for name in ("int8", "bf16") for n in (4096, 8192)))
    tables = (matmul.headings(found), matmul.rows(found)), (others.headings(found.points), others.rows(found.points))
    for headings, rows in tables:
        at = next(i for i, name in enumerate(headings) if name in ("Median", "Rate"))
        units = {row[0]: row[at].unit for row in rows}  # type: ignore[attr-defined]
        assert units == {"int8": "OP/s", "bf16": "FLOP/s"}
    drawn = [charts.rates(matmul.bars(found), LIGHT), charts.curves(found, LIGHT)]
    texts = [matmul.chart_alt(found), charts.curves_alt(found), *_texts(drawn)]
    for name, unit in (("int8", "OP/s"), ("bf16", "FLOP/s")):
        of = re.compile(rf"\b{name}\b[^;,]*?[GTP]?(\w+/s)")
        assert {match.lstrip("GTP") for text in texts for match in of.findall(text)} == {unit}
    opened = [step for step in matmul.explanations(found) if "int8" in step.title]
    assert opened
    assert not [
        text for step in opened for text in (step.text, *(term.text for term in step.terms)) if "FLOP/s" in text
    ]


def _texts(drawn: Any) -> list[str]:
    """Every text in a figure."""
    if isinstance(drawn, str):
        return [drawn]
    parts = drawn.values() if isinstance(drawn, dict) else drawn if isinstance(drawn, (list, tuple)) else ()
    return [text for part in parts for text in _texts(part)]


def test_power_clocks_and_limits_are_those_that_held() -> None:
    """The limit enforced, not the board's; the energy of long runs, not a moment's power; the driver's reasons."""
    states: dict[str, Any] = {
        "before": State(clock_mhz=1980, temperature_c=40, power_w=120),
        "after": State(clock_mhz=1400, temperature_c=61, power_w=333, clock_reasons=4 | 64),
    }
    facts = H200.model_copy(update={"enforced_limit_w": 500.0})
    long = square("bf16", 8192, 6e14, regime="sustained", mean_power_w=498.0, **states)
    text = " ".join(matmul.remarks(record("cuda", square("bf16", 8192, 7e14, **states), long, facts=facts)))
    assert "498 W" in text
    assert "500 W" in text
    for wrong in ("333 W", "120 W", "700 W"):
        assert wrong not in text
    assert "the power limit" in text
    assert "the temperature limit" in text
    assert "hardware" not in text


def test_a_matmul_stands_under_a_peak_of_its_own_dtype_or_nowhere() -> None:
    qkv = item("matmul", "bf16", "QKV", (512, 768, 2304))
    shape = point(qkv, 1e-3, flop=2 * 512 * 768 * 2304, bytes=6e6)
    other = record("cuda", square("fp32", 4096, 5e13), shape)
    assert roofline.rows(other, roofline.measured(other, 3e12)) == ()
    sure = record("cuda", square("bf16", 4096, 6e14), shape)
    assert len(roofline.rows(sure, roofline.measured(sure, 3e12))) == 1


@given(
    st.lists(st.tuples(st.floats(1.5, 4.5), st.floats(10, 14.8), st.integers(1, 24)), min_size=1, max_size=16),
    st.floats(*dot_labels.WIDTHS),
)
def test_each_label_of_a_roofline_is_beside_its_own_dot_or_tied_to_it(
    dots: list[tuple[float, float, int]], width: float
) -> None:
    timed = [
        point(item("attention", "x" * long + chr(97 + i), "y"), 10 ** (12 - rate), flop=1e12, bytes=10 ** (12 - at))
        for i, (at, rate, long) in enumerate(dots)
    ]
    found = record("cuda", square("bf16", 4096, 5e14), *timed)
    drawn = roofline.picture(found, roofline.measured(found, 3e12), roofline.Roof({}, math.nan), LIGHT)["layout"]
    (left, right), (low, high) = drawn["xaxis"]["range"], drawn["yaxis"]["range"]

    def place(x: float, y: float) -> tuple[float, float]:
        return (x - left) / (right - left) * width, (y - low) / (high - low) * 379

    middles = {p.item.name: place(math.log10(p.flop / p.bytes), math.log10(p.rate)) for p in timed}
    boxes: list[tuple[float, float, float, float]] = []
    for note in drawn["annotations"]:
        name = note["text"].partition(",")[0]
        if name not in middles:
            continue
        (x, y), side = middles[name], 1 if note["xanchor"] == "left" else -1
        assert place(note["x"], note["y"]) == pytest.approx((x, y))
        x, y = x + note.get("ax", note.get("xshift", 0)), y - note.get("ay", 0)
        half, end = 0.5 * 11, x + side * 0.5 * 11 * len(note["text"])
        boxes.append((min(x, end), max(x, end), y - half, y + half))
        gaps = {other: math.dist(at, (min(max(at[0], boxes[-1][0]), boxes[-1][1]), y)) for other, at in middles.items()}
        assert gaps.pop(name) <= min(gaps.values(), default=math.inf) or note["showarrow"]
        assert all(gap > 5 for gap in gaps.values()), "it lies on no dot"
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            assert one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]


def test_dots_that_are_apart_all_have_their_names() -> None:
    timed = [
        point(item("attention", f"back end {i}", "forward"), 10 ** (i - 3), flop=1e12, bytes=10 ** (10 - i))
        for i in range(5)
    ]
    found = record("cuda", square("bf16", 4096, 5e14), *timed)
    drawn = roofline.picture(found, roofline.measured(found, 3e12), roofline.Roof({}, math.nan), LIGHT)["layout"]
    texts = " ".join(note["text"] for note in drawn["annotations"])
    assert [p.item.name for p in timed if p.item.name not in texts] == []


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
