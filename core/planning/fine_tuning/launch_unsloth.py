"""A fine-tuning plan as the Python that Unsloth's notebooks write."""

from __future__ import annotations

from typing import Any

from core.formula import Source
from core.planning.fine_tuning.launch_yaml import adapted, optimizer_of, unlike
from core.planning.fine_tuning.settings import ALL_LINEAR, FineTuning, FineTuningLaunch

SOURCE = Source(
    "Unsloth",
    "unsloth/models/loader.py and llama.py, August 2026",
    "https://github.com/unslothai/unsloth/blob/015bdef0d94a241bcd94eec7a405b1700632180d/unsloth/models/loader.py",
)


def unsloth(plan: FineTuning) -> FineTuningLaunch:
    """``from_pretrained``, ``get_peft_model`` and the arguments of TRL's trainer, which it patches."""
    notes: list[str] = []
    if plan.trained in ("last layers", "named tensors"):
        notes.append("**Not as the plan trains it:** without adapters it trains everything; freeze the rest in code.")
    four, eight = plan.adapters and plan.four_bits, plan.adapters and plan.frozen == "int8"
    checkpointing: Any = "unsloth" if plan.activations and plan.recompute else plan.recompute
    loaded: dict[str, Any] = {
        "max_seq_length": plan.seq_len,
        "load_in_4bit": four,
        "load_in_8bit": eight,
        "full_finetuning": not plan.adapters,
        "use_gradient_checkpointing": checkpointing,
    }
    if not plan.adapters:
        loaded["float32_mixed_precision"] = plan.stored == "fp32"
    if plan.activations and not plan.recompute:
        notes.append("It offloads activations only where layers are recomputed.")
    if plan.frozen == "fp32" and plan.adapters:
        notes.append("It loads frozen weights in bf16, not fp32.")
    if plan.frozen == "nf4" and plan.adapters:
        notes.append("Its NF4 always quantises the scales once more: about 0.4 bits a weight less than are counted.")
    name = plan.base or "your/model"
    blocks = [
        "from unsloth import FastLanguageModel",
        "from trl import SFTConfig",
        "",
        _call("model, tokenizer = FastLanguageModel.from_pretrained", [repr_of(name)], loaded),
    ]
    if plan.adapters:
        names = adapted(plan, notes)
        adapters: dict[str, Any] = {"r": plan.rank, "target_modules": names[0] if names == [ALL_LINEAR] else names}
        adapters["lora_alpha"] = plan.scaled
        adapters["lora_dropout"] = plan.dropout or 0
        if plan.head:
            adapters["modules_to_save"] = ["embed_tokens", "lm_head"]
        if plan.norms:
            notes.append("**It refuses to train norms beside adapters**; they are left out.")
        if plan.dora:
            adapters["use_dora"] = True
        adapters["use_gradient_checkpointing"] = checkpointing
        blocks.append(_call("model = FastLanguageModel.get_peft_model", ["model"], adapters))
    arguments: dict[str, Any] = {
        "per_device_train_batch_size": plan.micro_batch,
        "gradient_accumulation_steps": plan.accumulated,
        "max_length": plan.seq_len,
        "packing": plan.packed,
    }
    if optimizer := optimizer_of(plan, notes):
        arguments["optim"] = optimizer
    blocks.append(_call("args = SFTConfig", [], arguments))
    if plan.chunks > 1:
        notes.append("Its loss is a kernel of its own, whose chunks are no setting.")
    if plan.data > 1 and plan.zero:
        notes.append(f"It shards nothing: ZeRO-{plan.zero} over {plan.data} accelerators is not among its settings.")
    elif plan.data > 1:
        notes.append(f"Started by `torchrun --nproc_per_node {plan.data}` each process holds everything.")
    if plan.offload:
        notes.append(
            "Optimizer state and weights are not offloaded by a setting here; a paged optimizer is what is nearest."
        )
    notes += unlike(plan)
    return FineTuningLaunch("Unsloth", "python", "\n".join(blocks), tuple(notes), SOURCE)


def repr_of(value: Any) -> str:
    """A value as Python writes it, with double quotation marks."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(repr_of(item) for item in value)}]"  # pyright: ignore[reportUnknownVariableType]
    return repr(value)


def _call(head: str, first: list[str], fields: dict[str, Any]) -> str:
    rows = [*first, *(f"{name}={repr_of(value)}" for name, value in fields.items())]
    return "\n".join((f"{head}(", *(f"    {row}," for row in rows), ")"))
