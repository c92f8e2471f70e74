"""A fine-tuning plan as lines for TRL: the file of Accelerate that shards it with FSDP, and the command.

Every setting was read in the sources of the releases that `SOURCE` names, whose own parsers took the lines. A plan that
TRL would train with another layout, batch, precision, or set of parameters gets the reason instead of lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from core.formula import Source
from core.planning.memory_estimate import MemoryEstimate
from core.search.launch import LONG, TRL, Launch, Precision, trainer
from core.step_time.running import EAGER
from core.training.layout import Recompute, layers_of, way_of
from core.training.precision import FP32
from core.training.trained import module_of, tensors_of
from core.wording import listed

SOURCE = Source(
    "Hugging Face, TRL, PEFT, and Accelerate",
    "trl/trainer/sft_config.py and model_config.py, TRL 1.16, PEFT 0.21, Accelerate 1.15, November 2026",
    "https://github.com/huggingface/trl/blob/v1.16.0/trl/trainer/sft_config.py",
)

_CLASSES = (
    *("GPTNeoX", "OPT", "Bloom", "Falcon", "Mpt", "Phi", "Phi3", "GPTJ", "Dbrx", "Glm", "Glm4", "Starcoder2"),
    *("Qwen3_5", "Lfm2", "Lfm2Moe", "GraniteMoeHybrid"),
)

FOREIGN = frozenset(f"{name}ForCausalLM" for name in _CLASSES) | {"GPT2LMHeadModel"}
"""Classes of transformers whose matrices have names other than those of a Llama, fused ones among them."""

OPTIMIZERS: Mapping[tuple[str, bool], str] = {
    **{(name, False): "adamw_torch" for name in ("Adam", "AdamW")},  # without weight decay, as usual there, the same
    **{(name, True): "paged_adamw_32bit" for name in ("Adam", "AdamW")},
    ("SGD", False): "sgd",
    ("AdaGrad", False): "adagrad",
    ("RMSProp", False): "rmsprop",
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
"""Optimizer and whether it is paged → its name in transformers' ``TrainingArguments``."""

_OF_SHARDS = ("adamw_torch", "sgd", "rmsprop", "adamw_torch_8bit", "adamw_torch_4bit")
"""Those that ran on the tensors of FSDP. bitsandbytes’ fail there [bitsandbytes issue 1633]."""

_DROPOUT = 0.05
"""The dropout rate of a plan that has any: no rate changes a byte."""

_FILE = "accelerate.yaml"


def trl(h: MemoryEstimate) -> Launch:
    """Return the lines that run the plan of ``h``; no text, and a note with the reasons, where none do."""
    degrees = list(_unsupported_layout(h))
    if reasons := [*degrees, *_unsupported(h)]:
        return cannot_run(f"it does not support {listed(reasons, 'or')}.", *([_REMEDY] if degrees else []))
    command, notes = _command(h)
    words = [f"  --{name} {value}" for name, value in command.items()]
    head = f"trl sft --accelerate_config {_FILE}"
    text = "\n".join((f"cat > {_FILE} <<'END'", *_yaml(_file(h)), "END", " \\\n".join((head, *words))))
    return Launch(TRL, "bash", text, tuple(notes), SOURCE)


def cannot_run(why: str, *more: str) -> Launch:
    """Return no lines, and the reason."""
    return Launch(TRL, "bash", "", (f"**TRL with FSDP cannot run this plan:** {why}", *more), SOURCE)


def uses_fsdp(h: MemoryEstimate) -> bool:
    """Whether FSDP shards the plan: on one process only if it offloads."""
    return bool(h.layout.zero > 1 and (h.layout.data > 1 or h.layout.offload > 0))


def machines(h: MemoryEstimate) -> int:
    """Return the fewest nodes on which the processes of the plan divide."""
    data, node = int(h.layout.data), max(1, h.plan.device.node_size)
    return next(count for count in range(math.ceil(data / node), data + 1) if data % count == 0)


_REMEDY = (
    "Choose a custom layout with ZeRO stage 0, 2, or 3 and without other parallelism. Where a part of the model is "
    f"trained with “{EAGER.id}”, Napkin finds one."
)


def _unsupported_layout(h: MemoryEstimate) -> Iterator[str]:
    """What of the layout FSDP has no setting for, as noun phrases."""
    layout = h.layout
    reasons = {
        "tensor parallelism": layout.tensor > 1,
        "pipeline parallelism": layout.pipeline > 1,
        "context parallelism": layout.context > 1,
        "expert parallelism": bool(layout.sends_tokens),
        "ZeRO-1": layout.zero == 1 and layout.data > 1,
        "recomputation of parts of a layer": way_of(layout.recompute) not in (Recompute.NONE, Recompute.FULL),
        "recomputation of some layers": layers_of(layout.recompute) != 0,
        "offload of the optimizer without the parameters": layout.offload == 1,
    }
    yield from (reason for reason, there in reasons.items() if there)


