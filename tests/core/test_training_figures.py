"""The bars draw what the accounts say, in the roles' colours, and the memory line stands where it must."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from core.palette import LIGHT
from core.training import (
    HEADLINE,
    POLICIES,
    REPLICATED,
    SHARDED,
    Sharding,
    account,
    find_optimizer,
    find_policy,
    headline,
)
from core.training.figures import state_bars
from core.training.words import PARTS

PLANS = [
    (70e9, "fp32", 8, 80e9, SHARDED),
    (7e9, "mixed bf16, fp32 master", 8, 80e9, REPLICATED),
    (1e3, "bf16 throughout", 1, 24e9, SHARDED),
    (1e16, "mixed fp16, fp32 copies of both", 10_000_000, 1e12, REPLICATED),
    (1e9, "fp32", 4, math.nan, SHARDED),
]


@pytest.mark.parametrize(("parameters", "precision", "count", "memory", "sharding"), PLANS)
def test_bars_are_the_accounts(
    parameters: float, precision: str, count: int, memory: float, sharding: Sharding
) -> None:
    rows = [
        account(
            parameters,
            find_optimizer(name),
            find_policy(precision),
            accelerators=count,
            memory=memory,
            sharding=sharding,
        )
        for name in HEADLINE
    ]
    figure = state_bars(rows, LIGHT, chosen="Adam", device="Chip")
    upper = [trace for trace in figure["data"] if trace["yaxis"] == "y"]
    lower = [trace for trace in figure["data"] if trace["yaxis"] == "y2"]
    assert [trace["marker"]["color"] for trace in upper] == [LIGHT.role(role) for role, _ in PARTS]
    assert [sum(values) for values in zip(*(t["x"] for t in upper), strict=True)] == [
        r.per_parameter.total for r in rows
    ]

    unit = figure["layout"]["xaxis2"]["title"]["text"].split()[0]
    scale = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15}[unit]
    scale *= 1 if sharding.complete else count
    drawn = [sum(values) * scale for values in zip(*(t["x"] for t in lower), strict=True)]
    assert drawn == pytest.approx([row.total for row in rows], rel=1e-12)
    assert figure["layout"]["xaxis2"]["range"][1] * scale > max(drawn)

    shapes = figure["layout"]["shapes"]
    ticks = figure["layout"]["yaxis2"]["ticktext"]
    assert all(tick.count(f" {unit}") in (1, 2) for tick in ticks)  # figures in the unit of the axis
    texts = [annotation["text"] for annotation in figure["layout"]["annotations"]]
    if math.isnan(memory):
        assert shapes == []
        assert all("memory unknown" in tick for tick in ticks)
    else:
        assert all(shape["x0"] * scale == pytest.approx(count * memory) for shape in shapes)
        assert figure["layout"]["xaxis2"]["range"][1] * scale > count * memory
        assert any(text.startswith("<b>memory of") for text in texts)


@pytest.mark.parametrize("precision", POLICIES)
def test_every_part_is_named_once_above_its_own_segment(precision: str) -> None:
    row = account(1e9, find_optimizer("AdamW"), find_policy(precision), accelerators=8, memory=80e9)
    figure = state_bars([row], LIGHT, chosen="AdamW", device="Chip")
    labels = {a["text"]: a["x"] for a in figure["layout"]["annotations"] if a.get("yanchor") == "bottom"}
    start = 0.0
    for role, name in PARTS:
        size = getattr(row.per_parameter, role)
        found = [text for text in labels if text.startswith(f"<b>{name}")]
        assert len(found) == (1 if size else 0)
        if size:
            assert labels[found[0]] == start + size / 2
        start += size


@pytest.mark.parametrize("precision", POLICIES)
@pytest.mark.parametrize("optimizer", ["AdamW", "Lion", "SGD", "Prodigy"])
@pytest.mark.parametrize("width", [370, 640, 1000])
def test_names_of_parts_do_not_meet_on_any_page(precision: str, optimizer: str, width: int) -> None:
    rows = [
        account(1e9, find_optimizer(name), find_policy(precision), accelerators=8, memory=80e9)
        for name in headline(optimizer)
    ]
    figure = state_bars(rows, LIGHT, chosen=optimizer, device="Chip")
    end = figure["layout"]["xaxis"]["range"][1]
    spans: dict[int, list[tuple[float, float]]] = {}
    for a in figure["layout"]["annotations"]:
        if a.get("xref") == "x" and a.get("yanchor") == "bottom":
            middle, half = a["x"] / end * width + a["xshift"], (len(a["text"]) - len("<b></b>")) * 6.5 / 2
            spans.setdefault(a["yshift"], []).append((middle - half, middle + half))
            assert a["yshift"] + 12 <= figure["layout"]["margin"]["t"]
    for level in spans.values():
        for (_, left_end), (right_start, _) in pairwise(level):
            assert left_end <= right_start


@pytest.mark.parametrize("precision", [p for p in POLICIES if "copies of both" not in p])
def test_names_of_parts_stand_on_one_line_over_their_own_segments(precision: str) -> None:
    row = account(1e9, find_optimizer("AdamW"), find_policy(precision), accelerators=8, memory=80e9)
    figure = state_bars([row], LIGHT, chosen="AdamW", device="Chip")
    end = figure["layout"]["xaxis"]["range"][1]
    labels = [a for a in figure["layout"]["annotations"] if a.get("xref") == "x" and a.get("yanchor") == "bottom"]
    assert {a["yshift"] for a in labels} == {2}
    sizes = [size for role, _ in PARTS if (size := getattr(row.per_parameter, role))]
    for a, size in zip(labels, sizes, strict=True):
        for width in (370, 1000):
            assert abs(a["xshift"]) <= size / 2 / end * width


def test_the_chosen_row_is_thick_and_bold() -> None:
    rows = [
        account(1e9, find_optimizer(name), find_policy("fp32"), accelerators=8, memory=80e9)
        for name in headline("Prodigy")
    ]
    figure = state_bars(rows, LIGHT, chosen="Prodigy", device="Chip")
    widths = figure["data"][0]["width"]
    assert widths[0] > max(widths[1:])
    assert figure["layout"]["yaxis"]["ticktext"][0] == "<b>Prodigy</b>"
    assert sum("<b>" in text for text in figure["layout"]["yaxis"]["ticktext"]) == 1
