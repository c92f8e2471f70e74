"""Measured collectives: what is read of the output of nccl-tests, and what is said and drawn of it."""

from __future__ import annotations

import contextlib
import math
import subprocess
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.benchmark.collectives import LINK_BYTES, LINK_PASSES, Collectives
from core.benchmark.nccl_tests import command, read_output
from core.hardware.rates import Rates
from core.limits import limit
from core.views.collectives import text as collectives_text
from core.views.collectives.charts import bandwidths
from core.views.common.palette import LIGHT
from tests.core.collectives_cases import DAY, H100, PROGRAMMES, devices, made, output, timing
from tests.every import every

LARGE, SMALL = 1 << 30, 1 << 20

PUBLISHED = """\
# nThread 1 nGpus 1 minBytes 536870912 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1
#
# Using devices
{devices}#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
   536870912     134217728     float     sum      -1   1806.7  297.16  586.06      0   1835.9  292.43  576.74      0
  1073741824     268435456     float     sum      -1   3108.8  345.38  681.17      0   2924.7  367.13  724.06      0
  8589934592    2147483648     float     sum      -1    20299  423.16  834.57      0    20006  429.37  846.82      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 745.53
"""
"""Rows of an NVL72 rack of GB200: https://github.com/coreweave/nccl-tests/pull/43."""


def test_published_output_is_read() -> None:
    result = read_output(PUBLISHED.format(devices=devices(18, 4, "NVIDIA Graphics Device")), DAY)
    assert (result.nodes, result.ranks_per_node, result.devices) == (18, 4, ("NVIDIA Graphics Device",))
    assert {item.operation for item in result.timings} == {"all-reduce"}
    rates = [(result.bus_rate(item), result.bus_rate(item, item.in_place_seconds)) for item in result.timings]
    assert rates == [
        (pytest.approx(1e9 * out, rel=1e-4), pytest.approx(1e9 * at, rel=1e-4))
        for out, at in ((586.06, 576.74), (681.17, 724.06), (834.57, 846.82))
    ]


@pytest.mark.parametrize("named", [True, False])
def test_all_tests_of_one_text_are_read(named: bool) -> None:
    """As the page's command writes them: each after its name, with lines of NCCL and of tagging between."""
    times = {0: 5.7, SMALL: 50.0, LARGE: 5000.0}
    text = "".join(
        f"# {PROGRAMMES[operation][0]}\n{output(operation, times, named=named)}host:1:2 [0] NCCL INFO 7\n"
        for operation in PROGRAMMES
    )
    tagged = "".join(f"[1,0]<stdout>:{line}\n" for line in text.splitlines())
    result = read_output(text, DAY)
    assert read_output(tagged, DAY) == result
    assert [(item.operation, item.bytes) for item in result.timings] == [
        (operation, size) for operation in PROGRAMMES for size in (SMALL, LARGE)
    ]
    assert {round(item.seconds, 9) for item in result.timings if item.bytes == LARGE} == {0.005}
    assert (result.nodes, result.ranks_per_node, result.devices, result.day) == (1, 8, (H100,), DAY)
    assert result.versions == ("nccl-tests 2.17.6, NCCL 2.28.9" if named else "")


def test_sums_without_a_name_are_told_apart_by_their_bandwidth() -> None:
    for operation in ("all-reduce", "reduce-scatter"):
        assert read_output(output(operation, {LARGE: 5e3}, named=False), DAY).timings[0].operation == operation


def test_columns_are_found_by_their_headings() -> None:
    """With ``-I 1`` four columns follow each pair of bandwidths, with ``-T`` a time stands last."""
    row = (
        f"  {LARGE}  268435456  float  sum  -1  5000.0  214.75  375.81  0  1 2 3 4  4000.0  268.44  469.76  N/A 1 2 3 4"
    )
    result = read_output(
        "# all_reduce_perf\n# nThread 1\n" + devices(1, 8) + "#  size  count  type  redop  root  time  algbw  busbw "
        "#wrong  i_min  i_max  i_p99  i_cv%  time  algbw  busbw  #wrong  i_min  i_max  i_p99  i_cv%  timestamp\n"
        f"{row}  2026-03-04 10:00:00\n",
        DAY,
    )
    (item,) = result.timings
    assert (item.seconds, item.in_place_seconds) == (pytest.approx(0.005), pytest.approx(0.004))


GOOD = output("all-reduce", {LARGE: 5000.0})
ROW = next(line for line in GOOD.splitlines() if str(LARGE) in line and not line.startswith("#"))


