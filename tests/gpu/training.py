"""One real training step, in a process of its own: ``python -m tests.gpu.training cuda '{"model": …}'``.

A model of transformers with random weights learns random tokens: forward, cross-entropy in fp32, backward, AdamW.
Prints one line of JSON.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from transformers import AttentionInterface, AutoConfig, AutoModelForCausalLM
from transformers.masking_utils import AttentionMaskInterface

from core.benchmark.device import GpuState, nvml_state
from core.training.precision import POLICIES
from tests.gpu.cases import BF16, MODELS, NF4, Case

WARM_STEPS, SECONDS, MOST_STEPS, LEAST_STEPS = 3, 2.0, 30, 5

CAUSAL = "causal"
"""Attention by PyTorch's own choice of kernel, told that it is causal: compiled, transformers would hand it a mask
instead, and the kernel would work out all of the square."""


@dataclass(frozen=True)
class Measured:
    """seconds: median of a step. peak_bytes: of tensors, as the allocator counts; used_bytes: what the whole process
    takes of the device. Zeros for a CPU, which tells neither. torch: its version. clock_mhz, power_w: at the end of the
    steps, the power a mean over their last second on Ampere and newer; None where nothing tells."""

    seconds: float
    best_s: float
    p90_s: float
    steps: int
    peak_bytes: int
    used_bytes: int
    torch: str
    clock_mhz: float | None = None
    power_w: float | None = None


class Adapter(nn.Module):
    """A linear layer that stays as it is, and two small matrices beside it that are trained."""

    def __init__(self, linear: nn.Linear, rank: int) -> None:
        super().__init__()
        wide = linear.weight.dtype if linear.weight.is_floating_point() else torch.bfloat16
        like = {"device": linear.weight.device, "dtype": wide}
        self.linear = linear
        self.a = nn.Parameter(torch.randn(rank, linear.in_features, **like) * linear.in_features**-0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank, **like))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The layer's result and twice that of the adapter."""
        return self.linear(x) + 2 * functional.linear(functional.linear(x, self.a), self.b)


def causal(
    module: nn.Module, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: None, **_: Any
) -> tuple[torch.Tensor, None]:
    """Attention over (sequences, heads, tokens, width), its result as (sequences, tokens, heads, width)."""
    seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
    return seen.transpose(1, 2).contiguous(), None


AttentionInterface.register(CAUSAL, causal)
AttentionMaskInterface.register(CAUSAL, lambda *_, **__: None)


def in_nf4(linear: nn.Linear) -> nn.Linear:
    """A layer with its weight in four bits and its scales in eight, by bitsandbytes, which must be there."""
    from bitsandbytes.nn import Linear4bit, Params4bit

    sizes = linear.in_features, linear.out_features
    narrow = Linear4bit(*sizes, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4", device="meta")
    weight = linear.weight.detach().cpu()
    narrow.weight = Params4bit(weight, requires_grad=False, quant_type="nf4", compress_statistics=True, module=narrow)
    return narrow.to(linear.weight.device)


def with_adapters(model: nn.Module, rank: int, frozen: str) -> None:
    """Freeze a model and give every linear layer but the head an adapter."""
    model.requires_grad_(False)
    linear = [(n, m) for n, m in model.named_modules() if isinstance(m, nn.Linear) and n != "lm_head"]
    for name, module in linear:
        owner, _, own = name.rpartition(".")
        setattr(model.get_submodule(owner), own, Adapter(in_nf4(module) if frozen == NF4 else module, rank))


class Again(nn.Module):
    """A module whose forward runs once more in backward, for what is inside it."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What the module makes of it."""
        return checkpoint(self.module, x, use_reentrant=False)


def recomputing(model: Any, case: Case) -> None:
    """Have backward compute again what the case names: the first of its layers, or modules of each."""
    layers = model.model.layers
    if case.recompute == "full":
        with warnings.catch_warnings():  # the newer name is not in the versions of 2025
            warnings.simplefilter("ignore", FutureWarning)
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        for number, layer in enumerate(layers if case.layers else ()):
            layer.gradient_checkpointing = number < case.layers
        return
    for layer in layers:
        setattr(layer, case.recompute, Again(getattr(layer, case.recompute)))


def built(case: Case, device: str) -> Any:
    """The model with random weights on the device."""
    config = AutoConfig.for_model(**MODELS[case.model])
    dtype = torch.bfloat16 if case.policy == BF16 else torch.float32
    more = {"experts_implementation": "grouped_mm"} if "num_experts" in MODELS[case.model] else {}
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, attn_implementation=CAUSAL, dtype=dtype, **more).train()
    model.config.use_cache = False
    if case.rank:
        with_adapters(model, case.rank, case.frozen)
    if case.recompute != "none":
        recomputing(model, case)
        if case.rank:
            model.enable_input_require_grads()
    return model


