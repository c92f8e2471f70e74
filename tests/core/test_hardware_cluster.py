"""Clusters: nodes, links one way in bytes, totals; and operations on the roofline."""

from __future__ import annotations

import numpy as np
import pytest

from core.hardware.accelerators import find
from core.hardware.cluster import cluster
from core.hardware.operations import elementwise, place, product

H100 = find("H100 SXM")


def test_a_cluster_of_the_lecture() -> None:
    made = cluster(H100, 1024)
    assert (made.nodes, made.per_node, made.idle) == (128, 8, 0)
    assert made.peak("bf16") == pytest.approx(1024 * 989.4e12)
    assert made.memory_bytes == 1024 * find("H100 SXM").memory_bytes
    assert made.watts == 1024 * 700


def test_links_are_one_way_in_bytes() -> None:
    """NVLink 4 is sold as 900 GB/s, both ways together; 400 Gb/s of InfiniBand are 50 GB/s."""
    made = cluster(H100, 16)
    assert (made.link_inside, made.link_between) == (450e9, 50e9)
    assert (cluster(find("GB200"), 144).link_between, cluster(find("B300"), 16).link_between) == (50e9, 100e9)
    assert cluster(find("TPU v5p"), 8).link_between == cluster(find("TPU v5p"), 8).link_inside == 600e9


def test_partly_filled_nodes_and_impossible_ones() -> None:
    made = cluster(H100, 100)
    assert (made.nodes, made.idle) == (13, 4)
    assert cluster(H100, 100, 4).nodes == 25
    for count, per_node in ((0, 8), (8, 0), (-1, 8)):
        with pytest.raises(ValueError, match="at least 1"):
            cluster(H100, count, per_node)


def test_a_product_turns_compute_bound_where_its_intensity_passes_the_ridge() -> None:
    """A square bf16 product of n has n/3 FLOPs per byte: H100's ridge of 295 is reached at 886."""
    n = np.arange(800.0, 1000.0)
    placed = place(product(1.0, n, n, n, 2.0), H100.peak("bf16"), H100.bandwidth)
    np.testing.assert_allclose(placed.intensity, n / 3)
    assert n[np.argmax(np.asarray(placed.compute_bound))] == 887
    np.testing.assert_allclose(
        np.asarray(placed.attainable), np.minimum(H100.peak("bf16"), np.asarray(placed.intensity) * H100.bandwidth)
    )


def test_elementwise_work_is_memory_bound() -> None:
    """Attainable is min(peak, intensity × bandwidth) of Williams et al."""
    placed = place(elementwise(1e9, 8.0, 4.0), 66.9e12, H100.bandwidth)
    assert (placed.intensity, placed.bound) == (2.0, "memory")
    assert placed.attainable == pytest.approx(2 * 3.35e12)
    assert placed.seconds == pytest.approx(4e9 / 3.35e12)
