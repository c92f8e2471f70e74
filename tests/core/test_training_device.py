"""Memory of one accelerator under a layout: published figures, and laws that hold of every layout."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace

import numpy as np
import pytest

from core.models.catalog import CATALOG
from core.models.parameters import parameters
from core.models.spec import AttentionLayers, CompressedAttention, Indexer, SlidingWindow, TransformerSpec
from core.training.activations.stage import StepSettings, layer_activation_bytes
from core.training.activations.tensors import FUSED, HF_SDPA, IMPLEMENTATIONS, LOGITS_KEPT, Implementation, Loss
from core.training.device.buffers import TENSORS_ONLY, Runtime
from core.training.device.inputs import states_of
from core.training.device.memory import DeviceMemory, bytes_over, memory_over, rank_of
from core.training.device.traffic import sent_widths, traffic_per_step
from core.training.layout import Layout, LayoutError, Recompute, allowed, check, degrees_of
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES, PrecisionPolicy
from tests.core.memory_of import memory_per_device
from tests.every import every

ZERO_PAPER = POLICIES["mixed bf16, fp32 master"]
MEGATRON = POLICIES["mixed bf16, fp32 master, fp32 gradients"]
BOTH = POLICIES["mixed fp16, fp32 copies of both"]
LLAMA = CATALOG["Llama 3.1 8B"].spec
MIXTRAL = CATALOG["Mixtral 8x7B"].spec


def first(found: object) -> float:
    """The one number of an array, or of the first stage."""
    return float(np.ravel(found)[0])


@every("data", [1, 2, 8, 64])
@every(("policy", "alone", "kept", "shared"), [(BOTH, 20, 4, 16), (MEGATRON, 18, 6, 12), (POLICIES["fp32"], 16, 8, 8)])
def test_megatrons_table_of_bytes_per_parameter(
    policy: PrecisionPolicy, alone: int, kept: int, shared: int, data: int
) -> None:
    """Megatron Core's documentation of the distributed optimizer: without it, and with it."""
    n = parameters(LLAMA).total
    for zero, each in ((0, alone), (1, kept + shared / data)):
        found = memory_per_device(LLAMA, Layout(data=data, zero=zero), policy=policy, seq_len=1024)
        assert found.states == pytest.approx(each * n, rel=1e-12)


@pytest.mark.parametrize("gpus", [1, 4, 16])
def test_deepspeeds_estimators(gpus: int) -> None:
    """ZeRO-2: 2N + 18N / gpus, and 2N with its optimizer offloaded. ZeRO-3: 18N / gpus beside the gathered layer."""
    n = parameters(LLAMA).total

    def held(layout: Layout, policy: str) -> DeviceMemory:
        return memory_per_device(LLAMA, layout, policy=POLICIES[policy], seq_len=1024)

    assert held(Layout(data=gpus, zero=2), BOTH.id).states == pytest.approx(2 * n + 18 * n / gpus)
    assert held(Layout(data=gpus, zero=2, offload=1), BOTH.id).states == pytest.approx(2 * n)
    assert held(Layout(data=gpus, zero=3), MEGATRON.id).states == pytest.approx(18 * n / gpus)


LLAMA_3B = TransformerSpec(
    layers=28, hidden=3072, heads=24, kv_heads=8, head_dim=128, ffn=8192, vocab=128_256, glu=True, tied_head=True
)
STEPS: dict[str, tuple[Layout, int, Implementation, Loss, float, float]] = {
    # Peak of active memory, GiB: pytorch/torchtune@bd2a0fc README.md, “Optimization flags”, each on top of the one
    # before. Logits are made outside of what is compiled, and the chunks of the loss are those of its fp32 copies.
    "packed": (Layout(micro_batch=2), 4096, HF_SDPA, "separate", 60.0 * 2**30, 0.0),
    "compiled": (Layout(micro_batch=2), 4096, FUSED, "separate", 51.0 * 2**30, 0.0),
    "loss in chunks": (Layout(micro_batch=2), 4096, FUSED, "fused", 42.9 * 2**30, 0.0),
    "checkpointed": (Layout(micro_batch=2, recompute=2), 4096, FUSED, "fused", 24.9 * 2**30, 0.0),
    # Most that was reserved, of up to 768 tokens a sample: huggingface/peft@5d602fd method_comparison/MetaMathQA/
    # results/full-finetuning--llama-3.2-3B-lr_0.00001.json.
    "PEFT, all weights": (Layout(micro_batch=4), 768, HF_SDPA, LOGITS_KEPT, 38_868_615_168, 0.03),
}
"""Steps of Llama 3.2 3B with all weights trained in bf16 under AdamW on one accelerator, no gradients accumulated:
layout, sequence length, how layers and loss are written, bytes printed, and the share that the reading has on top."""


