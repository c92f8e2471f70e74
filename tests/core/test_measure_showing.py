"""What a measurement says: numbers and verdicts, doubts before headlines, and nothing that contradicts the points."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.benchmark.best import best_squares, headline_square
from core.benchmark.datasheet import best_published, datasheet_of, peak_of
from core.benchmark.points import Point, State
from core.benchmark.record import Record, merge_records
from core.benchmark.roofline import Roof, measured_roof, placed_points
from core.messages import Message
from core.views.benchmark import charts, roofline, tables, text
from core.views.common.palette import LIGHT
from tests.core.measured_cases import H200, copy, item, on_gpu, point, record, refusal, square

GPU = on_gpu()


def cells(found: Record, name: str) -> dict[str, str]:
    """A column of the table of dtypes, by dtype."""
    headings, rows = tables.dtype_table(found)
    at = next(i for i, heading in enumerate(headings) if isinstance(heading, Message) and heading.id.endswith(name))
    return {row[0]: row[at] for row in rows}


def ids(messages: Iterable[str]) -> list[str]:
    return [one.id for one in messages if isinstance(one, Message)]


def test_rates_whose_runs_do_not_agree_are_not_compared_with_fp32() -> None:
    for wide in ("fp32", "bf16"):
        found = [square(name, 1024, 1e11, spread=4.0 if name == wide else 1.1) for name in ("fp32", "bf16", "fp64")]
        compared = cells(record("cuda", *found), ".fp32")
        known = {name for name, cell in compared.items() if not ids([cell])}
        assert known == ({"fp32"} if wide == "fp32" else {"fp32", "fp64"})


def test_an_uneven_headline_is_no_rate_and_other_uneven_rates_are_doubted() -> None:
    even, uneven = square("fp32", 1024, 1e11), square("fp32", 1024, 1e11, spread=4.0)
    other = square("bf16", 1024, 1e11, spread=4.0)
    assert text.answer(record("cpu", uneven))[0].id == "measure.answer_spread"
    assert text.answer(record("cpu", even, other))[0].id == "measure.answer"
    doubt = text.doubts(record("cpu", even, other))
    assert doubt[0].id == "measure.doubt.spread"
    assert text.doubts(record("cpu", even)) == text.doubts(record("cpu", uneven)) == []


def _step(rate: float, dtype: str) -> Point:
    return point(item("layer", "step", "eager", (1, 512)), 1e10 / rate, flop=1e10, bytes=1e4, dtype=dtype)


def test_what_runs_above_the_squares_is_the_roof() -> None:
    found = record("cuda", square("fp32", 4096, 3.36e10), _step(4.53e11, "fp32"))
    assert measured_roof(found, 1e10).peaks == {"fp32": pytest.approx(4.53e11)}
    assert measured_roof(found, 1e10).place(found.points[-1]).attainable >= found.points[-1].rate


def test_the_headline_is_bf16_on_a_gpu_and_fp32_on_a_cpu() -> None:
    both = (square("fp32", 1024, 1e11), square("bf16", 1024, 4e11))
    for kind, timed, dtype in (
        ("cpu", both, "fp32"),
        ("cuda", both, "bf16"),
        ("cuda", [square("fp8", 99, 1e15)], "fp8"),
    ):
        top = headline_square(record(kind, *timed))  # type: ignore[arg-type]
        assert top
        assert top.item.name == dtype
    assert headline_square(record("cuda", refusal("bf16", 1024, "no"))) is None


def test_peaks_are_those_of_the_dtype() -> None:
    sheet = datasheet_of(GPU)
    assert peak_of(sheet, "fp64") == sheet.peak("fp64_tensor")
    assert peak_of(sheet, "fp8 fast") == peak_of(sheet, "fp8") > 0
    assert math.isnan(peak_of(sheet, "nvfp4"))
    assert best_published(sheet, "bf16") == sheet.rows[0].best_measured("bf16")


@pytest.mark.parametrize(("rate", "shown"), [(1.6e14, False), (1.5e15, True)])
def test_int8_has_a_share_only_where_its_units_may_have_run(rate: float, shown: bool) -> None:
    found = record("cuda", square("int8", 8192, rate), square("bf16", 8192, 7e14))
    shares = cells(found, ".share")
    assert ids([shares["bf16"]]) == []
    assert ids([shares["int8"]]) == ([] if shown else ["measure.table.not_compared"]), "its datasheet has a peak"
    assert ("measure.notice.int8" in ids(text.notices(found))) != shown
    assert [not math.isnan(bar.peak) for bar in charts.bars_of(found)] == [shown, True]
    assert sum("int8, H200" in one.title for one in text.explanations(found)) == shown


def test_rates_of_integers_are_operations_per_second_everywhere() -> None:
    found = record("cuda", *(square(name, n, 2e15) for name in ("int8", "bf16") for n in (4096, 8192)))
    for headings, rows in (tables.dtype_table(found), tables.points_table(found.points)):
        at = next(i for i, name in enumerate(headings) if isinstance(name, Message) and name.id.endswith(".rate"))
        units = {row[0]: row[at].unit for row in rows}  # type: ignore[attr-defined]
        assert units == {"int8": "OP/s", "bf16": "FLOP/s"}
    drawn = [charts.rates(charts.bars_of(found), LIGHT), charts.curves(found, LIGHT)]
    texts = [*text.answer(found)[1], *_texts(drawn)]
    for name, unit in (("int8", "OP/s"), ("bf16", "FLOP/s")):
        of = re.compile(rf"\b{name}(?! in)\b[^;)]*?[GTP]?(\w+/s)")
        assert {match.lstrip("GTP") for one in texts for match in of.findall(one)} <= {unit}
    opened = [step for step in text.explanations(found) if "int8" in step.title]
    assert opened
    assert not [one for step in opened for one in (step.text, *(term.text for term in step.terms)) if "FLOP/s" in one]


def test_every_rate_of_a_gpu_is_explained() -> None:
    assert {round(step.value) for step in text.explanations(GPU)} >= {
        round(p.bandwidth) for p in GPU.points if not p.flop
    }


def _texts(drawn: Any) -> list[str]:
    """Every text in a figure."""
    if isinstance(drawn, str):
        return [drawn]
    parts = drawn.values() if isinstance(drawn, dict) else drawn if isinstance(drawn, (list, tuple)) else ()
    return [one for part in parts for one in _texts(part)]


def test_power_clocks_and_limits_are_those_that_held() -> None:
    """The limit enforced, not the board's; the energy of long runs, not a moment's power; the driver's reasons."""
    states: dict[str, Any] = {
        "before": State(clock_mhz=1980, temperature_c=40, power_w=120),
        "after": State(clock_mhz=1400, temperature_c=61, power_w=333, clock_reasons=4 | 64),
    }
    facts = H200.model_copy(update={"enforced_limit_w": 500.0})
    long = square("bf16", 8192, 6e14, regime="sustained", mean_power_w=498.0, **states)
    found = record("cuda", square("bf16", 8192, 7e14, **states), long, facts=facts)
    (clock,) = text.notices(found)
    assert (clock.values["share"], clock.values["top"]) == (pytest.approx(1400 / 1980), 1980)
    assert ids(clock.values["reasons"]) == ["measure.clock.power", "measure.clock.temperature"]
    (power,) = [one for one in text.method_notes("cuda", found) if one.id == "measure.conditions.power_limit"]
    assert (power.values["power"], power.values["limit"]) == (498, 500)
    assert text.answer(found)[1][1].values["rate"].value == pytest.approx(6e14)


