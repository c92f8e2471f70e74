"""Pictures of sums that overflow, of what a coarse format adds, and of lines that lie on each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from core.floats.arithmetic.accumulation import drawn
from core.floats.formats import FORMATS
from core.views.common.palette import LIGHT
from core.views.floats.charts import accumulation
from pages.common.figures import wire
from tests.every import every


def figure(start: float, addend: float, steps: int, name: str) -> dict[str, Any]:
    runs, lots = drawn(start, addend, steps, FORMATS[name])
    made = accumulation(runs, lots, exact=(start, addend), palette=LIGHT)
    go.Figure(wire(made))
    return made


@every("name", ["fp32", "fp16", "fp8_e4m3fn", "fp8_e5m2"])
@every(("start", "addend"), [(60000, 1000), (465, 1), (0, 1e6), (448, 8), (1, 1e-9)])
def test_every_number_drawn_is_finite(name: str, start: float, addend: float) -> None:
    made = figure(start, addend, 40, name)
    for trace in made["data"]:
        assert np.isfinite(trace["y"]).all()
    assert np.isfinite(made["layout"]["yaxis"]["range"]).all()


def test_a_sum_that_overflows_ends_in_a_cross() -> None:
    made = figure(60000, 1000, 20, "fp16")
    labels = {note["text"]: note["x"] for note in made["layout"]["annotations"]}
    assert labels["fp16, nearest: then ∞"] == 5
    assert labels["fp16, toward zero"] == 20
    crosses = [trace for trace in made["data"] if trace["mode"] == "markers"]
    assert (crosses[0]["x"].tolist(), crosses[0]["y"].tolist()) == ([5], [64960])


@pytest.mark.parametrize("steps", [1, 2, 7, 1000, 1001, 9999])
def test_no_tick_stands_past_the_last_addition(steps: int) -> None:
    ticks = figure(1, 1e-3, steps, "bf16")["layout"]["xaxis"]["tickvals"]
    assert ticks[0] == 0
    assert steps * 0.6 <= ticks[-1] <= steps
    assert 2 <= len(ticks) <= 6
    assert all(tick.is_integer() for tick in ticks)


def test_what_the_format_adds_has_an_exact_line_of_its_own() -> None:
    texts = [note["text"] for note in figure(1, 1e-3, 1000, "fp8_e4m3fn")["layout"]["annotations"]]
    assert "exact from 1 with 0.001953" in texts
    assert not any("exact from" in note["text"] for note in figure(1, 1e-3, 1000, "bf16")["layout"]["annotations"])


def test_the_stochastic_mean_lies_on_top_of_the_master() -> None:
    lines = [trace["line"] for trace in figure(1, 1e-3, 1000, "bf16")["data"]]
    assert lines[-1]["dash"] == "dash"
    assert lines[-1]["color"] == LIGHT.optimizer
    assert lines[-2]["color"] == LIGHT.master


@pytest.mark.parametrize(("start", "addend"), [(1.0, -1e-3), (0.0, -0.01)])
def test_a_sum_that_falls_is_drawn_whole(start: float, addend: float) -> None:
    low, high = figure(start, addend, 1000, "bf16")["layout"]["yaxis"]["range"]
    assert low < start + 1000 * addend < start < high
