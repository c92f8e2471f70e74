"""Printed peaks of fine-tuning runs (tests/data/memory_rows.csv) as setups of Napkin, and what it counts for each."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, replace
from pathlib import Path

from core.models.catalog import CATALOG
from core.models.spec import TransformerSpec
from core.training.activations.tensors import HF_EAGER, HF_SDPA, LOGITS_KEPT, Implementation
from core.training.device.buffers import MEASURED, Runtime
from core.training.device.memory import DeviceMemory
from core.training.layout import Layout, Recompute
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES
from core.training.trained import Trained
from tests.core.memory_of import memory_per_device

ROWS = Path(__file__).parents[1] / "data" / "memory_rows.csv"

_LLAMA2, _MISTRAL = CATALOG["Llama 2 7B"].spec, CATALOG["Mistral 7B v0.1"].spec
_GEMMA = TransformerSpec(
    layers=18, hidden=2048, heads=8, kv_heads=1, head_dim=256, ffn=16384, vocab=256000, glu=True, tied_head=True
)
_STABLELM = TransformerSpec(
    layers=16, hidden=4096, heads=32, kv_heads=32, head_dim=128, ffn=16384, vocab=50688, glu=False, tied_head=False,
    norm="layernorm", parallel_blocks=True, attention_bias=True, output_bias=True, ffn_bias=True,
)  # fmt: skip
_TINY = TransformerSpec(
    layers=22, hidden=2048, heads=32, kv_heads=4, head_dim=64, ffn=5632, vocab=32000, glu=True, tied_head=False
)

SPECS: dict[str, TransformerSpec] = {
    "falcon-7b": CATALOG["Falcon 7B"].spec,
    "Falcon 40B": CATALOG["Falcon 40B"].spec,
    "gemma-2b": _GEMMA,
    "gemma-7b": replace(_GEMMA, layers=28, hidden=3072, heads=16, kv_heads=16, ffn=24576),
    "gemma-2-2b": CATALOG["Gemma 2 2B"].spec,
    "gemma-2-9b": CATALOG["Gemma 2 9B"].spec,
    "llama-2-7b": _LLAMA2,
    "Llama 2 7B": _LLAMA2,
    "Llama 2 13B": CATALOG["Llama 2 13B"].spec,
    "llama-3-8b": CATALOG["Llama 3 8B"].spec,
    "llama-3.1-8b": CATALOG["Llama 3.1 8B"].spec,
    "llama-3.2-1b": CATALOG["Llama 3.2 1B"].spec,
    "llama-3.2-3b": CATALOG["Llama 3.2 3B"].spec,
    "mistral-7b": _MISTRAL,
    "mistral-7b-v0.2": _MISTRAL,
    "phi-2": CATALOG["Phi-2 2.7B"].spec,
    "phi-1.5 1.3B": replace(
        CATALOG["Phi-2 2.7B"].spec, layers=24, hidden=2048, heads=32, kv_heads=32, head_dim=64, ffn=8192
    ),
    "Phi-3-mini-4k-instruct": CATALOG["Phi-3 mini 4K"].spec,
    "stablelm-base-alpha-3b": _STABLELM,
    "StableLM Alpha 3B": _STABLELM,
    "tiny-llama": _TINY,
    "meta-llama/Llama-3.2-3B": CATALOG["Llama 3.2 3B"].spec,
}

_MEMORY = {"A10G 24 GB": 23028 * 2**20, "A100 SXM 40 GB": 40960 * 2**20, "NVIDIA L40S": 46068 * 2**20}

ALLOCATED = Runtime(context=0.0, communicator=0.0, slack=0.0)
"""What torch's allocator counts as allocated: no context, no fragments."""

_TARGETS = {
    "query": ("q_proj",),
    "key": ("k_proj",),
    "value": ("v_proj",),
    "projection": ("o_proj",),
    "mlp": ("mlp",),
    "head": ("lm_head",),
}


