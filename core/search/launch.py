"""A plan as the settings of Megatron-LM and torchtitan, and what of it they cannot do or are not known to.

Every setting was read in the projects’ own sources of August 2026. What a project has no setting for is said, never
guessed.

What is kept under which settings was read in the sources that the lines of each name.

Every setting was read in the projects' own sources of August 2026. What a project has no setting for is said, never
guessed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from core.formula import Source
from core.models.spec import TransformerSpec
from core.search.request import SearchRequest
from core.training.custom_policy import ABSENT, OwnPolicy, own_like, state_names
from core.training.layout import Layout, Recompute, layers_of, named_modules, way_of
from core.training.optimizers import Optimizer
from core.training.precision import STORAGE_TYPES, PrecisionPolicy
from core.wording import listed

_HALF = ("bf16", "fp16")
_ADAM = ("Adam", "AdamW")
_PARTS: Mapping[str, str] = {
    "weights": "weights",
    "master": "master weights",
    "gradients": "gradients",
    "gradient_copy": "a copy of gradients for the optimizer",
    "accumulation": "a buffer that adds up gradients",
    "multiplies": "matrix products",
}


@dataclass(frozen=True, slots=True)
class Precision:
    """arguments: settings by name, in order; a switch is True. kept: the types that a system keeps under them. notes:
    what else is to be said."""

    arguments: Mapping[str, Any]
    kept: OwnPolicy
    notes: tuple[str, ...] = ()


def megatron_precision(policy: PrecisionPolicy, optimizer: Optimizer, layout: Layout, dtype: str) -> Precision:
    """Arguments of Megatron-LM. dtype: of the matrix products."""
    want, arguments, notes = _wanted(policy, optimizer, dtype), dict[str, Any](), list[str]()
    weights, gradients = _stored(want), _summed(want)
    fsdp, adam = layout.zero >= 2, optimizer.name in _ADAM
    named = _MEGATRON_OPTIMIZERS.get(optimizer.name)
    if named is None or (fsdp and named.get("optimizer") not in (None, "sgd")):
        notes.append(f"It has no {optimizer.name}{' with its FSDP' if named else ''}: `--optimizer` is left as Adam.")
    else:
        arguments |= named
    if weights in _HALF:
        arguments[weights] = True
        arguments |= {"accumulate-allreduce-grads-in-fp32": True} if gradients == "fp32" else {}
        arguments |= {"grad-reduce-in-bf16": True} if gradients == "bf16" else {}
    if fsdp:
        arguments["megatron-fsdp-main-grads-dtype"] = gradients
    master, states = (ABSENT if weights == "fp32" else "fp32"), ("fp32", "fp32", "fp32")
    low = want.states[:2] != states[:2] and not layout.offload
    half_master = want.master == "fp16" and weights in _HALF and not fsdp
    uncopied = gradients == "bf16" and want.gradient_copy == ABSENT and not fsdp
    # Without it moments and master weights are in fp32, and 16-bit gradients are copied to fp32 for the optimizer.
    aware = adam and (bool(layout.offload) or (layout.zero > 0 and (low or half_master or uncopied)))
    if aware:
        arguments["use-precision-aware-optimizer"] = True
        arguments |= {"main-grads-dtype": "bf16"} if gradients == "bf16" else {}
        if half_master:
            master = arguments["main-params-dtype"] = "fp16"
        if low:
            moments = [_MOMENTS.get(state, "fp32") for state in want.states[:2]]
            names = ("exp-avg-dtype", "exp-avg-sq-dtype")
            arguments |= {name: moment for name, moment in zip(names, moments, strict=True) if moment != "fp32"}
            states = (moments[0], moments[1], "fp32")
        if weights == "bf16" and not fsdp and master == "fp32" and not layout.offload:
            notes.append(
                "Its precision-aware optimizer keeps of an fp32 master weight the 16 bits that the bf16 weight lacks: "
                "2 bytes a parameter less than are counted, before sharding."
            )
        elif not layout.offload and (fsdp or weights == "fp32"):
            notes.append(
                "TransformerEngine’s Adam may keep master weights of its own beside these: 4 bytes a parameter more, "
                "before sharding."
            )
    if layout.offload and adam:
        arguments["optimizer-cpu-offload"] = True
    elif layout.offload:
        notes.append("It offloads the state of Adam alone.")
    if want.multiplies == "fp8":
        arguments["fp8-format"] = "hybrid"
    given = replace(
        want,
        weights=weights,
        master=master,
        gradients=gradients,
        accumulation=ABSENT,
        gradient_copy="fp32" if gradients in _HALF and not aware else ABSENT,
        multiplies="fp8" if want.multiplies == "fp8" else weights,
        states=states,
    )
    return Precision(arguments, given, (*_unlike(want, given, optimizer), *notes))


_MOMENTS = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "8-bit blocks": "fp8"}
_MEGATRON_OPTIMIZERS: Mapping[str, Mapping[str, Any]] = {
    "Adam": {},
    "AdamW": {},
    "SGD": {"optimizer": "sgd", "sgd-momentum": 0.0},
    "SGD momentum": {"optimizer": "sgd"},
    "Muon": {"optimizer": "muon"},
    "Lion": {"optimizer": "lion"},
}


def torchtitan_precision(policy: PrecisionPolicy, optimizer: Optimizer, layout: Layout, dtype: str) -> Precision:
    """Fields of torchtitan's ``TrainingConfig``; ``implementation`` is one of ``OptimizersContainer.Config``."""
    want = _wanted(policy, optimizer, dtype)
    stored, products, given, notes = _one_copy(want, layout, "bf16")
    if want.multiplies == "fp8":
        notes.append("Matrix products in fp8 are a choice of the model’s configuration, not of these.")
        given = replace(given, multiplies="fp8")
    fields: dict[str, Any] = {"dtype": LONG[stored], "mixed_precision_param": LONG[products]}
    if stored == "fp32" and want.states[:2] == ("bf16", "bf16") and optimizer.name in _ADAM:
        fields["implementation"] = "fused_opt_states_bf16"
        given = replace(given, states=("bf16", "bf16", "fp32"))
    if optimizer.name not in (*_ADAM, "Muon"):
        notes.append(f"It has no {optimizer.name}, only Adam, AdamW and Muon.")
    return Precision(fields, given, (*_unlike(want, given, optimizer), *notes))


