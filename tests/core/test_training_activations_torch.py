"""What torch really keeps for backward in transformers' own layers, storage by storage, against our account."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from core.models.configs.config import from_hf_config
from core.models.spec import TransformerSpec
from core.training.activations.stage import StepSettings, layer_activation_bytes, stage_activation_bytes
from core.training.activations.tensors import FUSED, HF_EAGER, HF_SDPA, Implementation, LayerKind
from core.training.device.buffers import cast_bytes
from core.training.device.memory import rank_of
from core.training.layout import MODULES, LayerModule, Layout, Recompute, degrees_of, recomputation

pytestmark = pytest.mark.usefixtures("one_thread")

PRECISIONS: Mapping[str, tuple[torch.dtype, bool, Mapping[str, int]]] = {
    "bf16": (torch.bfloat16, False, {"width": 2}),
    "fp32": (torch.float32, False, {"width": 4}),
    "autocast": (torch.float32, True, {"width": 2, "residual": 4}),
}
"""Type of the weights, whether products cast to bf16, and bytes of an element as they are counted."""

_COMMON = {"vocab_size": 61, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_LLAMA = {**_COMMON, "hidden_size": 128, "num_attention_heads": 8, "intermediate_size": 352}
_GPT2 = {**_COMMON, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
_LATENT = {
    "q_lora_rank": 48,
    "kv_lora_rank": 32,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 24,
    "n_group": 1,
    "topk_group": 1,
}

LAYERS: Mapping[str, tuple[str, Mapping[str, Any], LayerKind]] = {
    "GPT-2": ("gpt2", {**_GPT2, "n_embd": 128, "n_head": 8, "n_positions": 256}, "dense"),
    "GPT-2, narrow": ("gpt2", {**_GPT2, "n_embd": 96, "n_head": 3, "n_inner": 200, "n_positions": 256}, "dense"),
    "MHA": ("llama", {**_LLAMA, "num_key_value_heads": 8}, "dense"),
    "GQA": ("llama", {**_LLAMA, "num_key_value_heads": 2}, "dense"),
    "GQA, wide heads": ("llama", {**_LLAMA, "num_key_value_heads": 4, "head_dim": 24}, "dense"),
    "query and key norms": ("qwen3", {**_LLAMA, "num_key_value_heads": 2, "head_dim": 32}, "dense"),
    "experts": (
        "mixtral",
        {**_LLAMA, "hidden_size": 256, "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2},
        "experts",
    ),
    "LayerNorms, plain network": (
        "starcoder2",
        {**_LLAMA, "num_key_value_heads": 2, "residual_dropout": 0.0, "embedding_dropout": 0.0},
        "dense",
    ),
    "shared expert, gated": (
        "qwen2_moe",
        {
            **_LLAMA,
            "hidden_size": 256,
            "num_key_value_heads": 4,
            "num_experts": 6,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 96,
            "shared_expert_intermediate_size": 160,
        },
        "experts",
    ),
    "latent attention": (
        "deepseek_v3",
        {**_LLAMA, **_LATENT, "num_key_value_heads": 8, "v_head_dim": 32, "first_k_dense_replace": 9},
        "dense",
    ),
}

BATCHES = ((2, 48), (2, 80), (3, 136))
"""Sequences and their length. With a single sequence some copies are views, which spares what others pay."""


class Casts(TorchDispatchMode):
    """The storages that autocast casts weights to; held, so that no address is given out twice."""

    def __init__(self, weights: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self._weights = {weight.untyped_storage().data_ptr() for weight in weights}
        self.found: dict[int, torch.Tensor] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if func is torch.ops.aten._to_copy.default and args[0].untyped_storage().data_ptr() in self._weights:
            self.found[made.untyped_storage().data_ptr()] = made
        return made


class Kept:
    """Storages that the layers of a model keep for backward, weights left out, each with the layer that first keeps it.

    A context in which a forward pass runs; tensors are held until it ends, so that no address is given out twice.
    casts: bytes that each layer keeps of casts of weights.
    """

    def __init__(self, layers: Sequence[torch.nn.Module], *, autocast: bool = False) -> None:
        self.bytes, self.casts = [0] * len(layers), [0] * len(layers)
        self._cast = Casts(w for layer in layers for w in layer.parameters())
        self._autocast = torch.autocast("cpu", torch.bfloat16, enabled=autocast)
        self._layer: int | None = None
        self._seen = {w.untyped_storage().data_ptr() for layer in layers for w in layer.parameters()}
        self._alive: list[torch.Tensor] = []
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)
        self._made: dict[int, Callable[[], torch.Tensor]] = {}
        for place, layer in enumerate(layers):
            layer.register_forward_pre_hook(lambda *_, place=place: self._enter(place))
            layer.register_forward_hook(lambda *_: self._enter(None))

    def _enter(self, place: int | None) -> None:
        self._layer = place

    def dropped(self, tensor: torch.Tensor, made: Callable[[], torch.Tensor]) -> None:
        """``tensor`` is not kept: backward makes it once more."""
        self._made[tensor.untyped_storage().data_ptr()] = made
        self._alive.append(tensor)

    def again(self, forward: Callable[..., Any], *inputs: Any, **more: Any) -> Any:
        """What ``forward`` gives, of which its inputs alone are kept."""
        for tensor in inputs:
            if isinstance(tensor, torch.Tensor):
                self._pack(tensor)
        return checkpoint(forward, *inputs, use_reentrant=False, **more)

    @staticmethod
    def _unpack(kept: Any) -> torch.Tensor:
        result = kept() if callable(kept) else kept
        assert isinstance(result, torch.Tensor)
        return result

    def _pack(self, tensor: torch.Tensor) -> Any:
        storage = tensor.untyped_storage()
        made = self._made.get(storage.data_ptr())
        if made is not None:
            place = (tensor.size(), tensor.stride(), tensor.storage_offset())
            return lambda: made().as_strided(*place)
        if self._layer is not None and storage.data_ptr() not in self._seen:
            self._seen.add(storage.data_ptr())
            self._alive.append(tensor)
            counted = self.casts if storage.data_ptr() in self._cast.found else self.bytes
            counted[self._layer] += storage.nbytes()
        return tensor

    def of(self, forward: Callable[[], object]) -> int:
        """Bytes that the last layer keeps and no layer before it: not what all share."""
        with self._hooks, self._autocast, self._cast:
            self.result: Any = forward()
        assert self.result is not None
        return self.bytes[-1]


def layers_of(model: torch.nn.Module) -> Sequence[torch.nn.Module]:
    """The stack of layers of a model of two."""
    (stack,) = (m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == 2)
    return list(stack)


def cast_by_layers(spec: TransformerSpec, how: Implementation) -> float:
    """Bytes of casts of the layers' weights, as the account of one accelerator counts them."""
    degrees = degrees_of(Layout())
    _, rank = rank_of(spec, degrees, ("first",))
    found, _ = cast_bytes(replace(rank, projection=0), degrees, 2, 2.0, experts=not how.grouped_experts)
    return float(np.ravel(found)[0])


