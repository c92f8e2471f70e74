"""A plan's search and what it finds; nothing is searched again that was found already."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from core.budget.errors import BudgetError
from core.hardware.cluster import cluster
from core.planning.memory_estimate import spec_of
from core.planning.plan import Plan, whole_accelerators
from core.planning.rates import rates_of
from core.planning.resolved_layout import resolve_layout
from core.search.launch import Launch, launches
from core.search.request import SearchRequest
from core.search.result import LayoutResult, SearchResult
from core.search.search import searched as search
from core.step_time.software import running_on, written_with
from core.training.activations.tensors import IMPLEMENTATIONS
from core.training.device.buffers import MEASURED
from core.training.device.memory import DeviceMemory, memory_per_device
from core.training.device.traffic import Traffic, traffic_per_step
from core.training.layout import Layout, LayoutError, check
from core.training.optimizers import find_optimizer
from core.training.trained import TrainedError, parts_of_training

TYPED_NETWORK = "typed"
"""How the network is known where a plan says what it is."""


@lru_cache(maxsize=256)
def search_request(plan: Plan) -> SearchRequest:
    """What ``plan`` asks of a search: nothing of its tokens, its price or its layout.

    Raises `BudgetError` for a model without layers, and for an accelerator of which too little is known.
    """
    spec = spec_of(plan, float(plan.known.parameters) if plan.known else plan.parameters)[0]
    try:
        parts_of_training(spec, plan.trained)
    except TrainedError as problem:
        raise BudgetError(problem.field, problem.message) from None
    device, how, optimizer = plan.device, plan.compute_options, find_optimizer(plan.optimizer)
    if plan.network is not None:
        device = replace(device, network=plan.network, network_confidence=TYPED_NETWORK, network_source="")
    return SearchRequest(
        spec=spec,
        cluster=cluster(device, whole_accelerators(plan.accelerators)),
        batch=plan.batch.sequences(plan.seq_len),
        seq_len=plan.seq_len,
        policy=plan.policy_under(optimizer),
        optimizer=optimizer,
        implementation=written_with(plan.software, IMPLEMENTATIONS[how.implementation]),
        offloads=how.offload_activations,
        trained=plan.trained,
        in_backward=how.in_backward,
        paged=how.paged,
        memory_bytes=math.nan if plan.usable_memory == device.memory_bytes else plan.usable_memory,
        keep_free=plan.keeps.free,
        running=running_on(plan.software, spec, device, plan.peak_dtype, how.kernel),
        constraints=plan.constraints,
        runtime=replace(MEASURED, context=how.context, communicator=how.context, slack=how.slack),
        rates=rates_of(plan),
        loss=how.loss,
        chunks=how.chunks,
        objective=plan.objective,
    )


@lru_cache(maxsize=64)
def search_layouts(request: SearchRequest) -> SearchResult:
    """What the search finds. Raises `SpaceError` for more plans than are searched at once, and `BudgetError` for an
    accelerator of which too little is known."""
    return search(request)


def evaluate_layout(request: SearchRequest, layout: Layout) -> LayoutResult:
    """One plan by itself, whether it fits or not. Raises `LayoutError` where it cannot be."""
    check(request.spec, layout, request.seq_len, request.cluster.count)
    columns = Layout(*(np.array([getattr(layout, field.name)]) for field in fields(layout)))
    return request.found(columns, np.array([1]))[0]


def batched(request: SearchRequest, layout: Layout) -> Layout:
    """``layout`` with the data-parallel ranks that the accelerators leave, and the micro-batches that fill the batch.

    Raises `LayoutError` where the batch does not divide.
    """
    result = resolve_layout(layout, request.cluster.count)
    each = int(result.data * result.micro_batch)
    if request.batch % each:
        ranks = f"{int(result.data):,} data-parallel ranks of {int(result.micro_batch):,} at a time"
        raise LayoutError(
            "micro_batch", int(result.micro_batch), f"{ranks} must divide the {request.batch:,} sequences of a step."
        )
    return replace(result, micro_batches=request.batch // each)


def evaluate_own_layout(request: SearchRequest, layout: Layout) -> LayoutResult:
    """The plan of a typed layout. Raises `LayoutError` where it cannot be."""
    return evaluate_layout(request, batched(request, layout))


@lru_cache(maxsize=32)
def stages(request: SearchRequest, layout: Layout, most: int) -> tuple[tuple[int, DeviceMemory], ...]:
    """What the accelerators of pipeline stages hold, from 0: of up to ``most`` of them, the ends among them."""
    count = int(layout.pipeline)
    names = ("policy", "optimizer", "seq_len", "loss", "chunks", "runtime", "trained", "in_backward", "paged")
    setup: dict[str, Any] = {name: getattr(request, name) for name in names} | {"implementation": request.written}
    places = sorted({round(float(at)) for at in np.linspace(0, count - 1, min(most, count))})
    return tuple((place, memory_per_device(request.spec, layout, stage=place, **setup)) for place in places)


def launch_settings(request: SearchRequest, here: LayoutResult) -> tuple[Launch, ...]:
    """A plan as the settings of three systems."""
    return launches(
        request.spec,
        here.layout,
        seq_len=request.seq_len,
        dtype=request.running.dtype,
        overlap=bool(here.running.overlap),
        policy=request.policy,
        optimizer=request.optimizer,
    )


@lru_cache(maxsize=32)
def traffic(request: SearchRequest, layout: Layout) -> Traffic:
    """What an accelerator of a middle stage sends in a step."""
    return traffic_per_step(request.spec, layout, policy=request.policy, seq_len=request.seq_len)
