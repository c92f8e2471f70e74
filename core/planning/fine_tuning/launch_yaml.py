"""A fine-tuning plan as the YAML files of TRL with PEFT and of Axolotl."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.formula import Source
from core.planning.fine_tuning.settings import ALL_LINEAR, FEED_FORWARD, LINEAR, FineTuning, FineTuningLaunch

TRL = Source(
    "Hugging Face, TRL and PEFT",
    "trainer/sft_config.py and model_config.py, docs/source/clis.md, July 2026",
    "https://github.com/huggingface/trl/blob/f2cd57710ae345ea6428ae95363267fcf38a3dc8/trl/trainer/model_config.py",
)
AXOLOTL = Source(
    "Axolotl",
    "src/axolotl/utils/schemas, July 2026",
    "https://github.com/axolotl-ai-cloud/axolotl/blob/067b021c8b87a9e5e380b9173c704cf7340e30f5/src/axolotl/utils/schemas/config.py",
)

TRAINER_OPTIMIZERS: Mapping[tuple[str, bool], str] = {
    ("AdamW", False): "adamw_torch",
    ("AdamW", True): "paged_adamw_32bit",
    ("SGD", False): "sgd",
    ("Adafactor", False): "adafactor",
    ("Lion", False): "lion_32bit",
    ("Lion", True): "paged_lion_32bit",
    ("8-bit Lion", False): "lion_8bit",
    ("8-bit Lion", True): "paged_lion_8bit",
    ("8-bit Adam", False): "adamw_bnb_8bit",
    ("8-bit Adam", True): "paged_adamw_8bit",
    ("8-bit Adam (torchao)", False): "adamw_torch_8bit",
    ("4-bit Adam", False): "adamw_torch_4bit",
    ("AdEMAMix", False): "ademamix",
    ("AdEMAMix", True): "paged_ademamix_32bit",
}
"""Optimizer and whether it is paged → its name in transformers' ``TrainingArguments``, which TRL and Unsloth share."""

NORM_MODULES = ("input_layernorm", "post_attention_layernorm", "norm")
"""Norms by the names that Hugging Face gives them in models built as Llama is."""


def kept_whole(plan: FineTuning) -> list[str]:
    """Modules that are trained as they are, beside adapters."""
    return [*(["embed_tokens", "lm_head"] if plan.head else []), *(NORM_MODULES if plan.norms else ())]


def adapted(plan: FineTuning, notes: list[str]) -> list[str]:
    """The modules that get adapters, by the names that transformers has for them."""
    if plan.stacked and any(name in FEED_FORWARD for name in plan.targets):
        notes.append(
            "transformers holds routed experts as one tensor, which module names do not reach: name it in "
            "`lora_target_parameters`."
        )
    if not plan.foreign:
        return list(plan.targets)
    notes.append("**transformers calls this model’s matrices otherwise:** adapters go to every linear layer.")
    return [ALL_LINEAR]


def optimizer_of(plan: FineTuning, notes: list[str]) -> str | None:
    """The optimizer by the Trainer's name; None and a note where it has none."""
    name = TRAINER_OPTIMIZERS.get((plan.optimizer, plan.paged))
    if name is None:
        notes.append(f"It has no {'paged ' * plan.paged}{plan.optimizer}: its own default is used.")
    return name


def unlike(plan: FineTuning) -> list[str]:
    """What no program that builds on transformers' Trainer has a setting for."""
    notes: list[str] = []
    if plan.in_backward:
        notes.append("It has no optimizer step in backward for this optimizer: all gradients are there at once.")
    if plan.frozen == "fp8" and plan.trained != "everything":
        notes.append("It has no setting for frozen weights in fp8: here they stay in bf16.")
    if plan.norms and plan.biases:
        notes.append("Biases beside adapters are not among these settings: they stay frozen.")
    if plan.tensor > 1:
        notes.append(f"Tensor parallelism over {plan.tensor} is not among these settings.")
    notes += [f"It has no {name} in these settings." for name in plan.others]
    return notes


def base_of(plan: FineTuning, notes: list[str]) -> str:
    """The model by its name on Hugging Face; a place for one and a note where it has none."""
    if plan.base:
        return plan.base
    notes.append("The model has no name on Hugging Face: put your own in place of `your/model`.")
    return "your/model"


