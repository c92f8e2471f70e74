"""The curve over a step, what fits, what changes cost, and what is sent: laws and published figures."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from core.hardware.accelerators import find
from core.hardware.cluster import cluster
from core.models.catalog import CATALOG
from core.models.parameters import parameters
from core.step_time.running import Running
from core.step_time.step import step_time
from core.training.activations.tensors import FUSED
from core.training.device.buffers import TENSORS_ONLY
from core.training.device.host import BUFFERS, foreach_update, host_lacks, host_memory
from core.training.device.memory import Setup
from core.training.device.peak import (
    CLASSES,
    explain_device,
    largest_micro_batch,
    largest_seq_len,
    most_layers,
    through_one_step,
)
from core.training.device.traffic import flop_redone, step_cost, traffic_per_step
from core.training.layout import LayerModule, Layout, LayoutError, Recompute, recomputation
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES
from tests.every import every

ADAM = find_optimizer("AdamW")
MEGATRON = POLICIES["mixed bf16, fp32 master, fp32 gradients"]
LLAMA = CATALOG["Llama 3.1 8B"].spec


def parameters_of_a_layer() -> float:
    """Of its matrices."""
    heads = 2 * LLAMA.hidden * (LLAMA.heads + LLAMA.kv_heads) * LLAMA.head_dim
    return heads + 3 * LLAMA.hidden * LLAMA.ffn


SMALL = Setup(LLAMA, Layout(data=8, zero=3, recompute=1, sequence_parallel=1), MEGATRON, ADAM, 4096, 80e9)
SETUPS = {
    "one replica": SMALL,
    "accumulated": replace(SMALL, layout=Layout(data=8, zero=1, micro_batches=4, recompute=2)),
    "pipeline": replace(SMALL, layout=Layout(pipeline=4, tensor=2, data=2, micro_batches=16, zero=1)),
    "short pipeline": replace(SMALL, layout=Layout(pipeline=8, micro_batches=3, recompute=2)),
    "interleaved": replace(SMALL, layout=Layout(pipeline=4, interleave=2, micro_batches=16, tensor=4)),
    "gathered": replace(SMALL, layout=Layout(pipeline=2, data=4, micro_batches=8, zero=3)),
    "experts": Setup(
        CATALOG["DeepSeek-V3"].spec,
        Layout(pipeline=16, expert=64, data=128, micro_batches=32, zero=1, recompute=1),
        MEGATRON,
        ADAM,
        4096,
        80e9,
    ),
    "alone": replace(SMALL, layout=Layout()),
}
LEAN = POLICIES["mixed bf16, fp32 master"]
AUTOCAST = POLICIES["fp32, bf16 autocast"]
FRESH = {
    **{name: replace(setup, policy=LEAN) for name, setup in SETUPS.items()},
    "short": replace(SMALL, layout=Layout(), policy=LEAN, seq_len=32),
    "autocast": replace(SMALL, layout=Layout(data=2, zero=2), policy=AUTOCAST),
    "autocast, pipeline": replace(SMALL, layout=Layout(pipeline=4, micro_batches=4, zero=1), policy=AUTOCAST),
    "bucket": replace(SMALL, layout=Layout(data=8, zero=2), policy=LEAN, seq_len=128),
    "pipeline, offload": replace(
        SMALL, layout=Layout(pipeline=4, data=8, micro_batches=4, zero=2, offload=1), policy=LEAN
    ),
}
"""Whose gradients are made anew in each step, but where FSDP shards them."""


@pytest.mark.parametrize("name", SETUPS)
def test_the_curve_ends_as_it_began_and_peaks_at_the_account(name: str) -> None:
    setup = SETUPS[name]
    curve = through_one_step(setup)
    total, held = curve.total, setup.device_memory
    assert total.max() == pytest.approx(held.total, rel=1e-12)
    assert total[curve.phases.index("backward")] == pytest.approx(held.total, rel=1e-12)
    assert total[curve.peak] == total.max()
    assert total[0] == pytest.approx(total[-1], rel=1e-12)
    assert all(len(curve.bytes[part]) == len(curve.phases) for part in CLASSES)
    forward = curve.bytes["activations"][[phase == "forward" for phase in curve.phases]]
    assert np.all(np.diff(forward) >= 0)
    assert len(forward) == curve.layers * math.ceil(curve.in_flight)
    assert curve.bytes["activations"][-1] == curve.bytes["activations"][0] == 0
    for part in ("parameters", "gradients", "master_weights", "optimizer_state"):
        assert set(curve.bytes[part]) == {getattr(held, part)}


@every("name", FRESH)
def test_gradients_grow_in_backward_and_the_curve_peaks_at_the_account(name: str) -> None:
    setup = FRESH[name]
    curve, held = through_one_step(setup), setup.device_memory
    assert curve.total.max() == pytest.approx(held.total, rel=1e-12)
    gradients, whole = curve.bytes["gradients"], held.gradients + held.later
    assert np.all(np.diff(gradients) >= -1e-6 * whole)
    assert gradients[-1] == pytest.approx(whole)
    sharded = setup.layout.zero == 3 and setup.layout.data > 1
    before = [at for at, phase in enumerate(curve.phases) if phase in ("start", "forward", "loss")]
    assert np.all(gradients[before] == (whole if sharded else 0))
    for part in ("parameters", "master_weights", "optimizer_state"):
        assert set(curve.bytes[part]) == {getattr(held, part)}
    for part in ("activations", "buffers"):
        assert curve.bytes[part][0] == pytest.approx(curve.bytes[part][-1])


@pytest.mark.parametrize("name", ["one replica", "accumulated", "pipeline", "interleaved"])
def test_the_largest_fits_and_one_more_does_not(name: str) -> None:
    setup = replace(SETUPS[name], memory=90e9)
    size = largest_micro_batch(setup)
    assert size >= 1
    assert replace(setup, layout=replace(setup.layout, micro_batch=size)).fits
    assert not replace(setup, layout=replace(setup.layout, micro_batch=size + 1)).fits
    length = largest_seq_len(setup)
    each = int(setup.layout.context * (setup.layout.tensor if setup.layout.sequence_parallel else 1))
    assert replace(setup, seq_len=length).fits
    assert not replace(setup, seq_len=length + each).fits


def test_the_deepest_fits_and_one_layer_more_does_not() -> None:
    setup = replace(SMALL, memory=80e9)
    layers = most_layers(setup)
    assert replace(setup, spec=replace(setup.spec, layers=layers)).fits
    assert not replace(setup, spec=replace(setup.spec, layers=layers + 1)).fits
    assert most_layers(replace(setup, memory=60e9)) < layers


OVER = Setup(LLAMA, Layout(data=8, micro_batch=4, micro_batches=4), MEGATRON, ADAM, 8192, 80e9)


def test_costs_of_many_layouts_are_those_of_each() -> None:
    tensor, zero = np.array([1, 2, 4, 8]), np.array([0, 1, 2, 3])
    many = step_cost(OVER, replace(OVER.layout, tensor=tensor, zero=zero, data=8 // tensor))
    for i in range(4):
        layout = replace(OVER.layout, tensor=int(tensor[i]), zero=int(zero[i]), data=int(8 // tensor[i]))
        alone = step_cost(OVER, layout)
        assert many.sent[i] == pytest.approx(float(alone.sent), rel=1e-12)
        assert many.share[i] == pytest.approx(float(alone.share), rel=1e-12)


@pytest.mark.parametrize("zero", range(4))
def test_zeros_traffic_per_step(zero: int) -> None:
    """ZeRO paper, section 7: 2Ψ elements up to stage 2, 3Ψ at stage 3; here over a ring, and for one micro-batch."""
    policy, ranks = POLICIES["mixed bf16, fp32 master"], 64
    sent = traffic_per_step(LLAMA, Layout(data=ranks, zero=zero), policy=policy, seq_len=4096)
    elements = sent.data / 2 / (1 - 1 / ranks)
    assert elements == pytest.approx((3 if zero == 3 else 2) * parameters(LLAMA).total, rel=1e-12)
    assert sent.total == sent.data


def test_tensor_parallel_traffic() -> None:
    """Korthikanti et al. 2022: four all-reduces of a layer's output per micro-batch, six with full recomputation."""
    for recompute, times in ((0, 4), (2, 6)):
        layout = Layout(tensor=8, micro_batch=2, micro_batches=3, recompute=recompute)
        sent = traffic_per_step(LLAMA, layout, policy=MEGATRON, seq_len=4096)
        output = 2 * 2 * 4096 * LLAMA.hidden
        assert sent.tensor == pytest.approx(3 * LLAMA.layers * times * 2 * (7 / 8) * output)


