"""One plan has one set of hours: what the whole run, its energy, the table and the downloads say about them."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import replace

import plotly.graph_objects as go
import pytest

from core.hardware.accelerators import find
from core.models.catalog import model_named
from core.palette import LIGHT
from core.planning.answer import words
from core.planning.answer.export import HEADINGS, Context, as_csv, as_markdown, plan_lines
from core.planning.answer.outlook import Find, Outlook, Published, ask_outlook, parse_mfu, parse_within
from core.planning.whole import words as words_whole
from core.planning.whole.energy import footprint
from core.planning.whole.figures import hours_of_the_run
from core.planning.whole.goodput import Reliability
from core.planning.whole.wall import Circumstances, Wall, wall_of

H100, H800 = find("H100 SXM"), find("H800 SXM")
PLANS: dict[str, dict[str, object]] = {
    "70B": {"parameters": 70e9, "tokens": 15e12, "accelerators": 1024.0},
    "405B": {"parameters": 405.85e9, "tokens": 15.6e12, "accelerators": 16_384.0},
    "V3": {
        "parameters": 37.55e9,
        "tokens": 14.8e12,
        "accelerators": 2048.0,
        "device": H800,
        "dtype": "fp8",
        "experts": True,
    },
}


def asked(name: str = "70B", find_: Find = "time", mfu: str = "", within: str = "60 days") -> tuple[Outlook, Published]:
    given: dict[str, object] = {"device": H100, "dtype": "bf16", "experts": False, **PLANS[name]}
    return ask_outlook(find_, **given, mfu=parse_mfu(mfu), prices=(3.0, 3.5), limits=parse_within(within))  # type: ignore[arg-type]


def taken_apart(o: Outlook, seen: Published, *, published: bool = True, around: Circumstances | None = None) -> Wall:
    return wall_of(o, seen, H100, around or Circumstances(), published=published, params_total=o.plan.params)


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("find_", ["time", "tokens", "accelerators", "MFU"])
def test_the_whole_run_has_the_hours_of_the_answer(name: str, find_: Find) -> None:
    within = "60 days" if find_ != "MFU" else "200 days"
    o, seen = asked(name, find_, within=within)
    wall = taken_apart(o, seen, published=find_ != "MFU")
    assert wall.run.wall == pytest.approx(86400 * o.over("days").mid)
    parts = [share for _, share, _ in words_whole.shares(wall)]
    assert sum(parts) == pytest.approx(1)
    assert min(parts) > 0
    # What the steps do in their share of the time, at their pace, is all of the work.
    assert wall.steps * wall.pace == pytest.approx(o.plan.mfu)
    days = words.format_duration(86400 * o.over("days").mid, words.digits(o))
    assert f"**{days}**" in words_whole.whole(wall, o)
    hours = words.amount(float(o.middle.hours), words.digits(o))
    assert f"**{hours}** accelerator-hours" in words.assumptions(o, H100, "bf16")
    assert f"{hours} accelerator-hours" in words_whole.used(wall, o, "700")
    figure = hours_of_the_run(words_whole.shares(wall), LIGHT)
    assert 100 in figure["layout"]["xaxis"]["tickvals"]
    go.Figure(figure)


def test_energy_is_that_of_the_answers_hours_with_their_range() -> None:
    o, seen = asked()
    wall = taken_apart(o, seen)
    for energy, hours in zip(
        (wall.energy.low, wall.energy.mid, wall.energy.high),
        (o.over("hours").low, o.over("hours").mid, o.over("hours").high),
        strict=True,
    ):
        assert energy == pytest.approx(hours * 700 * 1.1)
    assert wall.carbon.mid == pytest.approx(footprint(o.over("hours").mid, 700).carbon)
    dark = wall_of(
        o, seen, replace(H100, tdp_watts=math.nan), Circumstances(), published=True, params_total=o.plan.params
    )
    assert "unknown" in words_whole.used(dark, o, "")


def test_benchmarks_of_fp8_do_not_promise_what_no_whole_run_reached() -> None:
    """Nearly all comparable whole runs were in 16 bits, so steady measurements are taken in 16 bits too."""
    o, seen = asked("V3")
    wall = taken_apart(o, seen)
    assert wall.steady
    assert wall.steady.profile.width == "16-bit"
    assert wall.benchmark < 1.1 * seen.mfu.high  # those of 8 bits would be at 33 %, twice P90
    assert "in 16 bits" in words_whole.whole(wall, o)


def test_hours_too_few_for_benchmarks_leave_nothing_to_explain() -> None:
    o, seen = asked("405B")
    wall = taken_apart(o, seen)
    assert wall.unexplained == 0
    assert wall.pace > wall.benchmark
    assert "Nothing is left to explain" in words_whole.whole(wall, o)
    assert "not explained" not in {name for name, _, _ in words_whole.shares(wall)}


def test_a_typed_mfu_may_be_of_steady_steps_and_then_takes_longer() -> None:
    o, seen = asked("405B", mfu="41%")
    wall = taken_apart(o, seen, published=False)
    assert wall.typed
    assert wall.run.wall == pytest.approx(86400 * o.over("days").mid / wall.run.goodput)
    assert wall.run.goodput > 0.9  # arXiv:2407.21783 reports over 90 % of effective training time
    said = words_whole.whole(wall, o)
    assert "your **41 %** for every hour, 66.15 days" in said
    assert words.format_duration(wall.run.wall) in said


def test_a_found_mfu_needs_faster_steps() -> None:
    o, seen = asked("70B", "MFU", within="300 days")
    wall = taken_apart(o, seen, published=False)
    assert not wall.typed
    assert wall.pace == pytest.approx(o.plan.mfu / wall.run.goodput)
    assert "the steps have to run at" in words_whole.whole(wall, o)
    never = replace(wall, pace=1.1)
    assert "beyond the peak" in words_whole.whole(never, o)


def test_no_failures_are_said() -> None:
    o, seen = asked()
    wall = taken_apart(o, seen, around=Circumstances(Reliability(rate=0.0)))
    assert words_whole.failing(wall) == "Without failures."


# ------------------------------------------------------------------------------------------ table and downloads


def lines_of(name: str = "70B", find_: Find = "time", mfu: str = "") -> tuple[Outlook, dict[str, list[str]]]:
    o, seen = asked(name, find_, mfu)
    wall = taken_apart(o, seen, published=not mfu)
    shape = model_named("Llama 3 70B")
    lines = plan_lines(o, Context(None, shape, H100, "bf16", 8192, "causal", "median"), wall)
    rows = list(csv.reader(io.StringIO(as_csv(lines))))
    assert tuple(rows[0]) == HEADINGS == ("quantity", "pessimistic", "median", "optimistic", "unit", "note")
    return o, {row[0]: row for row in rows[1:]}


def test_columns_are_scenarios_that_hold_together() -> None:
    """In each column MFU, days and dollars belong together: 6ND over peak, MFU and accelerators."""
    o, rows = lines_of()
    assert float(rows["MFU"][1]) < float(rows["MFU"][2]) < float(rows["MFU"][3])
    assert float(rows["time"][1]) > float(rows["time"][2]) > float(rows["time"][3])
    for column in (1, 2, 3):
        seconds = 6.3e24 / (1024 * 989.4e12 * float(rows["MFU"][column]))
        assert float(rows["time"][column]) == pytest.approx(seconds)
        hours, price, rent = (
            float(rows[name][column]) for name in ("accelerator-hours", "price per accelerator-hour", "rent")
        )
        assert rent == pytest.approx(hours * price)
        assert float(rows["energy"][column]) == pytest.approx(hours * 700 * 1.1)
    assert float(rows["time"][2]) == o.over("days").mid * 86400


def test_table_and_sentence_show_the_same_figures() -> None:
    o, seen = asked()
    context = Context(None, model_named("Llama 3 70B"), H100, "bf16", 8192, "causal", "median")
    cells = {line.name: line.cells() for line in plan_lines(o, context, taken_apart(o, seen))}
    said = words.answer(o, None, H100, "P10–P90") + words.assumptions(o, H100, "bf16")
    for name in ("time", "accelerator-hours", "MFU", "rent", "tokens per second, whole cluster"):
        middle = cells[name][2]
        assert f"**{middle.removesuffix(' h')}" in said, name
    energy = words_whole.used(taken_apart(o, seen), o, "")
    assert f"**{cells['energy'][2]}**" in energy
    assert f"**{cells['carbon, CO₂ equivalent'][2]}**" in energy


def test_accelerators_of_the_table_are_whole() -> None:
    o, rows = lines_of(find_="accelerators")
    for column in (1, 2, 3):
        assert float(rows["accelerators"][column]).is_integer()
    assert float(rows["accelerators"][2]) == math.ceil(o.plan.accelerators)
    assert float(rows["accelerators, in whole nodes of 8"][2]) % 8 == 0


def test_downloads_hold_what_was_asked_and_what_follows() -> None:
    o, rows = lines_of(find_="tokens")
    for name in (
        "asked for",
        "within",
        "sequence length",
        "times Chinchilla’s 20 tokens per parameter",
        "goodput",
        "failures expected",
        "checkpoint",
        "checkpoint every",
        "energy",
        "carbon, CO₂ equivalent",
    ):
        assert name in rows, name
    assert rows["asked for"][2] == "tokens"
    assert rows["within"][2] == "60 days"
    assert o.find == "tokens"


def test_a_typed_mfu_has_no_scenarios_but_the_price() -> None:
    _, rows = lines_of(mfu="0.5")
    assert rows["time"][1] == rows["time"][3] == ""
    assert float(rows["rent"][3]) < float(rows["rent"][2]) < float(rows["rent"][1])


def test_markdown_ends_with_a_whole_address() -> None:
    o, _ = asked()
    shape = model_named("Llama 3 70B")
    context = Context(shape, shape, H100, "bf16", 8192, "full", "a|b")
    text = as_markdown(plan_lines(o, context, None), "It takes **1 day**.", "http://localhost:8501/compute-budget?v=1")
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace(r"\|", "").count("|") for line in table}) == 1
    assert r"a\|b" in text
    assert text.rstrip().endswith("<http://localhost:8501/compute-budget?v=1>")
    assert not re.search(r"\| energy", text)  # no progress: no whole run