@pytest.mark.sweep(12)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("how", [HF_EAGER, HF_SDPA], ids=lambda how: how.id)
@pytest.mark.parametrize("name", LAYERS)
def test_transformers_keeps_what_is_counted(name: str, how: Implementation, precision: str) -> None:
    dtype, autocast, widths = PRECISIONS[precision]
    family, fields, kind = LAYERS[name]
    config = AutoConfig.for_model(family, **fields, **{"n_layer" if family == "gpt2" else "num_hidden_layers": 2})
    spec = from_hf_config(config.to_json_string())
    torch.manual_seed(1)  # an expert that no token goes to is not cast: a chance of the weights drawn
    model = AutoModelForCausalLM.from_config(
        config, attn_implementation="sdpa" if how.flash else "eager", dtype=dtype
    ).train()
    if kind == "experts":
        model.set_experts_implementation("grouped_mm" if how.flash else "eager")
    for batch, seq in BATCHES:
        tokens = torch.randint(3, 61, (batch, seq), generator=torch.Generator().manual_seed(seq))
        found = Kept(layers_of(model), autocast=autocast)
        kept = found.of(partial(model, tokens, use_cache=False))
        step = StepSettings(seq, how, **widths)
        counted = float(layer_activation_bytes(spec, Layout(micro_batch=batch), step, kind))
        assert counted == pytest.approx(kept, rel=0.01)
        assert found.casts[-1] == pytest.approx(cast_by_layers(spec, how) / 2 if autocast else 0, rel=0.01)


