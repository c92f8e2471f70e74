"""What a compiled layer keeps for backward, by the partitioner of torch.compile itself."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from core.models.configs.config import from_hf_config
from core.step_time.running import COMPILED, EAGER, written_with
from core.training.activations.stage import StepSettings, layer_activation_bytes
from core.training.activations.tensors import FUSED
from core.training.layout import Layout

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:`torch.jit.script_method`:DeprecationWarning"),  # torch's own compiler uses it
]

BATCH, LENGTH = 2, 96  # no width of the model is a multiple of so many tokens


def config(layers: int) -> AutoConfig:
    return AutoConfig.for_model(
        "llama",
        vocab_size=64,
        hidden_size=256,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=8,
        intermediate_size=1024,
    )


def kept(layers: int, autocast: bool) -> int:
    """Bytes of activations that the whole compiled model keeps, casts of weights left out."""
    model = AutoModelForCausalLM.from_config(
        config(layers), attn_implementation="sdpa", dtype=torch.float32 if autocast else torch.bfloat16
    ).train()
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    shapes = {tuple(sorted(weight.shape)) for weight in model.parameters()}
    sizes: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights and tuple(sorted(tensor.shape)) not in shapes:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    torch._dynamo.reset()
    compiled = torch.compile(model, backend="aot_eager_decomp_partition")
    tokens = torch.randint(0, 64, (BATCH, LENGTH))
    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=autocast),
    ):
        compiled(tokens, use_cache=False)
    return sum(sizes.values())


@pytest.mark.parametrize("autocast", [False, True])
def test_a_compiled_layer_keeps_what_fused_kernels_do_and_shares_casts(autocast: bool) -> None:
    one = kept(2, autocast) - kept(1, autocast)
    spec = from_hf_config(config(2).to_json_string())
    layout, widths = Layout(micro_batch=BATCH), {"width": 2, "residual": 4 if autocast else 2}

    def counted(software: str) -> float:
        step = StepSettings(LENGTH, written_with(software, FUSED), **widths)
        return float(layer_activation_bytes(spec, layout, step))

    assert counted(COMPILED.id) == pytest.approx(one, rel=0.01)
    assert counted(EAGER.id) == pytest.approx(one + autocast * 3 * 2 * BATCH * LENGTH * spec.hidden, rel=0.01)
