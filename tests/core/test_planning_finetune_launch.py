"""Lines for TRL: its parsers take them, and they read back to the plan, or a sentence says why there are none."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from core.models.configs.config import from_hf_config
from core.models.spec_text import write_spec
from core.planning.fine_tuning import trained_parameters
from core.planning.form.plan_form import plan_from
from core.planning.memory_estimate import MemoryEstimate, memory_estimate
from core.planning.plan import OWN_SHAPE
from core.planning.trl import FOREIGN, OPTIMIZERS, trl
from core.training.layout import LayoutError
from core.training.precision import POLICIES
from core.training.trained import FROZEN, METHODS
from tests.core import launch_reference as reference
from tests.core.models_oracle import DENSE, MIXTURES, config_of
from tests.every import every

SMALL = {**DENSE, **MIXTURES}
LORA = {"model": "Llama 3.1 8B", "ft": "adapters", "lay": "own", "sw": "PyTorch, eager", "gb": "64"}
_CHOICES: dict[str, tuple[tuple[str, ...], ...]] = {
    # The values of a field, and beside them rarer ones, most of which no line can have.
    "model": (("Llama 3.1 8B", "Llama 3.2 1B", "Mixtral 8x7B", "Qwen3 8B", "Typed parameters"), ("Falcon 7B",)),
    "gpu": (("H100 SXM", "A100 SXM 80 GB", "V100 SXM 32 GB"), ("TPU v5p",)),
    "count": (("1", "2", "8", "12", "16"), ("6",)),
    "ft": (METHODS[:2], METHODS[2:]),
    "frozen": (tuple(FROZEN), ()),
    "prec": (tuple(POLICIES)[:7], tuple(POLICIES)[7:]),
    "opt": (("AdamW",), (*(name for name, _ in OPTIMIZERS), "Sophia")),
    "zero": (("0", "2", "3"), ("1",)),
    "rc": (("full", "none"), ("selective",)),
    "mbs": (("1", "2", "4"), ("3",)),
    "acc": (("", "1", "8"), ()),
    "gb": (("64", "96 sequences"), ("50",)),
    "seq": (("512", "2,048"), ()),
    "mean": (("", "300"), ()),
    "target": (("all-linear", "attention"), ("q_proj", "lm_head")),
    "rank": (("8", "64"), ()),
    "alpha": (("16",), ("0.5",)),
    "hsdp": (("",), ("2", "4")),
    "off": (("none",), ("optimizer", "optimizer and parameters")),
    "lay": (("own",), ("fastest",)),
    "sw": (("PyTorch, eager",), ("Megatron-Core",)),
    "tp": (("1",), ("2",)),
    "pp": (("1",), ("2",)),
    "cp": (("1",), ("2",)),
    **dict.fromkeys(("dora", "drop", "fth", "ftn", "fwide", "paged", "aoff", "inb"), (("false",), ("true",))),
}


def random_texts(rng: random.Random) -> dict[str, str]:
    """A fine-tuning plan, mostly of one that can be run."""
    return {
        name: rng.choice(rare if rare and rng.random() < 0.06 else usual) for name, (usual, rare) in _CHOICES.items()
    }


@dataclass(frozen=True)
class Read:
    """What lines say of a plan, as their programs take it."""

    processes: int
    zero: int
    group: int
    batch: int
    recompute: bool
    offload: bool
    stored: str
    products: str


def read_back(text: str) -> tuple[Read, dict[str, Any]]:
    file, told = reference.trl(text)
    fsdp, sizes = file.get("fsdp_config", {}), file.get("parallelism_config", {})
    short = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
    stored = short[told["dtype"]]
    read = Read(
        processes=file["num_processes"],
        zero=(3 if fsdp["fsdp_reshard_after_forward"] else 2) if fsdp else 0,
        group=sizes.get("parallelism_config_dp_shard_size", 0),
        batch=told["per_device_train_batch_size"] * told["gradient_accumulation_steps"] * file["num_processes"],
        recompute=told["gradient_checkpointing"] or bool(fsdp.get("fsdp_activation_checkpointing")),
        offload=bool(fsdp.get("fsdp_offload_params")),
        stored=stored,
        products={"no": stored}.get(file["mixed_precision"], file["mixed_precision"]),
    )
    if sizes:
        assert sizes["parallelism_config_dp_replicate_size"] * read.group == read.processes
    if fsdp and told["gradient_accumulation_steps"] > 1:
        assert told["accelerator_config"]["gradient_accumulation_kwargs"]["sync_each_batch"], "else they are not shards"
    return read, told


def assert_same(h: MemoryEstimate, read: Read, told: dict[str, Any]) -> None:
    """The lines give the layout, batch, precision, and trained parameters of the plan."""
    plan, layout, t = h.plan, h.layout, h.plan.trained
    assert read.processes == layout.data == layout.accelerators
    several = layout.data > 1 or layout.offload
    assert read.zero == (layout.zero if several else 0)
    assert read.group == (layout.shard_group % layout.data if read.zero else 0)
    assert told["per_device_train_batch_size"] == layout.micro_batch
    rounds = plan.layout.micro_batches * plan.own_layout  # which decide the batch
    assert read.batch == (layout.data * layout.micro_batch * rounds or plan.sequences)
    assert (told["max_length"], told["packing"]) == (plan.seq_len, not plan.lengths.mean)
    assert read.recompute == (layout.recompute == 2)
    assert read.offload == (layout.offload == 2)
    assert told["activation_offloading"] == plan.runtime_options.offload_activations
    assert ("paged" in told["optim"]) == plan.runtime_options.paged
    only_half = "fp16" if plan.peak_dtype == "fp16" else h.policy.multiplies.name
    assert read.products == (only_half if h.policy.multiplies.name == "bf16" else h.policy.multiplies.name)
    assert told.get("use_peft", False) == t.adapters
    if not t.adapters:
        copy = h.policy.master or h.policy.weights
        assert read.stored == ("bf16" if copy.name == "bf16" else "fp32")
        return
    assert (told["lora_r"], told["lora_alpha"], told.get("use_dora", False)) == (t.rank, t.alpha, t.dora)
    assert (told["lora_dropout"] > 0) == t.dropout
    assert told.get("lora_modules_to_save", []) == ["embed_tokens", "lm_head"] * t.head
    bits = (told.get("load_in_4bit", False), told.get("load_in_8bit", False), told.get("use_bnb_nested_quant", False))
    assert bits == (t.frozen.startswith("nf4"), t.frozen == "int8", t.frozen == "nf4, double")
    assert (read.stored == "fp32") == (t.frozen == "fp32")
    modules = ["model.layers.0.self_attn.q_proj", "model.layers.0.mlp.down_proj", "lm_head"]
    got = {name.rpartition(".")[2] for name in modules if reference.adapted(told["lora_target_modules"], name)}
    assert got == t.modules & {"q_proj", "down_proj", "lm_head"}


def test_lines_read_back_to_the_plan_or_say_that_trl_cannot_run_it() -> None:
    rng, seen = random.Random(7), Counter[str]()
    while seen["lines"] + seen["none"] < 500:
        texts = random_texts(rng)
        with suppress(LayoutError):
            h = memory_estimate(plan_from(texts))
            launch = trl(h)
            seen["lines" if launch.text else "none"] += 1
            if not launch.text:
                assert launch.notes[0].id == "launch.trl.unsupported"
                continue
            try:
                read, told = read_back(launch.text)
                assert_same(h, read, told)
            except Exception as problem:
                raise AssertionError(f"{texts}\n{launch.text}") from problem
            seen[f"ZeRO-{read.zero}"] += 1
            seen["adapters"] += h.plan.trained.adapters
            seen["shards within a group"] += bool(read.group)
            seen["offload"] += read.offload
    assert min(seen[name] for name in ("lines", "none", "ZeRO-0", "ZeRO-2", "ZeRO-3", "adapters")) > 25, seen
    assert seen["shards within a group"], seen
    assert seen["offload"], seen


def launched(**texts: str) -> tuple[str, str]:
    launch = trl(memory_estimate(plan_from(LORA | texts)))
    return launch.text, " ".join(launch.notes)


def test_a_layout_that_napkin_finds_for_trl_is_one_that_it_runs() -> None:
    """Of every part of a model that adapters can train, on clusters of one node and of several."""
    for model in ("Llama 3.1 8B", "Llama 3.1 70B"):
        for count in ("1", "2", "8", "16"):
            for frozen in ("bf16", "nf4, double"):
                text, said = launched(model=model, count=count, frozen=frozen, lay="fastest")
                assert text, (model, count, frozen, said)
                assert read_back(text)[0].batch == 64


@every("name", [name for name in SMALL if "," not in name])
def test_adapters_are_on_the_modules_and_parameters_that_the_plan_trains(name: str) -> None:
    """By the names that transformers has for them; of a class that has others there are no lines."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config_of(name, SMALL[name]))
    linear = {path: part for path, part in model.named_modules() if isinstance(part, torch.nn.Linear)}
    spec = from_hf_config(model.config.to_json_string())
    shape = {"model": OWN_SHAPE, "shape": write_spec(spec), "count": "1", "rank": "2", "seq": "16"}
    same = False
    for target in ("attention", "all-linear"):
        h = memory_estimate(plan_from({**LORA, **shape, "target": target}))
        launch = trl(h)
        if not launch.text:
            assert spec.experts, launch.notes
            continue
        names = read_back(launch.text)[1]["lora_target_modules"]
        sizes = [sum(linear[path].weight.shape) for path in linear if reference.adapted(names, path)]
        same = 2 * sum(sizes) == trained_parameters(h)
        assert same or type(model).__name__ in FOREIGN, (target, names)
    assert not (same and type(model).__name__ in FOREIGN), "a class whose lines could be printed"
