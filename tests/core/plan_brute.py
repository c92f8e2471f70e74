"""All plans of a small space one at a time, by scalar calls and loops: slow, and told nothing by the search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from itertools import product

from core.search.constraints import Constraints, Range
from core.search.request import SearchRequest
from core.step_time.step import step_time
from core.training.device.memory import memory_per_device
from core.training.layout import Layout, LayoutError, check


@dataclass(frozen=True, slots=True)
class Plain:
    """One plan. held: bytes of the fullest accelerator."""

    layout: Layout
    overlap: int
    seconds: float
    held: float

    @property
    def key(self) -> tuple[int, ...]:
        """The plan as plain numbers."""
        return (*astuple(self.layout), self.overlap)


def one_at_a_time(question: SearchRequest) -> Iterator[Plain]:
    """Every plan, whatever the constraints, but for tensor-parallel ranks outside a node."""
    spec, count, batch = question.spec, question.cluster.count, question.batch
    experts, node = spec.experts.count if spec.experts else 1, question.cluster.per_node
    splits = range(node + 1) if spec.experts else (0,)
    most = range(1, count + 1)
    for t, p, c in product(most, most, most):
        if count % (t * p * c) or node % t:
            continue
        d = count // (t * p * c)
        for e, s, b, v in product(range(1, experts + 1), splits, range(1, batch + 1), range(1, spec.layers + 3)):
            if batch % (d * b):
                continue
            many = batch // (d * b)
            plain = Layout(t, p, v, c, e, s, d, b, many)
            even = spec.layers % (p * v) == 0 or (spec.layers + 2) % (p * v) == 0
            if v > 1 and not (p > 1 and even and many % p == 0):
                continue
            try:
                check(spec, plain, question.seq_len, count)
            except LayoutError:
                continue
            yield from _chosen(question, plain)


def _chosen(question: SearchRequest, plain: Layout) -> Iterator[Plain]:
    t, ranks = plain.tensor, plain.data * plain.context
    node = question.cluster.per_node // t
    shared = [(stage, 0) for stage in range(4)]
    if 1 < node < ranks and ranks % node == 0:
        shared += [(stage, node) for stage in (1, 2, 3)]
    for (zero, group), again, narrow, away in product(shared, (0, 1, 2), (0, 1) if t > 1 else (0,), (0, 1)):
        layout = replace(plain, zero=zero, shard_group=group, recompute=again, sequence_parallel=narrow, offload=away)
        memory = memory_per_device(
            question.spec,
            layout,
            policy=question.policy,
            optimizer=question.optimizer,
            seq_len=question.seq_len,
            implementation=question.implementation,
            runtime=question.runtime,
        )
        for overlap in (0, 1):
            step = step_time(
                question.spec,
                question.cluster,
                layout,
                seq_len=question.seq_len,
                running=replace(question.running, overlap=overlap),
                implementation=question.implementation,
                policy=question.policy,
                optimizer=question.optimizer,
                rates=question.rates,
            )
            yield Plain(layout, overlap, float(step.total), float(memory.total))


def kept(plans: list[Plain], constraints: Constraints) -> list[Plain]:
    """Plans that keep to constraints. Of what makes no difference to a plan, one value stands for all allowed."""
    fields = [name for name in Constraints.__slots__ if name != "tensor_in_node"]
    may: dict[str, list[int]] = {}
    for field in fields:
        pin = getattr(constraints, field)
        if pin is None or isinstance(pin, Range):
            low, high = (0, None) if pin is None else (pin.low, pin.high)
            may[field] = list(range(low, 99 if high is None else high + 1))
        else:
            may[field] = [pin] if isinstance(pin, int) else list(pin)

    def keeps(plan: Plain) -> bool:
        layout = plan.layout
        single = layout.data * layout.context == 1 and not layout.tensor > layout.expert_ranks
        if single and 1 not in may["offload"] and layout.zero not in may["zero"][:1]:
            return False
        idle = {"sequence_parallel": layout.tensor == 1, "shard_group": layout.zero == 0}
        values = {name: plan.overlap if name == "overlap" else getattr(layout, name) for name in fields}
        return all(bool(may[name]) if idle.get(name) else values[name] in may[name] for name in fields)

    return [plan for plan in plans if keeps(plan)]


def best_of(plans: list[Plain]) -> list[tuple[float, float]]:
    """Seconds and bytes of the plans that none beats, each against each other one."""
    points = {(plan.seconds, plan.held) for plan in plans}
    return sorted((s, m) for s, m in points if not any(s2 <= s and m2 <= m and (s2, m2) != (s, m) for s2, m2 in points))
