"""Activation memory: the published tables and figures, and the laws that hold for every layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import sympy

from core.models.catalog import CATALOG
from core.models.spec import TransformerSpec
from core.training.activations.derivation import explain_stage
from core.training.activations.stage import (
    StepSettings,
    in_flight,
    layer_activation_bytes,
    routed_load,
    stage_activation_bytes,
)
from core.training.activations.tensors import (
    FUSED,
    HF_EAGER,
    HF_SDPA,
    IMPLEMENTATIONS,
    MEGATRON_GPT,
    Implementation,
    LayerKind,
    stage_bytes,
)
from core.training.device.memory import rank_of
from core.training.layout import Layout, Recompute, degrees_of
from tests.every import every

H, A, K, D, F, S, B, T = sympy.symbols("h a k d f s b t", positive=True)


def gpt(layers: int, hidden: int, heads: int, vocab: int = 51_200) -> TransformerSpec:
    """A GPT as the paper has it, four times as wide inside."""
    return TransformerSpec(
        layers,
        hidden,
        heads,
        heads,
        hidden // heads,
        4 * hidden,
        vocab,
        glu=False,
        tied_head=True,
        norm="layernorm",
        norm_vectors=2,
        position_rows=2048,
    )


SIZES = {H: 96, A: 6, K: 3, D: 10, F: 200, S: 128, B: 2, T: 3}
LLAMA = TransformerSpec(1, 96, 6, 3, 10, 200, 100, glu=True, tied_head=False)


@pytest.mark.parametrize(
    ("tensor", "sequence_parallel", "recompute", "expected"),
    [
        (1, 0, Recompute.NONE, S * B * H * (34 + 5 * A * S / H)),
        (T, 0, Recompute.NONE, S * B * H * (10 + 24 / T + 5 * A * S / (H * T))),
        (T, 1, Recompute.NONE, S * B * H * (34 / T + 5 * A * S / (H * T))),
        (T, 0, Recompute.SELECTIVE, S * B * H * (10 + 24 / T)),
        (T, 1, Recompute.SELECTIVE, S * B * H * 34 / T),
    ],
)
def test_table_2_of_korthikanti(tensor: Any, sequence_parallel: int, recompute: Recompute, expected: Any) -> None:
    layout = Layout(SIZES.get(tensor, 1), micro_batch=2, sequence_parallel=sequence_parallel, recompute=int(recompute))
    found = layer_activation_bytes(gpt(1, 96, 6), layout, StepSettings(128, MEGATRON_GPT))
    assert float(found) == pytest.approx(float(expected.subs(SIZES)), rel=1e-12)


@pytest.mark.parametrize(
    ("how", "recompute", "expected"),
    [
        (HF_SDPA, Recompute.NONE, 16 * H + 4 * A * D + 4 * K * D + 8 * F + 4 * A),
        (HF_SDPA, Recompute.SELECTIVE, 4 * H + 4 * A * D + 4 * K * D + 4 * F + 4 * A),
        (HF_EAGER, Recompute.NONE, 16 * H + 8 * A * D + 8 * F + 6 * A * S),
        (HF_EAGER, Recompute.SELECTIVE, 16 * H + 4 * A * D + 4 * K * D + 8 * F),
        (FUSED, Recompute.NONE, 8 * H + 4 * A * D + 4 * K * D + 6 * F + 4 * A),
        (FUSED, Recompute.SELECTIVE, 4 * H + 4 * A * D + 4 * K * D + 4 * F + 4 * A),
    ],
)
def test_a_layer_like_llama(how: Implementation, recompute: Recompute, expected: Any) -> None:
    found = layer_activation_bytes(LLAMA, Layout(micro_batch=2, recompute=int(recompute)), StepSettings(128, how))
    assert float(found) == pytest.approx(float((S * B * expected).subs(SIZES)), rel=1e-12)


FIGURE_1: Mapping[str, tuple[TransformerSpec, Layout, float, float, float]] = {
    "22B": (gpt(48, 6144, 64), Layout(tensor=8, micro_batch=4), 45.5625, 59.25, 9.5625),
    "175B": (gpt(96, 12288, 96), Layout(8, 8, 3, micro_batches=64), 45.5625, 66.84375, 12.3515625),
    "530B": (gpt(105, 20480, 128), Layout(8, 35, 3, micro_batches=280), 31.640625, 114.0234375, 23.08),
    "1T": (gpt(128, 25600, 160), Layout(8, 64, 1, micro_batches=512), 32.958984375, 131.25, 26.56),
}
"""GiB on the first stage as read off figure 1 of Korthikanti et al. 2022: of states of the layers' matrices, and of
activations without recomputation and selective with sequence parallelism, as calculon ships them for its validation."""


@pytest.mark.parametrize("name", FIGURE_1)
def test_figure_1_of_korthikanti(name: str) -> None:
    spec, layout, states, none, selective = FIGURE_1[name]
    _, rank = rank_of(spec, degrees_of(layout), ("first",))
    assert 18 * float(np.ravel(rank.layers)[0]) / 2**30 == pytest.approx(states, rel=1e-3)
    layout = replace(layout, recompute=np.array([0, 1]), sequence_parallel=np.array([0, 1]))
    found = stage_activation_bytes(spec, layout, StepSettings(2048, MEGATRON_GPT))
    np.testing.assert_allclose(found.layers / 2**30, [none, selective], rtol=1e-3)
    if name == "175B":
        np.testing.assert_allclose(found.total / 2**30, [none, selective], rtol=0.03)


@every("micro_batches", [1, 3, 8, 100])
@every(("pipeline", "interleave"), [(1, 1), (4, 1), (4, 3), (6, 2), (8, 5)])
def test_in_flight_is_what_the_schedule_piles_up(pipeline: int, interleave: int, micro_batches: int) -> None:
    """Forwards of the warm-up as Megatron schedules them, then one forward before each backward."""
    for stage in range(pipeline):
        ahead = pipeline - stage - 1
        warm = 2 * ahead + (interleave - 1) * pipeline if interleave > 1 else ahead
        held = most = 0
        for i in range(micro_batches * interleave):
            held += 1
            most = max(most, held)
            held -= i >= warm
        layout = Layout(pipeline=pipeline, interleave=interleave, micro_batches=micro_batches)
        assert float(in_flight(layout, stage)) == pytest.approx(most / interleave)


SPECS = {
    "dense": CATALOG["Llama 3.1 8B"].spec,
    "experts": CATALOG["Mixtral 8x7B"].spec,
    "latent": CATALOG["DeepSeek-V3"].spec,
    "GPT": gpt(24, 2048, 16),
}
CASES = [(name, how) for name in SPECS for how in IMPLEMENTATIONS.values()]


def plans(seed: int, size: int) -> dict[str, Any]:
    """Layouts and sequence lengths of all sorts, one after the other."""
    rng = np.random.default_rng(seed)

    def some(*values: int) -> Any:
        return rng.choice(values, size)

    layout = Layout(
        tensor=some(1, 2, 4, 8),
        pipeline=some(1, 2, 3, 8),
        interleave=some(1, 2, 3),
        context=some(1, 2, 4),
        expert=some(1, 2, 8),
        micro_batch=some(1, 2, 3),
        micro_batches=some(1, 4, 32),
        sequence_parallel=some(0, 1),
        recompute=some(0, 1, 2),
    )
    return {"layout": layout, "seq_len": some(1024, 2048, 4096), "stage": layout.pipeline - 1}


def single(layout: Layout, i: int) -> Layout:
    """The plan at one place of many."""
    return Layout(**{f.name: int(np.broadcast_to(getattr(layout, f.name), 64)[i]) for f in fields(Layout)})


@every(("name", "how"), CASES, ids=str)
def test_many_plans_are_each_plan_alone(name: str, how: Implementation) -> None:
    many = plans(1, 64)
    routing = {"imbalance": np.linspace(1, 3, 64), "capacity": np.tile([0.0, 1.25], 32), "chunks": np.tile([1, 8], 32)}
    layout, seq_len, stage = many.values()
    whole = stage_activation_bytes(SPECS[name], layout, StepSettings(seq_len, how, **routing), stage=stage)
    for i in range(64):
        step = StepSettings(int(seq_len[i]), how, **{key: value[i] for key, value in routing.items()})
        alone = stage_activation_bytes(SPECS[name], single(layout, i), step, stage=int(stage[i]))
        for field in fields(alone):
            one, every = getattr(alone, field.name), np.broadcast_to(getattr(whole, field.name), 64)
            assert float(one) == pytest.approx(every[i], rel=1e-12), field.name
        assert float(alone.total) == pytest.approx(whole.total[i], rel=1e-12)


def test_the_busiest_rank_of_experts() -> None:
    expert = np.array([1, 2, 8])
    np.testing.assert_array_equal(routed_load(Layout(expert=expert), 3.0), [1, 2, 3])
    np.testing.assert_array_equal(routed_load(Layout(expert=expert), 3.0, 1.25), [1, 1.25, 1.25])
    np.testing.assert_array_equal(routed_load(Layout(expert=expert), 0.5), [1, 1, 1])
    spec = SPECS["experts"]

    def layer(imbalance: float) -> float:
        step = StepSettings(4096, imbalance=imbalance)
        return float(layer_activation_bytes(spec, Layout(expert=8), step, "experts"))

    assert spec.experts
    per_token = spec.experts.per_token * (4 * spec.hidden + 6 * spec.experts.width + 8)
    assert layer(2.0) - layer(1.0) == pytest.approx(4096 * per_token)


def test_ends_of_the_pipeline() -> None:
    spec, layout = gpt(24, 2048, 16), Layout(tensor=4, pipeline=4, micro_batch=2, micro_batches=16)
    tokens = 2 * 1024
    stages = stage_activation_bytes(spec, layout, StepSettings(1024, MEGATRON_GPT), stage=np.arange(4))
    np.testing.assert_array_equal(stages.layers / stages.layers[-1], [4, 3, 2, 1])
    np.testing.assert_array_equal(stages.embedding, [4 * tokens * 2048, 0, 0, 0])
    np.testing.assert_array_equal(stages.head, [0, 0, 0, 4 * tokens * 2048])
    np.testing.assert_array_equal(stages.logits, [0, 0, 0, 16 * tokens * spec.vocab / 4])
    chunked = stage_activation_bytes(spec, layout, StepSettings(1024, MEGATRON_GPT, chunks=8), stage=3)
    assert float(chunked.logits) == stages.logits[-1] / 8
    fused = stage_activation_bytes(spec, layout, StepSettings(1024, MEGATRON_GPT, loss="fused", chunks=8), stage=3)
    assert float(fused.logits) == 4 * tokens * spec.vocab / 4 / 8


def test_prediction_modules_are_further_layers_of_the_last_stage() -> None:
    spec = replace(SPECS["latent"], mtp_modules=0)
    layout = Layout(pipeline=2, micro_batches=8)
    without, with_one = (
        stage_activation_bytes(
            replace(spec, mtp_modules=modules), layout, StepSettings(4096, FUSED), stage=np.arange(2)
        )
        for modules in (0, 1)
    )
    one = float(layer_activation_bytes(spec, layout, StepSettings(4096, FUSED), kind="experts"))
    np.testing.assert_allclose(with_one.layers - without.layers, [0, one])
    np.testing.assert_allclose(with_one.logits, 2 * without.logits)


@every("recompute", Recompute)
@every(("name", "how"), CASES, ids=str)
def test_the_derivation_leads_to_the_numbers(name: str, how: Implementation, recompute: Recompute) -> None:
    layout = Layout(2, 4, 2, 2, 4, micro_batch=2, micro_batches=8, sequence_parallel=1, recompute=int(recompute))
    step = StepSettings(2048, how, imbalance=1.4, chunks=4)
    steps = explain_stage(SPECS[name], layout, step, stage=3)
    found = stage_activation_bytes(SPECS[name], layout, step, stage=3)
    assert steps[-1].value == pytest.approx(float(found.logits))
    (stage,) = (step for step in steps if step.name == stage_bytes.name)
    assert stage.value == pytest.approx(float(found.layers))
    kind: LayerKind = "experts" if SPECS[name].moe_layers else "dense"
    layer = layer_activation_bytes(SPECS[name], layout, step, kind)
    tensors = [step for step in steps if step.named]
    assert sum(step.value for step in tensors) == pytest.approx(float(layer))
