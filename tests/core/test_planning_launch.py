"""Launch lines: each system takes them as its own parser or reader has it, and keeps what the plan counts."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest

from core.hardware.accelerators import find
from core.hardware.cluster import cluster
from core.models.catalog import model_named
from core.planning.form.plan_form import plan_from
from core.planning.layout import search_request
from core.planning.presets import SEARCH_PRESETS
from core.search.fastest import searched
from core.search.launch import Launch, launches
from core.search.request import SearchRequest
from core.training.layout import LayerModule, Layout, Recompute, recomputation
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES, USUAL_POLICY, PrecisionPolicy
from tests.core import launch_reference as reference
from tests.every import every


def ids(line: Launch) -> set[str]:
    return {note.id.removeprefix("launch.") for note in line.notes}


def made(
    layout: Layout,
    policy: PrecisionPolicy = POLICIES[USUAL_POLICY],
    optimizer: str = "AdamW",
    model: str = "Llama 3.1 405B",
) -> dict[str, Launch]:
    many = cluster(find("H100 SXM"), 8)
    request = SearchRequest(model_named(model).spec, many, 1, 8192, policy, find_optimizer(optimizer))
    return {launch.system: launch for launch in launches(request, layout)}


@every("policy", POLICIES.values(), ids=lambda policy: policy.id)
@every("zero", range(4))
def test_megatron_keeps_what_the_plan_counts_or_the_line_says_what_else(zero: int, policy: PrecisionPolicy) -> None:
    line = made(Layout(data=8, micro_batches=4, zero=zero), policy)["Megatron-LM"]
    kept = reference.megatron_keeps(reference.megatron(line.text))
    copies = (policy.weights, policy.master, policy.gradients, policy.accumulation, policy.gradient_copy)
    wanted = [copy.name if copy else "none" for copy in copies]
    wanted += [each.name for each in (policy.multiplies, policy.state("exp_avg"), policy.state("exp_avg_sq"))]
    if kept[1] == "16 bits of fp32":
        assert "megatron.half_master" in ids(line)
        kept[1] = "fp32"
    assert (kept != wanted) == any(note.startswith("differs") for note in ids(line)), (kept, wanted, line)


@pytest.mark.parametrize(
    ("optimizer", "named"),
    [("Adam", None), ("AdamW", None), ("SGD momentum", "sgd"), ("SGD", "sgd"), ("Lion", "lion"), ("Muon", "muon")],
)
def test_megatron_gets_the_optimizer_of_the_plan(optimizer: str, named: str | None) -> None:
    for zero in range(4):
        line = made(Layout(data=8, zero=zero), optimizer=optimizer)["Megatron-LM"]
        fsdp = zero >= 2 and named in ("lion", "muon")
        assert reference.megatron(line.text).optimizer == ("adam" if fsdp else named or "adam")
        assert ("megatron.no_optimizer_fsdp" in ids(line)) == fsdp


@lru_cache
def plans() -> tuple[tuple[SearchRequest, Layout, tuple[Launch, ...]], ...]:
    """Layouts that searches found, from the fastest to the slowest, with their lines."""
    rows: list[tuple[SearchRequest, Layout, tuple[Launch, ...]]] = []
    for preset in SEARCH_PRESETS.values():
        query = search_request(plan_from(preset))
        result = searched(query)
        assert result.best is not None
        count = len(result.plans.seconds)
        for i in sorted({int(i * (count - 1) / 59) for i in range(60)}):
            layout = result.plans.at(i)
            rows.append((query, layout, launches(query, layout)))
    return tuple(rows)


def test_megatron_takes_the_plans_of_a_search() -> None:
    for query, layout, (line, _) in plans():
        read = reference.megatron(line.text)
        ends = read.account_for_embedding_in_pipeline_split + read.account_for_loss_in_pipeline_split
        uneven = (query.spec.layers + ends) % (layout.pipeline * layout.interleave)
        assert bool(uneven) == ("megatron.uneven" in ids(line))
        degrees = (read.tensor_model_parallel_size, read.pipeline_model_parallel_size, read.context_parallel_size)
        assert degrees == (layout.tensor, layout.pipeline, layout.context)
        assert (read.num_virtual_stages_per_pipeline_rank or 1) == layout.interleave
        assert (read.micro_batch_size, read.global_batch_size) == (
            layout.micro_batch,
            layout.data * layout.micro_batch * layout.micro_batches,
        )


def test_torchtitan_takes_the_plans_of_a_search() -> None:
    for query, layout, (_, line) in plans():
        by_name = reference.torchtitan(line.text)
        assert (
            by_name["TrainingConfig"]["num_tokens_per_train_step"]
            == layout.data * layout.micro_batch * layout.micro_batches * query.seq_len
        )
        parallel = by_name["ParallelismConfig"]
        degrees = [parallel[f"{kind}_parallel_degree"] for kind in ("tensor", "pipeline", "context")]
        assert degrees == [layout.tensor, layout.pipeline, layout.context]


@pytest.mark.parametrize("system", ["Megatron-LM", "torchtitan"])
def test_a_plan_that_a_program_rejects_has_a_reason_and_no_lines(system: str) -> None:
    line = made(Layout(context=3, data=2, micro_batches=2))[system]
    assert line.notes
    assert not line.text


@every(("expert", "split", "read"), [(1, 0, 4), (8, 0, 1), (4, 2, 2)])
def test_megatron_is_told_over_how_many_ranks_an_expert_is_split(expert: int, split: int, read: int) -> None:
    lines = made(Layout(tensor=4, data=8, expert=expert, expert_tensor=split), model="Mixtral 8x7B")
    assert reference.megatron(lines["Megatron-LM"].text).expert_tensor_parallel_size == read


@every(
    ("model", "recompute", "read"),
    [
        (
            "Llama 3.1 405B",
            recomputation(0, LayerModule.CORE_ATTN | LayerModule.MLP),
            ("selective", None, ["core_attn", "mlp"]),
        ),
        (
            "Mixtral 8x7B",
            recomputation(0, LayerModule.LAYERNORM | LayerModule.ACT),
            ("selective", None, ["layernorm", "moe_act"]),
        ),
        ("DeepSeek-V3", recomputation(0, LayerModule.MLA_UP_PROJ), ("selective", None, ["mla_up_proj"])),
        ("Llama 3.1 405B", recomputation(0, LayerModule.ACT), (None, None, None)),
        ("Llama 3.1 405B", recomputation(Recompute.FULL, layers=4), ("full", ("block", 4), None)),
        ("Llama 3.1 405B", recomputation(Recompute.FULL, layers=-2), ("full", ("uniform", 2), None)),
        ("Llama 3.1 405B", Recompute.SELECTIVE, ("selective", None, None)),
    ],
)
def test_megatron_is_told_what_is_recomputed(model: str, recompute: int, read: tuple[Any, ...]) -> None:
    lines = made(Layout(data=8, zero=1, recompute=recompute), model=model)
    a = reference.megatron(lines["Megatron-LM"].text)
    method = (a.recompute_method, a.recompute_num_layers) if a.recompute_method else None
    assert (a.recompute_granularity, method, a.recompute_modules) == read
    assert reference.torchtitan(lines["torchtitan"].text)


@every("context", [1, 2])
@every("zero", range(4))
@every("group", [0, 8])
def test_torchtitan_gets_all_data_parallel_ranks(context: int, zero: int, group: int) -> None:
    layout = Layout(tensor=2, context=context, data=16, zero=zero, shard_group=group, micro_batches=2)
    parallel = reference.torchtitan(made(layout)["torchtitan"].text)["ParallelismConfig"]
    assert parallel["data_parallel_replicate_degree"] * parallel["data_parallel_shard_degree"] == 16