def test_traffic_over_arrays_is_traffic_one_by_one() -> None:
    spec, zero, tensor = CATALOG["Mixtral 8x7B"].spec, np.array([0, 1, 2, 3, 3]), np.array([1, 2, 4, 8, 1])
    many = Layout(tensor=tensor, zero=zero, data=8, context=2, expert=4, pipeline=np.array([1, 2, 4, 1, 8]))
    found = traffic_per_step(spec, many, policy=MEGATRON, seq_len=8192)
    for i in range(5):
        one = replace(many, tensor=int(tensor[i]), zero=int(zero[i]), pipeline=int(many.pipeline[i]))
        alone = traffic_per_step(spec, one, policy=MEGATRON, seq_len=8192)
        for kind in ("tensor", "pipeline", "data", "expert", "context"):
            assert np.broadcast_to(getattr(found, kind), 5)[i] == pytest.approx(getattr(alone, kind), rel=1e-12)
    assert np.all(found.total > 0)


@pytest.mark.parametrize(
    ("zero", "data", "offload"), [(3, 8, 1), (2, 8, 1), (1, 8, 1), (0, 1, 1), (3, 8, 2), (3, 1, 2)]
)
def test_the_host_takes_what_deepspeed_reckons_with(zero: int, data: int, offload: int) -> None:
    """16 bytes for each parameter over all ranks, 18 with the parameters themselves, and half as much again
    [estimate_zero3_model_states_mem_needs]."""
    setup = replace(SMALL, layout=Layout(data=data, zero=zero, offload=offload, micro_batches=2), policy=LEAN)
    total = data * host_memory(setup).total
    assert total == pytest.approx((14 + 2 * offload) * parameters(LLAMA).total, rel=1e-9)
    assert BUFFERS * 72.7e9 * 16 > 800e9  # that of a 72B was seen beyond 800 GB
    sharded = replace(setup, implementation=replace(setup.implementation, sharded_by="FSDP"))
    assert data * host_memory(sharded).total == pytest.approx(16 * parameters(LLAMA).total, rel=1e-9)
    size = 16 * parameters(LLAMA).total * 1.01
    assert host_lacks(sharded, 8, size) < 0 < host_lacks(setup, 8, size)


