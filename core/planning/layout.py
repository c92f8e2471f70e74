"""The one layout of a plan, custom or the fastest, on its accelerators; and what the plan asks of a search for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, replace

import numpy as np

from core.budget.equations import BudgetError
from core.hardware.cluster import Rates, cluster
from core.limits import cached
from core.messages import message
from core.models.spec import SpecError, TransformerSpec
from core.models.stand_in import mixture_stand_in, stand_in
from core.planning.measured import rates_of
from core.planning.plan import TYPED, Plan, whole_accelerators
from core.runs.goodput import ClusterGoodput
from core.search.fastest import FoundLayout, fastest
from core.search.request import Constraints, LayoutResult, SearchRequest, SpaceError, only, with_fsdp
from core.search.space import count_layouts, too_many_layouts
from core.step_time.running import running_on, written_with
from core.training.activations.tensors import IMPLEMENTATIONS
from core.training.device.buffers import MEASURED
from core.training.device.memory import DeviceMemory
from core.training.device.traffic import Traffic, traffic_per_step
from core.training.layout import Layout, LayoutError, check, filled
from core.training.memory import CheckpointSize, checkpoint_size
from core.training.optimizers import find_optimizer
from core.training.trained import TrainedError, parts_of_training

TYPED_NETWORK = "typed"
"""How the network is known where a plan says what it is."""


def spec_of(plan: Plan, parameters: float) -> tuple[TransformerSpec, bool]:
    """Return the model's layers and True; for a parameter count only, a proxy shape of the same size and False."""
    model = plan.catalog_model
    if model and model.laid_out:
        return model.spec, True
    if model and model.active < model.parameters:
        return mixture_stand_in(float(model.parameters), float(model.active)), False
    return stand_in(max(1.0, parameters)), False


FIELD_IDS = {
    "tensor": "tp",
    "pipeline": "pp",
    "interleave": "vpp",
    "context": "cp",
    "expert": "ep",
    "expert_tensor": "etp",
    "micro_batch": "mbs",
    "micro_batches": "acc",
    "zero": "zero",
    "shard_group": "hsdp",
    "sequence_parallel": "sp",
    "recompute": "rc",
    "offload": "off",
}
"""Field of a layout → the id of the plan's field that has it."""

TRAINED_IDS = {"rank": "rank", "names": "names", "targets": "target", "last": "lastn", "frozen": "frozen"}
"""The same of what is trained."""


@cached("results_kept")
def search_request(plan: Plan) -> SearchRequest:
    """Return what ``plan`` asks of a search: nothing of its tokens, its price or its layout.

    Raises `BudgetError` for a model without layers, and for an accelerator of which too little is known.
    """
    spec = spec_of(plan, float(plan.catalog_model.parameters) if plan.catalog_model else plan.parameters)[0]
    try:
        parts_of_training(spec, plan.trained)
    except TrainedError as problem:
        raise BudgetError(TRAINED_IDS[problem.field], str(problem)) from None
    device, how, optimizer = plan.device, plan.runtime_options, find_optimizer(plan.optimizer)
    if plan.network is not None:
        device = replace(device, network=plan.network, network_confidence=TYPED_NETWORK, network_source="")
    return SearchRequest(
        spec=spec,
        cluster=cluster(device, whole_accelerators(plan.accelerators)),
        batch=plan.batch.target(plan.seq_len),
        seq_len=plan.seq_len,
        policy=plan.policy_under(optimizer),
        optimizer=optimizer,
        implementation=written_with(plan.software, IMPLEMENTATIONS[how.implementation]),
        offloads=how.offload_activations,
        trained=plan.trained,
        in_backward=how.in_backward,
        paged=how.paged,
        mean_length=plan.mean_length,
        longest=plan.longest,
        memory_bytes=plan.usable_memory,
        keep_free=plan.limits.free,
        host_bytes=math.nan if math.isnan(plan.limits.host) else plan.limits.host,
        running=running_on(plan.software, spec, device, plan.peak_dtype, how.kernel, plan.tuned_by),
        constraints=constraints_of(plan),
        runtime=replace(MEASURED, context=how.runtime_bytes, communicator=how.runtime_bytes, slack=how.slack),
        rates=rates_of(plan),
        loss=how.loss,
        chunks=how.chunks,
    )


def estimable_request(plan: Plan) -> SearchRequest | None:
    """Return the search that estimates the step of the plan's layout; a custom layout is the only one in it.

    None if no step can be estimated, or if too many layouts would be tried.
    """
    request = _timed_request(plan)
    return None if request is None or too_many_layouts(request) else request


def too_large(plan: Plan) -> SpaceError | None:
    """Return why the layout of a plan is not searched for; None if it is, or no step can be estimated."""
    request = _timed_request(plan)
    return too_many_layouts(request) if request else None


def _timed_request(plan: Plan) -> SearchRequest | None:
    try:
        request = search_request(plan)
    except (BudgetError, SpecError, TrainedError):
        return None
    if math.isnan((request.rates or Rates()).of("between", request.cluster.link_between)):
        return None
    if plan.own_layout:
        return replace(request, constraints=only(own_layout(plan)), exact=not plan.batch.in_tokens)
    if plan.runtime_options.in_backward:
        request = replace(request, constraints=replace(request.constraints, micro_batches=1))
    return request


def constraints_of(plan: Plan) -> Constraints:
    """Return the constraints on the plan's layouts: its own, and those of the program that runs it."""
    return with_fsdp(plan.constraints) if plan.trains_with_trl else plan.constraints


def own_layout(plan: Plan) -> Layout:
    """Return the layout as entered; an optimizer that steps in backward cannot add up micro-batches, so that one is a
    step."""
    if plan.runtime_options.in_backward and not int(plan.layout.micro_batches):
        return replace(plan.layout, micro_batches=1)
    return plan.layout


