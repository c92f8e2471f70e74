"""The course of gradients over a run: seeded, what it says of itself, and shares against samples."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.floats.scaling.gradients import Course, draw, share
from core.limits import limit


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
def test_shares_of_neighbouring_ranges_add_up(
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
