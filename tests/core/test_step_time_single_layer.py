"""What is predicted of one layer that trains alone: no head, no embedding, and no more than its own states."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from core.benchmark.layer import DEFAULT_LAYER, layer_flop, layer_parameters
from core.budget.equations import BudgetError
from core.hardware.accelerators import find
from core.step_time.running import StepTime
from core.step_time.single_layer import predict_layer
from core.step_time.step import Rates

LLAMA = DEFAULT_LAYER
H100 = find("H100 SXM")
PARAMETERS = 2 * 4096 * (32 + 8) * 128 + 3 * 4096 * 14336 + 2 * 4096


def test_a_layer_of_llama_on_an_h100() -> None:
    """Memory by hand: 16 bytes a parameter, and per token the tensors that fused kernels keep."""
    prediction = predict_layer(LLAMA, H100, compiled=True)
    assert layer_parameters(LLAMA) == PARAMETERS
    assert prediction.states_bytes == 16 * PARAMETERS
    hidden, keys, ffn = 4096 * 2, 1024 * 2, 14336 * 2
    # Inputs and outputs of two norms, queries and the result of attention; keys and values; log-sum-exp; gate, up
    # and their product.
    per_token = 6 * hidden + 2 * keys + 32 * 4 + 3 * ffn
    assert prediction.activation_bytes == 8192 * per_token
    assert prediction.peak_bytes == prediction.states_bytes + prediction.activation_bytes
    assert 0.3 < layer_flop(LLAMA) / prediction.seconds / H100.peak("bf16") < 0.75, "a plausible MFU of a layer"
    assert prediction.explanations[0].value == pytest.approx(prediction.seconds)
    assert prediction.explanations[-1].value == prediction.peak_bytes


@pytest.mark.parametrize(("matmul", "memory", "faster"), [(1e11, 3e10, 7.0), (7e14, 2.8e12, 0.3), (2e15, 8e12, 1.1)])
def test_of_an_unlisted_device_the_rates_say_all(matmul: float, memory: float, faster: float) -> None:
    """All but launches takes a time that is inverse to the rates; compiled, so that nothing waits for its host."""
    slow, fast = (
        predict_layer(LLAMA, None, rates=Rates(matmul16=matmul * by, memory=memory * by), compiled=True).time
        for by in (1, faster)
    )
    for part in fields(StepTime):
        by = 1.0 if part.name == "fixed" else faster
        assert getattr(slow, part.name) == pytest.approx(by * getattr(fast, part.name), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("rates", [None, Rates(), Rates(matmul16=1e14), Rates(memory=1e12)])
def test_without_a_catalogue_and_rates_nothing_is_predicted(rates: Rates | None) -> None:
    with pytest.raises(BudgetError, match="16-bit matmul rate"):
        predict_layer(LLAMA, None, rates=rates)


def test_a_mixture_has_all_its_experts_states() -> None:
    mixture = LLAMA.model_copy(update={"ffn": 1024, "experts": 16, "experts_per_token": 2})
    assert layer_parameters(mixture) == 2 * 4096 * 40 * 128 + 16 * 3 * 4096 * 1024 + 16 * 4096 + 2 * 4096
    prediction = predict_layer(mixture, replace(H100, name="another"))
    assert prediction.states_bytes == 16 * layer_parameters(mixture)
    assert prediction.seconds > 0