def trl(plan: FineTuning) -> FineTuningLaunch:
    """The file of ``trl sft --config``, whose adapters are PEFT's."""
    notes: list[str] = []
    base = base_of(plan, notes)
    if plan.trained in ("last layers", "named tensors"):
        notes.append("**Not as the plan trains it:** what is frozen beside adapters is set in code, not here.")
    stored = plan.computed
    settings: dict[str, Any] = {"model_name_or_path": base, "dtype": _long(stored)}
    if plan.adapters:
        settings |= {"use_peft": True, "lora_r": plan.rank, "lora_alpha": plan.scaled, "lora_dropout": plan.dropout}
        settings["lora_target_modules"] = adapted(plan, notes)
        if whole := kept_whole(plan):
            settings["lora_modules_to_save"] = whole
        settings |= {"use_dora": True} if plan.dora else {}
        settings |= _bits(plan)
        if (kept := "fp32" if plan.frozen in ("bf16", "fp32") else "bf16") != plan.stored:
            notes.append(f"On weights in {plan.frozen} it keeps adapters in {kept}, not {plan.stored}.")
    settings |= {
        "max_length": plan.seq_len,
        "packing": plan.packed,
        "per_device_train_batch_size": plan.micro_batch,
        "gradient_accumulation_steps": plan.accumulated,
        "gradient_checkpointing": plan.recompute,
        "activation_offloading": plan.activations,
        "bf16": stored == "bf16" or plan.autocast,
        "loss_type": "chunked_nll" if plan.chunks > 1 else "nll",
    }
    if plan.chunks > 1:
        notes.append("It cuts the loss into chunks of tokens of its own size.")
    if name := optimizer_of(plan, notes):
        settings["optim"] = name
    settings |= _accelerate(plan, notes)
    notes += unlike(plan)
    notes.append("`dataset_name` and `learning_rate` are yours to add; it starts by `trl sft --config`.")
    return FineTuningLaunch("TRL with PEFT", "yaml", as_yaml(settings), tuple(notes), TRL)