def plan_layout(plan: Plan) -> Layout:
    """Return the plan's layout on its accelerators: the custom one, the fastest, or the default if no step can be
    timed.

    Raises `LayoutError` if there is no valid layout.
    """
    if estimable_request(plan):
        if found := found_layout(plan):
            return found.layout
    elif problem := too_large(plan):
        raise problem
    layout = resolve_layout(own_layout(plan), whole_accelerators(plan.accelerators), plan.sequences)
    check(spec_of(plan, _parameters(plan))[0], layout, plan.seq_len)
    if estimable_request(plan):
        count = whole_accelerators(plan.accelerators)
        raise LayoutError("tensor", 1, message("search.error.constraints", accelerators=float(count)))
    return layout


@cached("layouts_kept")
def found_layout(plan: Plan) -> FoundLayout | None:
    """Return the layout of a plan on its accelerators with the time of its step; None if no step can be timed, or no
    layout keeps to the constraints."""
    request = estimable_request(plan)
    if request is None:
        return None
    count = request.cluster.count
    goodput = ClusterGoodput(float(plan_checkpoint(plan).of(_parameters(plan))), plan.reliability)
    if plan.trains_with_trl and (found := fastest(replace(request, exact=True), count, goodput)):
        return found
    return fastest(request, count, goodput)


def tried_layouts(plans: Sequence[Plan]) -> int:
    """Return the number of layouts that are timed for plans, counting each number of accelerators of the same search
    once."""
    searches = {request for plan in plans if (request := estimable_request(plan))}
    return sum(count_layouts(request) for request in searches)


_USUAL = 70e9
"""Parameters of the shape on which an optimizer's state is worked out where nobody knows the model's layers."""


@cached("small_results_kept")
def plan_checkpoint(plan: Plan) -> CheckpointSize:
    """Return the checkpoint bytes per parameter; for every size the same if only that is known or entered."""
    model = plan.catalog_model
    spec = model.spec if model and model.laid_out else stand_in(_USUAL)
    optimizer = find_optimizer(plan.optimizer)
    size = checkpoint_size(optimizer, plan.policy_under(optimizer), spec)
    if plan.trained.everything:
        return size
    with suppress(LayoutError):  # what is frozen is in the model that one began with
        parts = parts_of_training(spec, plan.trained)
        whole = sum(part.tensor.elements for part in parts if not part.adapter)
        share = sum(part.tensor.elements for part in parts if part.trained) / whole
        return CheckpointSize(size.weights * share, size.optimizer * share)
    return size


def _parameters(plan: Plan) -> float:
    return float(plan.catalog_model.parameters) if plan.catalog_model else plan.parameters


def resolve_layout(layout: Layout, accelerators: int, batch: int) -> Layout:
    """Return ``layout`` with the data-parallel ranks and micro-batches that follow from the accelerators and the batch.

    Accelerators that do not divide evenly are idle. Raises `LayoutError` if there are too few accelerators.
    """
    degrees = {name: int(getattr(layout, name)) for name in ("tensor", "pipeline", "context")}
    taken = math.prod(degrees.values())
    if taken > accelerators:
        largest = max(degrees, key=degrees.__getitem__)
        rule = message("search.error.accelerators", needed=float(taken), accelerators=float(accelerators))
        raise LayoutError(largest, degrees[largest], rule, accelerators * degrees[largest] // taken or None)
    result, possible = filled(layout, accelerators, batch)
    if not possible:
        least, rule = int(layout.micro_batch), message("search.error.batch", sequences=float(batch))
        raise LayoutError("micro_batch", least, rule, batch if batch < least else None)
    return Layout(**{field.name: int(getattr(result, field.name)) for field in fields(Layout)})


def evaluate_layout(request: SearchRequest, layout: Layout) -> LayoutResult:
    """Return the result of one layout, whether it fits or not. Raises `LayoutError` for an invalid layout."""
    check(request.spec, layout, request.seq_len, request.cluster.count)
    columns = Layout(*(np.array([getattr(layout, field.name)]) for field in fields(layout)))
    return request.found(columns)[0]


@cached("arrays_kept")
def stages(request: SearchRequest, layout: Layout, most: int) -> tuple[tuple[int, DeviceMemory], ...]:
    """Return what the accelerators of pipeline stages hold, from 0: of up to ``most`` of them, the ends among them."""
    count = int(layout.pipeline)
    places = sorted({round(float(at)) for at in np.linspace(0, count - 1, min(most, count))})
    return tuple((place, request.memory(layout, place)) for place in places)


@cached("arrays_kept")
def traffic(request: SearchRequest, layout: Layout) -> Traffic:
    """Return what an accelerator of a middle stage sends in a step."""
    again = request.implementation.regathers
    return traffic_per_step(request.spec, layout, policy=request.policy, seq_len=request.timed_length, regathers=again)


def copy_size(plan: Plan) -> int:
    """Return the accelerators per model replica in a custom layout; 1 for other layouts.

    Ranks that hold one set of experts are never split.
    """
    own = plan.layout
    if not plan.own_layout:
        return 1
    return int(own.pipeline) * math.lcm(int(own.tensor * own.context), int(own.expert_ranks))


def resolved_plan(plan: Plan, parameters: float, accelerators: float) -> Plan:
    """Return the plan with the solved numbers: all stored parameters, and accelerators."""
    count = float(whole_accelerators(accelerators))
    return replace(
        plan,
        find="time",
        model=TYPED if plan.find == "parameters" else plan.model,
        parameters=parameters,
        accelerators=count,
    )
