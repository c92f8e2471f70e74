"""A fine-tuning plan as overrides of a configuration that torchtune ships."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from core.formula import Source
from core.planning.fine_tuning.settings import ATTENTION, FEED_FORWARD, FineTuning, FineTuningLaunch
from core.rows import read_rows

SOURCE = Source(
    "PyTorch, torchtune",
    "recipes/ and torchtune/models, April 2026",
    "https://github.com/pytorch/torchtune/tree/bd2a0fc7c31430972728494fa01aaeeb0ebf1ba1/recipes",
)

_NAMES = {"o_proj": "output_proj"}
_OPTIMIZERS: Mapping[tuple[str, bool], str] = {
    ("AdamW", False): "torch.optim.AdamW",
    ("Adam", False): "torch.optim.Adam",
    ("SGD", False): "torch.optim.SGD",
    ("Adafactor", False): "torch.optim.Adafactor",
    ("AdamW", True): "bitsandbytes.optim.PagedAdamW",
    ("Adam", True): "bitsandbytes.optim.PagedAdam",
    ("8-bit Adam", False): "bitsandbytes.optim.AdamW8bit",
    ("8-bit Adam", True): "bitsandbytes.optim.PagedAdamW8bit",
    ("8-bit Adam (torchao)", False): "torchao.optim.AdamW8bit",
    ("4-bit Adam", False): "torchao.optim.AdamW4bit",
    ("FP8 Adam", False): "torchao.optim.AdamWFp8",
}
"""Optimizer and whether it is paged → the component that a configuration names."""

_FUSED = ("torch.optim.AdamW", "torch.optim.Adam", "torch.optim.SGD")
"""Components that take ``fused``."""


@lru_cache(maxsize=1)
def _models() -> Mapping[str, Mapping[str, str]]:
    return {row["model"]: row for row in read_rows("torchtune_models")}


def torchtune(plan: FineTuning) -> FineTuningLaunch:
    """The line that starts torchtune's recipe; it has one for all weights and one for adapters."""
    row, notes = _models().get(plan.model), list[str]()
    if row is None:
        return _refused("It has no builder for this model.")
    if plan.trained not in ("everything", "adapters"):
        return _refused(f"Its recipes train everything or adapters, not {plan.trained}.")
    kind = "lora" if plan.adapters else "full"
    shipped = _shipped(row["configs"].split(), kind, single=plan.accelerators == 1)
    if shipped is None:
        return _refused(f"It ships no configuration that trains {plan.trained} of this model.")
    where = "single_device" if plan.accelerators == 1 else "distributed"
    settings = _model(plan, row, notes) | _step(plan, notes)
    if plan.accelerators > 1:
        settings |= _spread(plan, notes)
    elif plan.offload:
        notes.append("On one accelerator its recipes offload no states.")
    notes += [f"It has no {name} in these recipes." for name in plan.others]
    component = _OPTIMIZERS.get((plan.optimizer, plan.paged))
    if component is None:
        notes.append(f"It has no {'paged ' * plan.paged}{plan.optimizer} here: the configuration’s optimizer stays.")
    else:
        settings["optimizer._component_"] = component
    ranks = f" --nproc_per_node {plan.accelerators}" if plan.accelerators > 1 else ""
    head = f"tune run{ranks} {kind}_finetune_{where} --config {row['package']}/{row['size']}_{shipped}"
    lines = [head, *(f"  {name}={_written(value)}" for name, value in settings.items())]
    if component and component not in _FUSED and shipped in row["fused"].split():
        lines.append("  ~optimizer.fused")  # which the configuration sets, and only torch's own optimizers know
    notes += _types(plan)
    return FineTuningLaunch("torchtune", "bash", " \\\n".join(lines), tuple(notes), SOURCE)


def _refused(why: str) -> FineTuningLaunch:
    return FineTuningLaunch("torchtune", "bash", "", (f"**No line:** {why}",), SOURCE)


def _shipped(kinds: list[str], kind: str, *, single: bool) -> str | None:
    """The shipped configuration that is nearest: its recipe is named anew, and its model is overridden."""
    order = (f"{kind}_single_device", kind) if single else (kind, f"{kind}_single_device")
    quantised = ("qlora_single_device", "qlora") if kind == "lora" else ()
    return next((name for name in (*order, *quantised) if name in kinds), None)