def _unsupported(h: MemoryEstimate) -> Iterator[str]:
    """What else of the plan neither TRL nor FSDP has a setting for."""
    layout, plan, fsdp = h.layout, h.plan, uses_fsdp(h)
    batch = int(layout.data * layout.micro_batch * layout.micro_batches)
    fixed = plan.own_layout and plan.layout.micro_batches  # which decide the batch
    name = f"{'paged ' * plan.runtime_options.paged}{h.optimizer.name}"
    optimizer = OPTIMIZERS.get((h.optimizer.name, plan.runtime_options.paged))
    stored, mixed, _ = _types(h)
    (_, updated), (_, planned) = _precision(h).arguments["weights"], _precision(h).arguments["products"]
    planned = planned if plan.peak_dtype in ("bf16", "fp16", "fp32", "tf32") else plan.peak_dtype
    reasons = {
        f"steps of {plan.sequences:,} sequences, since {int(layout.data):,} processes with micro-batches of "
        f"{int(layout.micro_batch):,} take {batch:,}": batch != plan.sequences and not fixed,
        plan.device.name: plan.device.vendor not in ("NVIDIA", "AMD"),
        f"matrix products in {planned}": (mixed or stored) != planned,
        f"weights in {updated}": plan.trained.everything and stored != updated,
        "an optimizer step in backward": plan.runtime_options.in_backward,
        name: optimizer is None,
        f"{name} under FSDP": fsdp and optimizer is not None and optimizer not in _OF_SHARDS,
        f"training of {plan.trained.method}": plan.trained.method in ("last layers", "named tensors"),
    }
    yield from (reason for reason, there in reasons.items() if there)
    if plan.trained.adapters:
        yield from _unsupported_adapters(h, fsdp=fsdp)


def _unsupported_adapters(h: MemoryEstimate, *, fsdp: bool) -> Iterator[str]:
    t, model = h.plan.trained, h.plan.catalog_model
    reasons = {
        "adapters on a model whose matrices transformers names or fuses otherwise": model is not None
        and model.family in FOREIGN,
        "adapters on routed experts": h.spec.experts is not None
        and not {"gate_proj", "up_proj", "down_proj"}.isdisjoint(_targets(h)),
        "an alpha that is not a whole number": not float(t.alpha).is_integer(),
        "training of norms and biases with adapters": t.norms,
        "training of a tied embedding and head with adapters": t.head and h.spec.tied_head,
        "frozen norms, embedding, and head in fp32": t.frozen_fp32 and t.frozen != "fp32",
        "frozen weights in fp8": t.frozen == "fp8",
        "frozen weights in int8 under FSDP": fsdp and t.frozen == "int8",
        "DoRA on 4-bit weights under FSDP": fsdp and t.dora and t.frozen.startswith("nf4"),
    }
    yield from (reason for reason, there in reasons.items() if there)


def _targets(h: MemoryEstimate) -> list[str]:
    """The matrices of the model that get adapters, by the names of their modules, each once."""
    leaves = (module_of(tensor).rpartition(".")[2] for tensor in tensors_of(h.spec) if tensor.columns > 1)
    return list(dict.fromkeys(leaf for leaf in leaves if leaf in h.plan.trained.modules))


def _command(h: MemoryEstimate) -> tuple[dict[str, Any], list[str]]:
    """The options of ``trl sft``, and what is to be said with them."""
    layout, plan, t, known = h.layout, h.plan, h.plan.trained, h.plan.catalog_model
    base = known.hf_id if known and not known.counted and "(" not in known.hf_id else ""
    stored, mixed, notes = _types(h)
    options: dict[str, Any] = {
        "model_name_or_path": base or "your/model",
        "dataset_name": "your/dataset",
        "dtype": LONG[stored],
        "bf16": mixed == "bf16",
        "fp16": mixed == "fp16",
    }
    if t.adapters:
        options |= {"use_peft": True, "lora_r": t.rank, "lora_alpha": int(t.alpha)}
        names = _targets(h)
        names = names if len(names) > 1 else [f"'.*{names[0]}'"]  # which TRL hands on as a pattern of whole names
        options |= {"lora_dropout": _DROPOUT if t.dropout else 0.0, "lora_target_modules": " ".join(names)}
        options |= {"lora_modules_to_save": "embed_tokens lm_head"} if t.head else {}
        options |= {"use_dora": True} if t.dora else {}
        options |= _bits(h, stored)
    options |= {
        "max_length": plan.seq_len,
        # Packed sequences are then blocks of exactly this length, whatever kernel attention has.
        **({"packing": False} if plan.lengths.mean else {"packing": True, "packing_strategy": "wrapped"}),
        "per_device_train_batch_size": int(layout.micro_batch),
        "gradient_accumulation_steps": int(layout.micro_batches),
        # Under FSDP the file says so, and the Trainer rejects both.
        "gradient_checkpointing": _recomputes(h) and not uses_fsdp(h),
        "activation_offloading": plan.runtime_options.offload_activations,
        "optim": OPTIMIZERS[h.optimizer.name, plan.runtime_options.paged],
    }
    if uses_fsdp(h) and layout.micro_batches > 1:  # else whole gradients are kept until the last micro-batch
        options["accelerator_config"] = '\'{"gradient_accumulation_kwargs": {"sync_each_batch": true}}\''
    nodes, software = machines(h), plan.software
    others = {
        "Replace `your/model`, whose name on Hugging Face is unknown. Its modules must have the names of a Llama’s.": (
            not base
        ),
        "Replace `your/dataset`; `learning_rate` is TRL’s default of 2e-5 unless you add it.": True,
        "TRL computes the loss in pieces of its own size.": plan.runtime_options.chunks > 1,
        f"Run the lines on each of {nodes:,} nodes, with its own `machine_rank` and the address of the first as "
        "`main_process_ip`.": nodes > 1,
        f"Time and memory are planned for {software}; TRL runs as “{EAGER.id}” does.": software != EAGER.id,
    }
    return options, notes + [note for note, there in others.items() if there]


