"""One training step of a small model on torch, and the bytes that Napkin counts for it.

The small model keeps the ratios of a real one (query heads per key/value head, widths, experts). Its shape is read from
the config.json that transformers builds it from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
import transformers

from core.models.configs.config import from_hf_config
from core.models.parameters import parameters
from core.models.spec import TransformerSpec
from core.training.activations.tensors import HF_SDPA
from core.training.device.buffers import TENSORS_ONLY
from core.training.device.inputs import StepSettings, states_of, written_under
from core.training.device.memory import parts_of
from core.training.layout import Layout, degrees_of
from core.training.memory import state_bytes, states_per_parameter
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES, PrecisionPolicy, find_policy
from core.training.trained import EVERYTHING, Trained, active_share, names_tensor, parts_of_training

BATCH, LENGTH, WIDTH, VOCAB = 2, 256, 512, 2048
LAYERS = {"cpu": 2, "cuda": 4}
_HEADS, _HEAD_DIM, _GRID = 8, 32, 8
_EXPERTS = 8

OPTIMIZERS: Mapping[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda weights: torch.optim.SGD(weights, lr=1e-3),
    "SGD momentum": lambda weights: torch.optim.SGD(weights, lr=1e-3, momentum=0.9),
    "AdamW": lambda weights: torch.optim.AdamW(weights, lr=1e-3),
    "AMSGrad": lambda weights: torch.optim.Adam(weights, lr=1e-3, amsgrad=True),
}

_SAME_NUMBERS = {
    f"{name}Backward0" for name in ("ToCopy", "T", "Transpose", "Permute", "View", "UnsafeView", "Unsqueeze", "Select")
}
"""Operations that give a tensor's own numbers, in another type or order."""


def _near(value: float, least: int = _GRID) -> int:
    """The multiple of 8 nearest to ``value``."""
    return max(round(value / _GRID) * _GRID, least)


