"""Launch settings of fine-tuning: each program takes them, and they read back to the same plan or a note says why."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import torch
from transformers import AutoModelForCausalLM

from core.hardware.accelerators import find
from core.models.catalog import CATALOG
from core.models.configs.config import from_hf_config
from core.planning.fine_tuning.launch import fine_tuning_launches
from core.planning.fine_tuning.of_plan import fine_tuning_of, launches_of
from core.planning.fine_tuning.settings import ATTENTION, DROPOUT, FOREIGN, LINEAR, FineTuning, FineTuningLaunch
from core.planning.form.plan_form import plan_from
from core.planning.memory_estimate import memory_estimate
from core.rows import read_rows
from core.training.tensors import tensors_of
from core.training.trained import FROZEN, Trained, module_of
from core.views.serving.text_launch import takeaway
from tests.core import finetune_reference as reference
from tests.core.models_oracle import DENSE, MIXTURES, config_of
from tests.every import every

SMALL = {**DENSE, **MIXTURES}
LLAMA = FineTuning(model="Llama 3.1 8B", base="meta-llama/Llama-3.1-8B", layers=32)
LORA = replace(LLAMA, trained="adapters")
SPREAD = ((1, 0), (8, 0), (8, 1), (8, 2), (8, 3))
OPTIMIZERS = (("AdamW", False), ("AdamW", True), ("8-bit Adam", False), ("8-bit Adam", True), ("Adafactor", False))

CASES = [
    replace(
        LORA if adapters else LLAMA,
        frozen=frozen,
        data=data,
        zero=zero,
        optimizer=optimizer,
        paged=paged,
        packed=packed,
        recompute=recompute,
        activations=activations,
        chunks=8 if packed else 1,
        stored=stored,
        autocast=stored == "fp32",
        micro_batch=2,
        accumulated=4 if packed else 1,
        targets=ATTENTION if packed else LINEAR,
        dora=recompute,
        head=packed,
        rank=8,
    )
    for adapters, frozen in ((False, "bf16"), *((True, kind) for kind in FROZEN))
    for (data, zero), (optimizer, paged) in product(SPREAD, OPTIMIZERS)
    for packed, (recompute, activations) in product((False, True), ((True, True), (True, False), (False, False)))
    for stored in ("bf16", "fp32")
][::11]
"""One in eleven of all combinations; eleven divides none of their numbers, so that each value meets each."""


def made(plan: FineTuning) -> dict[str, FineTuningLaunch]:
    return {launch.system: launch for launch in fine_tuning_launches(plan)}


def notes(launch: FineTuningLaunch) -> str:
    return " ".join(launch.notes)


def test_torchtune_reads_the_plan_back() -> None:
    for plan in CASES:
        line = made(plan)["torchtune"]
        told, said = reference.torchtune(line.text), notes(line)
        assert told["ranks"] == plan.accelerators
        assert ("lora" in told["recipe"]) == plan.adapters
        assert (told["batch_size"], told["gradient_accumulation_steps"]) == (plan.micro_batch, plan.accumulated)
        assert (told["tokenizer.max_seq_len"], told["dataset.packed"]) == (plan.seq_len, plan.packed)
        assert told["enable_activation_checkpointing"] == plan.recompute
        assert told["enable_activation_offloading"] == plan.activations
        assert told["loss.num_output_chunks"] == plan.chunks
        assert (told["dtype"] == plan.stored) or f"not {plan.stored}" in said
        component = told["optimizer._component_"].rpartition(".")[2]
        assert ("Paged" in component) == plan.paged
        assert ("8bit" in component) == plan.optimizer.startswith("8-bit")
        if plan.adapters:
            assert (told["model.lora_rank"], told["model.lora_alpha"]) == (plan.rank, plan.alpha)
            assert told["model.use_dora"] == plan.dora
            names = [name.replace("output_proj", "o_proj") for name in told["model.lora_attn_modules"]]
            assert names == [name for name in plan.targets if name in ATTENTION]
            assert told["model.apply_lora_to_mlp"] == ("up_proj" in plan.targets)
            assert told["model.quantize_base"] == plan.frozen.startswith("nf4")
            assert (plan.frozen == "nf4") == ("0.4 bits" in said)
            assert (plan.frozen in ("int8", "fp8")) == (f"no frozen weights in {plan.frozen}" in said)
            assert plan.head == ("neither the embedding" in said)
        if plan.data > 1:
            shards = plan.data if plan.zero else 1
            assert told["data_parallel_shard_dim"] == shards
            assert told["fsdp_reshard_after_forward"] == (plan.zero == 3)
            assert (plan.zero == 1) == ("no ZeRO-1" in said)


def test_trl_reads_the_plan_back() -> None:
    for plan in CASES:
        line = made(plan)["TRL with PEFT"]
        told, said = reference.trl(line.text), notes(line)
        assert told["model_name_or_path"] == plan.base
        assert (told["max_length"], told["packing"]) == (plan.seq_len, plan.packed)
        assert told["per_device_train_batch_size"] == plan.micro_batch
        assert told["gradient_accumulation_steps"] == plan.accumulated
        assert (told["gradient_checkpointing"], told["activation_offloading"]) == (plan.recompute, plan.activations)
        assert (told["loss_type"] == "chunked_nll") == (plan.chunks > 1)
        assert ("paged" in told["optim"]) == plan.paged
        assert told.get("use_peft", False) == plan.adapters
        if plan.adapters:
            assert (told["lora_r"], told["lora_alpha"]) == (plan.rank, plan.alpha)
            assert tuple(told["lora_target_modules"]) == plan.targets
            assert told.get("use_dora", False) == plan.dora
            assert ("lm_head" in told.get("lora_modules_to_save", [])) == plan.head
            bits = (told.get("load_in_4bit", False), told.get("load_in_8bit", False))
            assert bits == (plan.frozen.startswith("nf4"), plan.frozen == "int8")
            assert told.get("use_bnb_nested_quant", False) == (plan.frozen == "nf4, double")
            assert told["dtype"] == ("float32" if plan.frozen == "fp32" else "bfloat16")
            assert (plan.frozen == "fp8") == ("frozen weights in fp8" in said)
            keeps = "fp32" if plan.frozen in ("bf16", "fp32") else "bf16"
            assert (keeps != plan.stored) == (f"keeps adapters in {keeps}, not {plan.stored}" in said)
        else:
            assert told["dtype"] == {"bf16": "bfloat16", "fp32": "float32"}[plan.stored]
            assert told["bf16"]
        profile = {0: "multi_gpu", 1: "zero1", 2: "zero2", 3: "fsdp2"}[plan.zero] if plan.data > 1 else None
        assert told.get("accelerate_config") == profile
        assert told.get("num_processes", 1) == plan.data


def test_axolotl_reads_the_plan_back() -> None:
    for plan in CASES:
        line = made(plan)["Axolotl"]
        told, said = reference.axolotl(line.text), notes(line)
        assert told["base_model"] == plan.base
        assert (told["sequence_len"], told["sample_packing"]) == (plan.seq_len, plan.packed)
        assert (told["micro_batch_size"], told["gradient_accumulation_steps"]) == (plan.micro_batch, plan.accumulated)
        assert told["gradient_checkpointing"] == plan.recompute
        assert told.get("activation_offloading", False) == plan.activations
        assert told.get("chunked_cross_entropy_num_chunks", 1) == plan.chunks
        if "adapter" in told:
            assert (told["adapter"] == "qlora") == plan.frozen.startswith("nf4")
            assert (told["lora_r"], told["lora_alpha"]) == (plan.rank, plan.alpha)
            assert told.get("load_in_8bit", False) == (plan.frozen == "int8")
            assert ("bnb_config_kwargs" in told) == (plan.frozen == "nf4"), "its own 4 bits are doubly quantised"
            assert tuple(told.get("lora_target_modules", LINEAR)) == plan.targets
            assert told.get("peft_use_dora", False) == plan.dora
            assert told["peft_autocast_adapter_dtype"] == (plan.stored == "fp32")
            assert told["bf16"] == (plan.frozen != "fp32")
        else:
            assert not plan.adapters
            assert told["bf16"] == (plan.stored == "bf16")
            assert plan.autocast == ("autocasts none" in said)
        sharded = plan.data > 1 and plan.zero > 0
        assert ("deepspeed" in told or "fsdp_config" in told) == sharded
        if told.get("optimizer") == "adamw_torch_8bit":
            assert "stands in its place" in said


def test_llama_factory_reads_the_plan_back() -> None:
    for plan in CASES:
        line = made(plan)["LLaMA-Factory"]
        told, said = reference.llama_factory(line.text), notes(line)
        assert told["model_name_or_path"] == plan.base
        assert (told["cutoff_len"], told["packing"]) == (plan.seq_len, plan.packed)
        assert told["per_device_train_batch_size"] == plan.micro_batch
        assert told["gradient_accumulation_steps"] == plan.accumulated
        assert told["disable_gradient_checkpointing"] != plan.recompute
        assert told.get("use_unsloth_gc", False) == (plan.activations and plan.recompute)
        assert told.get("enable_liger_kernel", False) == (plan.chunks > 1)
        assert ("paged" in told["optim"]) == plan.paged
        assert (told["finetuning_type"] == "lora") == plan.adapters
        sharded = plan.data > 1 and plan.zero > 0
        assert ("deepspeed" in told) == sharded
        assert (sharded and plan.zero == 1) == ("no file for ZeRO-1" in said)
        stage_3 = sharded and plan.zero == 3
        assert told.get("pure_bf16", False) == (plan.stored == "bf16" and not stage_3)
        assert (plan.stored == "bf16" and stage_3) == ("kept in fp32" in said)
        if plan.adapters:
            assert (told["lora_rank"], told["lora_alpha"]) == (plan.rank, plan.alpha)
            assert told["lora_target"] == ("all" if plan.targets == LINEAR else ",".join(plan.targets))
            assert told.get("use_dora", False) == plan.dora
            assert ("lm_head" in told.get("additional_target", "")) == plan.head
            bits = {"int8": None if stage_3 else 8, "nf4": 4, "nf4, double": 4}.get(plan.frozen)
            assert told.get("quantization_bit") == bits
            assert told.get("double_quantization", plan.frozen == "nf4, double") == (plan.frozen == "nf4, double")
            assert (plan.frozen == "int8" and stage_3) == ("refuses int8" in said)
            assert (plan.frozen == "fp32") == ("not fp32" in said)


def test_unsloth_reads_the_plan_back() -> None:
    for plan in CASES:
        line = made(plan)["Unsloth"]
        told, said = reference.unsloth(line.text), notes(line)
        loaded, arguments = told["FastLanguageModel.from_pretrained"], told["SFTConfig"]
        assert loaded["first"].strip("'") == plan.base
        assert loaded["full_finetuning"] != plan.adapters
        assert (loaded["load_in_4bit"], loaded["load_in_8bit"]) == (
            plan.adapters and plan.frozen.startswith("nf4"),
            plan.frozen == "int8",
        )
        wanted = "unsloth" if plan.activations else plan.recompute
        assert loaded["use_gradient_checkpointing"] == wanted
        assert (arguments["max_length"], arguments["packing"]) == (plan.seq_len, plan.packed)
        assert arguments["per_device_train_batch_size"] == plan.micro_batch
        assert arguments["gradient_accumulation_steps"] == plan.accumulated
        assert (plan.data > 1 and plan.zero > 0) == ("shards nothing" in said)
        if plan.adapters:
            adapters = told["FastLanguageModel.get_peft_model"]
            assert (adapters["r"], adapters["lora_alpha"]) == (plan.rank, plan.alpha)
            assert tuple(adapters["target_modules"]) == plan.targets
            assert adapters.get("use_dora", False) == plan.dora
            assert ("modules_to_save" in adapters) == plan.head
            assert (plan.frozen == "fp32") == ("not fp32" in said)
        else:
            assert loaded["float32_mixed_precision"] == (plan.stored == "fp32")


def test_layers_and_names_are_trained_where_a_program_can() -> None:
    last = made(replace(LLAMA, trained="last layers", last=2))
    told = reference.axolotl(last["Axolotl"].text)
    unfrozen = reference.axolotl_unfreezes(told)
    assert [i for i in range(32) if unfrozen(f"model.layers.{i}.mlp.up_proj.weight")] == [30, 31]
    assert not unfrozen("lm_head.weight")
    named = made(replace(LLAMA, trained="named tensors", patterns=("layers.3*.mlp.*_proj", "embed_tokens")))
    unfrozen = reference.axolotl_unfreezes(reference.axolotl(named["Axolotl"].text))
    assert [i for i in range(32) if unfrozen(f"model.layers.{i}.mlp.up_proj.weight")] == [3, 30, 31]
    assert unfrozen("model.embed_tokens.weight")
    assert not unfrozen("model.layers.3.self_attn.q_proj.weight")
    frozen = reference.llama_factory(last["LLaMA-Factory"].text)
    assert (frozen["finetuning_type"], frozen["freeze_trainable_layers"]) == ("freeze", 2)
    assert "Not as the plan trains it" in notes(named["LLaMA-Factory"])
    for launches in (last, named):
        assert not launches["torchtune"].text
        assert "not last layers" in notes(launches["torchtune"]) or "not named tensors" in notes(launches["torchtune"])
        for system in ("TRL with PEFT", "Unsloth"):
            assert "Not as the plan trains it" in notes(launches[system])


def test_dropout_of_adapters_is_in_every_programs_settings() -> None:
    launches = made(replace(LORA, dropout=0.05))
    assert "model.lora_dropout=0.05" in launches["torchtune"].text
    assert reference.trl(launches["TRL with PEFT"].text)["lora_dropout"] == 0.05
    assert reference.axolotl(launches["Axolotl"].text)["lora_dropout"] == 0.05
    assert reference.llama_factory(launches["LLaMA-Factory"].text)["lora_dropout"] == 0.05
    assert reference.unsloth(launches["Unsloth"].text)["FastLanguageModel.get_peft_model"]["lora_dropout"] == 0.05


def test_recomputation_that_a_program_lacks_is_a_note_on_one_accelerator_too() -> None:
    for launch in fine_tuning_launches(replace(LORA, others=("recomputation of some layers",))):
        assert "recomputation of some layers" in notes(launch), launch.system


def test_what_a_program_cannot_do_is_a_note() -> None:
    rest = replace(LORA, norms=True, in_backward=True, frozen="fp8", tensor=2, others=("pipeline parallelism",))
    for launch in fine_tuning_launches(rest):
        said = notes(launch)
        assert "in backward" in said, launch.system
        assert "fp8" in said, launch.system
        assert "ensor parallelism" in said, launch.system
        assert "pipeline parallelism" in said, launch.system
    assert "norms" in notes(made(rest)["Unsloth"])
    assert "no Sophia" in notes(made(replace(LLAMA, optimizer="Sophia"))["TRL with PEFT"])
    part = replace(LORA, targets=("q_proj", "gate_proj"))
    assert "all three feed-forward matrices" in notes(made(part)["torchtune"])
    alone = replace(LLAMA, activations=True, recompute=False)
    assert all("offload" in notes(made(alone)[name]) for name in ("torchtune", "Axolotl", "LLaMA-Factory", "Unsloth"))
    for name, said in (
        ("torchtune", "fsdp_cpu_offload=true"),
        ("Axolotl", "offload_params"),
        ("LLaMA-Factory", "z3_offload"),
    ):
        there = [made(replace(LLAMA, data=8, zero=3, offload=way))[name] for way in (1, 2)]
        assert all(said in launch.text for launch in there)
        assert ["parameters" in notes(launch) for launch in there] == [True, False], name
    one = made(replace(LLAMA, data=1, zero=3, offload=2))
    assert all("offload" in one[name].text + notes(one[name]) for name in one)
    backward = replace(LLAMA, in_backward=True)
    assert reference.torchtune(made(backward)["torchtune"].text)["optimizer_in_bwd"]
    assert "refuses" in notes(made(replace(backward, accumulated=2))["torchtune"])


@every("model", [row["model"] for row in read_rows("torchtune_models")])
def test_every_model_that_torchtune_builds_is_launched(model: str) -> None:
    assert CATALOG[model].hf_id
    lines = 0
    for plan in (LLAMA, LORA, replace(LORA, data=8, zero=3), replace(LLAMA, data=8, zero=3)):
        line = made(replace(plan, model=model))["torchtune"]
        lines += bool(line.text)
        if line.text:
            reference.torchtune(line.text)
        else:
            assert "No line" in notes(line)
    assert lines


# ------------------------------------------------------------------------------------------ of a plan


def of(**texts: str) -> FineTuning:
    return fine_tuning_of(memory_estimate(plan_from({"model": "Llama 3.1 8B", "count": "8", **texts})))


def test_a_plan_is_told_by_its_own_fields() -> None:
    plan = of(seq="2048", mbs="2", acc="4", zero="3", chunks="8", rc="full")
    assert (plan.model, plan.base) == ("Llama 3.1 8B", "meta-llama/Llama-3.1-8B")
    assert (plan.seq_len, plan.micro_batch, plan.accumulated, plan.chunks) == (2048, 2, 4, 8)
    assert (plan.data, plan.zero, plan.recompute) == (8, 3, True)
    assert (plan.stored, plan.autocast) == ("fp32", True), "a master copy is what programs keep alone"
    assert of(prec="bf16 throughout").stored == "bf16"
    assert (of(**QLORA).dropout, of(**QLORA, drop="true").dropout) == (0.0, DROPOUT)
    assert not of(rc="selective").recompute
    assert "selective recomputation" in of(rc="selective").others
    assert "pipeline parallelism" in of(pp="2", acc="2").others


QLORA = {"ft": "adapters", "frozen": "nf4, double", "rank": "8", "alpha": "16", "count": "1", "zero": "0"}


def test_what_is_trained_is_told() -> None:
    plan = of(**QLORA, target="attention", dora="true", fth="true", ftn="true", paged="true", aoff="true", mean="300")
    assert (plan.trained, plan.frozen, plan.rank, plan.alpha) == ("adapters", "nf4, double", 8, 16)
    assert plan.targets == ATTENTION
    assert plan.dora
    assert plan.head
    assert plan.norms
    assert plan.paged
    assert plan.activations
    assert not plan.packed
    assert of(**QLORA).targets == LINEAR
    assert of(**QLORA).packed
    assert of(**QLORA, target="mlp").targets == LINEAR[4:]
    assert of(ft="last layers", lastn="3").last == 3
    assert of(ft="named tensors", names="layers.31.mlp").patterns == ("layers.31.mlp",)
    assert of(inb="true", acc="1").in_backward
    h = memory_estimate(plan_from({"model": "Llama 3.1 8B", **QLORA}))
    for launch in launches_of(h):
        assert launch.text, launch.system
    assert "adapters, r = 8, on weights in nf4 with double quantisation" in takeaway(
        fine_tuning_of(h), launches_of(h), h.plan.device
    )
    assert of(**QLORA, model="DeepSeek-V2-Lite").targets[:3] == ("q_proj", "kv_a_proj_with_mqa", "kv_b_proj")


@every("name", [name for name in SMALL if "," not in name])
def test_modules_have_the_names_that_transformers_gives_them(name: str) -> None:
    """Matrices of dense layers by name; a class that calls them otherwise is known to."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config_of(name, SMALL[name]))
    linear = {path.rpartition(".")[2] for path, part in model.named_modules() if isinstance(part, torch.nn.Linear)}
    spec = from_hf_config(model.config.to_json_string())
    plan = replace(Trained(), method="adapters")
    asked = {module_of(t).rpartition(".")[2] for t in tensors_of(spec) if t.kind == "matrix"} & plan.modules
    attention = asked & set(ATTENTION)
    foreign = not (asked if not spec.experts else attention) <= linear
    assert (type(model).__name__ in FOREIGN) == foreign, asked - linear