@dataclass(frozen=True)
class Row:
    """One printed peak. peak: bytes, NaN where it ran out of memory. memory: of the card."""

    id: str
    row: dict[str, str]

    @property
    def out_of_memory(self) -> bool:
        return self.row["peak_printed"] == "OOM"

    @property
    def peak(self) -> float:
        if self.out_of_memory:
            return math.nan
        return float(self.row["peak_printed"]) * {"GB": 1e9, "B": 1.0}[self.row["peak_unit"]]

    @property
    def memory(self) -> float:
        return _MEMORY[self.row["gpu"]]

    @property
    def left_out(self) -> str:
        """Why a plan cannot be this run; empty where it can."""
        method = self.row["method"]
        if method not in ("full", "LoRA", "QLoRA", "ln_tuning"):
            return f"{method} is no method of a plan"
        if any(word in self.row["source"] + self.row["notes"] for word in ("lorafa", "bdlora")):
            return "a variant of LoRA that a plan does not have"
        alone = self.row["n_gpus"] == "4" and "4xA10G rows print the same" in self.row["notes"]
        if method == "full" and self.row["framework"] == "litgpt" and self.peak < self._least:
            return "prints less than weights, gradients and states of its own settings"
        return "" if not alone or method != "full" else "printed for four cards, of a single-card table"

    @property
    def _least(self) -> float:
        optimizer = self.row["optimizer"] or "AdamW"
        return float(self.counted_with(optimizer).states)

    @property
    def litgpt(self) -> bool:
        return self.row["framework"] == "litgpt"

    @property
    def capped(self) -> bool:
        """Whether scores and logits are capped: Gemma 2, the 2B of which the table calls by the name of the first."""
        return "gemma2" in self.row["source"]

    @property
    def spec(self) -> TransformerSpec:
        spec = SPECS["gemma-2-2b" if self.capped and self.row["model"] == "gemma-2b" else self.row["model"]]
        return replace(spec, tied_head=False) if self.litgpt else spec  # convert_hf_checkpoint.py copies the embedding

    @property
    def trained(self) -> Trained:
        method, r = self.row["method"], self.row
        if method == "full":
            return Trained()
        if method == "ln_tuning":
            return Trained("named tensors", names=("norm",))
        frozen = {"bnb.nf4": "nf4", "bnb.nf4-dq": "nf4, double"}.get(r["quantization"], "bf16")
        if method == "QLoRA" and not r["quantization"]:
            frozen = "nf4"
        words = r["lora_targets"].replace("+", " ").split() or ["query", "value"]
        targets = tuple(dict.fromkeys(t for word in words for t in _TARGETS.get(word, (word,))))
        rank = int(r["lora_r"].split()[0]) if r["lora_r"] else 32
        dora = "dora" in r["source"] + r["notes"]
        one = self.litgpt
        return Trained("adapters", rank, targets=targets, frozen=frozen, dropout=one, dora=dora, fused=one)

    @property
    def tokens(self) -> int:
        return int(self.row["seq_len"].split()[0])

    @property
    def beside(self) -> float:
        """Bytes that litgpt keeps beside what a plan counts: in attention, in quantised products, at the loss.

        Values are a view of one product with queries and keys; of grouped ones, keys and values are copied for each
        query [litgpt, model.py]. Where adapters leave one of the three out, theirs are copied into zeros, and
        index_copy keeps them [lora.py; PyTorch, derivatives.yaml]. Scores and logits under a cap keep the tangent.
        Logits become fp32 as they leave the model [Lightning Fabric, half.py], their gradients in pieces of 128.
        Until 0.43.2 bitsandbytes kept the input of every product, in an attribute that lasts as long as the loss: to
        the end of the next forward [bitsandbytes, CHANGELOG.md; litgpt, finetune/lora.py]. The head is quantised with
        the rest, its copy there at the loss; the embedding is made anew after freezing, so it gets a gradient.

        None of it is a choice of a plan. Without it every row beyond 20 % but one is of quantised weights, by what
        bitsandbytes no longer keeps since July 2024: a plan counts what today's does, and says the range of these rows
        beside it. What litgpt has of its own moves a row by 6 % in the median.
        """
        if not self.litgpt:
            return 0.0
        s, t, batch = self.spec, self.trained, int(self.row["micro_batch"])
        tokens, capped = batch * self.tokens, self.capped
        queries, keys = s.heads * s.head_dim, s.kv_heads * s.head_dim
        widths = {"q_proj": queries, "k_proj": keys, "v_proj": keys}
        adapted = [width for name, width in widths.items() if t.adapters and name in t.modules]
        each = 0 if capped else queries + keys if queries == keys else 2 * (queries - keys)
        each += sum(adapted) * (0 < len(adapted) < 3) + capped * s.heads * self.tokens
        whole = s.vocab * (tokens * (4.0 + 2.0 * capped) + 128 * batch * 8.0)
        if t.storage.quantised:
            read = s.hidden * (1 if s.parallel_blocks and s.norms_per_layer < 2 else 2) + s.ffn
            recent = "10/2023" not in self.row["notes"]  # the tables of then force the longest batch to be the first
            each += read + recent * (read + queries)
            whole += s.vocab * s.hidden * (t.storage.each + 2.0 * recent)
        layers = s.layers if self.row["sharding"] != "FSDP" else 1
        return 2.0 * layers * tokens * each + whole

    def counted_with(self, optimizer: str) -> DeviceMemory:
        litgpt = self.litgpt
        fsdp = self.row["sharding"] == "FSDP"
        how: Implementation = HF_EAGER if self.capped else HF_SDPA
        policy = POLICIES["bf16 throughout"]
        if not litgpt and self.row["method"] == "LoRA":
            policy = POLICIES["fp32"]  # PEFT keeps adapters in fp32 beside bf16 weights
        layout = Layout(
            micro_batch=int(self.row["micro_batch"]),
            micro_batches=2 if self.row["method"] == "full" and litgpt else 1,
            data=int(self.row["n_gpus"]) if fsdp else 1,
            zero=3 if fsdp else 0,
            recompute=Recompute.FULL if fsdp else Recompute.NONE,
        )
        reserved = "reserved" in self.row["peak_statistic"]
        memory = memory_per_device(
            self.spec,
            layout,
            seq_len=self.tokens,
            policy=policy,
            optimizer=find_optimizer(optimizer),
            implementation=how,
            loss="fused" if litgpt else LOGITS_KEPT,
            runtime=replace(ALLOCATED, slack=0.03 if reserved else 0.0, units_gathered=200.0),
            trained=self.trained,
            paged=self.row["method"] == "QLoRA" and litgpt,
        )
        return replace(memory, activations=memory.activations + self.beside)

    def needs(self) -> float:
        """Bytes of the card that it takes: tensors, fragments, the context and the groups that exchange."""
        groups = 1.0 + (self.row["sharding"] == "FSDP")
        return float(self.counted.tensors) * (1 + MEASURED.slack) + 0.6e9 * groups

    @property
    def counted(self) -> DeviceMemory:
        return self.counted_with(self.row["optimizer"] if self.row["optimizer"] == "AdamW" else "AdamW")


def rows() -> tuple[Row, ...]:
    """Every printed peak."""
    with ROWS.open(newline="", encoding="utf-8") as file:
        return tuple(Row(row["id"], row) for row in csv.DictReader(file))
