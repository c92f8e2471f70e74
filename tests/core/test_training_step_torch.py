"""A real training step of a small model takes the bytes that Napkin counts."""

from __future__ import annotations

import pytest

from core.models.catalog import CATALOG
from core.models.spec import TransformerSpec
from core.training.precision import POLICIES
from core.training.trained import Trained
from tests.core.torch_step import measured, trial_of

GPT2, LLAMA, MIXTRAL = (CATALOG[name].spec for name in ("GPT-2 124M", "Llama 3 8B", "Mixtral 8x7B"))
FP32, BF16 = "fp32", "bf16 throughout"
MIXED, WIDE = "mixed bf16, fp32 master", "mixed bf16, fp32 master, fp32 gradients"
AUTOCAST = "fp32, bf16 autocast"

STEPS = [
    (GPT2, "AdamW", FP32),
    (GPT2, "SGD momentum", BF16),
    (LLAMA, "AdamW", MIXED),
    (LLAMA, "SGD", FP32),
    (LLAMA, "AMSGrad", WIDE),
    (MIXTRAL, "AdamW", BF16),
    (GPT2, "AdamW", AUTOCAST),
    (LLAMA, "SGD", AUTOCAST),
    (MIXTRAL, "SGD momentum", AUTOCAST),
]


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("spec", "optimizer", "policy"), STEPS)
def test_torch_takes_what_is_counted(spec: TransformerSpec, optimizer: str, policy: str) -> None:
    trial = trial_of(spec, optimizer, POLICIES[policy], "cpu")
    found, counted = measured(trial), trial.predicted
    for part in ("parameters", "gradients", "master"):
        assert found.get(part) == counted.get(part)
    counters = found["optimizer"] - counted.get("optimizer", 0)
    assert 0 <= counters < 12 * 200  # a step counter for each tensor, a few dozen of them
    assert found["activations"] == pytest.approx(counted["activations"], rel=0.01)
    assert found.get("casts", 0) == pytest.approx(counted.get("casts", 0), rel=0.01)
    assert ("casts" in found) == (policy == AUTOCAST)


ON_H100 = [
    (GPT2, AUTOCAST, 44.94, 7.34),
    (GPT2, BF16, 29.99, 0.0),
    (GPT2, FP32, 59.88, 0.0),
    (LLAMA, AUTOCAST, 32.40, 7.86),
    (LLAMA, BF16, 26.86, 0.0),
    (LLAMA, FP32, 68.77, 0.0),
    (MIXTRAL, AUTOCAST, 84.02, 2.38),
    (MIXTRAL, BF16, 45.98, 0.0),
    (MIXTRAL, FP32, 106.76, 0.0),
]
"""Megabytes of activations and of casts that the same steps took on an H100 [torch 2.11, transformers 5.17]. CUDA's
autocast takes GPT-2's third power in fp32, and in fp32 no kernel of attention shares keys among heads."""


@pytest.mark.parametrize(("spec", "policy", "activations", "casts"), ON_H100)
def test_a_gpu_takes_what_is_counted(spec: TransformerSpec, policy: str, activations: float, casts: float) -> None:
    counted = trial_of(spec, "AdamW", POLICIES[policy], "cuda").predicted
    assert counted["activations"] / 1e6 == pytest.approx(activations, rel=0.005)
    assert counted.get("casts", 0.0) / 1e6 == pytest.approx(casts, rel=0.005)


TUNED = [
    (Trained("adapters", rank=8), BF16),
    (Trained("adapters", rank=16, targets=("q_proj", "v_proj"), frozen="nf4"), FP32),
    (Trained("adapters", rank=8, targets=("attention",), norms=True, head=True), MIXED),
    (Trained("last layers", last=1), WIDE),
    (Trained("named tensors", names=("layers.1.mlp", "layers.*.self_attn.v_proj")), FP32),
]


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("trained", "policy"), TUNED)
def test_torch_keeps_of_a_fine_tuning_step_what_is_counted(trained: Trained, policy: str) -> None:
    """Frozen weights have no gradient and no state: all of both that torch holds is what trained tensors have."""
    trial = trial_of(LLAMA, "AdamW", POLICIES[policy], "cpu", trained)
    found, counted = measured(trial), trial.predicted
    for part in ("parameters", "gradients", "master"):
        assert found.get(part) == counted.get(part)
    each = {FP32: 4, BF16: 2, MIXED: 2, WIDE: 4}[policy]
    assert found["gradients"] == each * trial.trained_parameters < each * trial.parameters
    counters = found["optimizer"] - counted["optimizer"]
    assert counters % 4 == 0  # a step counter in fp32 for each tensor that is trained
    assert 0 < counters < 4 * 60
    assert found["activations"] == pytest.approx(counted["activations"], rel=0.01)
