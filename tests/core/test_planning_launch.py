"""Launch lines: each system takes them as its own parser or reader has it, and keeps what the plan counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

import pytest

from core.models.catalog import model_named
from core.planning.form.plan_form import plan_from
from core.planning.plan_search import launch_settings, search_layouts
from core.planning.presets import SEARCH_PRESETS
from core.planning.resolved_layout import search_request
from core.search.filter import layout_at
from core.search.launch import Launch, launches
from core.search.request import SearchRequest
from core.training.custom_policy import OwnPolicy, own_like
from core.training.layout import LayerModule, Layout, Recompute, recomputation
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES, USUAL_POLICY, PrecisionPolicy
from tests.core import launch_reference as reference
from tests.core.launch_reference import RefusedError, kept
from tests.every import every

SYSTEMS = ("Megatron-LM", "torchtitan")
OTHERWISE = "Not as the plan counts it"
MEGATRON = "mixed bf16, fp32 master, fp32 gradients"
FULL = Layout(tensor=8, pipeline=16, interleave=8, data=128, micro_batches=16, zero=1, sequence_parallel=1, recompute=1)


def made(
    layout: Layout,
    policy: PrecisionPolicy = POLICIES[USUAL_POLICY],
    optimizer: str = "AdamW",
    dtype: str = "bf16",
    model: str = "Llama 3.1 405B",
) -> dict[str, Launch]:
    spec, how = model_named(model).spec, find_optimizer(optimizer)
    result = launches(spec, layout, seq_len=8192, dtype=dtype, overlap=True, policy=policy, optimizer=how)
    return {launch.system: launch for launch in result}


# ------------------------------------------------------------------------------------------ precision


@dataclass(frozen=True)
class Case:
    """A precision under which a plan is launched."""

    policy: PrecisionPolicy
    dtype: str
    zero: int
    offload: int
    optimizer: str = "AdamW"

    @property
    def layout(self) -> Layout:
        return Layout(data=8, micro_batches=4, zero=self.zero, offload=self.offload)

    @property
    def lines(self) -> dict[str, Launch]:
        return made(self.layout, self.policy, self.optimizer, self.dtype, "Llama 3.1 8B")

    @property
    def wanted(self) -> dict[str, str]:
        """The types of the plan, read off its policy."""
        p = self.policy
        types = kept(
            p.weights.name,
            p.master.name if p.master else "none",
            p.gradients.name,
            p.accumulation.name if p.accumulation else "none",
            p.gradient_copy.name if p.gradient_copy else "none",
            p.multiplies.name,
            p.state("exp_avg").name,
            p.state("exp_avg_sq").name,
        )
        if self.dtype == "fp16":  # as on accelerators without bf16
            parts = ("weights", "gradients", "accumulation", "products")
            types |= {part: "fp16" for part in parts if types[part] == "bf16"}
        return types | ({"products": "fp8"} if self.dtype == "fp8" else {})


def own(**types: str) -> PrecisionPolicy:
    """Megatron-LM's usual precision with other types."""
    usual = own_like(POLICIES[MEGATRON], find_optimizer("AdamW"))
    return replace(usual, **types).under(find_optimizer("AdamW"))  # pyright: ignore[reportArgumentType]


OWN = (
    own(gradients="bf16", gradient_copy="fp32"),
    own(gradients="bf16", states=("bf16", "fp16", "fp32")),
    own(master="fp16", states=("fp16", "fp16", "fp16")),
    own(master="none", weights="fp16", gradients="fp16"),
    own(master="bf16", gradients="bf16", states=("bf16", "bf16", "bf16")),
    OwnPolicy(weights="fp32", master="none", gradients="fp32", multiplies="fp16").under(find_optimizer("AdamW")),
)
CASES = tuple(
    Case(policy, dtype, zero, offload)
    for policy, dtype, zero in product((*POLICIES.values(), *OWN), ("bf16", "fp16", "fp8"), range(4))
    for offload in range((1, 2, 2, 3)[zero])
)


