"""How Megatron-LM, torchtitan, and TRL read their lines, and which types they then keep; nothing is of core.

Their arguments and fields are tables of `tests/data`; what they reject and keep is set down here after their sources,
at the commits and releases that `tests/data/README.md` names.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from transformers import BitsAndBytesConfig, TrainingArguments
from transformers.training_args import OptimizerNames

DATA = Path(__file__).parents[1] / "data"


class RefusedError(ValueError):
    """What a system says to a line that it does not take."""


@lru_cache
def rows(name: str) -> tuple[dict[str, str], ...]:
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as table:
        return tuple(csv.DictReader(table))


# ------------------------------------------------------------------------------------------ Megatron-LM


MODULES = {"core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts"}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise RefusedError(message)


@lru_cache
def _megatron() -> argparse.ArgumentParser:
    parser = _Parser(allow_abbrev=False, add_help=False)
    types: dict[str, Any] = {"int": int, "float": float}
    for row in rows("megatron_arguments"):
        name, takes = f"--{row['argument']}", row["takes"]
        if takes == "switch":
            parser.add_argument(name, action="store_true")
            continue
        more: dict[str, Any] = {"choices": row["choices"].split("|")} if row["choices"] else {}
        more |= {"nargs": int(row["several"]) if row["several"].isdigit() else row["several"]} if row["several"] else {}
        parser.add_argument(name, type=types.get(takes, str), **more)
    return parser


def megatron(text: str) -> argparse.Namespace:
    """A line as Megatron-LM's parser reads it, with what ``validate_args`` and its configurations make of it."""
    a = _megatron().parse_args(shlex.split(text.replace("\\\n", " ")))
    a.optimizer = a.optimizer or "adam"
    a.main_grads_dtype, a.main_params_dtype = a.main_grads_dtype or "fp32", a.main_params_dtype or "fp32"
    a.exp_avg_dtype, a.exp_avg_sq_dtype = a.exp_avg_dtype or "fp32", a.exp_avg_sq_dtype or "fp32"
    a.main = {"auto": None, None: "fp32"}.get(a.megatron_fsdp_main_params_dtype, a.megatron_fsdp_main_params_dtype)
    a.sharded_by_optimizer = a.use_distributed_optimizer or a.use_megatron_fsdp
    emerging = a.optimizer not in ("sgd", "adam")
    refused = {
        "overlap of gathering without what gathers": a.overlap_param_gather and not a.sharded_by_optimizer,
        "overlap of gathering without that of reducing": a.overlap_param_gather and not a.overlap_grad_reduce,
        "FSDP with this optimizer": a.use_megatron_fsdp and emerging,
        "FSDP without its checkpoint format": a.use_megatron_fsdp and a.ckpt_format != "fsdp_dtensor",
        "two 16-bit types": a.bf16 and a.fp16,
        "fp32 accumulation of bf16 main gradients": a.bf16
        and a.accumulate_allreduce_grads_in_fp32
        and a.main_grads_dtype != "fp32",
        "offload without the precision-aware optimizer": a.optimizer_cpu_offload
        and not a.use_precision_aware_optimizer,
        "the precision-aware optimizer without Adam": a.use_precision_aware_optimizer and a.optimizer != "adam",
        "low precision without the precision-aware optimizer": not a.use_precision_aware_optimizer
        and {a.main_grads_dtype, a.main_params_dtype, a.exp_avg_dtype, a.exp_avg_sq_dtype} != {"fp32"},
        "chunks without a pipeline": (a.num_virtual_stages_per_pipeline_rank or 1) > 1
        and a.pipeline_model_parallel_size < 2,
        "a length for context parallelism": (a.context_parallel_size or 1) > 1
        and (a.seq_length or 0) % (2 * a.context_parallel_size) > 0,
        "selective recomputation by a method": a.recompute_granularity == "selective"
        and (a.recompute_method or a.recompute_num_layers),
        "modules that it does not know": set(a.recompute_modules or ()) - MODULES,
        "full recomputation without a method": a.recompute_granularity == "full"
        and not (a.recompute_method and a.recompute_num_layers),
        "sequence parallelism alone": a.sequence_parallel and a.tensor_model_parallel_size == 1,
    }
    if why := [name for name, wrong in refused.items() if wrong]:
        raise RefusedError("; ".join(why))
    return a


