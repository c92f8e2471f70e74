"""How Megatron-LM and torchtitan read their lines, and which types they then keep; nothing is of core.

Their arguments and fields are tables of `tests/data`; what they reject and keep is set down here after their sources,
at the commits and releases that `tests/data/README.md` names.
"""

from __future__ import annotations

import argparse
import ast
import csv
import shlex
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

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
