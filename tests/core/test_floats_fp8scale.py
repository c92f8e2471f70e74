"""Scales of fp8 tensors against the rules as Transformer Engine and torchao publish them, and what no rule may do."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.floats.codec import decode, encode
from core.floats.formats import FORMATS
from core.floats.scaling.fp8_scaling import (
    ALGORITHMS,
    RULES,
    Recipe,
    Which,
    amaxes,
    current_scales,
    delayed_scales,
    explain,
    fit,
    scale_line,
    takeaway,
)
from core.floats.scaling.gradients import Course
from core.floats.scaling.loss_scaling import percent
from core.views.common.palette import LIGHT
from core.views.floats.charts_scaling import fitted
from pages.common.figures import wire
from tests.every import every

TYPES = {"fp8_e5m2": torch.float8_e5m2, "fp8_e4m3fn": torch.float8_e4m3fn}
NAMES = list(TYPES)
COURSES = [Course(), Course(spike=14, seed=3), Course(first=-10, last=-40, seed=7), Course(spread=1, count=1000)]
POSITIVE = st.floats(2.0**-60, 2.0**60, width=32)


def engine_history(amax: list[float], top: torch.Tensor, history: int, which: str, margin: int) -> list[float]:
    """DelayedScaling as its documentation states it: a rolled buffer whose first place takes the newest amax."""
    buffer = torch.zeros(history)
    scale, scales = torch.ones(()), []
    for found in amax:
        scales.append(float(scale))
        buffer[0] = found
        known = buffer.max() if which == "max" else buffer[0].clone()
        new = (top / known) / (2**margin)
        if bool(known > 0) and bool(torch.isfinite(known)):
            scale = torch.finfo(torch.float32).max * torch.ones(()) if bool(torch.isinf(new)) else new
        buffer = torch.roll(buffer, -1, 0)
        buffer[0] = 0
    return scales


@given(
    st.lists(POSITIVE | st.just(0.0) | st.just(math.inf), min_size=1, max_size=30),
    st.integers(1, 12),
    st.sampled_from(ALGORITHMS),
    st.integers(0, 8),
    st.sampled_from(NAMES),
)
def test_delayed_scales_are_those_of_the_published_rule(
    amax: list[float], history: int, which: Which, margin: int, name: str
) -> None:
    top = torch.tensor(torch.finfo(TYPES[name]).max)  # a plain number would be multiplied by the reciprocal
    ours = delayed_scales(amax, FORMATS[name], history, which, margin)
    assert ours.tolist() == engine_history(amax, top, history, which, margin)


@given(st.lists(POSITIVE, min_size=1, max_size=20), st.sampled_from(NAMES))
def test_current_scales_are_those_of_both_libraries(amax: list[float], name: str) -> None:
    fmt, found = FORMATS[name], torch.tensor(amax, dtype=torch.float32)
    top = torch.finfo(TYPES[name]).max
    engine = torch.tensor(top) / found  # as the kernel divides; a plain number would be multiplied by the reciprocal
    cleared = (engine.view(torch.int32) & -0x800000).view(torch.float32)  # as the kernel clears the fraction
    torchao = (top / found.double().clamp(min=1e-12)).float()
    for rule, theirs in (
        ("current", engine),
        ("current2", cleared),
        ("ao", torchao),
        ("ao2", torch.exp2(torch.floor(torch.log2(torchao.double())))),
    ):
        assert current_scales(amax, fmt, RULES[rule]).tolist() == theirs.tolist(), rule


def test_tensors_without_a_usable_amax() -> None:
    fmt = FORMATS["fp8_e4m3fn"]
    assert current_scales([0.0], fmt, RULES["current"]).tolist() == [1]
    assert current_scales([0.0], fmt, RULES["ao"]).tolist() == [float(np.float32(448 / 1e-12))]
    assert current_scales([1e-40], fmt, RULES["current"]).tolist() == [float(np.finfo(np.float32).max)]
    for bad in (math.inf, math.nan, -1.0):
        with pytest.raises(ValueError, match="finite"):
            current_scales([bad], fmt, RULES["current"])


@every("course", COURSES, ids=str)
@every("name", NAMES)
@every("rule", [name for name, rule in RULES.items() if not rule.delayed])
def test_nothing_saturates_under_its_own_scale(course: Course, name: str, rule: str) -> None:
    run = fit(course, Recipe(rule), FORMATS[name])
    assert not run.saturated.any()
    scaled = np.exp2(run.drawn.largest) * run.scales
    # Rounded into the format all stay finite; without a floor the largest uses the format's last binade.
    assert np.isfinite(decode(encode(scaled, FORMATS[name]), FORMATS[name])).all()
    if not RULES[rule].floor:
        assert (scaled > float(FORMATS[name].max_finite) / 2.001).all()


@every("course", COURSES, ids=str)
@every("name", NAMES)
@every("which", ALGORITHMS)
def test_margin_and_history_trade_saturation_for_zeros(course: Course, name: str, which: Which) -> None:
    runs = [fit(course, Recipe("delayed", 16, which, margin), FORMATS[name]) for margin in range(5)]
    for less, more in pairwise(runs):
        assert (more.saturated[1:] <= less.saturated[1:]).all()
        assert (more.zero[1:] >= less.zero[1:]).all()
    short, long = (fit(course, Recipe("delayed", length), FORMATS[name]) for length in (4, 64))
    assert (long.scales[1:] <= short.scales[1:]).all()
    assert (long.saturated <= short.saturated).all()


@pytest.mark.parametrize("name", NAMES)
def test_delayed_scaling_of_what_never_changes_is_current_scaling(name: str) -> None:
    amax = np.full(50, 0.3)
    same = current_scales(amax, FORMATS[name], RULES["current"])
    for history, which in ((1, "max"), (16, "max"), (16, "most_recent")):
        assert delayed_scales(amax, FORMATS[name], history, which, 0)[1:].tolist() == same[1:].tolist()  # type: ignore[arg-type]


def test_shares_are_those_of_values_cast_by_torch() -> None:
    course = Course(steps=40, spread=3, count=20_000, spike=8, seed=4)
    run = fit(course, Recipe(history=4), FORMATS["fp8_e5m2"])
    random, zeros = np.random.default_rng(0), 0.0
    for step, scale in enumerate(run.scales.tolist()):
        values = random.normal(run.drawn.medians[step], course.spread, int(course.count))
        scaled = torch.from_numpy(np.exp2(values[values <= run.drawn.largest[step]]) * scale).float()
        zeros += float((scaled.clamp(max=57344).to(torch.float8_e5m2).double() == 0).double().mean())
    assert zeros / course.steps == pytest.approx(float(run.zero.mean()), rel=0.02)
    over = np.exp2(run.drawn.largest) * run.scales >= 61440
    assert (run.saturated > 0).tolist() == over.tolist()


@every("rule", RULES)
@every("margin", [0, 3])
def test_explanations_give_the_last_scale(rule: str, margin: int) -> None:
    run = fit(Course(last=-50), Recipe(rule, 16, "max", margin), FORMATS["fp8_e5m2"])
    scale, flush, fits = explain(run)
    exact = not RULES[rule].power_of_two
    assert scale.value == pytest.approx(run.scales[-1], rel=1e-6) if exact else run.scales[-1] <= scale.value
    assert flush.value == pytest.approx(2.0**-17 / run.scales[-1])
    assert fits.value == pytest.approx(2.0 ** run.reach[-1])


@every("course", [*COURSES, Course(steps=2)], ids=str)
@every("rule", ["delayed", "ao2"])
def test_the_picture_has_every_step(course: Course, rule: str) -> None:
    run = fit(course, Recipe(rule), FORMATS["fp8_e4m3fn"])
    figure = fitted(run, LIGHT)
    go.Figure(wire(figure))
    amax, reach, saturated, lost, clamped = figure["data"]
    assert (amax["y"] == run.drawn.largest).all()
    assert saturated["x"].tolist() == clamped["x"].tolist() == (np.flatnonzero(run.saturated) + 1).tolist()
    assert (reach["customdata"] == run.scales).all()
    assert figure["layout"]["xaxis"]["range"] == [1, course.steps]
    assert all(np.isfinite(trace["y"]).all() for trace in (amax, reach, lost))


def test_what_is_known_before_a_step() -> None:
    assert amaxes([3.0, 1.0, 2.0, 1.0, 1.0], 2, "max").tolist() == [0, 3, 3, 2, 2]
    assert amaxes([3.0, 1.0, 2.0, 1.0, 1.0], 9, "most_recent").tolist() == [0, 3, 1, 2, 1]


def test_words_hold_the_numbers() -> None:
    run = fit(Course(), Recipe(), FORMATS["fp8_e5m2"])
    own = fit(Course(), Recipe("current"), FORMATS["fp8_e5m2"])
    said = takeaway(run)
    assert f"{np.count_nonzero(run.saturated)} of 600" in said
    assert percent(float(run.zero.mean())) in said
    assert percent(float(own.zero.mean())) in said
    assert percent(own.plain) in takeaway(own)
    assert "no step" in takeaway(own)
    assert "16 steps before" in said
    assert "2²" in takeaway(replace(run, recipe=Recipe(margin=2)))
    assert "Transformer Engine" in scale_line(run)
    assert "torchao" in scale_line(fit(Course(), Recipe("ao"), FORMATS["fp8_e5m2"]))