def stepper(case: Case, device: str) -> Callable[[], None]:
    """One step, ready to be called."""
    model = built(case, device)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-6, fused=case.fused or None)
    vocab = int(MODELS[case.model]["vocab_size"])
    tokens = torch.randint(1, vocab, (case.sequences, case.seq_len), device=device)
    wanted = functional.pad(tokens[:, 1:], (0, 1), value=-100).flatten()

    def loss() -> torch.Tensor:
        logits = model(tokens, use_cache=False).logits
        return functional.cross_entropy(logits.float().flatten(0, 1), wanted)

    run = torch.compile(loss, dynamic=False) if case.compiled else loss

    def step() -> None:
        for _ in range(case.accumulated):
            with torch.autocast(device, torch.bfloat16, enabled=POLICIES[case.policy].autocasts):
                value = run() / case.accumulated
            value.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def timed(step: Callable[[], None], device: str) -> list[float]:
    """Seconds of each step, warmed up."""
    for _ in range(WARM_STEPS):
        step()
    if device == "cpu":
        result: list[float] = []
        for _ in range(LEAST_STEPS):
            at = time.perf_counter()
            step()
            result.append(time.perf_counter() - at)
        return result
    torch.cuda.synchronize()
    at = time.perf_counter()
    step()
    torch.cuda.synchronize()
    count = min(MOST_STEPS, max(LEAST_STEPS, int(SECONDS / (time.perf_counter() - at))))
    torch.cuda.reset_peak_memory_stats()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    marks[0].record()
    for mark in marks[1:]:
        step()
        mark.record()
    torch.cuda.synchronize()
    return [one.elapsed_time(two) / 1000 for one, two in itertools.pairwise(marks)]


def measured(case: Case, device: str) -> Measured:
    """Run a case. Raises what torch raises where it does not fit."""
    torch.manual_seed(0)
    times = timed(stepper(case, device), device)
    cuda = device != "cpu"
    now = nvml_state(str(torch.cuda.get_device_properties(0).uuid)) if cuda else GpuState()
    free, total = torch.cuda.mem_get_info() if cuda else (0, 0)
    return Measured(
        seconds=statistics.median(times),
        best_s=min(times),
        p90_s=sorted(times)[int(0.9 * (len(times) - 1))],
        steps=len(times),
        peak_bytes=torch.cuda.max_memory_allocated() if cuda else 0,
        used_bytes=total - free,
        torch=str(torch.__version__),
        clock_mhz=now.clock_mhz,
        power_w=now.power_w,
    )


def main(device: str, text: str) -> None:
    """Measure, and print what was found or why nothing was."""
    try:
        answer = asdict(measured(Case(**json.loads(text)), device))
    except torch.OutOfMemoryError:
        answer = {"problem": "out of memory"}
    except Exception as problem:
        text = f"{type(problem).__name__}: {problem}".splitlines()[0][:300]
        answer = {"problem": "out of memory" if "ALLOC_FAILED" in text else text}
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
