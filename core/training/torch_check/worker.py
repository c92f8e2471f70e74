"""A step on torch as a process: ``python -m core.training.torch_check.worker CONFIG OPTIMIZER POLICY DEVICE TRAINED``.

Builds the model, runs forward, backward and one optimizer step, and prints one JSON event per line. Bytes are those of
storages, each counted once: what a view shares costs nothing.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from pydantic import TypeAdapter

from core.jobs.process import end_with_parent
from core.training.precision import find_policy
from core.training.torch_check.events import Advance, Began, Event, Finished, Measured, encode
from core.training.torch_check.step import BATCH, Trial
from core.training.torch_optimizers import torch_optimizer
from core.training.trained import Trained, active_share, names_tensor

_RATE = 1e-3
_STEPS_TO_PEAK = 2
"""The optimizer's state is made by the first step, so memory is fullest in the second."""


def _say(event: Event) -> None:
    print(encode(event), file=sys.__stdout__, flush=True)


def _bytes(tensors: Iterable[Any]) -> int:
    """Bytes of the storages behind ``tensors``, each once."""
    table = {
        tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
        for tensor in tensors
        if tensor is not None
    }
    return sum(table.values())


def _as_it_is(tensor: Any) -> Any:
    return tensor


_SAME_NUMBERS = {
    f"{name}Backward0" for name in ("ToCopy", "T", "Transpose", "Permute", "View", "UnsafeView", "Unsqueeze", "Select")
}
"""Operations that give a tensor's own numbers, in another type or order."""


def _is_cast(tensor: Any) -> bool:
    """Whether a saved tensor is a parameter in another type: nothing but a copy lies between the two."""
    result = tensor.grad_fn
    while result is not None and result.name() in _SAME_NUMBERS:
        result = result.next_functions[0][0]
    return tensor.grad_fn is not None and hasattr(result, "variable")


def _add_adapter(torch: Any, layer: Any, trained: Trained, dtype: Any) -> None:
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


def _freeze(torch: Any, model: Any, trial: Trial, dtype: Any) -> None:
    """Leave gradients to what is trained, in ``dtype``, and put adapters beside the layers that have them."""
    trained = trial.trained
    for name, weight in model.named_parameters():
        weight.requires_grad_(_is_trained(trained, trial.shape.layers, name))
        if weight.requires_grad:
            weight.data = weight.data.to(dtype)
    for name, module in list(model.named_modules()):
        if trained.adapters and isinstance(module, torch.nn.Linear) and name.rsplit(".", 1)[-1] in trained.modules:
            _add_adapter(torch, module, trained, dtype)
    if active_share(trial.shape, trained) == 1:  # as libraries do, so that every layer has a gradient to hand down
        model.get_input_embeddings().register_forward_hook(_with_gradient)


def _with_gradient(module: Any, given: Any, result: Any) -> Any:
    return result if result.requires_grad else result.requires_grad_()


