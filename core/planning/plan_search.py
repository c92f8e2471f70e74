"""A plan's search: what it depends on, frozen, and what it finds; nothing is searched again that was found already."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from core.hardware.accelerators import find
from core.hardware.cluster import Cluster, cluster
from core.hardware.rates import Rates
from core.models.spec import TransformerSpec
from core.planning.memory_estimate import spec_of
from core.planning.plan import Computed, Plan, whole_accelerators
from core.planning.rates import rates_of
from core.planning.resolved_layout import laid
from core.planning.search_request import Batch, Span, Wishes
from core.search.constraints import Constraints
from core.search.launch import Launch, launches
from core.search.request import Question
from core.search.result import Found, Searched
from core.search.search import searched as search
from core.step_time.software import running_on
from core.training.activations.tensors import IMPLEMENTATIONS
from core.training.device.buffers import MEASURED, Runtime
from core.training.device.memory import DeviceMemory, memory_per_device
from core.training.device.traffic import Traffic, traffic_per_step
from core.training.layout import Layout, LayoutError, check
from core.training.optimizers import find_optimizer
from core.training.precision import PrecisionPolicy

TYPED_NETWORK = "typed"
"""How the network is known where a plan says what it is."""

_WIDEST = 4_096
"""Of a range of values, those up to here are tried."""


@dataclass(frozen=True, slots=True)
class Query:
    """All that a search depends on, and nothing else of the plan: neither its tokens nor its layout.

    batch: sequences of one step. What its wishes say of the batch counts no more. network: as in `Plan`. rates: those
    that count in place of the datasheet's; None where none do.
    """

    spec: TransformerSpec
    accelerator: str
    accelerators: int
    dtype: str
    seq_len: int
    batch: int
    optimizer: str
    policy: PrecisionPolicy
    computed: Computed
    software: str
    wishes: Wishes
    network: float | None = None
    rates: Rates | None = None

    @property
    def cluster(self) -> Cluster:
        """The accelerators in their usual nodes, with the network that is typed or usual."""
        device = find(self.accelerator)
        if self.network is not None:
            device = replace(device, network=self.network, network_confidence=TYPED_NETWORK, network_source="")
        return cluster(device, self.accelerators)

    @property
    def constraints(self) -> Constraints:
        """What plans have to keep to. Communication overlaps, as it does in a typed layout: waiting never helps."""
        w = self.wishes
        spans = {name: getattr(w, name) for name in SPANS}
        pins = {name: _pinned(span) for name, span in spans.items() if (not span.free and span.low > 1) or _one(span)}
        return Constraints(
            **pins,
            zero=None if w.zero < 0 else w.zero,
            recompute=None if w.recompute is None else int(w.recompute),
            offload=None if w.offload else 0,
            overlap=1,
            most=tuple((name, span.high) for name, span in spans.items() if not span.free and name not in pins),
            tensor_in_node=w.in_node,
        )


SPANS = ("tensor", "pipeline", "interleave", "context", "expert", "micro_batch")
"""What can be kept to a range."""


def _one(span: Span) -> bool:
    return span.low == span.high


def _pinned(span: Span) -> int | tuple[int, ...]:
    return span.low if _one(span) else tuple(range(span.low, min(span.high, _WIDEST) + 1))


def query_of(plan: Plan) -> Query:
    """What a search is asked by ``plan``."""
    stored = float(plan.known.parameters) if plan.known else plan.parameters
    return Query(
        spec=spec_of(plan, stored)[0],
        accelerator=plan.accelerator,
        accelerators=whole_accelerators(plan.accelerators),
        dtype=plan.peak_dtype,
        seq_len=plan.seq_len,
        batch=plan.wishes.batch.sequences(plan.seq_len),
        optimizer=plan.optimizer,
        policy=plan.policy_under(find_optimizer(plan.optimizer)),
        computed=plan.computed,
        software=plan.software,
        wishes=replace(plan.wishes, batch=Batch()),
        network=plan.network,
        rates=rates_of(plan),
    )


@lru_cache(maxsize=64)
def asked(query: Query) -> Question:
    """The same as the search takes it."""
    how = query.computed
    return Question(
        spec=query.spec,
        cluster=query.cluster,
        batch=query.batch,
        seq_len=query.seq_len,
        policy=query.policy,
        optimizer=find_optimizer(query.optimizer),
        implementation=IMPLEMENTATIONS[how.implementation],
        running=running_on(query.software, query.spec, query.cluster.accelerator, query.dtype),
        constraints=query.constraints,
        runtime=_runtime(query),
        rates=query.rates,
        loss=how.loss,
        chunks=how.chunks,
    )


def _runtime(query: Query) -> Runtime:
    how = query.computed
    return replace(MEASURED, context=how.context, communicator=how.context, slack=how.slack)


@lru_cache(maxsize=64)
def searched(query: Query) -> Searched:
    """What the search finds. Raises `SpaceError` for more plans than are searched at once, and `BudgetError` for an
    accelerator of which too little is known."""
    return search(asked(query), query.wishes.aim)


def judged(query: Query, layout: Layout) -> Found:
    """One plan by itself, whether it fits or not. Raises `LayoutError` where it cannot be."""
    check(query.spec, layout, query.seq_len, query.accelerators)
    columns = Layout(*(np.array([getattr(layout, one.name)]) for one in fields(layout)))
    return asked(query).found(columns, np.array([1]))[0]


def batched(query: Query, layout: Layout) -> Layout:
    """``layout`` with the data-parallel ranks that the accelerators leave, and the micro-batches that fill the batch.

    Raises `LayoutError` where the batch does not divide.
    """
    made = laid(layout, query.accelerators)
    each = int(made.data * made.micro_batch)
    if query.batch % each:
        ranks = f"{int(made.data):,} data-parallel ranks of {int(made.micro_batch):,} at a time"
        raise LayoutError(
            "micro_batch", int(made.micro_batch), f"{ranks} must divide the {query.batch:,} sequences of a step."
        )
    return replace(made, micro_batches=query.batch // each)


def own(query: Query, layout: Layout) -> Found:
    """The plan of a typed layout. Raises `LayoutError` where it cannot be."""
    return judged(query, batched(query, layout))


@lru_cache(maxsize=32)
def stages(query: Query, layout: Layout, most: int) -> tuple[tuple[int, DeviceMemory], ...]:
    """What the accelerators of pipeline stages hold, from 0: of up to ``most`` of them, the ends among them."""
    count, how = int(layout.pipeline), query.computed
    setup: dict[str, Any] = {
        "policy": query.policy,
        "optimizer": find_optimizer(query.optimizer),
        "seq_len": query.seq_len,
        "implementation": IMPLEMENTATIONS[how.implementation],
        "loss": how.loss,
        "chunks": how.chunks,
        "runtime": _runtime(query),
    }
    places = sorted({round(float(at)) for at in np.linspace(0, count - 1, min(most, count))})
    return tuple((place, memory_per_device(query.spec, layout, stage=place, **setup)) for place in places)


def launched(query: Query, here: Found) -> tuple[Launch, ...]:
    """A plan as the settings of three systems."""
    return launches(
        query.spec,
        here.layout,
        seq_len=query.seq_len,
        dtype=query.dtype,
        overlap=bool(here.running.overlap),
        policy=query.policy,
        optimizer=find_optimizer(query.optimizer),
    )


@lru_cache(maxsize=32)
def traffic(query: Query, layout: Layout) -> Traffic:
    """What an accelerator of a middle stage sends in a step."""
    return traffic_per_step(query.spec, layout, policy=query.policy, seq_len=query.seq_len)