@pytest.mark.parametrize("name", STEPS)
def test_published_steps_on_one_accelerator(name: str) -> None:
    """All would be 5 to 18 % too high with gradients and logits counted together."""
    layout, seq_len, how, loss, printed, slack = STEPS[name]
    found = memory_per_device(
        LLAMA_3B,
        layout,
        policy=POLICIES["bf16 throughout"],
        seq_len=seq_len,
        implementation=how,
        loss=loss,
        runtime=Runtime(context=0.0, communicator=0.0, slack=slack),
    )
    assert found.total == pytest.approx(printed, rel=0.045)


def laid(spec: TransformerSpec, draw: np.random.Generator, count: int) -> list[Layout]:
    """Random layouts that ``spec`` allows."""
    found: list[Layout] = []
    while len(found) < count:
        some = Layout(
            tensor=int(draw.choice([1, 2, 4, 8, 16])),
            pipeline=int(draw.integers(1, 9)),
            interleave=int(draw.integers(1, 4)),
            context=int(draw.choice([1, 2, 4])),
            expert=int(draw.choice([1, 2, 4, 8])),
            expert_tensor=int(draw.choice([0, 0, 1, 2, 4])) if spec.experts else 0,
            data=int(draw.choice([1, 2, 3, 8, 32])),
            micro_batch=int(draw.integers(1, 5)),
            micro_batches=int(draw.integers(1, 20)),
            zero=int(draw.integers(0, 4)),
            shard_group=int(draw.choice([0, 0, 1, 2])),
            sequence_parallel=int(draw.integers(0, 2)),
            recompute=int(draw.integers(0, 4)),
            offload=int(draw.integers(0, 2)),
        )
        if allowed(spec, some, 4096):
            found.append(some)
    return found


MODELS = ("Llama 3.1 8B", "Mixtral 8x7B", "DeepSeek-V3", "GPT-2 124M", "Gemma 3 12B text decoder", "gpt-oss 20B")
WHOLE = {"norms", "inner_norms", "router", "shared_gate"}


@pytest.mark.parametrize("name", MODELS)
def test_the_ranks_of_a_model_hold_it_once(name: str) -> None:
    """Over all stages and ranks the parameters are the model's, but for what is whole on each tensor-parallel rank."""
    old = CATALOG[name].spec
    plain = {"attention_bias": False, "output_bias": False, "ffn_bias": False, "position_rows": 0, "positions": ""}
    spec = replace(old, kv_heads=old.heads, mtp_modules=0, tied_head=False, latent=None, qk_norm="none", **plain)
    parts = {part.id: part.total for part in parameters(spec).components}
    experts = parts.pop("experts", 0)
    repeated = sum(size for part, size in parts.items() if part in WHOLE)
    for layout in laid(spec, np.random.default_rng(1), 30):
        t, ways = int(layout.tensor), int(layout.expert_ranks)
        stages, rank = rank_of(spec, degrees_of(layout), tuple(range(int(layout.pipeline))))
        assert stages.layers.sum() == spec.layers
        assert np.ptp(stages.layers) <= 1
        assert stages.moe_layers.sum() == spec.moe_layers
        assert t * np.sum(rank.dense) == pytest.approx(sum(parts.values()) + (t - 1) * repeated, rel=1e-12)
        assert ways * np.sum(rank.experts) == pytest.approx(experts, rel=1e-12)


@every("name", list(CATALOG))
def test_one_rank_holds_the_model(name: str) -> None:
    spec = CATALOG[name].spec
    _, rank = rank_of(spec, degrees_of(Layout()), ("first",))
    assert first(rank.total) == pytest.approx(parameters(spec).total, rel=1e-12)


def account(spec: TransformerSpec, layout: Layout, **more: object) -> DeviceMemory:
    given: dict = {"policy": MEGATRON, "seq_len": 4096, **more}
    return memory_per_device(spec, layout, **given)