def trainer(
    policy: PrecisionPolicy, optimizer: Optimizer, layout: Layout, dtype: str, *, paged: bool = False
) -> Precision:
    """The types of transformers' Trainer and of the plan: that of the weights that are updated, and that of products.

    paged: whether bitsandbytes has the optimizer's state, in fp32 where it is not quantised.
    """
    want = _wanted(policy, optimizer, dtype)
    stored, products, given, notes = _one_copy(want, layout, "fp16" if dtype == "fp16" else "bf16")
    if optimizer.name not in (*_ADAM, "SGD", "AdaGrad", "RMSProp"):  # what quantises its state has its own types
        given = replace(given, states=want.states)
    elif paged:
        given = replace(given, states=("fp32", "fp32", "fp32"))
    updated = want.weights if want.master == ABSENT else want.master
    types = {"weights": (stored, updated), "products": (products, want.multiplies)}
    return Precision(types, given, (*_unlike(want, given, optimizer), *notes))


def _one_copy(want: OwnPolicy, layout: Layout, half: str) -> tuple[str, str, OwnPolicy, list[str]]:
    """What keeps one copy of the weights and casts those of a layer for its products: the type of the copy, that of
    the products, all types that are kept then, and what is to be said."""
    stored = "bf16" if (want.master if want.master != ABSENT else want.weights) == "bf16" else "fp32"
    products = "fp32" if stored == want.multiplies == "fp32" else half
    copied = stored == "fp32" and want.master != ABSENT and products != "fp32"
    given = replace(
        want,
        # What it casts is the weights of the plan, and what it keeps is their master.
        weights=products if copied else stored,
        master="fp32" if copied else ABSENT,
        gradients=stored,
        accumulation=ABSENT,
        gradient_copy=ABSENT,
        multiplies=products,
        states=(stored, stored, stored),
    )
    only_shards = copied and layout.zero == 3
    less = "It keeps sharded fp32 weights alone: 2 bytes a parameter less than are counted."
    return stored, products, given, [less] * only_shards


LONG = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def _wanted(policy: PrecisionPolicy, optimizer: Optimizer, dtype: str) -> OwnPolicy:
    """The types of the plan. Where its products are in fp16, as on accelerators without bf16, so are its 16-bit types;
    where they are in fp8, the policy's need not say so."""
    want = own_like(policy, optimizer)
    if dtype == "fp8":
        return replace(want, multiplies="fp8")
    if dtype != "fp16":
        return want
    names = ("weights", "gradients", "accumulation", "multiplies")
    return replace(want, **{name: "fp16" for name in names if getattr(want, name) == "bf16"})


def _stored(want: OwnPolicy) -> str:
    """The type of the weights, or of the nearest that every system knows."""
    return want.weights if want.weights in ("fp32", *_HALF) else "bf16"