def test_a_model_of_other_names_gets_adapters_everywhere() -> None:
    plan = of(**QLORA, model="Falcon 7B")
    assert plan.foreign
    launches = made(plan)
    assert reference.trl(launches["TRL with PEFT"].text)["lora_target_modules"] == ["all-linear"]
    assert reference.axolotl(launches["Axolotl"].text)["lora_target_linear"]
    adapters = reference.unsloth(launches["Unsloth"].text)["FastLanguageModel.get_peft_model"]
    assert adapters["target_modules"] == "all-linear"
    assert all("otherwise" in notes(launches[name]) for name in list(launches)[1:])
    assert reference.llama_factory(launches["LLaMA-Factory"].text)["lora_target"] == "all"
    mixture = made(of(**QLORA, model="Mixtral 8x7B"))
    assert "lora_target_parameters" in notes(mixture["TRL with PEFT"])


def test_a_size_alone_has_a_place_for_its_name() -> None:
    h = memory_estimate(plan_from({"n": "7B", "count": "8"}))
    launches = launches_of(h)
    assert "No line" in notes(launches[0])
    assert "your/model" in launches[1].text
    assert "your own" in notes(launches[1])
    assert "TRL" in takeaway(fine_tuning_of(h), launches, h.plan.device)
    assert "not known here" in takeaway(fine_tuning_of(h), launches, find("M4 Max 128 GB"))
    assert "not known here" not in takeaway(fine_tuning_of(h), launches, find("RTX 4090"))