@pytest.mark.parametrize("name", MODELS)
def test_the_fullest_stage_is_the_fullest_of_all(name: str) -> None:
    spec = CATALOG[name].spec
    for layout in laid(spec, np.random.default_rng(2), 25):
        each = [account(spec, layout, stage=i).total for i in range(int(layout.pipeline))]
        found = account(spec, layout)
        assert found.total == pytest.approx(max(each), rel=1e-12)
        assert found.total == pytest.approx(each[int(found.stage)], rel=1e-12)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("most", [1, 40, 10**6])
def test_axes_of_their_own_give_what_single_layouts_give(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Degrees along the last axis, choices along others, however the points are cut into pieces."""
    spec = CATALOG[name].spec
    monkeypatch.setattr("core.training.device.memory._PIECE", most)
    monkeypatch.setattr("core.training.device.memory._MANY", most)
    many = Layout(
        tensor=np.array([1, 2, 4, 2]),
        pipeline=np.array([1, 4, 2, 3]),
        interleave=np.array([1, 2, 1, 1]),
        data=np.array([8, 1, 2, 3]),
        micro_batch=np.array([1, 3]).reshape(2, 1, 1, 1),
        micro_batches=np.array([[12, 96, 48, 32], [4, 32, 16, 1]]).reshape(2, 1, 1, 4),
        zero=np.arange(4).reshape(4, 1, 1),
        recompute=np.arange(3).reshape(3, 1),
        sequence_parallel=1,
    )
    policy = {"policy": MEGATRON, "optimizer": find_optimizer("Muon"), "seq_len": 2048}
    states, step = states_of(find_optimizer("Muon"), MEGATRON, spec), StepSettings(2048)
    found, totals = memory_over(spec, many, states, step), bytes_over(spec, many, states, step)
    assert totals.shape == found.total.shape == (2, 4, 3, 4)
    assert np.array_equal(totals, found.total)
    spread = {one.name: np.broadcast_to(getattr(many, one.name), totals.shape) for one in fields(Layout)}
    draw = np.random.default_rng(5)
    for at in zip(*(draw.integers(0, n, 12) for n in totals.shape), strict=True):
        one = Layout(**{name: int(values[at]) for name, values in spread.items()})
        if not allowed(spec, one, 2048):
            continue
        alone = memory_per_device(spec, one, **policy)
        for part in fields(DeviceMemory):
            assert getattr(found, part.name)[at] == getattr(alone, part.name), part.name


@pytest.mark.parametrize("name", MODELS)
def test_laws(name: str) -> None:
    """More sequences, longer ones, and more experts at work never take less; more sharding never takes more."""
    spec = CATALOG[name].spec
    for layout in laid(spec, np.random.default_rng(4), 25):
        plain = replace(layout, shard_group=0)
        here = account(spec, plain)
        assert account(spec, replace(plain, micro_batch=layout.micro_batch + 1)).total > here.total
        assert account(spec, plain, seq_len=8192).total > here.total
        stages = [account(spec, replace(plain, zero=zero)) for zero in range(4)]
        # ZeRO-3 holds all weights of a stage gathered where there is a pipeline.
        ladder = stages if layout.pipeline == 1 else stages[:3]
        for less, more in itertools.pairwise(ladder):
            assert more.total <= less.total * (1 + 1e-12)
        for less, more in itertools.pairwise(stages):
            assert more.states <= less.states * (1 + 1e-12)


LEAN = ("mixed bf16, fp32 master", "bf16 throughout", "fp32", "fp32, bf16 autocast", MEGATRON.id)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("how", IMPLEMENTATIONS.values(), ids=lambda how: how.id)
@pytest.mark.parametrize("name", MODELS)
def test_more_of_what_saves_memory_never_takes_more(name: str, how: Implementation) -> None:
    """More data parallel, more recomputation, more tensor parallel, offload; in bytes of tensors.

    Groups that begin to exchange have buffers, and ranks among which ZeRO-3 begins to shard gather what they share.
    """
    spec, draw = CATALOG[name].spec, np.random.default_rng(11)
    for layout in laid(spec, draw, 40):
        policy, optimizer = POLICIES[str(draw.choice(LEAN))], find_optimizer(str(draw.choice(["AdamW", "SGD"])))
        plain = replace(layout, shard_group=0, recompute=int(draw.choice([0, 1, 2])))

        def total(changed: Layout, policy: object = policy, optimizer: object = optimizer) -> float:
            given: dict = {"policy": policy, "optimizer": optimizer, "implementation": how, "runtime": TENSORS_ONLY}
            return float(account(spec, changed, **given).total)

        most = total(plain) * (1 + 1e-12)
        more = replace(plain, data=2 * plain.data)
        shards = degrees_of(plain).shards, degrees_of(plain).expert_shards
        if plain.zero < 3 or min(shards) > 1:
            assert total(more) <= most
            wider = replace(plain, tensor=2 * plain.tensor)
            if allowed(spec, wider, 4096):
                assert total(wider) <= most
        assert total(replace(plain, recompute=2)) <= most
        if not plain.recompute:
            assert total(replace(plain, recompute=1)) <= most
        if plain.zero < 3:
            assert total(replace(plain, offload=1)) <= most


KINDS = TransformerSpec(4, 512, 8, 8, 64, 1536, 1000, glu=True, tied_head=False)
"""Eight heads of each kind; with `FEWER` half of the layers have two key/value heads."""
FEWER = AttentionLayers(2, 8, 2, 64)


@pytest.mark.parametrize("tensor", [1, 2, 4, 8])
@pytest.mark.parametrize("recompute", [Recompute.NONE, Recompute.PER_OPERATION])
def test_each_kind_of_attention_has_its_own_key_value_heads(tensor: int, recompute: Recompute) -> None:
    """A rank of a model of two kinds holds and keeps the mean of models of either."""
    layout = Layout(tensor=tensor, recompute=recompute)
    both, many, few = (
        memory_per_device(spec, layout, seq_len=64, implementation=FUSED)
        for spec in (replace(KINDS, others=(FEWER,)), KINDS, replace(KINDS, kv_heads=2))
    )
    assert both.parameters == pytest.approx((many.parameters + few.parameters) / 2)
    assert both.activations == pytest.approx((many.activations + few.activations) / 2)


def test_ranks_share_the_heads_of_every_kind_of_attention() -> None:
    with pytest.raises(LayoutError) as refused:
        check(replace(KINDS, others=(AttentionLayers(2, 6, 2, 64),)), Layout(tensor=4), 64)
    assert (refused.value.field, refused.value.example) == ("tensor", 2)


def test_stages_hand_on_every_residual_stream() -> None:
    """Four streams are four times the bytes between stages, and a layer that is done again starts from all of them."""
    one, four = KINDS, replace(KINDS, streams=4)
    layout = Layout(tensor=2, pipeline=2, context=2, recompute=Recompute.FULL)
    sent = [traffic_per_step(spec, layout, policy=MEGATRON, seq_len=64) for spec in (one, four)]
    assert sent[1].pipeline == 4 * sent[0].pipeline
    assert (sent[1].tensor, sent[1].context) == (sent[0].tensor, sent[0].context)
    kept = [layer_activation_bytes(spec, layout, StepSettings(64, FUSED)) for spec in (one, four)]
    assert kept[1] == 4 * kept[0]


def test_context_parallel_ranks_pass_one_entry_for_several_tokens() -> None:
    """Each token's key in a window; for 4 and for 128 tokens one entry, and with the indexer a key of its own."""
    low = CompressedAttention(64, 2, 32, sparse=1, heavy=2)
    spec = replace(KINDS, kv_heads=1, window=SlidingWindow(16), indexer=Indexer(4, 32, 8), compressed=low)
    assert sent_widths(spec).kept.on(1) == pytest.approx((4 * 64 + (64 + 32) / 4 + 2 * 64 / 128) / 4)


def test_zero_2_sends_its_gradients_bucket_by_bucket() -> None:
    """DeepSpeed's reduce_bucket_size is in parameters; ZeRO-1 reduces all at once, after the last micro-batch."""

    def total(zero: int, bucket: float) -> float:
        runtime = replace(TENSORS_ONLY, bucket=bucket)
        layout = Layout(data=8, zero=zero)  # of sequences so short that nothing else is in the way
        return float(account(LLAMA, layout, policy=ZERO_PAPER, runtime=runtime, seq_len=8).total)

    assert total(2, 3e8) - total(2, 1e8) == pytest.approx(2e8 * 2)
    assert total(1, 3e8) == total(1, 1e8)


@every("offload", [0, 1])
@every("pipeline", [1, 8])
@every("name", ["GPT-3 175B", "Llama 3.1 8B", "Mixtral 8x7B"])
def test_gradients_are_whole_until_they_are_reduced_wherever_they_go(name: str, pipeline: int, offload: int) -> None:
    """ZeRO-2 with a pipeline: what a rank keeps and what it has not reduced yet are all its gradients, and those that
    go to the host go there afterwards."""
    spec = CATALOG[name].spec
    one = Layout(pipeline=pipeline, micro_batches=4 * pipeline, zero=2, offload=offload)
    held = [account(spec, replace(one, data=data), policy=ZERO_PAPER, stage="first") for data in (2, 4, 8, 64)]
    gradients = [one.gradients + one.buckets for one in held]
    assert all(more <= less * (1 + 1e-12) for less, more in itertools.pairwise(gradients))
    _, rank = rank_of(spec, degrees_of(one), ("first",))
    if pipeline > 1:
        assert gradients == pytest.approx([2 * first(rank.total)] * 4)


def test_an_expert_is_split_as_asked_and_else_as_usual() -> None:
    """What is usual is the same said outright; ranks that split an expert hold less of it, and gather each other's
    tokens; however it is split, all ranks together hold the same states."""
    narrow = Layout(tensor=4, data=8, zero=1, sequence_parallel=1)
    for usual, same in ((replace(narrow, expert=8), 1), (narrow, 4)):
        assert account(MIXTRAL, replace(usual, expert_tensor=same)) == account(MIXTRAL, usual)
    spread = replace(narrow, expert=4)
    held = {split: account(MIXTRAL, replace(spread, expert_tensor=split)) for split in (1, 2, 4)}
    _, one = rank_of(MIXTRAL, degrees_of(spread), ("first",))
    for split, found in held.items():
        layout = degrees_of(replace(spread, expert_tensor=split))
        _, rank = rank_of(MIXTRAL, layout, ("first",))
        assert first(rank.dense) == first(one.dense)
        assert first(rank.experts) * split == pytest.approx(first(one.experts), rel=1e-12)
        assert layout.expert_shards * layout.expert_ranks == layout.shards * layout.tensor
        assert found.optimizer_state == pytest.approx(held[1].optimizer_state, rel=1e-12)
    assert held[1].parameters > held[2].parameters > held[4].parameters
    assert held[1].activations < held[2].activations < held[4].activations
    traffic = [
        traffic_per_step(MIXTRAL, replace(spread, expert_tensor=split), policy=MEGATRON, seq_len=4096) for split in held
    ]
    assert [item.expert for item in traffic] == [traffic[0].expert] * 3
    assert traffic[0].tensor < traffic[1].tensor < traffic[2].tensor
    with pytest.raises(LayoutError, match="expert tensor = 4") as caught:
        check(MIXTRAL, replace(narrow, data=2, expert=4, expert_tensor=4), 4096)
    assert caught.value.example == 2


@every(
    ("layout", "field", "example"),
    [
        (Layout(tensor=3), "tensor", 2),
        (Layout(tensor=0), "tensor", 1),
        (Layout(pipeline=33), "pipeline", 32),
        (Layout(interleave=2), "interleave", 1),
        (Layout(pipeline=8, interleave=5), "interleave", 4),
        (Layout(expert=2, data=2), "expert", 1),
        (Layout(expert_tensor=2, data=2), "expert_tensor", 1),
        (Layout(context=3, data=3), "context", 2),
        (Layout(data=8, shard_group=3), "shard_group", 2),
        (Layout(zero=4), "zero", 3),
        (Layout(data=32), "data", 16),
    ],
)
def test_layouts_that_cannot_be(layout: Layout, field: str, example: int) -> None:
    with pytest.raises(LayoutError) as caught:
        check(LLAMA, layout, 4096, accelerators=16 if field == "data" else None)
    assert caught.value.field == field
    assert caught.value.example == example
    assert str(caught.value.value) in str(caught.value)
    # The example is one that would do.
    check(LLAMA, replace(layout, **{field: example}), 4096, accelerators=16 if field == "data" else None)


def test_what_is_allowed_is_what_does_not_raise() -> None:
    draw = np.random.default_rng(5)
    many = Layout(tensor=draw.integers(0, 9, 300), pipeline=draw.integers(1, 40, 300), context=draw.integers(1, 6, 300))
    fine = allowed(LLAMA, many, 4096)
    for i in range(300):
        one = Layout(tensor=int(many.tensor[i]), pipeline=int(many.pipeline[i]), context=int(many.context[i]))
        try:
            check(LLAMA, one, 4096)
        except LayoutError:
            assert not fine[i]
        else:
            assert fine[i]