def test_what_a_record_lacks_comes_from_the_newest_other_that_is_alike() -> None:
    newest = record("cuda", square("bf16", 8192, 6e14))
    used = record("cuda", copy("1 GiB", 2**30, 1e12), in_use="another process")
    old, older = (record("cuda", copy("1 GiB", 2**30, rate), square("fp32", 4096, 1e13)) for rate in (4e12, 3e12))
    other = record("cuda", copy("1 GiB", 2**30, 5e12), facts=H200.model_copy(update={"name": "another"}))
    merged = merge_records([newest, used, other, old, older])
    assert [p.item.kind for p in merged.points] == ["matmul", "memory"]
    assert merged.points[1].bandwidth == pytest.approx(4e12)
    assert [p.item.name for p in best_squares(merged)] == ["bf16"]
    assert merge_records([old, newest]) == old


def test_squares_stand_under_a_peak_of_their_own_dtype_or_nowhere() -> None:
    found = record("cuda", square("fp32", 4096, 5e13), square("fp8", 4096, 1e15), square("fp64", 4096, 1e13))
    assert [p.item.name for p in placed_points(found, measured_roof(found, 3e12))] == ["fp32"]
    oblong = item("matmul", "bf16", "QKV", (512, 768, 2304))
    other = point(oblong, 1e-3, flop=2 * 512 * 768 * 2304, bytes=6e6)
    older = record("cuda", square("bf16", 4096, 5e14), other)
    assert len(placed_points(older, measured_roof(older, 3e12))) == 1


@given(st.lists(st.tuples(st.floats(1e-6, 1), st.floats(1e3, 1e13), st.floats(1e3, 1e11)), max_size=6))
def test_any_points_can_stand_on_a_roofline(points: list[tuple[float, float, float]]) -> None:
    found = record(
        "cuda",
        square("bf16", 4096, 5e14),
        *(point(item("attention", f"op {i}", "x"), s, flop=f, bytes=b) for i, (s, f, b) in enumerate(points)),
    )
    roof = measured_roof(found, 3e12)
    drawn = roofline.picture(found, roof, Roof({}, math.nan), LIGHT)
    assert {f"op {i}" for i in range(len(points))} <= {note["text"] for note in drawn["layout"]["annotations"]}
    assert sum(len(trace["x"]) for trace in drawn["data"] if trace["mode"] == "markers") == len(points) + 1
    assert len(tables.roofline_table(found, roof)[1]) == len(points) + 1
