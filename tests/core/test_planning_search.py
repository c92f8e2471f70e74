"""The search keeps the laws that a search must keep; `test_planning_fastest_layout` tries a wider space."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from core.budget.equations import BudgetError
from core.hardware.accelerators import DTYPES, find
from core.hardware.cluster import Cluster, cluster
from core.models.catalog import CATALOG
from core.models.spec import Experts, TransformerSpec
from core.search.fastest import searched
from core.search.neighbours import neighbours
from core.search.request import Constraints, Range, SearchRequest, SearchResult, SpaceError
from core.search.space import WINDOW
from core.step_time.running import BITS, Running
from core.step_time.step import step_time
from core.training.layout import Layout, LayoutError, allowed, check
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES
from tests.core.memory_of import memory_per_device
from tests.every import every

ADAM = find_optimizer("AdamW")
MEGATRON = POLICIES["mixed bf16, fp32 master, fp32 gradients"]
H100 = find("H100 SXM")
EVERYTHING = Constraints(offload=None)
ALL = 10**6

DENSE = TransformerSpec(
    layers=4, hidden=1024, heads=12, kv_heads=4, head_dim=64, ffn=3072, vocab=32_000, glu=True, tied_head=False
)
MIXED = replace(DENSE, layers=6, ffn=0, experts=Experts(count=4, per_token=2, width=768))
SPECS = {"dense": DENSE, "mixed": MIXED}


def asked(
    spec: TransformerSpec,
    accelerators: int,
    batch: int,
    seq_len: int = 2048,
    *,
    per_node: int = 8,
    memory: float = H100.memory_bytes,
    constraints: Constraints = EVERYTHING,
) -> SearchRequest:
    device = replace(H100, memory_bytes=memory)
    return SearchRequest(
        spec, Cluster(device, accelerators, per_node), batch, seq_len, MEGATRON, ADAM, constraints=constraints
    )


SPACES = st.sampled_from(
    [
        ("dense", 1, 2, 6),
        ("dense", 3, 2, 3),
        ("dense", 6, 4, 3),
        ("dense", 8, 4, 5),
        ("mixed", 4, 2, 1),
        ("mixed", 7, 4, 9),
    ]
)
"""Model, accelerators, those of a node, sequences of a step."""


def pinned(values: list[int]) -> st.SearchStrategy[object]:
    return st.one_of(st.none(), st.none(), st.sampled_from(values), st.just(tuple(values[:2])))


CONSTRAINTS = st.builds(
    Constraints,
    tensor=pinned([1, 2, 4]),
    pipeline=pinned([1, 2, 3]) | st.just(Range(1, 2)),
    interleave=pinned([1, 2]),
    context=pinned([1, 2]),
    expert=pinned([1, 2, 4]),
    expert_tensor=st.sampled_from([0, 0, Range(1, 2), Range(2)]),
    data=pinned([1, 2, 4]),
    micro_batch=pinned([1, 2, 3]) | st.builds(Range, st.integers(1, 2), st.sampled_from([None, 2])),
    zero=pinned([0, 1, 3]) | st.just(Range(0, 2)),
    shard_group=st.sampled_from([None, 0]),
    sequence_parallel=pinned([0, 1]),
    recompute=pinned([0, 1, 2]),
    offload=st.sampled_from([None, 0, 1]),
)


def rows_of(result: SearchResult) -> list[tuple[int, ...]]:
    """Every plan handed back as plain numbers."""
    columns = [getattr(result.plans.layout, field.name) for field in fields(Layout)]
    return list(map(tuple, np.stack(columns, axis=1).tolist()))


@settings(max_examples=60)
@given(space=SPACES, constraints=CONSTRAINTS)
def test_constraints_leave_the_plans_that_keep_to_them(
    space: tuple[str, int, int, int], constraints: Constraints
) -> None:
    name, accelerators, per_node, batch = space
    question = asked(SPECS[name], accelerators, batch, per_node=per_node, constraints=constraints)
    everything = replace(EVERYTHING, expert_tensor=constraints.expert_tensor)
    result, free = searched(question, top=ALL), searched(replace(question, constraints=everything), top=ALL)
    plans = result.plans.layout
    assert len(set(rows_of(result))) == result.fitting == len(result.plans.seconds) <= result.count
    for field in (
        "tensor",
        "pipeline",
        "interleave",
        "context",
        "expert",
        "data",
        "micro_batch",
        "recompute",
        "offload",
    ):
        assert np.all(constraints.allowed(field, getattr(plans, field))), field
    if result.best and constraints.micro_batch is None and constraints.zero is None:
        assert free.best
        assert result.best.pace >= free.best.pace * (1 - 1e-6)


LLAMA = CATALOG["Llama 3.1 8B"].spec
MIXTRAL = CATALOG["Mixtral 8x7B"].spec


@pytest.mark.parametrize(("spec", "accelerators"), [(LLAMA, 64), (MIXTRAL, 48)])
def test_every_plan_is_sound_and_has_about_the_batch(spec: TransformerSpec, accelerators: int) -> None:
    result = searched(asked(spec, accelerators, 96, 4096), top=ALL)
    layout = result.plans.layout
    sequences = layout.data * layout.micro_batch * layout.micro_batches
    assert result.fitting == len(result.plans.seconds) > 5_000
    assert np.all(layout.accelerators <= accelerators)
    assert np.all(abs(sequences / 96 - 1) <= WINDOW)
    assert result.plans.tokens.tolist() == (4096 * sequences).tolist()
    assert np.all(allowed(spec, layout, 4096, accelerators))
    assert np.all(result.plans.memory <= H100.memory_bytes)
    assert np.all(np.diff(result.plans.pace) >= -1e-6 * result.plans.pace[1:])
    assert len(set(rows_of(result))) == result.fitting


@pytest.mark.parametrize(("spec", "accelerators"), [(LLAMA, 64), (MIXTRAL, 48)])
def test_nothing_beats_the_front_and_all_else_is_beaten(spec: TransformerSpec, accelerators: int) -> None:
    result = searched(asked(spec, accelerators, 96, 4096), top=ALL)
    pace, memory = result.plans.pace, result.plans.memory
    front = np.array([(item.pace, item.memory.total) for item in result.pareto])
    assert np.all(np.diff(front[:, 0]) > -1e-6 * front[1:, 0])
    assert np.all(np.diff(front[:, 1]) < 0)
    for p, m in front:
        assert not np.any((pace < p * (1 - 1e-6)) & (memory <= m))
    at = np.searchsorted(front[:, 0] * (1 - 1e-6), pace, side="right") - 1
    assert np.all(at >= 0)
    assert np.all(front[at, 1] <= memory * (1 + 1e-12))


def test_the_fastest_are_the_first_of_all_plans() -> None:
    every, few = (searched(asked(LLAMA, 64, 96, 4096), top=top) for top in (ALL, 500))
    assert few.plans.seconds == pytest.approx(every.plans.seconds[:500], rel=1e-12)
    assert few.plans.memory.tolist() == every.plans.memory[:500].tolist()
    assert (few.count, few.fitting, few.best, few.pareto) == (every.count, every.fitting, every.best, every.pareto)


def test_more_memory_and_more_bandwidth_never_hurt() -> None:
    before: SearchResult | None = None
    for size in (10e9, 20e9, 24e9, 40e9, 80e9, 141e9):
        result = searched(asked(LLAMA, 64, 128, 4096, memory=size))
        if before:
            assert result.fitting >= before.fitting
            assert not before.best or (result.best and result.best.pace <= before.best.pace * (1 + 1e-6))
        before = result
    assert before
    assert before.best
    slower = before.best.pace
    for field in ("bandwidth", "interconnect_bandwidth", "network"):
        more = 2 * getattr(H100, field)
        device = replace(H100, memory_bytes=141e9, **{field: more})
        result = searched(replace(asked(LLAMA, 64, 128, 4096), cluster=Cluster(device, 64, 8)))
        assert result.best
        assert result.best.pace <= slower * (1 + 1e-6)


def test_what_a_plan_is_found_with_is_what_it_costs_alone() -> None:
    question = asked(MIXTRAL, 64, 256, 4096)
    result = searched(question)
    assert result.best
    assert 0.3 < result.best.mfu < 0.6
    for plan in (result.best, *result.pareto):
        assert plan
        check(MIXTRAL, plan.layout, 4096, 64)
        step = step_time(
            MIXTRAL,
            question.cluster,
            plan.layout,
            seq_len=4096,
            running=question.running,
            policy=MEGATRON,
            optimizer=ADAM,
        )
        memory = memory_per_device(MIXTRAL, plan.layout, policy=MEGATRON, optimizer=ADAM, seq_len=4096)
        assert plan.seconds == pytest.approx(step.total, rel=1e-12)
        assert plan.memory == memory
        assert plan.low < plan.seconds < plan.high
        assert plan.spare == plan.usable - memory.total >= 0
        assert plan.mfu == pytest.approx(result.best.mfu * result.best.pace / plan.pace, rel=1e-9)


def test_bound_is_the_largest_part_that_is_no_arithmetic() -> None:
    question = asked(MIXTRAL, 64, 256, 4096)
    result = searched(question, top=300)
    layout = result.plans.layout
    for i in range(0, 300, 37):
        item = Layout(**{field.name: int(getattr(layout, field.name)[i]) for field in fields(Layout)})
        step = step_time(
            MIXTRAL, question.cluster, item, seq_len=4096, running=question.running, policy=MEGATRON, optimizer=ADAM
        )
        parts = [getattr(step, part.name) for part in fields(step)]
        assert result.plans.bound[i] >= 3
        assert parts[result.plans.bound[i]] == max(parts[3:])


def test_a_group_of_own_size() -> None:
    result = searched(
        asked(LLAMA, 64, 128, 4096, constraints=Constraints(zero=3, shard_group=16, tensor=1, pipeline=1))
    )
    assert result.best
    assert result.best.layout.shard_group == 16
    assert np.all(result.plans.layout.shard_group == 16)


def test_tensor_parallel_ranks_stay_in_a_node_unless_they_are_let_out() -> None:
    inside, outside, pinned_out = (
        searched(asked(LLAMA, 64, 64, 4096, constraints=constraints), top=ALL)
        for constraints in (Constraints(), Constraints(tensor_in_node=False), Constraints(tensor=16))
    )
    assert inside.plans.layout.tensor.max() == 8
    assert outside.plans.layout.tensor.max() == 32
    assert outside.count > inside.count
    assert set(pinned_out.plans.layout.tensor) == {16}


def test_a_batch_that_no_micro_batch_meets_has_no_plan() -> None:
    result = searched(asked(DENSE, 64, 10, 4096, constraints=Constraints(micro_batch=8)))
    assert (result.count, result.fitting, result.best, result.nearest, result.pareto) == (0, 0, None, None, ())
    assert len(result.plans.seconds) == 0


def test_where_nothing_fits_the_nearest_is_the_one_that_holds_least() -> None:
    result = searched(asked(LLAMA, 8, 96, 4096, memory=5e9))
    assert result.best is None
    assert result.nearest
    assert float(result.nearest.memory.total) > 5e9
    more = searched(asked(LLAMA, 8, 96, 4096, memory=float(result.nearest.memory.total)))
    assert more.best
    assert more.best.layout == result.nearest.layout


def test_a_space_too_large_says_how_large_and_what_would_make_it_smaller() -> None:
    spec = CATALOG["DeepSeek-V3"].spec
    constraints = replace(EVERYTHING, expert_tensor=Range(1), tensor_in_node=False, micro_batch=tuple(range(1, 200)))
    with pytest.raises(SpaceError) as raised:
        searched(asked(spec, 720_720, 720_720, 55_440, constraints=constraints))
    error = raised.value
    assert error.count > error.most
    assert f"{error.count:,}" in str(error)
    assert error.left < error.count


def test_unknown_rates_are_said() -> None:
    question = asked(LLAMA, 16, 16, 4096)
    blind = replace(question, cluster=Cluster(replace(H100, network=math.nan), 16, 8))
    with pytest.raises(BudgetError, match="network"):
        searched(blind)
    with pytest.raises(BudgetError, match="fp4"):
        searched(replace(question, running=replace(question.running, dtype="fp4")))


@every("memory", [H100.memory_bytes, 1e9], ids=["some fit", "none fits"])
@every("dtype", DTYPES)
def test_a_format_in_which_no_step_is_timed_is_refused_by_name_whether_anything_fits_or_not(
    dtype: str, memory: float
) -> None:
    """On B200, which has a peak in each of them."""
    machine = cluster(replace(find("B200"), memory_bytes=memory), 8)
    running = Running(dtype)
    if dtype in BITS:
        assert (searched(SearchRequest(DENSE, machine, 16, 1024, running=running)).best is None) == (memory < 2e9)
        return
    with pytest.raises(BudgetError, match=f"for {dtype} ") as refused:
        searched(SearchRequest(DENSE, machine, 16, 1024, running=running))
    assert refused.value.field == "dtype"
    with pytest.raises(BudgetError, match=f"for {dtype} "):
        step_time(DENSE, machine, Layout(data=8), seq_len=1024, running=running)


@settings(max_examples=25)
@given(space=SPACES)
def test_neighbours(space: tuple[str, int, int, int]) -> None:
    name, accelerators, per_node, batch = space
    question = asked(SPECS[name], accelerators, batch, per_node=per_node)
    best = searched(question).best
    assume(best)
    assert best
    for neighbour in neighbours(best, question):
        assert neighbour.value != getattr(best.layout, neighbour.field)
        if neighbour.found is None:
            assert neighbour.rule
            assert not neighbour.fits
            continue
        layout = neighbour.found.layout
        assert getattr(layout, neighbour.field) == neighbour.value
        assert layout.accelerators <= accelerators
        assert layout.data * layout.micro_batch * layout.micro_batches <= batch * (1 + WINDOW)
        assert allowed(SPECS[name], layout, 2048, accelerators)


def test_a_neighbour_that_cannot_be_names_the_rule() -> None:
    question = asked(LLAMA, 60, 60, 4096, constraints=Constraints(tensor=4, pipeline=1, context=1, micro_batch=1))
    best = searched(question).best
    assert best
    table = {(neighbour.field, neighbour.value): neighbour for neighbour in neighbours(best, question)}
    broken = table["tensor", 5]
    assert broken.found is None
    assert "32" in broken.rule
    up = table["pipeline", 2].found
    assert up
    assert up.layout.data == 7


def test_layouts_of_a_neighbour_are_sound() -> None:
    question = asked(MIXTRAL, 64, 256, 4096)
    best = searched(question).best
    assert best
    for neighbour in neighbours(best, question):
        if neighbour.found:
            check(MIXTRAL, neighbour.found.layout, 4096, 64)
    with pytest.raises(LayoutError):
        check(MIXTRAL, replace(best.layout, tensor=3), 4096, 64)


def test_what_is_left_out_is_mixed_bf16_with_adamw() -> None:
    machine = cluster(H100, 16)
    policy = POLICIES["mixed bf16, fp32 master"]
    named = searched(SearchRequest(DENSE, machine, 64, 4096, policy=policy, optimizer=ADAM)).best
    assert searched(SearchRequest(DENSE, machine, 64, 4096)).best == named


def test_what_makes_no_search_or_step_is_refused_by_name() -> None:
    machine = cluster(H100, 16)
    with pytest.raises(BudgetError) as refused:
        SearchRequest(DENSE, machine, 0, 4096)
    assert refused.value.field == "batch"
    with pytest.raises(LayoutError) as broken:
        step_time(DENSE, machine, Layout(data=32), seq_len=4096)
    assert (broken.value.field, broken.value.example) == ("data", 16)
    with pytest.raises(LayoutError) as broken:
        memory_per_device(DENSE, Layout(), seq_len=-4096)
    assert (broken.value.field, broken.value.value) == ("seq_len", -4096)