@pytest.mark.parametrize("data", [1, 8])
def test_of_weights_on_the_host_a_layer_or_two_and_the_ends_are_here(data: int) -> None:
    """Each comes over the slot twice a micro-batch, behind what computing hides."""
    setup = replace(SMALL, layout=Layout(data=data, zero=3, offload=2, recompute=2, micro_batches=2), policy=LEAN)
    held, ends = setup.device_memory, 2 * LLAMA.vocab * LLAMA.hidden
    layers = parameters(LLAMA).total - ends
    assert held.states - held.later == 0
    assert held.gathered == pytest.approx(2 * (ends + 2 * layers / LLAMA.layers), rel=1e-3)
    with pytest.raises(LayoutError, match="ZeRO-3"):
        assert replace(setup, layout=replace(setup.layout, zero=2)).device_memory
    machine = cluster(find("H100 SXM"), data)
    alone, there = (
        step_time(
            LLAMA, machine, replace(setup.layout, offload=way, micro_batch=1), seq_len=512, running=Running(overlap=0)
        )
        for way in (1, 2)
    )
    size = 2 * 2 * 2 * (layers + ends / 2) / data  # of the ends the larger one
    assert there.data - alone.data == pytest.approx(size / (0.87 * 63e9), rel=1e-3)


@pytest.mark.parametrize(
    ("recompute", "each"),
    [
        (recomputation(0, LayerModule.MLP), 3 * 2 * LLAMA.hidden * LLAMA.ffn),
        (recomputation(0, LayerModule.CORE_ATTN), 2 * 4096 * LLAMA.heads * LLAMA.head_dim),
        (recomputation(0, LayerModule.LAYERNORM | LayerModule.ACT), 0),
        (Recompute.SELECTIVE, 0),
        (recomputation(Recompute.FULL, layers=8), (parameters_of_a_layer() * 2 + 2 * 4096 * LLAMA.hidden) / 4),
        (recomputation(Recompute.FULL, layers=-4), parameters_of_a_layer() * 2 + 2 * 4096 * LLAMA.hidden),
    ],
)
def test_products_that_are_done_again_are_counted(recompute: int, each: float) -> None:
    """Of all layers, per token: attention with the half of its square that the mask leaves."""
    redone = float(flop_redone(LLAMA, FUSED, Layout(recompute=recompute), 4096))
    assert redone == pytest.approx(LLAMA.layers * each, rel=1e-3)


