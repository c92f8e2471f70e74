"""A fine-tuning plan as the YAML file of LLaMA-Factory."""

from __future__ import annotations

from typing import Any

from core.formula import Source
from core.planning.fine_tuning.launch_yaml import adapted, as_yaml, base_of, kept_whole, optimizer_of, unlike
from core.planning.fine_tuning.settings import ALL_LINEAR, LINEAR, FineTuning, FineTuningLaunch

SOURCE = Source(
    "LLaMA-Factory",
    "src/llamafactory/hparams, model/adapter.py and examples/deepspeed, August 2026",
    "https://github.com/hiyouga/LLaMA-Factory/tree/ff6d4d12eeb035d6ce06805a5733dd7b29f2ac30/src/llamafactory/hparams",
)


def llama_factory(plan: FineTuning) -> FineTuningLaunch:
    """The file of ``llamafactory-cli train``."""
    notes: list[str] = []
    settings: dict[str, Any] = {"model_name_or_path": base_of(plan, notes), "stage": "sft", "do_train": True}
    if plan.adapters:
        settings |= _adapters(plan, notes)
    elif plan.trained == "last layers":
        settings |= {"finetuning_type": "freeze", "freeze_trainable_layers": plan.last}
        if plan.head:
            settings["freeze_extra_modules"] = "embed_tokens,lm_head"
    else:
        settings["finetuning_type"] = "full"
        if plan.trained == "named tensors":
            notes.append("**Not as the plan trains it:** it names modules of the last layers, not single tensors.")
    if not plan.adapters and plan.trained != "everything" and plan.frozen != "bf16":
        notes.append(f"It quantises nothing without adapters: frozen weights stay in bf16, not {plan.frozen}.")
    settings |= {
        "cutoff_len": plan.seq_len,
        "packing": plan.packed,
        "per_device_train_batch_size": plan.micro_batch,
        "gradient_accumulation_steps": plan.accumulated,
        "disable_gradient_checkpointing": not plan.recompute,
    }
    settings |= _types(plan, notes)
    if plan.activations and plan.recompute:
        settings["use_unsloth_gc"] = True
    elif plan.activations:
        notes.append("It offloads activations only where layers are recomputed.")
    if plan.chunks > 1:
        settings["enable_liger_kernel"] = True
        notes.append("Its loss comes in pieces by a kernel of Liger’s, which chooses how many.")
    if name := optimizer_of(plan, notes):
        settings["optim"] = name
    settings |= _sharding(plan, notes)
    notes += unlike(plan)
    notes.append(
        "`dataset`, `template`, `output_dir` and `learning_rate` are yours to add; it starts by "
        f"`{'FORCE_TORCHRUN=1 ' * ('deepspeed' in settings)}llamafactory-cli train`."
    )
    return FineTuningLaunch("LLaMA-Factory", "yaml", as_yaml(settings), tuple(notes), SOURCE)


def _adapters(plan: FineTuning, notes: list[str]) -> dict[str, Any]:
    targets = adapted(plan, notes)
    everywhere = set(targets) in ({ALL_LINEAR}, set(LINEAR))
    settings: dict[str, Any] = {
        "finetuning_type": "lora",
        "lora_rank": plan.rank,
        "lora_alpha": max(1, round(plan.alpha)),
        "lora_target": "all" if everywhere else ",".join(targets),
    }
    if plan.dropout:
        settings["lora_dropout"] = plan.dropout
    if settings["lora_alpha"] != plan.alpha:
        notes.append(f"Its alpha is a whole number, not {plan.scaled}.")
    if whole := kept_whole(plan):
        settings["additional_target"] = ",".join(whole)
    if plan.dora:
        settings["use_dora"] = True
    if plan.frozen == "int8" and _stage(plan) == 3:
        notes.append("**It refuses int8 under ZeRO-3**: frozen weights stay in bf16.")
    elif plan.frozen == "int8":
        settings["quantization_bit"] = 8
    elif plan.four_bits:
        settings |= {"quantization_bit": 4, "quantization_type": "nf4"}
        settings["double_quantization"] = plan.frozen == "nf4, double"
    elif plan.frozen == "fp32":
        notes.append("It loads frozen weights in bf16, not fp32.")
    return settings


def _types(plan: FineTuning, notes: list[str]) -> dict[str, Any]:
    """Trained weights in fp32 under autocast are its usual way; all in bf16 is another, which ZeRO-3 has not."""
    if plan.stored == "bf16" and _stage(plan) != 3:
        return {"pure_bf16": True}
    if plan.stored == "bf16":
        notes.append("**It refuses pure bf16 under ZeRO-3**: what is trained is kept in fp32.")
    return {"bf16": plan.autocast or plan.adapters or plan.stored == "bf16"}


def _stage(plan: FineTuning) -> int:
    """The stage of ZeRO among the files that it ships; 0 where it takes none."""
    shards = plan.zero > 0 and plan.data > 1
    return (3 if plan.zero == 3 else 2) if shards or plan.offload else 0


def _sharding(plan: FineTuning, notes: list[str]) -> dict[str, Any]:
    """One of the DeepSpeed files that it ships."""
    stage = _stage(plan)
    if not stage:
        return {}
    if plan.zero < 2:
        notes.append(f"It ships no file for ZeRO-{plan.zero}: ZeRO-2 stands in its place.")
    if plan.offload == 1 and stage == 3:
        notes.append("Its offload takes parameters to the host, too.")
    return {"deepspeed": f"examples/deepspeed/ds_z{stage}{'_offload' * (plan.offload > 0)}_config.json"}