def _summed(want: OwnPolicy) -> str:
    """What gradients of micro-batches are to be added up in."""
    weights = _stored(want)
    wanted = want.gradients if want.accumulation == ABSENT else want.accumulation
    return "fp32" if wanted == "fp32" else weights


def _unlike(want: OwnPolicy, policy: OwnPolicy, optimizer: Optimizer) -> tuple[str, ...]:
    """In what a system keeps another type than the plan, and how many bytes of a parameter that makes."""
    pairs = [(what, getattr(policy, name), getattr(want, name)) for name, what in _PARTS.items()]
    pairs += [(name, policy.states[i], want.states[i]) for i, name in enumerate(state_names(optimizer)[:3])]
    other = [(what, is_, was) for what, is_, was in pairs if is_ != was]
    if not other:
        return ()
    sentences = [_other(what, is_, was) for what, is_, was in other]
    more = sum(_bytes(is_) - _bytes(was) for what, is_, was in other if what != _PARTS["multiplies"])
    size = f"{abs(more):.3g} bytes a parameter {'more' if more > 0 else 'less'}, before sharding" if more else ""
    return (f"**Not as the plan counts it:** {listed(sentences)}{f'; {size}' if size else ''}.",)


def _other(what: str, is_: str, was: str) -> str:
    if was == ABSENT:
        return f"{what} in {is_}, which the plan has none of"
    return f"no {what}, not {was}" if is_ == ABSENT else f"{what} in {is_}, not {was}"


def _bytes(kind: str) -> float:
    return 0.0 if kind == ABSENT else STORAGE_TYPES[kind].bytes


MEGATRON = Source(
    "NVIDIA, Megatron-LM",
    "megatron/training/arguments.py and docs/user-guide, August 2026",
    "https://github.com/NVIDIA/Megatron-LM/blob/d98e8a64ddf34856e74b24714e3bedb2f5a39553/megatron/training/arguments.py",
)
TORCHTITAN = Source(
    "PyTorch, torchtitan",
    "torchtitan/config/configs.py and trainer.py, August 2026",
    "https://github.com/pytorch/torchtitan/blob/b5bcd76c66d0acb1a08b176d9639425bc55e0b2a/torchtitan/config/configs.py",
)


TRL = "TRL"
"""The program that fine-tunes, whose lines name a model as well."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Settings of one program. text: empty where it cannot run the plan, as the first note then says. notes: what they
    leave out, do otherwise, or are not known to do; empty where nothing."""

    system: str
    language: Literal["bash", "python"]
    text: str
    notes: tuple[str, ...]
    source: Source


def launches(request: SearchRequest, layout: Layout) -> tuple[Launch, ...]:
    """The layout's settings in both programs."""
    spec, seq_len, dtype = request.spec, request.seq_len, request.running.dtype
    precise = (request.policy, request.optimizer, layout, dtype)
    return (
        megatron(spec, layout, megatron_precision(*precise), seq_len=seq_len, dtype=dtype),
        torchtitan(spec, layout, torchtitan_precision(*precise), seq_len=seq_len, dtype=dtype),
    )


_USUAL_PRODUCTS = ("bf16", "fp16", "fp8", "fp32", "tf32")
"""Settings that a `Precision` speaks of."""


def _batch(layout: Layout) -> int:
    return int(layout.micro_batch * layout.micro_batches * layout.data)


