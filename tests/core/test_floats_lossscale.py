"""Gradients under a loss scale: shares against distributions and torch's fp16, the scale against its GradScaler."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import plotly.graph_objects as go
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.floats.formats import FORMATS
from core.floats.scaling.gradients import Course, draw, share
from core.floats.scaling.loss_scaling import Scaler, follow, scale_loss, walk
from core.limits import limit
from core.views.common.palette import LIGHT
from core.views.floats.charts_scaling import followed
from pages.common.figures import wire
from tests.every import every

CASES = [(-24, 4, 0), (-24, 4, 10), (-24, 4, 32), (-30, 8, 15), (-10, 1, 0), (-40, 2, 20)]
SAMPLES = 1 << 16
QUICK = Scaler(interval=100)


@every(("median", "spread", "power"), CASES)
@every("name", ["fp16", "bf16", "fp8_e5m2"])
def test_shares_are_those_of_the_distribution(median: int, spread: int, power: int, name: str) -> None:
    fmt = FORMATS[name]
    scaled = scale_loss(median, spread, power, fmt)
    normal = NormalDist(median + power, spread)
    assert scaled.zero == pytest.approx(normal.cdf(math.log2(fmt.min_subnormal / 2)), abs=1e-14)
    assert scaled.overflow == pytest.approx(1 - normal.cdf(math.log2(fmt.overflow_threshold)), abs=1e-14)
    assert scaled.shares.sum() == pytest.approx(1, abs=1e-11)
    for edge, part in zip(scaled.edges.tolist(), scaled.shares.tolist(), strict=False):
        assert part == pytest.approx(normal.cdf(edge + 1) - normal.cdf(edge), abs=1e-14)
    assert scaled.zero + scaled.subnormal + scaled.overflow + scaled.kept == pytest.approx(1)


@pytest.mark.parametrize(("median", "spread", "power"), CASES)
def test_shares_are_torchs(median: int, spread: int, power: int) -> None:
    # Evenly spaced quantiles; torch goes through float32, which only matters within 2^-24 of a border.
    normal = NormalDist(median + power, spread)
    logs = np.array([normal.inv_cdf((i + 0.5) / SAMPLES) for i in range(SAMPLES)])
    stored = torch.from_numpy(np.exp2(logs)).to(torch.float16)
    scaled = scale_loss(median, spread, power, FORMATS["fp16"])
    small = (stored > 0) & (stored < torch.finfo(torch.float16).tiny)
    for found, theirs in (
        (scaled.zero, stored == 0),
        (scaled.subnormal, small),
        (scaled.overflow, torch.isinf(stored)),
    ):
        assert found == pytest.approx(float(theirs.double().mean()), abs=1.5 / SAMPLES)


def torchs(pattern: list[bool], scaler: Scaler) -> list[float]:
    """The scales that torch.amp.GradScaler uses when these steps bring an infinite gradient."""
    weight = torch.nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    theirs = torch.amp.GradScaler("cpu", scaler.initial, scaler.growth, scaler.backoff, scaler.interval)
    scales: list[float] = []
    for infinite in pattern:
        scales.append(float(theirs.scale(torch.ones(()))))
        weight.grad = torch.full((), math.inf if infinite else 1.0)
        theirs.step(optimizer)
        theirs.update()
    return scales


@given(
    st.lists(st.booleans(), min_size=1, max_size=20),
    st.builds(
        Scaler,
        st.integers(-20, 120).map(lambda power: 2.0**power) | st.floats(2.0**-10, 2.0**126, width=32),
        st.sampled_from([2.0, 1.5, 1.001, 1000.0]),
        st.sampled_from([0.5, 0.999, 0.3, 0.01]),
        st.integers(1, 6),
    ),
)
def test_the_scale_follows_any_steps_as_torchs_does(pattern: list[bool], scaler: Scaler) -> None:
    scales, skipped = walk(lambda step, _: pattern[step], len(pattern), scaler)
    assert scales.tolist() == torchs(pattern, scaler)
    assert skipped.tolist() == pattern


def megatrons(pattern: list[bool], scaler: Scaler) -> list[float]:
    """DynamicGradScaler.update of Megatron-LM, megatron/core/optimizer/grad_scaler.py, line by line."""
    scale, growth_tracker, hysteresis_tracker = np.float32(scaler.initial), 0, scaler.hysteresis
    scales: list[float] = []
    for found_inf in pattern:
        scales.append(float(scale))
        if found_inf:
            growth_tracker = 0
            hysteresis_tracker -= 1
            if hysteresis_tracker <= 0:
                scale = max(np.float32(scale * np.float32(scaler.backoff)), np.float32(scaler.least))
        else:
            growth_tracker += 1
            if growth_tracker == scaler.interval:
                growth_tracker = 0
                hysteresis_tracker = scaler.hysteresis
                scale = np.float32(scale * np.float32(scaler.growth))
    return scales


@given(
    st.lists(st.booleans(), min_size=1, max_size=40),
    st.builds(
        Scaler,
        st.integers(0, 40).map(lambda power: 2.0**power),
        st.just(2.0),
        st.sampled_from([0.5, 0.25]),
        st.integers(1, 4),
        st.sampled_from([0.0, 1.0, 2.0**10]),
        st.integers(1, 4),
    ),
)
def test_with_a_least_scale_and_hysteresis_it_is_megatrons(pattern: list[bool], scaler: Scaler) -> None:
    scales, skipped = walk(lambda step, _: pattern[step], len(pattern), scaler)
    assert scales.tolist() == megatrons(pattern, scaler)
    assert skipped.tolist() == pattern


@every("scaler", [Scaler(), QUICK, Scaler(initial=2.0**32, interval=20), Scaler(1.0, 4.0, 0.25, 30)])
@every("name", ["fp16", "bf16", "fp8_e4m3fn"])
def test_a_run_is_torchs_on_its_own_overflows(scaler: Scaler, name: str) -> None:
    run = follow(Course(steps=300, spike=14), scaler, FORMATS[name])
    assert run.scales.tolist() == torchs(run.skipped.tolist(), scaler)
    # A step is skipped where its largest gradient, scaled and rounded, is no finite number.
    over = np.exp2(run.drawn.largest) * run.scales >= float(FORMATS[name].overflow_threshold)
    assert run.skipped.tolist() == over.tolist()


def test_torchs_defaults_are_ours() -> None:
    theirs = torch.amp.GradScaler("cpu")
    names = (theirs.get_scale(), theirs.get_growth_factor(), theirs.get_backoff_factor(), theirs.get_growth_interval())
    assert Scaler() == Scaler(*names)


def test_what_a_step_loses_is_the_same_beside_the_run_and_alone() -> None:
    run = follow(Course(), QUICK, FORMATS["fp16"])
    for step in (0, 17, int(np.argmax(run.skipped)), 599):
        found = run.at(step)
        assert found.zero == pytest.approx(float(run.zero[step]), rel=1e-9)
        assert (found.overflow > 0) == bool(run.skipped[step])
        assert found.zero + found.subnormal + found.overflow + found.kept == pytest.approx(1)
    assert run.unscaled > 100 * run.lost


@pytest.mark.parametrize("course", [Course(), Course(steps=2), Course(first=20, last=20), Course(spike=0, last=-60)])
@pytest.mark.parametrize("scaler", [QUICK, Scaler(2.0**40, 1.3, 0.7, 1)])
def test_the_picture_has_every_step(course: Course, scaler: Scaler) -> None:
    run = follow(course, scaler, FORMATS["fp16"])
    figure = followed(run, LIGHT)
    go.Figure(wire(figure))
    ceiling, scale, skipped, lost = figure["data"]
    assert (scale["y"] == np.log2(run.scales)).all()
    assert skipped["x"].tolist() == (np.flatnonzero(run.skipped) + 1).tolist()
    assert all(trace["x"].size == course.steps for trace in (ceiling, scale, lost))
    assert all(np.isfinite(trace["y"]).all() for trace in figure["data"])
    # The axis ends where the steps do.
    assert figure["layout"]["xaxis"]["range"] == [1, course.steps]
    # A scale lies at or over the ceiling just where a step is skipped.
    assert ((scale["y"] >= ceiling["y"]) == run.skipped).all()


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    assert (draw(Course()).largest == draw(replace(Course())).largest).all()
    assert (draw(Course()).largest != draw(Course(seed=2)).largest).all()


def test_a_changed_size_moves_the_course_and_draws_nothing_anew() -> None:
    base, lower, wider = draw(Course()), draw(Course(first=-34, last=-40)), draw(Course(spread=8))
    np.testing.assert_allclose(base.medians - lower.medians, 10)
    np.testing.assert_allclose(base.largest - lower.largest, 10)
    np.testing.assert_allclose(wider.largest - wider.medians, 2 * (base.largest - base.medians))
    spiked = draw(Course(spike=16))
    np.testing.assert_allclose(spiked.medians - base.medians, np.where(base.spikes, 10, 0))


@pytest.mark.parametrize("count", [1, 3, 1000])
def test_the_largest_is_distributed_as_the_largest_of_so_many(count: int) -> None:
    drawn = draw(Course(steps=5000, spike=0, count=count))
    sigmas = np.sort((drawn.largest - drawn.medians) / drawn.course.spread)
    sampled = np.sort(np.random.default_rng(5).normal(size=(5000, count)).max(axis=1))
    # Kolmogorov and Smirnov: two samples of 5,000 of one distribution differ by more in one case of 10,000.
    places = np.searchsorted(sampled, sigmas, side="right") / 5000
    assert np.abs(places - np.arange(1, 5001) / 5000).max() < 2.23 * math.sqrt(2 / 5000)


@given(st.floats(-60, 20), st.floats(0.5, 10), st.floats(-6, 6), st.floats(-6, 6), st.floats(-2, 6))
def test_shares_of_neighboring_ranges_add_up(
    median: float, spread: float, first: float, second: float, top: float
) -> None:
    low, high = (median + spread * place for place in sorted((first, second)))
    known = {"largest": median + spread * top, "count": 1e6}
    for told in ({}, known):
        parts = [
            float(share(a, b, median, spread, **told)) for a, b in ((-math.inf, low), (low, high), (high, math.inf))
        ]
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(1, abs=1e-9)
    assert float(share(known["largest"] + 1e-9, math.inf, median, spread, **known)) == 0


def test_given_the_largest_shares_are_those_of_samples() -> None:
    random = np.random.default_rng(11)
    samples = random.normal(-24, 4, (20_000, 50))
    samples = samples[np.abs(samples.max(axis=1) + 14) < 0.02]  # tensors whose largest is 2^-14
    assert len(samples) > 100
    for low, high in ((-math.inf, -26), (-22, -16), (-16, math.inf)):
        asked = float(share(low, high, -24, 4, -14, 50))
        assert float(((samples >= low) & (samples < high)).mean()) == pytest.approx(asked, abs=0.02)


@pytest.mark.parametrize("course", [Course(steps=0), Course(count=0.5), Course(spread=0)])
def test_a_course_out_of_range_is_refused(course: Course) -> None:
    with pytest.raises(ValueError, match="at least one gradient"):
        draw(course)
    with pytest.raises(ValueError, match="steps"):
        draw(Course(steps=limit("scaled_steps") + 1))