def small_config(spec: TransformerSpec, most_layers: int) -> dict[str, Any]:
    """Return a config.json of a small model with the ratios of ``spec``.

    A table of learned positions makes it a GPT-2, routed experts a Mixtral, anything else a Llama.
    """
    group = min(spec.heads // spec.kv_heads, 2 * _HEADS)
    kv_heads = max(_HEADS // group, 1)
    heads = group * kv_heads
    hidden = min(_HEAD_DIM * heads, WIDTH)
    share = hidden / spec.hidden
    same = {"vocab_size": VOCAB, "tie_word_embeddings": spec.tied_head, "pad_token_id": 0}
    layers = min(spec.layers, most_layers)
    if spec.position_kind == "learned" and not spec.experts:
        return {
            **same,
            "model_type": "gpt2",
            "n_layer": layers,
            "n_embd": hidden,
            "n_head": heads,
            "n_inner": _near(spec.ffn * share),
            "n_positions": LENGTH,
            **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0),
        }
    settings = {
        **same,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": _near(spec.heads * spec.head_dim * share / heads),
    }
    if spec.experts:
        count = min(spec.experts.count, _EXPERTS)
        routed = {"num_local_experts": count, "num_experts_per_tok": min(spec.experts.per_token, count)}
        width = _near(spec.experts.width * share, least=32)
        return {**settings, "model_type": "mixtral", "intermediate_size": width, **routed}
    return {**settings, "model_type": "llama", "intermediate_size": min(_near(spec.ffn * share), 8 * hidden)}


def _number(value: Any) -> float:
    """The one number of an array."""
    return float(np.ravel(value)[0])


def policy_run(policy: PrecisionPolicy) -> PrecisionPolicy:
    """The policy that a step in plain torch has in place of ``policy``: fp32, with autocast to bf16 or without, or
    bf16, with a master copy or without."""
    if policy.weights.bytes == POLICIES["fp32"].weights.bytes:
        return POLICIES["fp32, bf16 autocast" if policy.autocasts else "fp32"]
    if policy.master is None:
        return POLICIES["bf16 throughout"]
    wide = policy.gradients.bytes > policy.weights.bytes
    return POLICIES["mixed bf16, fp32 master, fp32 gradients" if wide else "mixed bf16, fp32 master"]


def trained_run(trained: Trained, policy: PrecisionPolicy, shape: TransformerSpec) -> Trained:
    """What a step in plain torch trains of the small model ``shape`` in place of ``trained``.

    Frozen weights are in bf16, or in fp32 where they meet trained ones in fp32; no DoRA, no dropout; the rank is at
    most the least width, the last layers at most all.
    """
    if trained.everything:
        return EVERYTHING
    alone = trained.adapters and not (trained.head or trained.norms) and trained.frozen != "fp32"
    frozen = "fp32" if policy.weights.bytes == POLICIES["fp32"].weights.bytes and not alone else "bf16"
    least = min(shape.hidden, shape.kv_heads * shape.head_dim, shape.ffn or shape.hidden)
    small = {"rank": min(trained.rank, least), "last": min(trained.last, shape.layers)}
    return replace(trained, frozen=frozen, frozen_fp32=False, dora=False, dropout=False, **small)


@dataclass(frozen=True)
class Trial:
    """One step: a config.json as text, an optimizer, a policy, a device, and what is trained."""

    config: str
    optimizer: str
    policy: str
    device: Literal["cpu", "cuda"]
    trained: Trained = EVERYTHING

    @cached_property
    def shape(self) -> TransformerSpec:
        """The model's shape, as the reader of every config.json has it."""
        return from_hf_config(self.config)

    @property
    def family(self) -> str:
        """``llama``, ``gpt2`` or ``mixtral``."""
        return str(json.loads(self.config)["model_type"])

    @cached_property
    def parameters(self) -> int:
        """How many parameters the model has."""
        return parameters(self.shape).total

    @cached_property
    def trained_parameters(self) -> int:
        """How many parameters have gradients, adapters among them."""
        return sum(part.tensor.elements for part in parts_of_training(self.shape, self.trained) if part.trained)

    @cached_property
    def predicted(self) -> Mapping[str, float]:
        """Bytes of each part, as they are counted for any model; on a GPU also the peak."""
        policy, optimizer = find_policy(self.policy), find_optimizer(self.optimizer)
        each = states_per_parameter(optimizer, policy)
        states = {
            "parameters": each.parameters,
            "gradients": each.gradients,
            "master": each.master,
            "optimizer": each.optimizer,
        }
        degrees, step = degrees_of(Layout(micro_batch=BATCH)), self._step
        states_held = states_of(optimizer, policy, self.shape, self.trained)
        parts = parts_of(self.shape, degrees, states_held, step, TENSORS_ONLY, ("first",))
        activations = parts.activations
        by_name: dict[str, float] = {
            part: state_bytes(self.parameters, stored) for part, stored in states.items() if stored
        }
        if not self.trained.everything:
            held = (parts.parameters, parts.gradients, parts.master_weights, parts.optimizer_state)
            sizes = {part: round(_number(each)) for part, each in zip(states, held, strict=True)}
            by_name = {part: size for part, size in sizes.items() if size}
        by_name["activations"] = _number(activations.layers + activations.head + activations.embedding)
        if policy.autocasts:
            by_name["casts"] = _number(parts.casts)
        if self.device == "cuda":
            by_name["peak"] = _number(parts.fullest.tensors)
        return by_name

    @property
    def _step(self) -> StepSettings:
        policy = find_policy(self.policy)
        how = written_under(HF_SDPA, self.shape, policy, self.trained)
        if self.device == "cpu":
            how = replace(how, autocasts=False, flash=HF_SDPA.flash)
        return StepSettings(LENGTH, how).under(policy, self.trained)


def trial_of(
    spec: TransformerSpec,
    optimizer: str,
    policy: PrecisionPolicy,
    device: Literal["cpu", "cuda"],
    trained: Trained = EVERYTHING,
) -> Trial:
    """Return a small step like that of a plan; see `small_config`, `policy_run`, and `trained_run`."""
    config, run = json.dumps(small_config(spec, LAYERS[device])), policy_run(policy)
    if not trained.everything and run.autocasts:
        run = POLICIES["fp32"]
    return Trial(config, optimizer, run.id, device, trained_run(trained, run, from_hf_config(config)))


def _bytes(tensors: Iterable[Any]) -> int:
    """Bytes of the storages behind ``tensors``, each once."""
    table = {
        tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
        for tensor in tensors
        if tensor is not None
    }
    return sum(table.values())


def _is_cast(tensor: Any) -> bool:
    """Whether a saved tensor is a parameter in another type: nothing but a copy lies between the two."""
    result = tensor.grad_fn
    while result is not None and result.name() in _SAME_NUMBERS:
        result = result.next_functions[0][0]
    return tensor.grad_fn is not None and hasattr(result, "variable")


def _add_adapter(layer: Any, trained: Trained, dtype: Any) -> None:
    """Beside a linear layer two small matrices: A random, B zero, so that the first step starts from the model."""
    layer.lora_a = torch.nn.Parameter(torch.randn(trained.rank, layer.in_features, dtype=dtype) / trained.rank)
    layer.lora_b = torch.nn.Parameter(torch.zeros(layer.out_features, trained.rank, dtype=dtype))
    scale, linear = trained.alpha / trained.rank, torch.nn.functional.linear

    def beside(module: Any, given: tuple[Any], result: Any) -> Any:
        low = linear(given[0].to(dtype), module.lora_a)
        return result + (linear(low, module.lora_b) * scale).to(result.dtype)

    layer.register_forward_hook(beside)


def _is_trained(trained: Trained, layers: int, name: str) -> bool:
    """Whether a parameter of a Llama is trained itself; name: as transformers has it."""
    name = name.removeprefix("model.").removesuffix(".weight")
    name = name.replace("input_layernorm", "layernorm").replace("post_attention_layernorm", "layernorm")
    if trained.method == "named tensors":
        return any(names_tensor(pattern, name) for pattern in trained.names)
    if (trained.head and name in ("embed_tokens", "lm_head")) or (trained.norms and name.endswith("norm")):
        return True
    inside = name.startswith("layers.")
    return trained.method == "last layers" and inside and int(name.split(".")[1]) >= layers - trained.last


def _freeze(model: Any, trial: Trial, dtype: Any) -> None:
    """Leave gradients to what is trained, in ``dtype``, and put adapters beside the layers that have them."""
    trained = trial.trained
    for name, weight in model.named_parameters():
        weight.requires_grad_(_is_trained(trained, trial.shape.layers, name))
        if weight.requires_grad:
            weight.data = weight.data.to(dtype)
    for name, module in list(model.named_modules()):
        if trained.adapters and isinstance(module, torch.nn.Linear) and name.rsplit(".", 1)[-1] in trained.modules:
            _add_adapter(module, trained, dtype)
    if active_share(trial.shape, trained) == 1:  # as libraries do, so that every layer has a gradient to hand down
        model.get_input_embeddings().register_forward_hook(_with_gradient)


def _with_gradient(module: Any, given: Any, result: Any) -> Any:
    return result if result.requires_grad else result.requires_grad_()


class Step:
    """A model with its optimizer, and what each part of it takes."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.policy = find_policy(trial.policy)
        torch.manual_seed(0)
        fields = json.loads(trial.config)
        config = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
        narrow = self.policy.weights.bytes < 4
        dtype = torch.bfloat16 if narrow else torch.float32
        frozen = torch.bfloat16 if trial.trained.frozen == "bf16" else torch.float32
        result = transformers.AutoModelForCausalLM.from_config(
            config, attn_implementation="sdpa", dtype=dtype if trial.trained.everything else frozen
        )
        if not trial.trained.everything:
            _freeze(result, trial, dtype)
        if trial.shape.experts:
            result.set_experts_implementation("grouped_mm")
        self.model = result.to(trial.device).train()
        self.every: list[Any] = list(self.model.parameters())
        self.weights: list[Any] = [weight for weight in self.every if weight.requires_grad]
        self.master: list[Any] = [w.detach().float() for w in self.weights] if self.policy.master else []
        self.optimizer = OPTIMIZERS[trial.optimizer](self.master or self.weights)
        for group in self.optimizer.param_groups:
            group["foreach"] = False  # one tensor after another, as a fused update: all at once takes more
        self.gradients: list[Any] = []
        shape = (BATCH, LENGTH)
        self.tokens = torch.randint(1, trial.shape.vocab, shape, device=trial.device)

    def forward(self) -> tuple[Any, int, int]:
        """The loss, and the bytes that forward kept for backward up to the logits: all but weights, and their casts."""
        known = {weight.untyped_storage().data_ptr() for weight in self.every}
        values: list[Any] = []
        casts: list[Any] = []

        def pack(tensor: Any) -> Any:
            if tensor.untyped_storage().data_ptr() not in known:
                (casts if self.policy.autocasts and _is_cast(tensor) else values).append(tensor)
            return tensor

        autocast = torch.autocast(self.trial.device, torch.bfloat16, enabled=self.policy.autocasts)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), autocast:
            logits = self.model(self.tokens, use_cache=False).logits
        sizes = _bytes(values), _bytes(casts)
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].float().flatten(0, 1), self.tokens[:, 1:].flatten())
        return loss, *sizes

    def backward(self, loss: Any) -> None:
        """Gradients, in the format that the policy keeps them in: that of the weights, or a buffer that lasts."""
        loss.backward()
        if self.policy.new_gradient_bytes:
            self.gradients = [weight.grad for weight in self.weights]
            return
        self.gradients = self.gradients or [torch.empty_like(w, dtype=torch.float32) for w in self.weights]
        for buffer, weight in zip(self.gradients, self.weights, strict=True):
            buffer.copy_(weight.grad)
            weight.grad = None

    def step(self) -> None:
        """The optimizer's step, on the master weights where there are some."""
        for copy, gradient in zip(self.master, self.gradients, strict=bool(self.master)):
            copy.grad = gradient.float()
        self.optimizer.step()
        for weight, copy in zip(self.weights, self.master, strict=bool(self.master)):
            weight.data.copy_(copy)
            copy.grad = None

    @property
    def states(self) -> list[Any]:
        """Every tensor that the optimizer keeps, step counters too."""
        values = [value for state in self.optimizer.state.values() for value in state.values()]
        return [value for value in values if torch.is_tensor(value)]


def measured(trial: Trial) -> dict[str, float]:
    """Run the step on the CPU and return the bytes of each part."""
    transformers.utils.logging.set_verbosity_error()
    step = Step(trial)
    sizes: dict[str, float] = {"parameters": _bytes(step.every)}
    loss, sizes["activations"], casts = step.forward()
    if step.policy.autocasts:
        sizes["casts"] = casts
    step.backward(loss)
    sizes["gradients"] = _bytes([*step.gradients, *(weight.grad for weight in step.every)])
    step.step()
    if step.master:
        sizes["master"] = _bytes(step.master)
    return {**sizes, "optimizer": _bytes(step.states)}