def megatron_keeps(a: argparse.Namespace) -> list[str]:
    """Types of weights, master weights, gradients, accumulation, copy of gradients, products, and Adam's moments.

    Of master weights in 32 bits the 16 that bf16 weights lack are kept alone.
    """
    weights = "bf16" if a.bf16 else "fp16" if a.fp16 else "fp32"
    wide = a.accumulate_allreduce_grads_in_fp32 or weights == "fp32"
    if a.bf16 and a.grad_reduce_in_bf16:
        wide = False
    elif a.bf16 and a.main_grads_dtype == "fp32":
        wide = True
    gradients = "fp32" if wide else weights
    if a.use_megatron_fsdp:
        named = a.megatron_fsdp_main_grads_dtype
        gradients = weights if named in (None, "auto") else named
    aware = a.use_precision_aware_optimizer
    master = "none" if weights == "fp32" else a.main if a.use_megatron_fsdp else a.main_params_dtype
    if aware and weights == "bf16" and master == "fp32" and not a.use_megatron_fsdp and not a.optimizer_cpu_offload:
        master = "16 bits of fp32"
    copy = "fp32" if gradients != "fp32" and not aware else "none"
    products = "fp8" if a.fp8_format else weights
    return [weights, master, gradients, "none", copy, products, a.exp_avg_dtype, a.exp_avg_sq_dtype]


# ------------------------------------------------------------------------------------------ torchtitan


def torchtitan(text: str) -> dict[str, dict[str, Any]]:
    """The fields of each class that a configuration sets, checked by name, type and choice, and by the trainer."""
    (call,) = (node.value for node in ast.parse(f"Config({text})").body if isinstance(node, ast.Expr))
    assert isinstance(call, ast.Call)
    by_name: dict[str, dict[str, Any]] = {}
    for node in ast.walk(call):
        if not isinstance(node, ast.Call) or node is call:
            continue
        name = ast.unparse(node.func)
        known = {row["field"]: row for row in rows("torchtitan_fields") if row["class"] == name}
        if name == "dataclasses.replace":
            known = {row["field"]: row for row in rows("torchtitan_fields") if row["class"].startswith("Optimizers")}
        elif not known:
            raise RefusedError(f"no class {name}")
        by_name[name] = {}
        for keyword in node.keywords:
            row, value = known.get(keyword.arg or ""), ast.literal_eval(keyword.value)
            if row is None:
                raise RefusedError(f"{name} has no {keyword.arg}")
            types: Mapping[str, type] = {"int": int, "bool": bool, "str": str, "float": float}
            if type(value) is not types[row["type"].partition(" |")[0]]:
                raise RefusedError(f"{keyword.arg}={value!r}")
            if row["choices"] and value not in row["choices"].split("|"):
                raise RefusedError(f"{keyword.arg}={value!r}")
            by_name[name][keyword.arg or ""] = value
    parallel, training = by_name["ParallelismConfig"], by_name["TrainingConfig"]
    piped = parallel["pipeline_parallel_degree"] > 1
    if (piped or parallel["expert_parallel_degree"] > 1) and not training.get("disable_cuda_graphs"):
        raise RefusedError("CUDA graphs with pipeline or expert parallelism")
    context = parallel["context_parallel_degree"]
    parts = parallel["tensor_parallel_degree"] if parallel.get("enable_sequence_parallel", True) else 1
    if training["num_tokens_per_microbatch_per_dp_rank"] % (parts * (2 * context if context > 1 else 1)):
        raise RefusedError("tokens of a micro-batch")
    return by_name


# ------------------------------------------------------------------------------------------ TRL