KEEPS: Mapping[str, Callable[[Case], dict[str, str]]] = {
    "Megatron-LM": lambda case: reference.megatron_keeps(reference.megatron(case.lines["Megatron-LM"].text)),
    "torchtitan": lambda case: reference.torchtitan_keeps(reference.torchtitan(case.lines["torchtitan"].text)),
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_keeps_what_the_plan_counts_or_the_line_says_what_else(system: str) -> None:
    same = 0
    for case in CASES:
        line, by_name, wanted = case.lines[system], KEEPS[system](case), case.wanted
        notes = " ".join(line.notes)
        if by_name["master"] == "16 bits of fp32":
            assert "2 bytes a parameter less" in notes
            by_name = by_name | {"master": "fp32"}
        if system == "torchtitan" and wanted["weights"] != "fp32" and wanted["master"] != "none":
            # One copy, which is the master; what is cast from it is the weights.
            by_name = by_name | (
                {"weights": by_name["products"], "master": "fp32"} if by_name["weights"] == "fp32" else {}
            )
            if by_name["weights"] == "bf16" and case.zero == 3 and by_name["master"] == "fp32":
                assert "2 bytes a parameter less" in notes
        if wanted["products"] == "fp8" and system != "Megatron-LM":
            assert "Matrix products in fp8" in notes
            by_name = by_name | {"products": "fp8"}
        assert (by_name != wanted) == (OTHERWISE in notes), (case, by_name, wanted, line)
        for part, what in (("gradients", "gradients in"), ("weights", "weights in")):
            if by_name[part] != wanted[part]:
                assert f"{what} {by_name[part]}, not {wanted[part]}" in notes, (case, by_name, wanted, line)
        same += by_name == wanted
    assert same >= len(CASES) / 20


@pytest.mark.parametrize("zero", [1, 2, 3])
@pytest.mark.parametrize("policy", [USUAL_POLICY, MEGATRON])
def test_megatron_accumulates_gradients_in_the_type_that_memory_counts(policy: str, zero: int) -> None:
    case = Case(POLICIES[policy], "bf16", zero, 0)
    by_name = KEEPS["Megatron-LM"](case)
    assert by_name["gradients"] == POLICIES[policy].gradients.name
    assert reference.megatron_keeps(reference.megatron("--bf16"))["gradients"] == "fp32", "which nobody had asked for"
    if policy == MEGATRON or zero == 1:
        assert not any(OTHERWISE in note for note in case.lines["Megatron-LM"].notes)


def test_what_differs_comes_to_the_bytes_that_are_said() -> None:
    """fp32 gradients in place of bf16 ones are 2 bytes, a copy of them 4."""
    (note,) = (n for n in Case(POLICIES[USUAL_POLICY], "bf16", 0, 0).lines["Megatron-LM"].notes if OTHERWISE in n)
    assert "a copy of gradients for the optimizer in fp32, which the plan has none of; 4 bytes a parameter more" in note
    (note,) = (n for n in Case(POLICIES[USUAL_POLICY], "bf16", 3, 0).lines["torchtitan"].notes if OTHERWISE in n)
    assert "gradients in fp32, not bf16; 2 bytes a parameter more" in note


@pytest.mark.parametrize(
    ("optimizer", "named"),
    [("Adam", None), ("AdamW", None), ("SGD momentum", "sgd"), ("SGD", "sgd"), ("Lion", "lion"), ("Muon", "muon")],
)
def test_megatron_gets_the_optimizer_of_the_plan(optimizer: str, named: str | None) -> None:
    for zero, (name, policy) in product(range(4), POLICIES.items()):
        line = made(Layout(data=8, zero=zero), policy, optimizer)["Megatron-LM"]
        read = reference.megatron(line.text)
        fsdp = zero >= 2 and named in ("lion", "muon")
        assert read.optimizer == ("adam" if fsdp else named or "adam"), name
        assert any(f"no {optimizer}" in note for note in line.notes) == fsdp
    without = made(Layout(data=8, zero=1), optimizer="Adafactor")["Megatron-LM"]
    assert any("It has no Adafactor" in note for note in without.notes)


# ------------------------------------------------------------------------------------------ layouts


@lru_cache
def plans() -> tuple[tuple[SearchRequest, Layout, tuple[Launch, ...]], ...]:
    """Layouts that searches found, from the fastest to the slowest, with their lines."""
    rows: list[tuple[SearchRequest, Layout, tuple[Launch, ...]]] = []
    for preset in SEARCH_PRESETS.values():
        query = search_request(plan_from(preset))
        result = search_layouts(query)
        assert result.best is not None
        count = len(result.plans.seconds)
        for i in sorted({int(i * (count - 1) / 59) for i in range(60)}):
            layout = layout_at(result.plans, i)
            rows.append((query, layout, launch_settings(query, replace(result.best, layout=layout))))
    return tuple(rows)


def test_megatron_takes_the_plans_of_a_search() -> None:
    for query, layout, (line, _) in plans():
        read = reference.megatron(line.text)
        ends = read.account_for_embedding_in_pipeline_split + read.account_for_loss_in_pipeline_split
        uneven = (query.spec.layers + ends) % (layout.pipeline * layout.interleave)
        assert bool(uneven) == any("do not divide into" in note for note in line.notes)
        degrees = (read.tensor_model_parallel_size, read.pipeline_model_parallel_size, read.context_parallel_size)
        assert degrees == (layout.tensor, layout.pipeline, layout.context)
        assert read.global_batch_size == query.batch


def test_torchtitan_takes_the_plans_of_a_search() -> None:
    for query, layout, (_, line) in plans():
        by_name = reference.torchtitan(line.text)
        assert by_name["TrainingConfig"]["num_tokens_per_train_step"] == query.batch * query.seq_len
        if layout.pipeline == 1:
            continue
        chunks = layout.pipeline * layout.interleave
        try:
            shares = reference.torchtitan_stages(by_name["ParallelismConfig"], query.spec.layers)
        except RefusedError:
            assert any("module_fqns_per_model_part" in note for note in line.notes)
        else:
            assert (len(shares), sum(shares)) == (chunks, query.spec.layers)
            assert max(shares) == math.ceil(query.spec.layers / chunks), "as much as the plan gives the fullest"


@pytest.mark.parametrize(
    ("layout", "system", "text"),
    [
        (Layout(context=3, data=2, micro_batches=2), "Megatron-LM", "twice the context-parallel degree"),
        (Layout(context=3, data=2, micro_batches=2), "torchtitan", "do not divide by 6"),
    ],
)
def test_a_plan_that_a_program_rejects_has_a_reason_and_no_lines(layout: Layout, system: str, text: str) -> None:
    line = made(layout)[system]
    assert text in line.notes[0]
    assert not line.text


def test_launch_lines_say_the_whole_layout() -> None:
    megatron, titan = made(FULL).values()
    flags = dict(part.lstrip("-").partition(" ")[::2] for part in megatron.text.split(" \\\n"))
    assert flags["tensor-model-parallel-size"] == "8"
    assert flags["num-virtual-stages-per-pipeline-rank"] == "8"
    assert flags["global-batch-size"] == "2048"
    assert {"use-distributed-optimizer", "sequence-parallel", "overlap-param-gather", "bf16"} <= flags.keys()
    assert "account-for-loss-in-pipeline-split" in flags, "126 layers and two ends are 128 chunks"
    assert "tensor_parallel_degree=8" in titan.text
    assert any("ZeRO-1" in note for note in titan.notes)
    compile(f"dict({titan.text.rstrip(',')})", "titan", "exec")


@pytest.mark.parametrize(
    ("layout", "system", "text"),
    [
        (replace(FULL, zero=3), "Megatron-LM", "not known"),
        (replace(FULL, pipeline=12, interleave=1), "Megatron-LM", "do not divide"),
        (replace(FULL, offload=1), "torchtitan", "parameters and gradients"),
        (replace(FULL, pipeline=1, interleave=1, zero=3, offload=2), "Megatron-LM", "optimizer alone"),
        (replace(FULL, recompute=3), "Megatron-LM", "single matrix products"),
    ],
)
def test_what_a_system_cannot_do_is_said(layout: Layout, system: str, text: str) -> None:
    line = made(layout)[system]
    assert any(text in note for note in line.notes), line.notes


@every(("expert", "split", "read"), [(1, 0, 4), (8, 0, 1), (4, 2, 2)])
def test_over_how_many_ranks_an_expert_is_split_is_said(expert: int, split: int, read: int) -> None:
    lines = made(Layout(tensor=4, data=8, expert=expert, expert_tensor=split), model="Mixtral 8x7B")
    assert reference.megatron(lines["Megatron-LM"].text).expert_tensor_parallel_size == read
    assert any("one expert is split" in note for note in lines["torchtitan"].notes) == bool(split)


@pytest.mark.parametrize(
    ("model", "recompute", "read", "note"),
    [
        (
            "Llama 3.1 405B",
            recomputation(0, LayerModule.CORE | LayerModule.NETWORK),
            ("selective", None, ["core_attn", "mlp"]),
            "",
        ),
        (
            "Mixtral 8x7B",
            recomputation(0, LayerModule.NORMS | LayerModule.ACTIVATION),
            ("selective", None, ["layernorm", "moe_act"]),
            "",
        ),
        ("DeepSeek-V3", recomputation(0, LayerModule.UP_PROJECTION), ("selective", None, ["mla_up_proj"]), ""),
        ("Llama 3.1 405B", recomputation(0, LayerModule.ACTIVATION), (None, None, None), "experts alone"),
        (
            "Llama 3.1 405B",
            recomputation(0, LayerModule.NORMS, 2),
            ("selective", None, ["layernorm"]),
            "in every layer",
        ),
        ("Llama 3.1 405B", recomputation(Recompute.FULL, layers=4), ("full", ("block", 4), None), ""),
        ("Llama 3.1 405B", recomputation(Recompute.FULL, layers=-2), ("full", ("uniform", 2), None), ""),
        ("Llama 3.1 405B", Recompute.SELECTIVE, ("selective", None, None), "layernorm"),
    ],
)
def test_what_is_recomputed_is_said(model: str, recompute: int, read: tuple[Any, ...], note: str) -> None:
    lines = made(Layout(data=8, zero=1, recompute=recompute), model=model)
    a = reference.megatron(lines["Megatron-LM"].text)
    method = (a.recompute_method, a.recompute_num_layers) if a.recompute_method else None
    assert (a.recompute_granularity, method, a.recompute_modules) == read
    assert note in " ".join(lines["Megatron-LM"].notes)
    assert reference.torchtitan(lines["torchtitan"].text)
    assert "recompute" in " ".join(lines["torchtitan"].notes)


@every("context", [1, 2])
@every("zero", range(4))
@every("group", [0, 8])
def test_torchtitan_gets_all_data_parallel_ranks(context: int, zero: int, group: int) -> None:
    layout = Layout(tensor=2, context=context, data=16, zero=zero, shard_group=group, micro_batches=2)
    text = made(layout)["torchtitan"].text
    numbers = {
        name.strip(): int(value.rstrip(","))
        for name, _, value in (row.partition("=") for row in text.splitlines())
        if value.rstrip(",").lstrip("-").isdigit()
    }
    assert numbers["data_parallel_replicate_degree"] * numbers["data_parallel_shard_degree"] == 16