def test_what_waits_on_the_host_left_the_accelerator() -> None:
    """State, master weights and activations lie in one place or the other."""
    usual = replace(SMALL, layout=Layout(micro_batches=2, recompute=2), policy=LEAN)
    assert host_memory(usual).total == 0
    there = host_memory(replace(usual, implementation=replace(usual.implementation, offloads=True)))
    layer = 2 * usual.seq_len * LLAMA.hidden
    assert there.activations == there.total == (LLAMA.layers - 2) * layer
    paged = replace(usual, paged=True)
    assert host_memory(paged).total == usual.device_memory.optimizer_state - paged.device_memory.optimizer_state
    moved = replace(usual, layout=replace(usual.layout, offload=1))
    assert host_memory(moved).state == usual.device_memory.states - moved.device_memory.states
    assert host_memory(moved).explain().value == host_memory(moved).total


@every("setup", [*SETUPS.values(), *FRESH.values()], ids=[*SETUPS, *(f"{n}, lean" for n in FRESH)])
def test_the_account_explains_itself(setup: Setup) -> None:
    """The last step is the account's total, and the states' steps sum to its states."""
    steps = explain_device(setup)
    assert steps[-1].value == pytest.approx(setup.device_memory.total, rel=1e-12)
    states = [step.value for step in steps if step.name.endswith("sharded_bytes")]
    assert sum(states) == pytest.approx(setup.device_memory.states, rel=1e-12)


def test_bytes_that_stand_outside_a_step_are_those_measured() -> None:
    """On one H100 DeepSpeed 0.19 held 22.06 bytes a parameter as it updated a Llama of 1,235,814,400, and
    torch's Adam 23.08 GiB of fp32 weights in an update of all at once."""
    spec = CATALOG["Llama 3.2 1B"].spec
    assert parameters(spec).total == 1_235_814_400
    lean = replace(SMALL, spec=spec, layout=Layout(zero=2), policy=LEAN, seq_len=512, runtime=TENSORS_ONLY)
    updating = replace(lean, implementation=replace(lean.implementation, sharded_by="DeepSpeed"))
    assert updating.device_memory.total / 1_235_814_400 == pytest.approx(22.06, rel=3e-3)
    assert through_one_step(updating).total.max() == pytest.approx(updating.device_memory.total)
    for zero, flat in ((1, 6.0 / 8), (3, 0.0)):
        many = replace(updating, layout=Layout(zero=zero, data=8))
        plain = replace(many, implementation=lean.implementation).device_memory
        states, most = float(plain.states) + flat * 1_235_814_400, float(plain.tensors)
        assert many.device_memory.tensors == pytest.approx(max(most, states))
    wide = replace(lean, layout=Layout(recompute=2), policy=AUTOCAST)
    assert foreach_update(wide.device_memory).value / 2**30 == pytest.approx(23.08, rel=3e-3)


def test_a_card_by_itself_has_its_host_to_itself() -> None:
    """0.48 s for 1.24B parameters were measured with DeepSpeed on 16 cores; eight that share a host take longer."""
    spec = CATALOG["Llama 3.2 1B"].spec

    def update(cards: int) -> float:
        lay = Layout(data=cards, zero=1, offload=1)
        return cards * float(step_time(spec, cluster(find("H100 SXM"), cards), lay, seq_len=512).optimizer)

    assert update(1) == pytest.approx(0.48, rel=0.15)
    assert update(8) > 2 * update(1)
    assert update(16) == pytest.approx(update(8), rel=0.05)
