"""How torchtune, TRL, Axolotl, LLaMA-Factory and Unsloth read the settings of a fine-tuning plan; nothing is of core.

Names of settings are tables of `tests/data`, read in the projects' sources at the commits that `tests/data/README.md`
names; what transformers itself reads, its own classes of this environment read here too.
"""

from __future__ import annotations

import ast
import csv
import re
import shlex
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from transformers import BitsAndBytesConfig, TrainingArguments
from transformers.training_args import OptimizerNames

DATA = Path(__file__).parents[1] / "data"


class RefusedError(ValueError):
    """What a program says to settings that it does not take."""


@lru_cache
def _rows() -> tuple[dict[str, str], ...]:
    with (DATA / "finetune_settings.csv").open(encoding="utf-8", newline="") as table:
        return tuple(csv.DictReader(table))


@lru_cache
def settings(project: str, where: str = "") -> Mapping[str, str]:
    """The settings of a project, or of one part of it, with what they take."""
    return {r["setting"]: r["takes"] for r in _rows() if r["project"] == project and where in ("", r["where"])}


def torchtune(text: str) -> dict[str, Any]:
    """A line of ``tune run`` → what the recipe is told: its name, ranks, and every override by dotted name."""
    words = shlex.split(text.replace("\\\n", " "))
    if words[:2] != ["tune", "run"]:
        raise RefusedError(text)
    ranks = int(words[words.index("--nproc_per_node") + 1]) if "--nproc_per_node" in words else 1
    at = words.index("--config")
    recipe, config = words[at - 1], words[at + 1]
    keys = settings("torchtune", recipe)
    if not keys or ("single" in recipe) != (ranks == 1):
        raise RefusedError(f"{recipe} on {ranks} ranks")
    folder, name = config.split("/")
    shipped = settings("torchtune config", folder)
    if name not in shipped:
        raise RefusedError(f"no configuration {config}")
    told: dict[str, Any] = {"recipe": recipe, "ranks": ranks}
    for word in words[at + 2 :]:
        if word.startswith("~"):
            if word != "~optimizer.fused" or shipped[name] != "fused":
                raise RefusedError(f"{config} has no {word}")
            told["fused"] = False
            continue
        key, _, value = word.partition("=")
        if key.partition(".")[0] not in keys:
            raise RefusedError(f"{recipe} reads no {key}")
        told[key] = yaml.safe_load(value)
    builder = told["model._component_"].rpartition(".")
    builders = settings("torchtune builder", builder[0].rpartition(".")[2])
    if builder[2] not in builders:
        raise RefusedError(f"no builder {builder}")
    wrong = {k for k in told if k.startswith("model.") and not k.endswith("_component_")}
    wrong -= {f"model.{argument}" for argument in builders[builder[2]].split()}
    if wrong:
        raise RefusedError(f"{builder[2]} takes no {wrong}")
    own = "torch.optim" in told.get("optimizer._component_", "torch.optim")
    if shipped[name] == "fused" and not own and "fused" not in told:
        raise RefusedError("fused of an optimizer that has none")
    if told.get("optimizer_in_bwd") and told["gradient_accumulation_steps"] > 1:
        raise RefusedError("the optimizer in backward with accumulation")
    if told["enable_activation_offloading"] and not told["enable_activation_checkpointing"]:
        raise RefusedError("offload without checkpointing")
    if (
        ranks > 1
        and told["data_parallel_replicate_dim"] * told["data_parallel_shard_dim"] * told.get("tensor_parallel_dim", 1)
        != ranks
        and "lora" not in recipe
    ):
        raise RefusedError("parallel dimensions")
    return told


def trl(text: str) -> dict[str, Any]:
    """A file of ``trl sft``, its training arguments and quantisation read by transformers' own classes."""
    told: dict[str, Any] = yaml.safe_load(text)
    model, own = settings("trl", "ModelConfig"), settings("trl", "SFTConfig")
    trainer = set(TrainingArguments.__dataclass_fields__)
    unknown = set(told) - set(model) - set(own) - trainer - {"accelerate_config", "num_processes"}
    if unknown:
        raise RefusedError(f"no {unknown}")
    if "optim" in told:
        OptimizerNames(told["optim"])
    if "accelerate_config" in told and told["accelerate_config"] not in settings("trl", "accelerate_config"):
        raise RefusedError(told["accelerate_config"])
    if told.get("load_in_4bit") or told.get("load_in_8bit"):
        BitsAndBytesConfig(
            load_in_4bit=told.get("load_in_4bit", False),
            load_in_8bit=told.get("load_in_8bit", False),
            bnb_4bit_quant_type=told.get("bnb_4bit_quant_type", "nf4"),
            bnb_4bit_use_double_quant=told.get("use_bnb_nested_quant", False),
            bnb_4bit_quant_storage=told.get("bnb_4bit_quant_storage"),
        )
    if told["loss_type"] not in ("nll", "dft", "chunked_nll"):
        raise RefusedError(told["loss_type"])
    return told


