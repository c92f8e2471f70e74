"""Results of measuring collectives: what a file may hold, and what is said and drawn of it."""

from __future__ import annotations

import contextlib
import json
import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.benchmark.collectives import commands
from core.benchmark.collectives.formulas import algorithm_bandwidth, bus_bandwidth
from core.benchmark.collectives.result import algorithm_rate, bus_rate, link_rates, read_result, shown, write_result
from core.benchmark.collectives.result_fields import ResultFields
from core.benchmark.collectives.spec import ITEM_BYTES, METHOD, OPERATIONS, STEP, Spec
from core.hardware.cluster import all_reduce_seconds
from core.hardware.rates import Rates
from core.limits import limit
from core.views.collectives import text as collectives_text
from core.views.collectives.charts import bandwidths
from core.views.common.palette import LIGHT
from tests.core.collectives_cases import made, point, values
from tests.every import every


def data(found: object) -> bytes:
    return json.dumps(found).encode()


def test_rates_are_those_of_nccl_tests() -> None:
    """By hand: 1 GiB among 8 ranks in 5 ms is 214.7 GB/s; times 2·7/8 that is 375.8 GB/s, times 7/8 187.9."""
    result = made(points=[point(name, 1 << 30, 0.005) for name in OPERATIONS])
    assert [algorithm_rate(one) for one in result.points] == [pytest.approx(214.748e9, rel=1e-5)] * 6
    found = {one.operation: bus_rate(result, one) / 1e9 for one in result.points}
    gathered = pytest.approx(187.905, rel=1e-5)
    assert found == {
        "all-reduce": pytest.approx(375.810, rel=1e-5),
        "all-gather": gathered,
        "reduce-scatter": gathered,
        "all-to-all": gathered,
        "ring": pytest.approx(214.748, rel=1e-5),
        "pairs": pytest.approx(214.748, rel=1e-5),
    }


@given(st.integers(2, 10_000), st.integers(1, 1 << 36), st.floats(1e-6, 1e4))
def test_bus_bandwidth_is_what_the_estimate_of_an_all_reduce_asks_for(ranks: int, size: int, seconds: float) -> None:
    bus = bus_bandwidth(2, ranks, algorithm_bandwidth(size, seconds))
    assert all_reduce_seconds(ranks, size, bus) == pytest.approx(seconds)


LARGE, SMALL = 1 << 30, 1 << 20


def summing(**other: float) -> list[dict[str, Any]]:
    """Large messages of three operations, with the seconds given for them."""
    seconds = {"all_reduce": 0.005, "all_gather": 0.0025, "reduce_scatter": 0.0024, **other}
    return [point(name.replace("_", "-"), LARGE, took) for name, took in seconds.items()]


def test_links_are_the_slowest_of_what_training_waits_for() -> None:
    result = made(points=[*summing(), point("all-reduce", SMALL, 1.0), point("ring", LARGE, 1.0)])
    slowest = bus_rate(result, result.points[0])
    assert link_rates(result) == Rates(inside=slowest)
    assert slowest == pytest.approx(375.81e9, rel=1e-5)
    slower = made(points=summing(reduce_scatter=0.01))
    assert link_rates(slower) == Rates(inside=pytest.approx(93.95e9, rel=1e-4))


def test_over_nodes_it_is_the_share_of_the_network() -> None:
    result = made(points=summing(), nodes=4, world_size=32)
    assert link_rates(result).known == (("between", bus_rate(result, result.points[0]) / 8),)
    assert "all-reduce" in collectives_text.link_line(result)
    assert "over the 8 ranks" in collectives_text.link_line(result)
    assert "over the" not in collectives_text.link_line(made(points=summing()))


@pytest.mark.parametrize(
    "points",
    [
        [],
        [point("ring", LARGE, 1e-3)],
        [point("all-reduce", SMALL, 1e-4)],
        [point("all-reduce", LARGE, 0.005, p90_s=0.02)],
        [*summing()[:1], point("all-gather", SMALL, 1e-4)],
    ],
)
def test_nothing_is_taken_from_small_messages_or_wide_runs(points: list[dict[str, Any]]) -> None:
    assert link_rates(made(points=points)).known == ()
    assert collectives_text.link_line(made(points=points)) == ""


@given(st.integers(2, 600), st.integers(1, 1 << 20), st.integers(0, 1 << 24), st.sampled_from(["fp32", "bf16"]))
def test_sizes_have_as_many_elements_for_every_rank(ranks: int, smallest: int, more: int, dtype: Any) -> None:
    spec = Spec(smallest=smallest, largest=smallest + more, dtype=dtype)
    sizes = spec.ladder(ranks)
    step = ranks * ITEM_BYTES[spec.dtype]
    assert all(size % step == 0 and 0 < size <= spec.largest for size in sizes)
    assert list(sizes) == sorted(set(sizes))
    if smallest >= step:
        assert smallest - step < sizes[0]
        assert STEP * (sizes[-1] + step) > spec.largest
    assert len(sizes) * len(OPERATIONS) * spec.share_s(ranks) == pytest.approx(spec.seconds if sizes else 0)


