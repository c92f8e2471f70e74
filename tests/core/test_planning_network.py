"""The network between nodes: every accelerator has one that is usual or assumed, and a plan may say its own."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from core.hardware.accelerators import Accelerator, accelerators, find
from core.number_text import QuantityError
from core.planning.form.layout import PER_NODE
from core.planning.form.plan_form import plan_from
from core.planning.layout import evaluate_layout, search_request
from core.search.fastest import searched
from core.search.request import SearchRequest
from core.training.layout import Layout
from core.views.plan.text_rates import usual_network, usual_node

EACH = pytest.mark.parametrize("device", accelerators(), ids=lambda item: item.id)


def query(accelerator: str, **texts: str) -> SearchRequest:
    nodes = 2 * find(accelerator).node_size
    small = {"model": "Llama 3.2 1B", "gpu": accelerator, "count": str(nodes), "gb": str(8 * nodes), "seq": "2,048"}
    return search_request(plan_from(small | texts))


def seconds(request: SearchRequest) -> float:
    """A step whose gradients cross the network."""
    return evaluate_layout(request, Layout(data=request.cluster.count, micro_batches=8, zero=3, recompute=2)).seconds


@EACH
def test_a_plan_of_two_nodes_is_answered_on_every_accelerator(device: Accelerator) -> None:
    result = searched(query(device.name))
    assert result.best
    assert 0 < result.best.seconds < math.inf


def test_what_is_typed_counts_in_bits_and_in_bytes() -> None:
    plan = plan_from({"gpu": "RTX 4090"})
    assert (usual_network(plan), plan.network) == ("1.25 Gb/s", None)
    slow, bits, in_bytes = (query("RTX 4090", net=text) for text in ("", "100 Gb/s", "12.5 GB/s"))
    assert bits.cluster.link_between == in_bytes.cluster.link_between == 12.5e9
    assert seconds(bits) == seconds(in_bytes) < seconds(slow)
    usual = query("H100 SXM", net="400 Gb/s")
    assert seconds(usual) == seconds(query("H100 SXM"))


def test_faster_networks_never_take_longer() -> None:
    taken = [seconds(query("L40S", net=f"{rate} Gb/s")) for rate in (1, 10, 25, 50, 100, 200, 400, 800, 3200)]
    assert taken == sorted(taken, reverse=True)
    best = [searched(query("L40S", net=f"{rate} Gb/s")).best for rate in (1, 50, 400)]
    times = [result.seconds for result in best if result]
    assert times == sorted(times, reverse=True)
    assert len(times) == 3


def test_larger_nodes_never_take_longer() -> None:
    laid = Layout(tensor=4, data=16, micro_batches=8, zero=3, recompute=2)
    requests = [query("H100 SXM", count="64", gb="128", node=node) for node in ("1", "2", "4", "8", "16", "64")]
    taken = [evaluate_layout(request, laid).seconds for request in requests]
    assert taken == sorted(taken, reverse=True)
    assert taken[-1] < taken[0]
    best = [result.seconds for request in requests if (result := searched(request).best)]
    assert best == sorted(best, reverse=True)
    assert len(best) == len(requests)


def test_nodes_are_the_usual_ones_unless_typed() -> None:
    for name, usual in (("H100 SXM", 8), ("GB200", 72), ("RTX 4090", 8)):
        plan = plan_from({"gpu": name})
        assert (usual_node(plan), plan.device) == (f"{usual}", find(name))
        assert usual_node(typed := plan_from({"gpu": name, "node": "4"})) == f"{usual}"
        assert typed.device == replace(find(name), node_size=4)
        assert search_request(plan_from({"gpu": name, "node": "4", "model": "Llama 3.2 1B"})).cluster.per_node == 4


@pytest.mark.parametrize("text", ["0", "2.5", "-8", "a rack", "1M"])
def test_what_is_no_number_of_a_node_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match=PER_NODE.label):
        plan_from({"node": text})


def test_a_measured_network_counts_before_a_typed_one() -> None:
    measured = query("H100 SXM", net="10 Gb/s", rnet="46 GB/s")
    assert seconds(measured) == seconds(query("H100 SXM", rnet="46 GB/s"))


@pytest.mark.parametrize("text", ["400", "fast", "0 Gb/s", "1 kb/s", "-5 Gb/s", "1e30 Gb/s"])
def test_what_is_no_bandwidth_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(QuantityError, match="b/s"):
        plan_from({"net": text})