OF_FSDP = ("adamw_torch", "sgd", "rmsprop", "adamw_torch_8bit", "adamw_torch_4bit")
"""Optimizers that trained a tiny model in two processes under FSDP 2; others failed."""


def trl(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The file of Accelerate and the options of ``trl sft`` that lines give them, checked by name, type, and choice,
    and by what Accelerate, the Trainer, and PEFT reject."""
    head, _, rest = text.partition("<<'END'\n")
    body, _, command = rest.partition("END\n")
    name, words = head.removeprefix("cat > ").strip(), shlex.split(command.replace("\\\n", " "))
    if words[:4] != ["trl", "sft", "--accelerate_config", name]:
        raise RefusedError(command)
    file: dict[str, Any] = yaml.safe_load(body)
    for where, given in (("ClusterConfig", file), *((part, file.get(part, {})) for part in _PARTS_OF_FILE)):
        _named({row["setting"] for row in rows("trl_settings") if row["where"] == where}, given)
    options: dict[str, list[str]] = {}
    for word in words[4:]:
        if word.startswith("--"):
            options[word[2:]] = []
        else:
            options[list(options)[-1]].append(word)
    own = {row["setting"]: row for row in rows("trl_settings") if row["where"] in _CLASSES}
    _named(own.keys() | TrainingArguments.__dataclass_fields__.keys(), options)
    told = {name: _option(name, own.get(name), texts) for name, texts in options.items()}
    OptimizerNames(told["optim"])
    fsdp, four = file.get("fsdp_config", {}), told.get("load_in_4bit")
    halves = [half for half in ("bf16", "fp16") if told[half]]
    refused = {
        "recomputation twice": told["gradient_checkpointing"] and fsdp.get("fsdp_activation_checkpointing"),
        "another precision in the file": [file["mixed_precision"]] != (halves or ["no"]),
        "processes that do not divide": file["num_processes"] % file["num_machines"],
        "a file of FSDP without it": (file["distributed_type"] == "FSDP") != bool(fsdp),
        "several processes alone": (file["distributed_type"] == "NO") != (file["num_processes"] == 1) and not fsdp,
        "4 bits in integers under FSDP": fsdp and four and told.get("bnb_4bit_quant_storage") != told["dtype"],
        "8 bits under FSDP": fsdp and told.get("load_in_8bit"),
        "mixed trained types under FSDP": fsdp and four and told.get("use_dora"),
        "this optimizer under FSDP": fsdp and told["optim"] not in OF_FSDP,
        "quantised weights without adapters": (four or told.get("load_in_8bit")) and not told.get("use_peft"),
    }
    if why := [name for name, wrong in refused.items() if wrong]:
        raise RefusedError("; ".join(why))
    if four:
        BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_storage=told.get("bnb_4bit_quant_storage"))
    return file, told


_PARTS_OF_FILE = ("fsdp_config", "parallelism_config")
_CLASSES = ("ScriptArguments", "SFTConfig", "ModelConfig")


def _named(known: Collection[str], given: Collection[str]) -> None:
    if unknown := set(given) - set(known):
        raise RefusedError(f"no {unknown}")


def _option(name: str, row: Mapping[str, str] | None, texts: list[str]) -> Any:
    takes = row["takes"] if row else f"{TrainingArguments.__dataclass_fields__[name].type}"
    if row and row["choices"] and texts[0] not in row["choices"].split("|"):
        raise RefusedError(f"{name}={texts}")
    if takes.startswith("list"):
        return texts
    (text,) = texts
    if "bool" in takes:
        return {"True": True, "False": False}[text]
    kinds = {"int": int, "float": float, "dict": json.loads}
    return next((kind(text) for word, kind in kinds.items() if word in takes), text)


def adapted(names: Sequence[str], module: str) -> bool:
    """Whether PEFT adapts a module: one of several names at its end, or a single one as a pattern of its whole name."""
    if len(names) == 1:
        return re.fullmatch(names[0], module) is not None
    return any(module == name or module.endswith(f".{name}") for name in names)