def megatron(spec: TransformerSpec, layout: Layout, precision: Precision, *, seq_len: int, dtype: str) -> Launch:
    """Arguments of Megatron-LM's ``pretrain_gpt.py``: those of layout and precision."""
    item, notes = layout, list[str]()
    arguments: dict[str, Any] = {
        "tensor-model-parallel-size": item.tensor,
        "pipeline-model-parallel-size": item.pipeline,
        "context-parallel-size": item.context,
    }
    if item.interleave > 1:
        arguments["num-virtual-stages-per-pipeline-rank"] = item.interleave
    chunks = int(item.pipeline * item.interleave)
    if item.pipeline > 1 and spec.layers % chunks:
        if (spec.layers + 2) % chunks == 0:
            arguments |= {"account-for-embedding-in-pipeline-split": True, "account-for-loss-in-pipeline-split": True}
        else:
            notes.append(
                f"{spec.layers} layers do not divide into {chunks} equal chunks: which chunk has fewer is to be "
                "written as `--pipeline-model-parallel-layout`."
            )
    if spec.experts:
        arguments |= {"expert-model-parallel-size": item.expert, "expert-tensor-parallel-size": int(item.expert_split)}
    if item.sequence_parallel and item.tensor > 1:
        arguments["sequence-parallel"] = True
    arguments |= {"micro-batch-size": item.micro_batch, "global-batch-size": _batch(item), "seq-length": seq_len}
    if item.context > 1 and seq_len % (2 * item.context):
        why = f"**It rejects {seq_len:,} tokens**, which do not divide by twice the context-parallel degree."
        return Launch("Megatron-LM", "bash", "", (why,), MEGATRON)
    arguments |= _megatron_sharding(item, notes)
    arguments["overlap-grad-reduce"] = True
    if item.zero:
        arguments["overlap-param-gather"] = True
    arguments |= _megatron_again(spec, item, notes)
    if item.offload > 1:
        notes.append("It offloads the optimizer alone by these arguments: parameters stay on the accelerator.")
    arguments |= precision.arguments
    if dtype not in _USUAL_PRODUCTS:
        notes.append(f"Matrix products in {dtype} are set up by other arguments, which are not given here.")
    if item.tensor * item.pipeline * item.context * item.expert > 1:
        notes.append(
            "Ranks are numbered tensor first, then context, data and pipeline, which is Megatron-LM’s default."
        )
    text = " \\\n".join(f"--{name}" if value is True else f"--{name} {value}" for name, value in arguments.items())
    return Launch("Megatron-LM", "bash", text, (*precision.notes, *notes), MEGATRON)