def _model(plan: FineTuning, row: Mapping[str, str], notes: list[str]) -> dict[str, Any]:
    module = f"torchtune.models.{row['package']}"
    if not plan.adapters:
        return {"model._component_": f"{module}.{row['builder']}"}
    narrow = [name for name in FEED_FORWARD if name in plan.targets]
    if narrow and len(narrow) < len(FEED_FORWARD):
        notes.append(f"It adapts all three feed-forward matrices or none, not {', '.join(narrow)} alone.")
    if plan.head or plan.norms:
        notes.append("Beside adapters it trains neither the embedding and the head nor norms as they are.")
    quantised = plan.four_bits
    if plan.frozen == "nf4":
        notes.append("Its NF4 always quantises the scales once more: about 0.4 bits a weight less than are counted.")
    if plan.frozen in ("int8", "fp8"):
        notes.append(f"It stores no frozen weights in {plan.frozen}: here they stay in bf16.")
    dora = {} if "use_dora" in row["lacks"] else {"model.use_dora": plan.dora}
    if plan.dora and not dora:
        notes.append("It has no DoRA for this model: its adapters are plain LoRA.")
    return {
        "model._component_": f"{module}.lora_{row['builder']}",
        "model.lora_attn_modules": [_NAMES.get(name, name) for name in plan.targets if name in ATTENTION],
        "model.apply_lora_to_mlp": bool(narrow),
        "model.lora_rank": plan.rank,
        "model.lora_alpha": plan.scaled,
        "model.lora_dropout": plan.dropout,
        **({} if "apply_lora_to_output" in row["lacks"] else {"model.apply_lora_to_output": "lm_head" in plan.targets}),
        **dora,
        "model.quantize_base": quantised,
    }


def _step(plan: FineTuning, notes: list[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "tokenizer.max_seq_len": plan.seq_len,
        "dataset.packed": plan.packed,
        "batch_size": plan.micro_batch,
        "gradient_accumulation_steps": plan.accumulated,
        "dtype": plan.computed,
        "loss._component_": "torchtune.modules.loss.LinearCrossEntropyLoss",
        "loss.num_output_chunks": plan.chunks,
        "enable_activation_checkpointing": plan.recompute,
        "enable_activation_offloading": plan.activations and plan.recompute,
    }
    if plan.activations and not plan.recompute:
        notes.append("It offloads activations only where layers are recomputed.")
    if plan.in_backward and plan.adapters:
        notes.append("Its recipe for adapters has no optimizer step in backward.")
    elif plan.in_backward and plan.accumulated > 1:
        notes.append("**It refuses the optimizer step in backward with accumulated micro-batches**; it is left out.")
    if not plan.adapters:
        settings["optimizer_in_bwd"] = plan.in_backward and plan.accumulated == 1
    return settings


def _spread(plan: FineTuning, notes: list[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {"data_parallel_replicate_dim": 1, "data_parallel_shard_dim": plan.data}
    if plan.zero == 0 and plan.data > 1:
        settings = {"data_parallel_replicate_dim": plan.data, "data_parallel_shard_dim": 1}
    settings["fsdp_reshard_after_forward"] = plan.zero == 3
    settings["fsdp_cpu_offload"] = plan.offload > 0
    if plan.zero == 1:
        notes.append("It has no ZeRO-1: what is nearest shards gradients and parameters as well.")
    if plan.offload == 1:
        notes.append("Its offload takes parameters and gradients to the host, too.")
    if plan.tensor > 1 and plan.adapters:
        notes.append("**It refuses tensor parallelism with adapters.**")
    elif plan.tensor > 1:
        settings["tensor_parallel_dim"] = plan.tensor
        notes.append("Tensor parallelism needs a `tensor_parallel_plan` of the model’s package beside its degree.")
    return settings


def _types(plan: FineTuning) -> list[str]:
    if plan.adapters and plan.stored != plan.computed:
        return [f"Adapters are in the type of the frozen weights, here {plan.computed}, not {plan.stored}."]
    if plan.autocast:
        return [f"It computes in the type that it stores, here {plan.stored}, and does not autocast."]
    return []


def _written(value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(value)}]"  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value if isinstance(value, str) else json.dumps(value)
