"""Whole spaces of parallel plans searched: plans per second, beside one plan at a time by scalar calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np

from core.hardware.accelerators import find
from core.hardware.cluster import Cluster, cluster
from core.models.catalog import CATALOG
from core.search.fastest import searched
from core.search.request import SearchRequest
from core.step_time.step import step_time
from core.training.layout import Layout
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES
from tests.core.memory_of import memory_per_device

CASES = (
    ("Llama 3.1 405B", 16_384, 2_048, 8_192),
    ("Llama 3.1 8B", 1_024, 1_024, 8_192),
    ("Mixtral 8x7B", 256, 1_024, 4_096),
    ("DeepSeek-V3", 2_048, 15_360, 4_096),
)
"""Model, H100s, sequences of a step, their length."""

ROUNDS = 5
ALONE = 200


def question(name: str, accelerators: int, batch: int, seq_len: int) -> SearchRequest:
    """What is asked of a case."""
    policy, optimizer = POLICIES["mixed bf16, fp32 master, fp32 gradients"], find_optimizer("AdamW")
    return SearchRequest(CATALOG[name].spec, cluster(find("H100 SXM"), accelerators), batch, seq_len, policy, optimizer)


def took(work: Callable[[], object]) -> float:
    """Processor seconds of this thread, the best of several."""
    times: list[float] = []
    for _ in range(ROUNDS):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return min(times)


def roomy(request: SearchRequest) -> SearchRequest:
    """The same on accelerators that every plan fits, so that none is left out before its time is worked out."""
    device = replace(request.cluster.accelerator, memory_bytes=1e18)
    return replace(request, cluster=Cluster(device, request.cluster.count, request.cluster.per_node))


def alone(request: SearchRequest) -> float:
    """Processor seconds of one plan by scalar calls, over plans of all sorts."""
    layout = searched(roomy(request), top=10**6).plans.layout
    some = np.linspace(0, len(layout.tensor) - 1, ALONE).astype(int)
    plans = [Layout(**{field.name: int(getattr(layout, field.name)[i]) for field in fields(Layout)}) for i in some]
    seq_len, how = request.seq_len, {"policy": request.policy, "optimizer": request.optimizer}

    def each() -> None:
        for plan in plans:
            memory_per_device(request.spec, plan, seq_len=seq_len, **how)
            step_time(request.spec, request.cluster, plan, seq_len=seq_len, **how)

    return took(each) / ALONE


def main() -> None:
    """Measure and print."""
    print(f"parallel plans searched, one thread, best of {ROUNDS} by processor time")
    for case in CASES:
        request = question(*case)
        result, every = searched(request), searched(roomy(request))
        pruned, whole = took(lambda asked=request: searched(asked)), took(lambda asked=request: searched(roomy(asked)))
        print(
            f"  {case[0]:15} on {case[1]:6,}: {result.count:9,} plans, {result.fitting:9,} fit, "
            f"{pruned * 1e3:5.0f} ms, "
            f"{result.count / pruned / 1e6:5.2f} M/s; memory and time of each {every.fitting / whole / 1e6:5.2f} M/s"
        )
    value = alone(question(*CASES[1]))
    print(f"  one at a time: {value * 1e6:,.0f} us a plan, {1 / value:,.0f} plans per second")


if __name__ == "__main__":
    main()
