"""Training steps to be run on one device, each as a plan's fields and as what transformers builds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.benchmark.record import Record
from core.models.configs.config import from_hf_config
from core.models.spec_text import write_spec
from core.planning.estimate import timed_estimate
from core.planning.form.measured_rates import with_measured_rates
from core.planning.form.plan_form import PLAN_FORM, plan_of
from core.training.activations.tensors import COMPILED_WHOLE
from core.training.device.host import foreach_update
from core.training.layout import BY_MODULE, RECOMPUTES

AUTOCAST, BF16 = "fp32, bf16 autocast", "bf16 throughout"
NF4 = "nf4, double"

_ALONE = {"count": "1", "lay": "own", "zero": "0", "ctx": "0 GB", "frag": "0%", "free": "0%"}
"""One device, and no bytes but those of tensors, which is what the allocator tells."""

_SOFTWARE = {
    False: {"sw": "PyTorch, eager", "impl": "Hugging Face SDPA"},
    True: {"sw": "FSDP2, compiled", "impl": "fused kernels", "loss": COMPILED_WHOLE},
}


def _llama(layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, vocab: int, tied: bool) -> dict[str, Any]:
    return {
        "model_type": "llama",
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": ffn,
        "vocab_size": vocab,
        "tie_word_embeddings": tied,
        "max_position_embeddings": 65_536,
    }


MODELS: Mapping[str, Mapping[str, Any]] = {
    "Llama 1.2B": _llama(16, 2048, 32, 8, 8192, 128_256, True),
    "narrow 0.5B": _llama(20, 1280, 10, 10, 3456, 65_536, False),
    "Llama 8B": _llama(32, 4096, 32, 8, 14_336, 128_256, False),
    "mixture 1B": {
        "model_type": "qwen3_moe",
        "num_hidden_layers": 12,
        "hidden_size": 1024,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "head_dim": 64,
        "intermediate_size": 3072,
        "moe_intermediate_size": 768,
        "num_experts": 32,
        "num_experts_per_tok": 4,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "vocab_size": 32_000,
        "tie_word_embeddings": False,
        "max_position_embeddings": 65_536,
    },
    "Llama 3B": _llama(28, 3072, 24, 8, 8192, 128_256, True),
    "Qwen2 0.5B": {**_llama(24, 896, 14, 2, 4864, 151_936, True), "model_type": "qwen2"},
    "Qwen3 4B": {**_llama(36, 2560, 32, 8, 9728, 151_936, True), "model_type": "qwen3", "head_dim": 128},
    "Gemma 2B": {**_llama(18, 2048, 8, 1, 16_384, 256_000, True), "model_type": "gemma", "head_dim": 256},
    "OLMoE 7B": {
        **_llama(16, 2048, 16, 16, 1024, 50_304, False),
        "model_type": "olmoe",
        "num_experts": 64,
        "num_experts_per_tok": 8,
    },
    "GPT-2 355M": {
        "model_type": "gpt2",
        "n_layer": 24,
        "n_embd": 1024,
        "n_head": 16,
        "n_positions": 1024,
        "vocab_size": 50_257,
        **dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), 0.0),
    },
}
"""Configurations as Hugging Face spells them: counts of published models, and smaller ones of their kind."""


@dataclass(frozen=True)
class Case:
    """One step. compiled: by torch.compile. recompute: "full" or the module; layers: of how many, 0 for all.
    rank: of adapters on every linear layer, 0 where all is trained. frozen: how the others are stored.
    accumulated: micro-batches of a step. fused: whether AdamW updates in one kernel, or as torch does unasked:
    operation by operation on all tensors."""

    model: str
    sequences: int
    seq_len: int
    policy: str
    compiled: bool = False
    recompute: str = "none"
    layers: int = 0
    rank: int = 0
    frozen: str = "bf16"
    fused: bool = True
    accumulated: int = 1

    @property
    def name(self) -> str:
        """All of it in a line."""
        parts = [
            self.model,
            f"{self.sequences} × {self.seq_len:,}",
            self.policy,
            "compiled" if self.compiled else "eager",
            *([f"recomputed {self._again}".strip()] if self.recompute != "none" else []),
            *([f"LoRA {self.rank}"] if self.rank else []),
            *([self.frozen] if self.frozen != "bf16" else []),
            *([f"{self.accumulated} micro-batches"] if self.accumulated > 1 else []),
            *([] if self.fused else ["AdamW foreach"]),
        ]
        return ", ".join(parts)

    @property
    def published(self) -> bool:
        """Whether a row of evidence can say all of it."""
        return self.fused and not self.layers and self.recompute in ("none", "full")

    @property
    def _again(self) -> str:
        what = "" if self.recompute == "full" else self.recompute
        return f"{what} {self.layers} layers".strip() if self.layers else what

    @property
    def texts(self) -> dict[str, str]:
        """The fields of the plan."""
        trained = {"ft": "adapters", "rank": str(self.rank), "frozen": self.frozen} if self.rank else {}
        named = {} if self.recompute in RECOMPUTES else {"rc": BY_MODULE, "rcm": self.recompute}
        return {
            "model": "Own (config.json)",
            "shape": write_spec(from_hf_config(json.dumps(MODELS[self.model]))),
            "seq": str(self.seq_len),
            "mbs": str(self.sequences),
            "gb": f"{self.sequences * self.accumulated} sequences",
            "prec": self.policy,
            "rc": self.recompute,
            "rcn": str(self.layers) if self.layers else "",
            **named,
            **_ALONE,
            **_SOFTWARE[self.compiled],
            **trained,
        }


CASES: tuple[Case, ...] = (
    Case("Llama 1.2B", 4, 2048, AUTOCAST),
    Case("Llama 1.2B", 4, 2048, AUTOCAST, compiled=True),
    Case("Llama 1.2B", 4, 2048, AUTOCAST, recompute="full"),
    Case("Llama 1.2B", 4, 2048, BF16),
    Case("narrow 0.5B", 8, 2048, AUTOCAST),
    Case("narrow 0.5B", 16, 2048, AUTOCAST, compiled=True),
    Case("mixture 1B", 4, 2048, BF16),
    Case("mixture 1B", 16, 2048, BF16, compiled=True),
    Case("Llama 1.2B", 4, 2048, BF16, rank=16),
    Case("Llama 8B", 2, 2048, BF16, recompute="full", rank=16),
    Case("Llama 1.2B", 1, 16_384, AUTOCAST, recompute="full"),
    Case("Llama 8B", 1, 2048, BF16, recompute="full"),
    Case("Llama 8B", 4, 2048, BF16),
    Case("mixture 1B", 4, 2048, BF16, compiled=True),
    Case("Llama 8B", 1, 2048, BF16, recompute="full", rank=16, frozen=NF4),
    Case("Llama 8B", 4, 2048, BF16, rank=16, frozen=NF4),
    Case("Llama 1.2B", 4, 2048, AUTOCAST, recompute="full", layers=8),
    Case("Llama 1.2B", 4, 2048, AUTOCAST, recompute="mlp"),
    Case("Llama 1.2B", 1, 512, AUTOCAST, recompute="full"),
    Case("Llama 1.2B", 1, 512, AUTOCAST, recompute="full", fused=False),
    Case("Llama 8B", 1, 512, BF16, recompute="full", fused=False),
)
"""From the most asked to the largest, which may not fit."""

MORE: tuple[Case, ...] = (
    Case("Llama 3B", 2, 4096, BF16),
    Case("Llama 3B", 2, 4096, BF16, compiled=True),
    Case("Qwen3 4B", 1, 8192, BF16, recompute="full"),
    Case("Qwen3 4B", 2, 2048, BF16, rank=16),
    Case("Gemma 2B", 2, 2048, BF16),
    Case("OLMoE 7B", 2, 2048, BF16, recompute="full"),
    Case("GPT-2 355M", 16, 1024, AUTOCAST),
    Case("GPT-2 355M", 16, 1024, AUTOCAST, compiled=True),
    Case("Llama 1.2B", 1, 2048, AUTOCAST, accumulated=8),
    Case("Llama 1.2B", 2, 2048, AUTOCAST, compiled=True, accumulated=8),
    Case("Qwen2 0.5B", 4, 2048, AUTOCAST),
    Case("Qwen2 0.5B", 8, 1024, BF16, compiled=True),
    Case("Llama 8B", 1, 16_384, BF16, recompute="full", rank=16),
    Case("Llama 3B", 8, 512, BF16, recompute="full"),
    Case("mixture 1B", 4, 2048, AUTOCAST),
    Case("Llama 1.2B", 8, 1024, AUTOCAST, compiled=True, recompute="full"),
)
"""Other models, lengths and accumulated micro-batches, to which nothing was fitted: ``make gpu`` leaves them out,
``python -m tests.gpu --more`` runs them instead."""


@dataclass(frozen=True)
class Predicted:
    """What a plan says of a case: seconds of a step with their range, and bytes at most."""

    seconds: float
    low: float
    high: float
    peak_bytes: float


def predicted(case: Case, accelerator: str, record: Record | None) -> Predicted:
    """The step as a plan has it, with the rates that were measured where there is a record of them."""
    rates = with_measured_rates(record) if record else {}
    form = PLAN_FORM.parse({**case.texts, "gpu": accelerator, **rates})
    if form.problems:
        raise ValueError([problem.message for problem in form.problems])
    found = timed_estimate(plan_of(form)).step
    updating = 0.0 if case.fused else foreach_update(found.memory).value
    return Predicted(found.seconds, found.low, found.high, max(updating, float(found.memory.total)))
