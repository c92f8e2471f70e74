"""Shares of gradients that vanish or overflow, against the normal distribution and against torch's own fp16."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
import torch

from core.floats import FORMATS
from core.floats.lossscale import best_power, explain, percent, scale_loss, takeaway

CASES = [(-24, 4, 0), (-24, 4, 10), (-24, 4, 32), (-30, 8, 15), (-10, 1, 0), (-40, 2, 20)]
SAMPLES = 1 << 16


@pytest.mark.parametrize(("median", "spread", "power"), CASES)
@pytest.mark.parametrize("name", ["fp16", "bf16", "fp8_e5m2"])
def test_shares_are_those_of_the_distribution(median: int, spread: int, power: int, name: str) -> None:
    fmt = FORMATS[name]
    scaled = scale_loss(median, spread, power, fmt)
    normal = NormalDist(median + power, spread)
    assert scaled.zero == pytest.approx(normal.cdf(math.log2(fmt.min_subnormal / 2)), abs=1e-14)
    assert scaled.overflow == pytest.approx(1 - normal.cdf(math.log2(fmt.overflow_threshold)), abs=1e-14)
    assert scaled.shares.sum() == pytest.approx(1, abs=1e-11)
    for edge, share in zip(scaled.edges.tolist(), scaled.shares.tolist(), strict=False):
        assert share == pytest.approx(normal.cdf(edge + 1) - normal.cdf(edge), abs=1e-14)
    assert scaled.zero + scaled.subnormal + scaled.overflow + scaled.kept == pytest.approx(1)


@pytest.mark.parametrize(("median", "spread", "power"), CASES)
def test_shares_are_torchs(median: int, spread: int, power: int) -> None:
    # Evenly spaced quantiles; torch goes through float32, which only matters within 2^-24 of a border.
    normal = NormalDist(median + power, spread)
    logs = np.array([normal.inv_cdf((i + 0.5) / SAMPLES) for i in range(SAMPLES)])
    stored = torch.from_numpy(np.exp2(logs)).to(torch.float16)
    scaled = scale_loss(median, spread, power, FORMATS["fp16"])
    small = (stored > 0) & (stored < torch.finfo(torch.float16).tiny)
    for share, theirs in (
        (scaled.zero, stored == 0),
        (scaled.subnormal, small),
        (scaled.overflow, torch.isinf(stored)),
    ):
        assert share == pytest.approx(float(theirs.double().mean()), abs=1.5 / SAMPLES)


@pytest.mark.parametrize("name", ["fp8_e4m3fn", "fp6_e3m2fn", "fp4_e2m1fn", "mxint8"])
def test_clamped_values_count_as_overflow(name: str) -> None:
    scaled = scale_loss(20, 1, 0, FORMATS[name])
    assert scaled.overflow == 1
    assert scaled.zero < 1e-50


def test_the_best_scale_loses_least() -> None:
    fmt = FORMATS["fp16"]
    best = best_power(-24, 4, fmt)
    lost = [s.zero + s.overflow for s in (scale_loss(-24, 4, k, fmt) for k in range(41))]
    assert best == 19  # 2^15, which a thousand samples cannot tell from it, loses a hundred times more
    assert lost[best] == min(lost)
    assert lost[15] > 80 * lost[19]
    assert best_power(-24, 4, FORMATS["bf16"]) == 0


def test_thresholds_and_words() -> None:
    scaled = scale_loss(-24, 4, 10, FORMATS["fp16"])
    flush, fits = explain(scaled)
    assert flush.value == 2.0**-35
    assert fits.value == 65504 / 1024
    assert "2¹⁰" in takeaway(scaled)
    assert (percent(0), percent(0.4013), percent(0.0123)) == ("none", "40.1 %", "1.2 %")
    assert (percent(3e-7), percent(1e-5), percent(1e-13)) == ("< 0.001 %", "0.001 %", "none")
    assert not any("^" in term.meaning for item in (flush, fits) for term in item.terms)
    assert not any("^" in item.detail for item in (flush, fits))