def _bits(plan: FineTuning) -> dict[str, Any]:
    if plan.frozen == "int8":
        return {"load_in_8bit": True}
    if not plan.four_bits:
        return {}
    double = {"use_bnb_nested_quant": True} if plan.frozen == "nf4, double" else {}
    # FSDP shards what is stored in the type of all other weights alone.
    storage = {"bnb_4bit_quant_storage": "bfloat16"} if plan.zero == 3 and plan.data > 1 else {}
    return {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", **double, **storage}


def _accelerate(plan: FineTuning, notes: list[str]) -> dict[str, Any]:
    """Which of the Accelerate profiles that TRL ships, and how many processes."""
    if plan.data == 1:
        notes += ["On one accelerator it offloads no states unless DeepSpeed is asked to."] * (plan.offload > 0)
        return {}
    profile = {0: "multi_gpu", 1: "zero1", 2: "zero2", 3: "fsdp2"}[plan.zero]
    if plan.offload:
        notes.append("Its profiles offload nothing: write one of your own with `fsdp_offload_params: true`.")
    return {"accelerate_config": profile, "num_processes": plan.data}


def axolotl(plan: FineTuning) -> FineTuningLaunch:
    """The file of ``axolotl train``."""
    notes: list[str] = []
    settings: dict[str, Any] = {"base_model": base_of(plan, notes)}
    if plan.adapters:
        settings |= _axolotl_adapters(plan, notes)
    elif plan.trained == "last layers":
        first = max(0, plan.layers - plan.last)
        settings["unfrozen_parameters"] = [f"model.layers.{i}." for i in range(first, plan.layers)]
    elif plan.trained == "named tensors":
        settings["unfrozen_parameters"] = [_unfrozen(pattern) for pattern in plan.patterns]
    if not plan.adapters and plan.trained != "everything" and plan.frozen != "bf16":
        notes.append(f"It quantises nothing without adapters: frozen weights stay in bf16, not {plan.frozen}.")
    settings |= {
        "sequence_len": plan.seq_len,
        "sample_packing": plan.packed,
        "micro_batch_size": plan.micro_batch,
        "gradient_accumulation_steps": plan.accumulated,
        "gradient_checkpointing": plan.recompute,
        "bf16": plan.computed == "bf16",
    }
    if plan.autocast and not plan.adapters:
        notes.append("Weights in fp32 it multiplies in fp32: it autocasts none of them.")
    if plan.activations and plan.recompute:
        settings["activation_offloading"] = True
    elif plan.activations:
        notes.append("**It refuses to offload activations** where layers are not recomputed.")
    if plan.chunks > 1:
        settings |= {"chunked_cross_entropy": True, "chunked_cross_entropy_num_chunks": plan.chunks}
    if name := _axolotl_optimizer(plan, notes):
        settings["optimizer"] = name
    settings |= _axolotl_sharding(plan, notes)
    notes += unlike(plan)
    notes.append("`datasets` and `learning_rate`, which it asks for, are yours to add; it starts by `axolotl train`.")
    return FineTuningLaunch("Axolotl", "yaml", as_yaml(settings), tuple(notes), AXOLOTL)


def _unfrozen(pattern: str) -> str:
    """A pattern over names, or a part of them, as Axolotl reads it: from the start, periods being periods."""
    if "*" in pattern:
        return f"(model.)?{pattern.replace('*', '[^ ]*')}(.weight)?$"
    return f"[^ ]*{pattern}"


def _axolotl_adapters(plan: FineTuning, notes: list[str]) -> dict[str, Any]:
    four = plan.four_bits
    settings: dict[str, Any] = {"adapter": "qlora" if four else "lora"}
    settings |= {"load_in_4bit": True} if four else {"load_in_8bit": True} if plan.frozen == "int8" else {}
    if plan.frozen == "nf4":
        settings["bnb_config_kwargs"] = {"bnb_4bit_use_double_quant": False}
    settings |= {"lora_r": plan.rank, "lora_alpha": plan.scaled, "lora_dropout": plan.dropout}
    targets = adapted(plan, notes)
    everywhere = set(targets) in ({ALL_LINEAR}, set(LINEAR))
    settings |= {"lora_target_linear": True} if everywhere else {"lora_target_modules": targets}
    if whole := kept_whole(plan):
        settings["lora_modules_to_save"] = whole
    settings |= {"peft_use_dora": True} if plan.dora else {}
    return settings | {"peft_autocast_adapter_dtype": plan.stored == "fp32"}


def _axolotl_optimizer(plan: FineTuning, notes: list[str]) -> str | None:
    if (plan.optimizer, plan.paged) == ("FP8 Adam", False):
        return "ao_adamw_fp8"
    name = optimizer_of(plan, notes)
    if name == "adamw_bnb_8bit" and plan.zero == 3 and plan.data > 1:
        notes.append("**It refuses bitsandbytes’ 8-bit Adam under FSDP 2**; `adamw_torch_8bit` stands in its place.")
        return "adamw_torch_8bit"
    return name


def _axolotl_sharding(plan: FineTuning, notes: list[str]) -> dict[str, Any]:
    if plan.data == 1 or plan.zero == 0:
        notes += ["It offloads no states unless they are sharded."] * (plan.offload > 0)
        return {}
    if plan.zero < 3:
        return {"deepspeed": f"deepspeed_configs/zero{plan.zero}.json"}
    config: dict[str, Any] = {
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "reshard_after_forward": True,
        "state_dict_type": "FULL_STATE_DICT",
    }
    if plan.offload:
        config["offload_params"] = True
    if plan.offload == 1:
        notes.append("Its offload takes parameters and gradients to the host, too.")
    return {"fsdp_version": 2, "fsdp_config": config}


def _long(kind: str) -> str:
    return {"bf16": "bfloat16", "fp32": "float32"}[kind]


def as_yaml(settings: Mapping[str, Any], indent: str = "") -> str:
    """Plain YAML: scalars as JSON has them where they are no words, lists in a row, one level of mappings."""
    lines: list[str] = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            lines += [f"{indent}{name}:", as_yaml(value, indent + "  ")]  # pyright: ignore[reportUnknownArgumentType]
        else:
            lines.append(f"{indent}{name}: {_scalar(value)}")
    return "\n".join(lines)


def _scalar(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_scalar(item) for item in value)}]"  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, str):
        plain = value.replace("/", "").replace("_", "").replace("-", "").replace(".", "").isalnum()
        return value if plain else json.dumps(value)
    return json.dumps(value)