def test_every_ladder_fits_into_a_file() -> None:
    whole = Spec(smallest=1, largest=limit("collective_bytes"), dtype="bf16").ladder(2)
    assert len(whole) * len(OPERATIONS) <= limit("collective_points")


@pytest.mark.parametrize(
    "wrong",
    [
        {"seconds": 0},
        {"seconds": math.nan},
        {"seconds": math.inf},
        {"timeout_s": 0.5},
        {"timeout_s": math.nan},
        {"smallest": 0},
        {"smallest": 2048, "largest": 1024},
        {"largest": limit("collective_bytes") + 1},
    ],
)
def test_what_cannot_be_measured_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"--|Sizes"):
        Spec(**wrong)


def test_a_result_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text("what was there before")
    write_result(made(), path)
    assert read_result(path.read_bytes()) == made()
    assert [one.name for one in tmp_path.iterdir()] == ["result.json"]


POINT = values()["points"][0]


@every(
    ("held", "said"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe", "UTF-8"),
        (b"{" * 10, "no JSON"),
        (b"[" * 500_000, "too deep"),
        (b" " * (limit("upload_bytes") + 1), "at most 1,048,576"),
        (b"[]", "napkin-collectives"),
        (b"7", "napkin-collectives"),
        (data(values(format="napkin-plans")), "napkin-collectives"),
        (data(values(version=2)), "version 2"),
        (data(values(version={"a": []})), "version"),
        (data(values(version=True)), "version"),
        (data(values(more=1)), "more"),
        (b'{"format": "napkin-collectives", "version": 1, "version": 1}', "twice"),
        (data(values(points=[{**POINT, "median_s": math.nan}])), "NaN"),
        (data(values()).replace(b"0.005,", b"1e999,"), "points.1"),
        (data(values(points=[{**POINT, "best_s": -1.0}])), "best_s"),
        (data(values(points=[{**POINT, "best_s": 1e-300}])), "best_s"),
        (data(values(points=[{**POINT, "p10_s": 1.0}])), "follow"),
        (data(values(points=[{**POINT, "bytes": 0}])), "bytes"),
        (data(values(points=[{**POINT, "bytes": 1024.5}])), "bytes"),
        (data(values(points=[{**POINT, "bytes": "1024"}])), "bytes"),
        (data(values(points=[{**POINT, "operation": "broadcast"}])), "operation"),
        (data(values(points=[{**POINT, "slowest_rank": 8}])), "slowest rank"),
        (data(values(points=[POINT, POINT])), "once"),
        (data(values(points=[POINT] * (limit("collective_points") + 1))), "points"),
        (data(values(nodes=2)), "ranks"),
        (data(values(world_size=1, ranks_per_node=1)), "two or more"),
        (data(values(complete=False)), "complete"),
        (data(values(problem="a rank ended")), "complete"),
        (data(values(when="2026-03-04")), "time"),
        (data(values(when="2026-02-31T00:00:00Z")), "time"),
        (data(values(devices=["a\nb"])), "shown"),
        (data(values(devices=["\u202egnp"])), "shown"),
        (data(values(devices=["x" * 121])), "devices"),
        (data(values(torch="\ud800")), "no result"),
        (data(values(problem="x" * 601, complete=False)), "problem"),
    ],
)
def test_what_is_no_result_is_refused_with_words(held: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        read_result(held)
    assert type(refused.value) is ValueError
    assert len(str(refused.value)) < 300
    assert str(refused.value).isprintable()


def shown_whole(result: ResultFields) -> None:
    """All that is made of a result for somebody to see."""
    cells = collectives_text.rows(result)
    assert len(cells) == len(result.points)
    assert all(len(row.cells) == len(collectives_text.HEADINGS) for row in cells)
    said = [
        *collectives_text.answer(result, 1e9),
        collectives_text.chart_alt(result),
        *collectives_text.remarks(result),
    ]
    assert all("nan" not in one and "∞" not in one for one in said)
    assert all(math.isfinite(one.value) for one in collectives_text.explanations(result))
    for line in bandwidths(result, LIGHT)["data"]:
        assert np.isfinite(line["y"]).all()


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=4,
)
PLACES = [*values(), *(f"points.{name}" for name in POINT), *(f"refusals.{name}" for name in values()["refusals"][0])]