def _megatron_again(spec: TransformerSpec, layout: Layout, notes: list[str]) -> dict[str, Any]:
    """What is recomputed: of whole layers some or groups of them, of modules those of every layer."""
    way, some = int(way_of(layout.recompute)), int(layers_of(layout.recompute))
    if way == Recompute.FULL:
        if some > 0 and some % layout.interleave:
            notes.append(f"Its block is of each chunk, and {some} layers do not divide among {layout.interleave}.")
        each = max(1, some // int(layout.interleave)) if some > 0 else max(1, -some)
        method = "block" if some > 0 else "uniform"
        return {"recompute-granularity": "full", "recompute-method": method, "recompute-num-layers": each}
    if way == Recompute.PER_OPERATION:
        notes.append("It does not recompute single matrix products; what is nearest is selective recomputation.")
    if way in (Recompute.NONE, Recompute.PER_OPERATION):
        return {}
    if some:
        notes.append(f"It recomputes modules in every layer, not in {some} of each stage.")
    names = named_modules(layout.recompute)
    if way == Recompute.SELECTIVE:
        notes.append(
            "Selective is the core of attention here; where kernels are fused the plan means `--recompute-modules "
            f"layernorm{' moe_act' * bool(spec.experts)}`."
        )
    if "act" in names and spec.dense_layers:
        notes.append("Of activation functions it recomputes those of experts alone.")
    own = [{"act": "moe_act"}.get(name, name) for name in names if name != "act" or spec.experts]
    if names and not own:
        return {}  # named by nothing it would be the core of attention
    return {"recompute-granularity": "selective"} | ({"recompute-modules": " ".join(own)} if own else {})


def _megatron_sharding(layout: Layout, notes: list[str]) -> dict[str, Any]:
    ranks, arguments = int(layout.data * layout.context), dict[str, Any]()
    if layout.zero == 1:
        arguments["use-distributed-optimizer"] = True
    elif layout.zero >= 2:
        strategy = "optim_grads" if layout.zero == 2 else "optim_grads_params"
        arguments |= {
            "use-megatron-fsdp": True,
            "data-parallel-sharding-strategy": strategy,
            "ckpt-format": "fsdp_dtensor",
        }
        notes.append("Its FSDP refuses `CUDA_DEVICE_MAX_CONNECTIONS=1`: leave that variable unset.")
        if layout.pipeline > 1:
            notes.append(
                f"Whether Megatron-FSDP runs as ZeRO-{layout.zero} with a pipeline is not known here; try it small."
            )
    if layout.zero and layout.shard_group and layout.shard_group < ranks:
        arguments["num-distributed-optimizer-instances"] = ranks // int(layout.shard_group)
    return arguments


def torchtitan(spec: TransformerSpec, layout: Layout, precision: Precision, *, seq_len: int, dtype: str) -> Launch:
    """torchtitan's ``ParallelismConfig`` and ``TrainingConfig``, as a configuration function writes them."""
    item, notes = layout, list[str]()
    group = int(item.shard_group or item.data * item.context)
    shards = group // int(item.context) if item.zero else 1
    if item.zero and group % item.context:
        shards = int(item.data)
        notes.append(
            f"It shards over all context-parallel ranks, and {group:,} is no multiple of {item.context:,} of them."
        )
    if item.zero == 1:
        notes.append("torchtitan has no ZeRO-1: what is nearest shards gradients and parameters as well.")
    if not item.zero and item.context > 1:
        notes.append("With context parallelism torchtitan shards over those ranks, also where ZeRO is off.")
    parallel: dict[str, Any] = {
        "data_parallel_replicate_degree": int(item.data) // max(1, shards),
        "data_parallel_shard_degree": shards,
        "tensor_parallel_degree": item.tensor,
        "pipeline_parallel_degree": item.pipeline,
        "context_parallel_degree": item.context,
        "expert_parallel_degree": item.expert,
    }
    if item.expert_tensor:
        notes.append("Over how many ranks one expert is split is no setting of it.")
    if item.tensor > 1:
        parallel["enable_sequence_parallel"] = bool(item.sequence_parallel)
    if item.pipeline > 1:
        parallel["pipeline_parallel_schedule"] = "Interleaved1F1B" if item.interleave > 1 else "1F1B"
        parallel["num_pp_microbatches"] = item.micro_batches
        parallel |= _torchtitan_chunks(spec.layers, item, notes)
    if 1 <= item.zero <= 2:
        parallel["fsdp_reshard_after_forward"] = "never"
    elif item.zero == 3 and item.pipeline > 1:
        parallel["fsdp_reshard_after_forward"] = "default"
    training: dict[str, Any] = {
        "max_context_length": seq_len,
        "num_tokens_per_microbatch_per_dp_rank": int(item.micro_batch) * seq_len,
        "num_tokens_per_train_step": _batch(item) * seq_len,
    }
    training |= {name: value for name, value in precision.arguments.items() if name != "implementation"}
    if item.pipeline > 1 or item.expert > 1:
        training["disable_cuda_graphs"] = True  # without it both are refused
    if item.offload:
        training["enable_cpu_offload"] = True
    if item.offload == 1:
        notes.append("Its offload takes parameters and gradients to the host, too.")
    again: dict[int, str] = {Recompute.NONE: "None", Recompute.FULL: "FullAC.Config()"}
    way = int(way_of(item.recompute))
    checkpointed = again.get(way, "SelectiveAC.Config()")
    if way not in (*again, Recompute.PER_OPERATION):
        notes.append("Its selective recomputation recomputes every second matrix product, not modules.")
    if layers_of(item.recompute):
        notes.append("It recomputes in every layer, each from its own input.")
    parts = int(item.tensor if item.sequence_parallel else 1) * int(2 * item.context if item.context > 1 else 1)
    if training["num_tokens_per_microbatch_per_dp_rank"] % parts:
        why = f"**It rejects this micro-batch**: its tokens do not divide by {parts:,}."
        return Launch("torchtitan", "python", "", (why,), TORCHTITAN)
    if dtype not in _USUAL_PRODUCTS:
        notes.append(f"Matrix products in {dtype} are a choice of the model’s configuration, not of these.")
    rows = [
        _python("parallelism=ParallelismConfig", parallel),
        _python("training=TrainingConfig", training),
        f"activation_checkpoint={checkpointed},",
    ]
    if how := precision.arguments.get("implementation"):
        rows.append(f'optimizer=dataclasses.replace(default_adamw(), implementation="{how}"),')
    return Launch("torchtitan", "python", "\n".join(rows), (*precision.notes, *notes), TORCHTITAN)


def _torchtitan_chunks(layers: int, layout: Layout, notes: list[str]) -> dict[str, Any]:
    """How many layers a chunk has. Unless told otherwise torchtitan counts embedding and head as a layer each."""
    chunks = int(layout.pipeline * layout.interleave)
    ends = 2 if layers % chunks else 0
    fields = {} if ends else {f"pipeline_parallel_{end}_stage_less_layers": 0 for end in ("first", "last")}
    each = math.ceil((layers + ends) / chunks)
    if layout.interleave > 1 and math.ceil((layers + ends) / each) == chunks:
        fields["pipeline_parallel_layers_per_stage"] = each
    elif layout.interleave > 1:
        notes.append(
            f"{layers} layers do not make {chunks} chunks by `pipeline_parallel_layers_per_stage`: which chunk has "
            "which is to be written as `module_fqns_per_model_part`."
        )
    return fields


def _python(head: str, fields: dict[str, Any]) -> str:
    rows = [f"    {name}={json.dumps(v) if isinstance(v, str) else v}," for name, v in fields.items()]
    return "\n".join((f"{head}(", *rows, "),"))
