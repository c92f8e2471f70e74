"""Shares of gradients that vanish or overflow, against the normal distribution and against torch's own fp16."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
import torch

from core.floats import FORMATS
from core.floats.lossscale import SAMPLES, best_power, explain, magnitudes, percent, scale_loss, takeaway

CASES = [(-24, 4, 0), (-24, 4, 10), (-24, 4, 32), (-30, 8, 15), (-10, 1, 0), (-40, 2, 20)]


@pytest.mark.parametrize(("median", "spread", "power"), CASES)
@pytest.mark.parametrize("name", ["fp16", "bf16", "fp8_e5m2"])
def test_shares_are_those_of_the_distribution(median: int, spread: int, power: int, name: str) -> None:
    fmt = FORMATS[name]
    scaled = scale_loss(median, spread, power, fmt)
    normal = NormalDist(median + power, spread)
    assert scaled.zero == pytest.approx(normal.cdf(math.log2(fmt.min_subnormal / 2)), abs=2 / SAMPLES)
    assert scaled.overflow == pytest.approx(1 - normal.cdf(math.log2(fmt.overflow_threshold)), abs=2 / SAMPLES)
    assert scaled.shares.sum() == pytest.approx(1)
    assert scaled.zero + scaled.subnormal + scaled.overflow + scaled.kept == pytest.approx(1)


@pytest.mark.parametrize(("median", "spread", "power"), CASES)
def test_shares_are_torchs(median: int, spread: int, power: int) -> None:
    # torch goes through float32, which only matters within 2^-24 of a border.
    stored = torch.from_numpy(np.exp2(magnitudes(median, spread) + power)).to(torch.float16)
    scaled = scale_loss(median, spread, power, FORMATS["fp16"])
    assert scaled.zero == pytest.approx(float((stored == 0).double().mean()), abs=1.5 / SAMPLES)
    assert scaled.overflow == pytest.approx(float(torch.isinf(stored).double().mean()), abs=1.5 / SAMPLES)


@pytest.mark.parametrize("name", ["fp8_e4m3fn", "fp6_e3m2fn", "fp4_e2m1fn", "mxint8"])
def test_clamped_values_count_as_overflow(name: str) -> None:
    scaled = scale_loss(20, 1, 0, FORMATS[name])
    assert scaled.overflow == 1
    assert scaled.zero == 0


def test_the_best_scale_loses_least() -> None:
    fmt = FORMATS["fp16"]
    best = best_power(-24, 4, fmt)
    lost = [s.zero + s.overflow for s in (scale_loss(-24, 4, k, fmt) for k in range(41))]
    assert lost[best] == pytest.approx(min(lost), abs=1e-6)
    assert all(value > lost[best] for value in lost[:best])
    assert best_power(-24, 4, FORMATS["bf16"]) == 0


def test_thresholds_and_words() -> None:
    scaled = scale_loss(-24, 4, 10, FORMATS["fp16"])
    flush, fits = explain(scaled)
    assert flush.value == 2.0**-35
    assert fits.value == 65504 / 1024
    assert "2¹⁰" in takeaway(scaled)
    assert (percent(0), percent(0.4013), percent(0.0123)) == ("none", "40.1 %", "1.2 %")