@given(st.sampled_from(PLACES), ANYTHING)
def test_anything_in_any_place_is_refused_or_can_be_shown(place: str, anything: object) -> None:
    found = values()
    head, _, field = place.partition(".")
    if field:
        found[head][0][field] = anything
    else:
        found[head] = anything
    result = None
    with contextlib.suppress(ValueError):
        result = read_result(data(found))
    if result is not None:
        shown_whole(result)


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_refused(held: bytes) -> None:
    with pytest.raises(ValueError, match=r"^This is no|^The file"):
        read_result(held)


@given(st.text(max_size=2_000))
def test_a_librarys_words_fit_into_a_file(text: str) -> None:
    refusal = {"operation": "ring", "bytes": 0, "kind": "refused", "text": shown(text)}
    assert read_result(data(values(refusals=[refusal]))).refusals[0].text == shown(text)


def test_the_answer_has_the_numbers() -> None:
    sentence, more = collectives_text.answer(made(), link=450e9)
    for said in ("8 ranks on one node", "all-reduce of 1 GiB", "376 GB/s", "83.5 %", "450 GB/s"):
        assert said in sentence
    for said in (
        "40 runs",
        "220 ms",
        "rank 3",
        "NVIDIA H100",
        "nccl",
        "2.28.9",
        "2026-03-04 05:06 UTC",
        METHOD,
    ):
        assert said in more
    assert "%" not in collectives_text.answer(made())[0]
    assert "16 ranks on 2 nodes" in collectives_text.answer(made(world_size=16, nodes=2))[0]
    assert "ring of 1 KiB" in collectives_text.answer(made(points=[point("ring", 1024, 1e-4)]))[0]
    assert "GB/s" not in collectives_text.answer(made(points=[]))[0]


def test_what_is_missing_is_said() -> None:
    assert any("no all-to-all" in one for one in collectives_text.remarks(made()))
    ended = made(complete=False, problem="Rank 1 of 8 ended", refusals=[])
    assert "Rank 1 of 8 ended" in collectives_text.remarks(ended)[0]
    wide = made(points=[point("ring", 1024, 1e-4, p90_s=3e-4)], refusals=[])
    assert "ring of 1 KiB" in collectives_text.remarks(wide)[0]
    assert collectives_text.remarks(made(refusals=[])) == ()


def test_rows_and_explanations_hold_the_rates() -> None:
    row = collectives_text.rows(made())[1]
    assert row.cells[:3] == ("all-reduce", "1 GiB", "376 GB/s")
    assert row.spread == "342–396 GB/s"
    assert row.best == "418 GB/s"
    assert row.algorithm == "215 GB/s"
    opened = collectives_text.explanations(made())
    assert [round(one.value / 1e9, 1) for one in opened] == [214.7, 429.5, 357.9, 375.8, 375.8]
    assert all("nccl-tests" in one.sources[0].title for one in opened)


def test_the_chart_has_a_line_for_each_operation_and_the_link() -> None:
    drawn = bandwidths(made(), LIGHT, link=450e9)
    assert [line["name"] for line in drawn["data"]] == ["all-reduce", "all-gather", "ring"]
    assert drawn["data"][0]["x"].tolist() == [1 << 20, 1 << 30]
    assert drawn["data"][0]["y"].tolist() == pytest.approx([36.70, 375.81], rel=1e-3)
    layout = drawn["layout"]
    assert layout["xaxis"]["type"] == "log"
    assert [(one["y0"], one["y1"], one["line"]["dash"]) for one in layout["shapes"]] == [(450, 450, "dash")]
    assert layout["yaxis"]["range"][1] > 450
    assert "450 GB/s" in layout["annotations"][0]["text"]
    assert bandwidths(made(), LIGHT)["layout"]["shapes"] == []
    shown_whole(made(points=[]))


def test_names_at_the_ends_of_lines_stand_apart() -> None:
    layout = bandwidths(made(points=[point(name, 1 << 30, 0.005) for name in OPERATIONS]), LIGHT)["layout"]
    heights = [one["y"] / layout["yaxis"]["range"][1] * 330 + one["yshift"] for one in layout["annotations"]]
    assert len(heights) == len(OPERATIONS)
    assert min(np.diff(sorted(heights))) >= 16


def test_the_commands_start_as_many_ranks_as_asked() -> None:
    assert "--nproc-per-node 4 " in commands.local_command(4)
    script = commands.slurm_script(3, 8)
    subprocess.run(["bash", "-n"], input=script.encode(), check=True)
    for said in ("--nodes=3\n", "--gpus-per-node=8\n", "--nnodes 3 ", "--nproc-per-node 8 "):
        assert said in script
    for nodes, gpus in ((0, 8), (1, 1), (2, 0), (65_536, 8)):
        with pytest.raises(ValueError, match="ranks"):
            commands.slurm_script(nodes, gpus)
    with pytest.raises(ValueError, match="ranks"):
        commands.local_command(1)