class _Step:
    """A model with its optimizer, and what each part of it takes."""

    def __init__(self, torch: Any, trial: Trial) -> None:
        self.torch, self.trial = torch, trial
        self.policy = find_policy(trial.policy)
        torch.manual_seed(0)
        auto: Any = importlib.import_module("transformers")
        fields = json.loads(trial.config)
        config = auto.AutoConfig.for_model(fields.pop("model_type"), **fields)
        narrow = self.policy.weights.bytes < 4
        dtype = torch.bfloat16 if narrow else torch.float32
        frozen = torch.bfloat16 if trial.trained.frozen == "bf16" else torch.float32
        result = auto.AutoModelForCausalLM.from_config(
            config, attn_implementation="sdpa", dtype=dtype if trial.trained.everything else frozen
        )
        if not trial.trained.everything:
            _freeze(torch, result, trial, dtype)
        if trial.shape.experts:
            result.set_experts_implementation("grouped_mm")
        self.model = result.to(trial.device).train()
        self.every: list[Any] = list(self.model.parameters())
        self.weights: list[Any] = [weight for weight in self.every if weight.requires_grad]
        self.master: list[Any] = [w.detach().float() for w in self.weights] if self.policy.master else []
        self.optimizer = torch_optimizer(trial.optimizer, self.master or self.weights, lr=_RATE)
        for group in self.optimizer.param_groups:
            group["foreach"] = False  # one tensor after another, as a fused update: all at once takes more
        self.gradients: list[Any] = []
        shape = (BATCH, trial.length)
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

        torch = self.torch
        autocast = torch.autocast(self.trial.device, torch.bfloat16, enabled=self.policy.autocasts)
        with torch.autograd.graph.saved_tensors_hooks(pack, _as_it_is), autocast:
            logits = self.model(self.tokens, use_cache=False).logits
        sizes = _bytes(values), _bytes(casts)
        loss = self.torch.nn.functional.cross_entropy(
            logits[:, :-1].float().flatten(0, 1), self.tokens[:, 1:].flatten()
        )
        return loss, *sizes

    def backward(self, loss: Any) -> None:
        """Gradients, in the format that the policy keeps them in: that of the weights, or a buffer that lasts."""
        loss.backward()
        if self.policy.new_gradient_bytes:
            self.gradients = [weight.grad for weight in self.weights]
            return
        self.gradients = self.gradients or [self.torch.empty_like(w, dtype=self.torch.float32) for w in self.weights]
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

    def forget(self) -> None:
        """Let the gradients go that the next step makes anew."""
        if self.policy.new_gradient_bytes:
            self.gradients = []
        for weight in self.weights:
            weight.grad = None

    @property
    def states(self) -> list[Any]:
        """Every tensor that the optimizer keeps, step counters too."""
        values = [value for state in self.optimizer.state.values() for value in state.values()]
        return [value for value in values if self.torch.is_tensor(value)]


def run(trial: Trial, say: Callable[[Event], None] = _say) -> None:
    """Run the step, saying everything on the way."""
    start = time.monotonic()
    say(Advance(phase="loading torch and transformers"))
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    transformers.utils.logging.set_verbosity_error()
    cuda = trial.device == "cuda"
    name = torch.cuda.get_device_name() if cuda else "CPU"
    say(Began(torch=str(torch.__version__), transformers=str(transformers.__version__), device=str(name)))
    say(Advance(phase="building the model"))
    result = _Step(torch, trial)
    say(Measured(part="parameters", size=_bytes(result.every)))
    say(Advance(phase="forward"))
    loss, number, casts = result.forward()
    say(Measured(part="activations", size=number))
    if result.policy.autocasts:
        say(Measured(part="casts", size=casts))
    say(Advance(phase="backward"))
    result.backward(loss)
    del loss
    say(Measured(part="gradients", size=_bytes([*result.gradients, *(weight.grad for weight in result.every)])))
    say(Advance(phase="optimizer step"))
    result.step()
    if result.master:
        say(Measured(part="master", size=_bytes(result.master)))
    say(Measured(part="optimizer", size=_bytes(result.states)))
    if cuda:
        torch.cuda.reset_peak_memory_stats()
        for _ in range(_STEPS_TO_PEAK - 1):
            result.forget()
            result.backward(result.forward()[0])
            result.step()
        peak = torch.cuda.max_memory_allocated()
        del result
        gc.collect()  # what is still there then is the workspace of cuBLAS
        say(Measured(part="peak", size=peak - torch.cuda.memory_allocated()))
    say(Finished(elapsed_s=time.monotonic() - start))


def main() -> None:
    """Read the command line and run."""
    os.environ.update(dict.fromkeys(("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"), "1"), USE_HUB_KERNELS="0")
    threading.Thread(target=end_with_parent, daemon=True).start()
    config, optimizer, policy, device, text = sys.argv[1:]
    trained = TypeAdapter(Trained).validate_json(text)
    run(Trial(config, optimizer, policy, "cuda" if device == "cuda" else "cpu", trained))


if __name__ == "__main__":
    main()