@every(
    ("text", "message"),
    [
        ("", "no row"),
        ("{}" * 40, "no row"),
        (" " * (limit("upload_bytes") + 1), "at most 1,048,576"),
        (GOOD.replace(ROW, ""), "no row"),
        (GOOD.replace(ROW, ROW[:60]), "cut"),
        (GOOD.replace("5000.0", "  nan "), "seconds"),
        (GOOD.replace("5000.0", "  0.00"), "seconds"),
        (GOOD.replace("5000.0", "  -5.0"), "seconds"),
        (GOOD.replace("5000.0", "     x"), "cut"),
        (GOOD.replace(f"{LARGE}  ", f"{'9' * 5000}  "), "cut"),
        (GOOD.replace(f"{LARGE}  ", f"{'9' * 40}  "), "bytes"),
        (GOOD.replace(f"{LARGE}  ", "12  "), "bus bandwidth"),
        (GOOD.replace("375.81", "187.90"), "375.81 GB/s"),
        (GOOD.replace("375.81", "   inf"), "bus bandwidth"),
        (GOOD.replace(ROW, f"{ROW}\n{ROW}"), "More than once"),
        (GOOD + GOOD, "More than once"),
        (GOOD.replace("all_reduce_perf", "broadcast_perf"), "broadcast_perf"),
        (GOOD.replace("all_reduce_perf", "all_gather_perf"), "bus bandwidth"),
        (output("all-gather", {LARGE: 5e3}, named=False), "which test"),
        (output("all-to-all", {LARGE: 5e3}, named=False), "which test"),
        (output("all-reduce", {LARGE: 5e3}, ranks="#"), "0 of the ranks"),
        (output("all-reduce", {LARGE: 5e3}, ranks=devices(1, 1)), "1 of the ranks"),
        (output("all-reduce", {LARGE: 5e3}, ranks=devices(1, 1) * 8), "MPI=1"),
        (GOOD.replace("Rank  7", "Rank  9"), "all are needed"),
        (GOOD.replace("Rank  7 Group  0", "Rank  7 Group  1"), "NCCL_TESTS_SPLIT"),
        (GOOD.replace("node-0 device  7", "node-1 device  7"), "different numbers"),
        (GOOD + output("send-recv", {LARGE: 5e3}, nodes=2), "different ranks"),
        ("".join(output("all-reduce", {4 * size: 1e3}) for size in range(1, 300)), "256"),
    ],
    ids=lambda row: repr(row)[-60:],
)
def test_what_is_no_output_is_refused_with_words(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        read_output(text, DAY)
    assert type(refused.value) is ValueError
    assert len(str(refused.value)) < 400
    assert str(refused.value).isprintable()


def check_views(result: Collectives) -> None:
    """All that is made of a result for somebody to see can be made, and has no number that is none."""
    rows = collectives_text.rows(result, result.timings)
    assert {len(row) for row in rows} == {len(collectives_text.HEADINGS)}
    texts = [
        *collectives_text.answer(result, 1e9),
        collectives_text.chart_alt(result),
        collectives_text.named(result),
        *collectives_text.remarks(result),
    ]
    assert all("nan" not in text and "∞" not in text for text in texts)
    assert all(math.isfinite(item.value) for item in collectives_text.explanations(result))
    assert all(np.isfinite(line["y"]).all() for line in bandwidths(result, LIGHT)["data"])


@given(st.data())
def test_damaged_output_is_refused_or_can_be_shown(data: st.DataObject) -> None:
    """Words of the text are replaced by any others, as a stranger or a torn file would."""
    lines = [line.split(" ") for line in GOOD.splitlines()]
    for _ in range(data.draw(st.integers(1, 3))):
        line = data.draw(st.sampled_from(lines))
        place = data.draw(st.integers(0, len(line) - 1))
        line[place] = data.draw(st.text(max_size=8) | st.integers().map(str) | st.floats().map(str))
    with contextlib.suppress(ValueError):
        check_views(read_output("\n".join(map(" ".join, lines)), DAY))


def test_rates_are_those_of_nccl_tests() -> None:
    """By hand: 1 GiB among 8 ranks in 5 ms is 214.7 GB/s; times 2·7/8 that is 375.8 GB/s, times 7/8 187.9."""
    result = made(timings=tuple(timing(operation, LARGE, 0.005) for operation in LINK_PASSES))
    gathered = pytest.approx(187.905, rel=1e-5)
    assert {item.operation: result.bus_rate(item) / 1e9 for item in result.timings} == {
        "all-reduce": pytest.approx(375.810, rel=1e-5),
        "all-gather": gathered,
        "reduce-scatter": gathered,
        "all-to-all": gathered,
        "send-recv": pytest.approx(214.748, rel=1e-5),
    }


def awaited(**other: float) -> tuple[dict[str, Any], ...]:
    """Large messages of three operations, with the seconds given for them."""
    seconds = {"all_reduce": 0.005, "all_gather": 0.0025, "reduce_scatter": 0.0024, **other}
    return tuple(timing(name.replace("_", "-"), LARGE, value) for name, value in seconds.items())


def test_links_are_the_slowest_of_what_training_waits_for() -> None:
    result = made(timings=(*awaited(), timing("all-reduce", SMALL, 1.0), timing("send-recv", LARGE, 1.0)))
    assert result.link_rates == Rates(inside=pytest.approx(375.81e9, rel=1e-5))
    assert made(timings=awaited(reduce_scatter=0.01)).link_rates == Rates(inside=pytest.approx(93.95e9, rel=1e-4))


def test_over_nodes_it_is_the_share_of_the_network() -> None:
    result = made(timings=awaited(), nodes=4)
    assert result.link_rates.known == (("between", result.bus_rate(result.timings[0]) / 8),)
    assert "all-reduce" in collectives_text.link_line(result)
    assert "over the 8 ranks" in collectives_text.link_line(result)
    assert "over the" not in collectives_text.link_line(made(timings=awaited()))


@every(
    "timings",
    [
        (timing("send-recv", LARGE, 1e-3),),
        (timing("all-reduce", SMALL, 1e-4),),
        (timing("all-reduce", LARGE, 0.005, wrong=1),),
        (*awaited()[:1], timing("all-gather", SMALL, 1e-4)),
        (timing("all-reduce", LINK_BYTES - 4, 1e-3),),
    ],
)
def test_nothing_is_taken_from_small_messages_or_wrong_results(timings: tuple[dict[str, Any], ...]) -> None:
    assert made(timings=timings).link_rates.known == ()
    assert collectives_text.link_line(made(timings=timings)) == ""


def test_the_smallest_of_large_messages_is_enough() -> None:
    assert made(timings=(timing("all-reduce", LINK_BYTES, 1e-3),)).link_rates.known


def test_wrong_results_are_said() -> None:
    assert collectives_text.remarks(made()) == ()
    wrong = read_output(output("all-reduce", {LARGE: 5e3}, wrong=7), DAY)
    assert "7 elements" in collectives_text.remarks(wrong)[0]


def test_rows_and_explanations_hold_the_rates() -> None:
    result = made()
    row = collectives_text.rows(result, result.timings)[1]
    assert row == ("all-reduce", "1 GiB", "376 GB/s", "418 GB/s", "215 GB/s", "5 ms")
    opened = collectives_text.explanations(result)
    assert [round(item.value / 1e9, 1) for item in opened] == [214.7, 375.8, 429.5, 375.8, 357.9]
    assert all("nccl-tests" in item.sources[0].title for item in opened)


def test_the_chart_has_a_line_for_each_operation_and_the_link() -> None:
    drawn = bandwidths(made(), LIGHT, link=450e9)
    assert [line["name"] for line in drawn["data"]] == ["all-reduce", "all-gather", "send-recv"]
    assert drawn["data"][0]["x"].tolist() == [1 << 20, 1 << 30]
    assert drawn["data"][0]["y"].tolist() == pytest.approx([36.70, 375.81], rel=1e-3)
    layout = drawn["layout"]
    assert layout["xaxis"]["type"] == "log"
    assert [(line["y0"], line["y1"], line["line"]["dash"]) for line in layout["shapes"]] == [(450, 450, "dash")]
    assert layout["yaxis"]["range"][1] > 450
    assert "450 GB/s" in layout["annotations"][0]["text"]
    assert bandwidths(made(), LIGHT)["layout"]["shapes"] == []


def test_names_at_the_ends_of_lines_stand_apart() -> None:
    result = made(timings=tuple(timing(operation, LARGE, 0.005) for operation in LINK_PASSES))
    layout = bandwidths(result, LIGHT)["layout"]
    heights = [note["y"] / layout["yaxis"]["range"][1] * 330 + note["yshift"] for note in layout["annotations"]]
    assert len(heights) == len(LINK_PASSES)
    assert min(np.diff(sorted(heights))) >= 16


@pytest.mark.process
def test_the_command_starts_as_many_ranks_as_asked() -> None:
    for nodes, gpus, part in ((1, 4, "-g 4\n"), (3, 8, "mpirun -np 24 -N 8 ./build/${test}_perf ")):
        assert part in command(nodes, gpus)
        subprocess.run(["bash", "-n"], input=command(nodes, gpus).encode(), check=True)
    for nodes, gpus in ((0, 8), (1, 1), (2, 0), (65_536, 8)):
        with pytest.raises(ValueError, match="ranks"):
            command(nodes, gpus)


def test_the_answer_has_the_numbers() -> None:
    sentence, more = collectives_text.answer(made(), link=450e9)
    for part in ("8 ranks on one node", "all-reduce of 1 GiB", "376 GB/s", "83.5 %", "450 GB/s"):
        assert part in sentence
    for part in (H100, "NCCL 2.28.9", "2026-03-04"):
        assert part in more
    assert "%" not in collectives_text.answer(made())[0]
    assert "16 ranks on 2 nodes" in collectives_text.answer(made(nodes=2))[0]
