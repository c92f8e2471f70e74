"""Accelerators: plausible rows, peaks that follow from clocks, names that are found."""

from __future__ import annotations

import math

import pytest

from core.hardware.accelerators import DTYPES, Accelerator, accelerators, best_matmul, find, slug
from core.hardware.cluster import cluster
from core.hardware.operations import peak_from_clock, ridge_point
from core.rows import read_rows
from core.runs.energy import ASSUMED, node_power
from tests.every import every

EACH = pytest.mark.parametrize("device", accelerators(), ids=lambda d: d.name)


def test_names_are_unique_and_links_can_carry_them() -> None:
    assert len({a.id for a in accelerators()}) == len({a.name for a in accelerators()}) == len(accelerators())


def test_memory_is_in_the_unit_of_its_column() -> None:
    for row in read_rows("accelerators"):
        size = float(row["memory"]) * {"GB": 10**9, "GiB": 2**30}[row["memory_unit"]]
        assert find(row["label"]).sheet_bytes == size, row["label"]


@EACH
def test_row_is_plausible(device: Accelerator) -> None:
    """A unit slip is a factor of a thousand, so the ranges need not be tight to catch it."""
    assert device.source
    assert device.confidence in {"verified", "recalled"}
    assert 2016 < device.year < 2030
    assert 8e9 <= device.memory_bytes <= 2e12
    assert 0.7 < device.memory_bytes / device.sheet_bytes < 1.08
    assert 250e9 <= device.bandwidth <= 50e12
    assert math.isnan(device.tdp_watts) or 60 <= device.tdp_watts <= 5000
    assert math.isnan(device.price_low) or 0.1 <= device.price_low <= device.price_high <= 50
    assert math.isnan(device.price_low) or device.price_source
    half = device.peak(device.usable("bf16"))
    assert 18e12 <= half <= 20e15
    assert 30 <= ridge_point(half, device.bandwidth) <= 1000


@EACH
def test_links_and_network_are_known_and_say_from_where(device: Accelerator) -> None:
    """One way each; the network is no faster than what joins a node, where there is such a thing."""
    assert device.network_confidence in {"verified", "recalled", "assumed"}
    assert device.network_source
    inside = cluster(device, 1).link_inside
    assert 10e9 <= inside <= 2e12
    assert 1e8 <= device.network <= 1e12
    assert device.network <= inside
    known = {one.network_confidence for one in accelerators() if one.form_factor.startswith(("SXM", "OAM", "NVL72"))}
    assert known == {"verified", "recalled"}


def test_published_nodes_draw_more_than_their_accelerators() -> None:
    """A slip of units or of the accelerators counted is a factor; a node has at least its modules and a host."""
    rows = read_rows("node_power")
    assert len({find(row["label"]).id for row in rows}) == len(rows) > 10
    for row in rows:
        device, node = find(row["label"]), node_power(find(row["label"]))
        assert row["source"], row["label"]
        assert node.confidence in {"verified", "recalled", ASSUMED}
        assert node.accelerators % device.node_size == 0
        assert 1 <= node.each / device.tdp_watts <= 2.5, row["label"]
        assert math.isnan(node.drawn) or 0.5 <= node.drawn <= 1


@EACH
def test_peaks_are_ordered(device: Accelerator) -> None:
    """Fewer bits are never slower by more than the known exceptions, and no sparse figure crept in."""
    peak = {dtype: device.peak(dtype) for dtype in DTYPES}
    for wide, narrow in (("fp32", "tf32"), ("tf32", "bf16"), ("bf16", "fp8"), ("fp8", "fp4"), ("fp32", "fp16")):
        if not math.isnan(peak[wide]) and not math.isnan(peak[narrow]):
            assert 0.99 <= peak[narrow] / peak[wide] <= 40, (wide, narrow)
    if not math.isnan(peak["bf16"]) and not math.isnan(peak["fp16"]):
        assert peak["bf16"] >= peak["fp16"]
    for dtype in ("bf16", "fp8"):
        best = device.best_measured(dtype)
        assert math.isnan(best) or 0.3 < best / peak[dtype] < 1


CLOCKED = [a for a in accelerators() if a.clock]


@every("device", CLOCKED, ids=lambda d: d.name)
def test_peak_follows_from_the_clock(device: Accelerator) -> None:
    clock = device.clock
    assert clock
    derived = peak_from_clock(clock.hertz, clock.fma_per_clock, clock.units)
    assert derived == pytest.approx(device.peak(clock.dtype), rel=3e-3)


def test_unknown_stays_unknown() -> None:
    assert math.isnan(find("V100 SXM 32 GB").peak("bf16"))
    assert find("V100 SXM 32 GB").usable("bf16") == "fp16"
    assert find("H100 SXM").usable("bf16") == "bf16"
    assert math.isnan(find("TPU v4").price_low)
    assert math.isnan(find("GH200 96 GB").tdp_watts)
    with pytest.raises(KeyError):
        find("H100 SXM").peak("bf17")


def test_find_forgives_case_and_punctuation() -> None:
    assert find("h100-sxm") is find("H100  SXM") is find("H100 SXM")
    assert slug("A100 SXM 80 GB") == "a100-sxm-80-gb"
    with pytest.raises(KeyError, match="H100 SXM"):
        find("H100 SMX")


@EACH
def test_the_best_matmul_is_measured_or_follows_from_relatives(device: Accelerator) -> None:
    for dtype in ("bf16", "fp16", "fp8"):
        best = best_matmul(device.name, dtype)
        if math.isnan(device.peak(dtype)):
            assert math.isnan(best.rate)
            continue
        assert 0.3 < best.share < 1
        assert best.rate == pytest.approx(best.share * device.peak(dtype))
        if not math.isnan(device.best_measured(dtype)):
            assert best.measured
            assert best.rate == device.best_measured(dtype)