def axolotl(text: str) -> dict[str, Any]:
    """A file of ``axolotl train``, by the names of its schema and the rules of its validators."""
    told: dict[str, Any] = yaml.safe_load(text)
    unknown = set(told) - set(settings("axolotl")) | set(told.get("fsdp_config", {})) - set(
        settings("axolotl", "FSDPConfig")
    )
    if unknown:
        raise RefusedError(f"no {unknown}")
    adapter, four, eight = told.get("adapter"), told.get("load_in_4bit"), told.get("load_in_8bit")
    rules = {
        "quantised weights without an adapter": (four or eight) and not adapter,
        "qlora without 4 bits": adapter == "qlora" and not four,
        "4 and 8 bits": four and eight,
        "offload without checkpointing": told.get("activation_offloading") and not told["gradient_checkpointing"],
        "two ways to shard": "deepspeed" in told and "fsdp_config" in told,
        "no such DeepSpeed file": "deepspeed" in told and told["deepspeed"] not in settings("axolotl", "deepspeed"),
        "bitsandbytes’ 8-bit Adam under FSDP 2": told.get("fsdp_version") == 2
        and told.get("optimizer") in ("adamw_8bit", "adamw_bnb_8bit"),
    }
    if why := [name for name, broken in rules.items() if broken]:
        raise RefusedError("; ".join(why))
    name = told.get("optimizer")
    if name and name not in settings("axolotl", "CustomSupportedOptimizers"):
        OptimizerNames(name)
    return told


def axolotl_unfreezes(told: Mapping[str, Any]) -> Callable[[str], bool]:
    """Which parameters stay trained, by name: from its start, and a period is one unless a plus follows."""
    patterns = [re.compile(re.sub(r"\.(?!\+)", r"\\.", pattern)) for pattern in told["unfrozen_parameters"]]
    return lambda name: any(pattern.match(name) for pattern in patterns)


def llama_factory(text: str) -> dict[str, Any]:
    """A file of ``llamafactory-cli train``, by the fields of its classes and the rules of its parser."""
    told: dict[str, Any] = yaml.safe_load(text)
    fields = {name: takes for name, takes in settings("llama-factory").items() if not name.endswith(".json")}
    if unknown := set(told) - set(fields) - set(TrainingArguments.__dataclass_fields__):
        raise RefusedError(f"no {unknown}")
    for name, value in told.items():
        kinds = {"int": int, "bool": bool, "str": str}
        plain = fields.get(name, "").removesuffix(" | None")
        if plain in kinds and type(value) is not kinds[plain]:
            raise RefusedError(f"{name} takes {plain}, not {value!r}")
    lora, bits = told["finetuning_type"] == "lora", told.get("quantization_bit")
    file = told.get("deepspeed", "").removeprefix("examples/deepspeed/")
    stage_3 = "z3" in file
    rules = {
        "no such way": told["finetuning_type"] not in ("lora", "oft", "freeze", "full"),
        "quantised weights without adapters": bits is not None and not lora,
        "bits": bits not in (None, 4, 8),
        "8 bits under ZeRO-3": bits == 8 and stage_3,
        "pure bf16 under ZeRO-3": told.get("pure_bf16") and stage_3,
        "DoRA without adapters": told.get("use_dora") and not lora,
        "no such DeepSpeed file": file and file not in settings("llama-factory", "deepspeed"),
    }
    if why := [name for name, broken in rules.items() if broken]:
        raise RefusedError("; ".join(why))
    if "optim" in told:
        OptimizerNames(told["optim"])
    return told


def unsloth(text: str) -> dict[str, dict[str, Any]]:
    """The arguments of each call of a script, by the parameters of Unsloth's functions and TRL's configuration."""
    known: Mapping[str, set[str]] = {
        "FastLanguageModel.from_pretrained": set(settings("unsloth", "from_pretrained")),
        # What it does not name itself it gives to PEFT's LoraConfig.
        "FastLanguageModel.get_peft_model": set(settings("unsloth", "get_peft_model"))
        | set(settings("peft", "LoraConfig")),
        "SFTConfig": set(settings("trl", "SFTConfig")) | set(TrainingArguments.__dataclass_fields__),
    }
    told: dict[str, dict[str, Any]] = {}
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        given = {k.arg or "": ast.literal_eval(k.value) for k in node.keywords}
        if unknown := set(given) - known[name]:
            raise RefusedError(f"{name} takes no {unknown}")
        told[name] = given | {"first": ast.unparse(node.args[0]) if node.args else ""}
    if "optim" in told["SFTConfig"]:
        OptimizerNames(told["SFTConfig"]["optim"])
    whole = told.get("FastLanguageModel.get_peft_model", {}).get("modules_to_save", [])
    if not set(whole) <= {"lm_head", "embed_tokens"}:
        raise RefusedError(f"modules to save: {whole}")
    loaded = told["FastLanguageModel.from_pretrained"]
    if loaded["load_in_4bit"] + loaded["load_in_8bit"] + loaded["full_finetuning"] > 1:
        raise RefusedError("one way to load")
    return told
