"""Launch settings of TRL for a fine-tuning plan: the file of Accelerate that shards it with FSDP, and the command.

Every setting was read in the sources of the releases that `SOURCE` names. A plan that TRL would train with another
layout, batch, precision, or set of parameters has the reasons instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from core.formula import Source
from core.messages import Message, message, pick_message
from core.planning.memory_estimate import MemoryEstimate
from core.search.launch import LONG, TRL, Launch, Precision, trainer
from core.step_time.running import EAGER
from core.training.layout import Recompute, layers_of, way_of
from core.training.precision import FP32
from core.training.trained import module_of, tensors_of

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
    """Return the settings for the plan of ``h``; without text, and with the reasons as a note, if TRL cannot run it."""
    layout = list(_unsupported_layout(h))
    if reasons := [*layout, *_unsupported(h)]:
        remedy = [message("launch.trl.remedy", software=EAGER.id)] if layout else []
        return cannot_run(message("launch.trl.unsupported", reasons=reasons), *remedy)
    command, notes = _command(h)
    words = [f"  --{name} {value}" for name, value in command.items()]
    head = f"trl sft --accelerate_config {_FILE}"
    text = "\n".join((f"cat > {_FILE} <<'END'", *_yaml(_file(h)), "END", " \\\n".join((head, *words))))
    return Launch(TRL, "bash", text, tuple(notes), SOURCE)


def cannot_run(*notes: Message) -> Launch:
    """Return a launch without settings, with the reasons."""
    return Launch(TRL, "bash", "", notes, SOURCE)


def uses_fsdp(h: MemoryEstimate) -> bool:
    """Return whether FSDP shards the plan; on one process only with offload."""
    return bool(h.layout.zero > 1 and (h.layout.data > 1 or h.layout.offload > 0))


def machines(h: MemoryEstimate) -> int:
    """Return the fewest nodes on which the processes of the plan divide."""
    data, node = int(h.layout.data), max(1, h.plan.device.node_size)
    return next(count for count in range(math.ceil(data / node), data + 1) if data % count == 0)


def _unsupported_layout(h: MemoryEstimate) -> Iterator[Message]:
    """Yield what of the layout FSDP has no setting for."""
    layout = h.layout
    reasons = {
        "launch.trl.no.tensor": layout.tensor > 1,
        "launch.trl.no.pipeline": layout.pipeline > 1,
        "launch.trl.no.context": layout.context > 1,
        "launch.trl.no.expert": bool(layout.sends_tokens),
        "launch.trl.no.zero_1": layout.zero == 1 and layout.data > 1,
        "launch.trl.no.recompute_parts": way_of(layout.recompute) not in (Recompute.NONE, Recompute.FULL),
        "launch.trl.no.recompute_layers": layers_of(layout.recompute) != 0,
        "launch.trl.no.offload_optimizer": layout.offload == 1,
    }
    yield from (message(reason) for reason, there in reasons.items() if there)


def _unsupported(h: MemoryEstimate) -> Iterator[Message]:
    """Yield what else of the plan TRL or FSDP has no setting for."""
    layout, plan, fsdp = h.layout, h.plan, uses_fsdp(h)
    batch = int(layout.data * layout.micro_batch * layout.micro_batches)
    fixed = plan.own_layout and plan.layout.micro_batches  # which decide the batch
    optimizer = OPTIMIZERS.get((h.optimizer.name, plan.runtime_options.paged))
    stored, mixed, _ = _types(h)
    (_, updated), (_, planned) = _precision(h).arguments["weights"], _precision(h).arguments["products"]
    planned = planned if plan.peak_dtype in ("bf16", "fp16", "fp32", "tf32") else plan.peak_dtype
    reasons = {
        "launch.trl.no.batch": batch != plan.sequences and not fixed,
        "launch.trl.no.device": plan.device.vendor not in ("NVIDIA", "AMD"),
        "launch.trl.no.matmuls": (mixed or stored) != planned,
        "launch.trl.no.weights": plan.trained.everything and stored != updated,
        "launch.trl.no.in_backward": plan.runtime_options.in_backward,
        "launch.trl.no.optimizer": optimizer is None,
        "launch.trl.no.optimizer_fsdp": fsdp and optimizer is not None and optimizer not in _OF_SHARDS,
        "launch.trl.no.method": plan.trained.method in ("last layers", "named tensors"),
    }
    for reason in (reason for reason, there in reasons.items() if there):
        yield pick_message(
            reason,
            sequences=float(plan.sequences),
            processes=float(layout.data),
            micro_batch=float(layout.micro_batch),
            taken=float(batch),
            device=plan.device.name,
            matmuls=planned,
            weights=updated,
            optimizer=f"{'paged ' * plan.runtime_options.paged}{h.optimizer.name}",
            method=plan.trained.method,
        )
    if plan.trained.adapters:
        yield from _unsupported_adapters(h, fsdp=fsdp)


def _unsupported_adapters(h: MemoryEstimate, *, fsdp: bool) -> Iterator[Message]:
    t, model = h.plan.trained, h.plan.catalog_model
    experts = h.spec.experts is not None and not {"gate_proj", "up_proj", "down_proj"}.isdisjoint(_targets(h))
    reasons = {
        "launch.trl.no.names": model is not None and model.family in FOREIGN,
        "launch.trl.no.experts": experts,
        "launch.trl.no.alpha": not float(t.alpha).is_integer(),
        "launch.trl.no.norms": t.norms,
        "launch.trl.no.tied": t.head and h.spec.tied_head,
        "launch.trl.no.frozen_fp32": t.frozen_fp32 and t.frozen != "fp32",
        "launch.trl.no.frozen_fp8": t.frozen == "fp8",
        "launch.trl.no.frozen_int8": fsdp and t.frozen == "int8",
        "launch.trl.no.dora": fsdp and t.dora and t.frozen.startswith("nf4"),
    }
    yield from (message(reason) for reason, there in reasons.items() if there)


def _targets(h: MemoryEstimate) -> list[str]:
    """Return the names of the modules with adapters, each once."""
    leaves = (module_of(tensor).rpartition(".")[2] for tensor in tensors_of(h.spec) if tensor.columns > 1)
    return list(dict.fromkeys(leaf for leaf in leaves if leaf in h.plan.trained.modules))


def _command(h: MemoryEstimate) -> tuple[dict[str, Any], list[Message]]:
    """Return the options of ``trl sft``, and the notes on them."""
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
        "launch.trl.model": not base,
        "launch.trl.data": True,
        "launch.trl.loss": plan.runtime_options.chunks > 1,
        "launch.trl.nodes": nodes > 1,
        "launch.trl.software": software != EAGER.id,
    }
    notes += [
        pick_message(note, nodes=float(nodes), software=software, eager=EAGER.id)
        for note, there in others.items()
        if there
    ]
    return options, notes


def _recomputes(h: MemoryEstimate) -> bool:
    return bool(way_of(h.layout.recompute) == Recompute.FULL)


def _types(h: MemoryEstimate) -> tuple[str, str, list[Message]]:
    """Return the type of the loaded weights, the narrower one of matmuls (empty if there is none), and notes on what
    differs from the plan."""
    t, precision = h.plan.trained, _precision(h)
    (stored, _), (products, _) = precision.arguments["weights"], precision.arguments["products"]
    if not t.adapters:
        return stored, "" if products == stored else products, list(precision.notes)
    half = "fp16" if h.plan.peak_dtype == "fp16" else "bf16"
    wanted = "fp32" if FP32 in (h.policy.weights, h.policy.master) else half
    kept = "bf16" if t.storage.quantised else "fp32"
    note = message("launch.trl.adapters", frozen=t.frozen, given=kept, wanted=wanted)
    differs = [note] * (kept != wanted)
    if t.frozen == "fp32":
        return "fp32", "" if products == "fp32" else half, differs
    return half, half, differs


def _precision(h: MemoryEstimate) -> Precision:
    return trainer(h.policy, h.optimizer, h.layout, h.plan.peak_dtype, paged=h.plan.runtime_options.paged)


def _bits(h: MemoryEstimate, stored: str) -> dict[str, Any]:
    """Return the options for quantized frozen weights."""
    frozen = h.plan.trained.frozen
    if not frozen.startswith("nf4"):
        return {"load_in_8bit": True} if frozen == "int8" else {}
    options: dict[str, Any] = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
    options |= {"use_bnb_nested_quant": True} if frozen == "nf4, double" else {}
    # FSDP shards 4 bits only where they are stored in the type of all other weights.
    return options | ({"bnb_4bit_quant_storage": LONG[stored]} if uses_fsdp(h) else {})


def _file(h: MemoryEstimate) -> dict[str, Any]:
    """Return the settings of Accelerate."""
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
    """Yield lines of plain YAML: words, numbers, switches, and one level of mappings."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield f"{indent}{name}:"
            yield from _yaml(value, indent + "  ")  # pyright: ignore[reportUnknownArgumentType]
        else:
            yield f"{indent}{name}: {str(bool(value)).lower() if isinstance(value, bool) else value}"