class Cached:
    """What a checkpoint's policy keeps, read from torch's own cache of each layer: unique storages, in bytes.

    The policy is torchtitan's: the attention kernel and every second matrix product.
    """

    ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default

    def __init__(self) -> None:
        self.bytes: list[int] = []
        self._caches: list[Mapping[Any, Any]] = []

    def contexts(self) -> tuple[Any, Any]:
        products = {False: 0, True: 0}

        def policy(ctx: Any, op: Any, *_: Any, **__: Any) -> CheckpointPolicy:
            products[ctx.is_recompute] += op == torch.ops.aten.mm.default
            odd = op == torch.ops.aten.mm.default and products[ctx.is_recompute] % 2 == 1
            return CheckpointPolicy.MUST_SAVE if odd or op == self.ATTENTION else CheckpointPolicy.PREFER_RECOMPUTE

        caching, cached = create_selective_checkpoint_contexts(policy)
        self._caches.append(caching.storage)
        return caching, cached

    def layer(self, forward: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        made = checkpoint(forward, x, use_reentrant=False, context_fn=self.contexts)
        kept: dict[int, int] = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes()}
        for leaf in tree_leaves(list(self._caches[-1].values())):
            value = getattr(leaf, "val", leaf)
            if isinstance(value, torch.Tensor):
                kept[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
        self.bytes.append(sum(kept.values()))
        assert isinstance(made, torch.Tensor)
        return made


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", ["MHA", "GQA", "GQA, wide heads"])
def test_per_operation_recomputation_keeps_what_is_counted(name: str, precision: str) -> None:
    dtype, autocast, widths = PRECISIONS[precision]
    family, fields, _ = LAYERS[name]
    config = AutoConfig.for_model(family, **fields, num_hidden_layers=2)
    spec = from_hf_config(config.to_json_string())
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa", dtype=dtype).train()
    for batch, seq in BATCHES:
        cached, places = Cached(), torch.arange(seq)[None]
        x = torch.randn((batch, seq, spec.hidden), dtype=dtype, requires_grad=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            turned = model.model.rotary_emb(x, places)
            for layer in layers_of(model):
                x = cached.layer(partial(layer, position_embeddings=turned, position_ids=places), x)
        layout = Layout(micro_batch=batch, recompute=Recompute.PER_OPERATION)
        for how in (HF_SDPA, FUSED):
            counted = float(layer_activation_bytes(spec, layout, StepSettings(seq, how, **widths)))
            assert cached.bytes == pytest.approx([counted] * 2, rel=0.01)
        x.sum().backward()  # the cache serves: what it lacks is done again


def redone(found: Kept, layer: Any, modules: LayerModule) -> None:
    """Make a layer compute these modules once more in backward: whole ones from their inputs, of norms and activation
    functions what they give, as Megatron-Core's checkpoints without output do."""
    if modules & LayerModule.LAYERNORM:
        for norm in (layer.input_layernorm, layer.post_attention_layernorm):

            def normed(x: torch.Tensor, plain: Callable[..., torch.Tensor] = norm.forward) -> torch.Tensor:
                y = found.again(plain, x)
                found.dropped(y, lambda: plain(x))
                return cast("torch.Tensor", y)

            norm.forward = normed
    if modules & (LayerModule.MLP | LayerModule.MOE):
        layer.mlp.forward = partial(found.again, layer.mlp.forward)
    elif modules & LayerModule.ACT:
        mlp, made = layer.mlp, {}
        for name in ("gate_proj", "up_proj"):
            getattr(mlp, name).register_forward_hook(lambda _, __, y, name=name: made.update({name: y}))
        mlp.act_fn.register_forward_hook(lambda _, x, y: found.dropped(y, lambda: functional.silu(x[0])))

        def multiplied(_: object, x: tuple[torch.Tensor]) -> None:
            gate, up = made["gate_proj"], made["up_proj"]
            found.dropped(x[0], lambda: functional.silu(gate) * up)

        mlp.down_proj.register_forward_pre_hook(multiplied)


NAMED = {
    **{name: (MODULES[name], "GQA") for name in ("core_attn", "layernorm", "act", "mlp")},
    "moe": (LayerModule.MOE, "experts"),
    "layernorm act": (LayerModule.LAYERNORM | LayerModule.ACT, "GQA"),
    "core_attn layernorm mlp": (LayerModule.CORE_ATTN | LayerModule.LAYERNORM | LayerModule.MLP, "MHA"),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("how", [HF_EAGER, HF_SDPA], ids=lambda how: how.id)
@pytest.mark.parametrize("modules", NAMED)
def test_modules_that_are_done_again_keep_what_is_counted(
    modules: str, how: Implementation, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the byte's hundredth, with the gradients of a layer that keeps all."""
    chosen, name = NAMED[modules]
    family, fields, kind = LAYERS[name]
    config = AutoConfig.for_model(family, **fields, num_hidden_layers=2)
    spec = from_hf_config(config.to_json_string())
    grads = list[torch.Tensor]()
    for again in (LayerModule(0), chosen):
        torch.manual_seed(1)
        model: Any = AutoModelForCausalLM.from_config(
            config, attn_implementation="sdpa" if how.flash else "eager", dtype=dtype
        ).train()
        if kind == "experts":
            model.set_experts_implementation("grouped_mm" if how.flash else "eager")
        found = Kept(layers_of(model))
        for layer in layers_of(model):
            redone(found, layer, again)
        tokens = torch.randint(3, 61, (2, 48), generator=torch.Generator().manual_seed(7))
        with monkeypatch.context() as patch:
            if again & LayerModule.CORE_ATTN:
                written = sys.modules[type(model).__module__]
                places = ALL_ATTENTION_FUNCTIONS._global_mapping if how.flash else vars(written)
                place = "sdpa" if how.flash else "eager_attention_forward"
                patch.setitem(places, place, partial(_core_again, found, places[place]))
            kept = found.of(partial(model, tokens, use_cache=False))
        layout = Layout(micro_batch=2, recompute=recomputation(0, again))
        counted = float(layer_activation_bytes(spec, layout, StepSettings(48, how, width=dtype.itemsize), kind=kind))
        assert counted == pytest.approx(kept, rel=0.01)
        found.result.logits.float().pow(2).sum().backward()
        grads.append(torch.cat([w.grad.flatten().float() for w in model.parameters() if w.grad is not None]))
    assert torch.allclose(*grads, rtol=1e-3, atol=1e-5)


def _core_again(found: Kept, core: Callable[..., Any], module: object, *qkv: torch.Tensor, **more: Any) -> Any:
    return found.again(lambda *inside: core(module, *inside, **more), *qkv)


def test_of_some_layers_or_groups_of_them_inputs_alone_are_kept() -> None:
    """Two of four layers, and four in groups of two, on one accelerator."""
    config = AutoConfig.for_model("llama", **_LLAMA, num_key_value_heads=8, num_hidden_layers=4)
    spec = from_hf_config(config.to_json_string())
    model: Any = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa", dtype=torch.bfloat16).train()
    stack, places = model.model.layers, torch.arange(48)[None]

    def run(layers: Sequence[Any], x: torch.Tensor) -> torch.Tensor:
        for layer in layers:
            x = layer(x, position_embeddings=model.model.rotary_emb(x, places), position_ids=places)
        return x

    for layers, groups in ((2, ((0, 1), (1, 2), (2, None), (3, None))), (-2, ((0, 2), (2, 4)))):
        found, x = Kept([model.model]), torch.randn((2, 48, spec.hidden), dtype=torch.bfloat16, requires_grad=True)
        found._enter(0)
        found._seen |= {tensor.untyped_storage().data_ptr() for tensor in model.model.rotary_emb(x, places)}
        with found._hooks:
            for start, end in groups:
                part = stack[start : end or start + 1]
                x = found.again(partial(run, part), x) if end else run(part, x)
        layout = Layout(micro_batch=2, recompute=recomputation(Recompute.FULL, layers=layers))
        counted = float(stage_activation_bytes(spec, layout, StepSettings(48, HF_SDPA)).layers)
        assert counted == pytest.approx(sum(found.bytes), rel=0.03)