def _recomputes(h: MemoryEstimate) -> bool:
    return bool(way_of(h.layout.recompute) == Recompute.FULL)


def _types(h: MemoryEstimate) -> tuple[str, str, list[str]]:
    """The type in which weights are loaded, the narrower one of matrix products, empty where there is none, and what is
    kept otherwise than planned."""
    t, precision = h.plan.trained, _precision(h)
    (stored, _), (products, _) = precision.arguments["weights"], precision.arguments["products"]
    if not t.adapters:
        return stored, "" if products == stored else products, list(precision.notes)
    half = "fp16" if h.plan.peak_dtype == "fp16" else "bf16"
    wanted = "fp32" if FP32 in (h.policy.weights, h.policy.master) else half
    kept = "bf16" if t.storage.quantised else "fp32"
    differs = [f"On frozen weights in {t.frozen}, TRL keeps adapters in {kept}, not {wanted}."] * (kept != wanted)
    if t.frozen == "fp32":
        return "fp32", "" if products == "fp32" else half, differs
    return half, half, differs


def _precision(h: MemoryEstimate) -> Precision:
    return trainer(h.policy, h.optimizer, h.layout, h.plan.peak_dtype, paged=h.plan.runtime_options.paged)


def _bits(h: MemoryEstimate, stored: str) -> dict[str, Any]:
    """How frozen weights are quantised."""
    frozen = h.plan.trained.frozen
    if not frozen.startswith("nf4"):
        return {"load_in_8bit": True} if frozen == "int8" else {}
    options: dict[str, Any] = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
    options |= {"use_bnb_nested_quant": True} if frozen == "nf4, double" else {}
    # FSDP shards 4 bits only where they are stored in the type of all other weights.
    return options | ({"bnb_4bit_quant_storage": LONG[stored]} if uses_fsdp(h) else {})


def _file(h: MemoryEstimate) -> dict[str, Any]:
    """The settings of Accelerate: processes, sharding, precision."""
    layout, fsdp, data = h.layout, uses_fsdp(h), int(h.layout.data)
    file: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "FSDP" if fsdp else "MULTI_GPU" if data > 1 else "'NO'",
        "mixed_precision": _types(h)[1] or "'no'",
        "num_machines": machines(h),
        "num_processes": data,
        "machine_rank": 0,
    }
    file |= {"main_process_ip": "ADDRESS", "main_process_port": 29500} if machines(h) > 1 else {}
    if not fsdp:
        return file
    group = int(layout.shard_group)
    if 0 < group < data:
        sizes = {"dp_replicate_size": data // group, "dp_shard_size": group}
        file["parallelism_config"] = {f"parallelism_config_{name}": size for name, size in sizes.items()}
    return file | {
        "fsdp_config": {
            "fsdp_version": 2,
            "fsdp_reshard_after_forward": layout.zero == 3,
            "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "fsdp_activation_checkpointing": _recomputes(h),
            "fsdp_offload_params": layout.offload > 0,
            "fsdp_cpu_ram_efficient_loading": True,
            "fsdp_state_dict_type": "FULL_STATE_DICT",
        }
    }


def _yaml(settings: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Lines of plain YAML: words, numbers, switches, and one level of mappings."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield f"{indent}{name}:"
            yield from _yaml(value, indent + "  ")  # pyright: ignore[reportUnknownArgumentType]
        else:
            yield f"{indent}{name}: {str(bool(value)).lower() if isinstance(value, bool) else value}"
