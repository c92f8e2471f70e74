"""Launch settings of Megatron-LM and torchtitan for a layout, with what they do differently or cannot do.

Every setting was read in the projects’ own sources, which `MEGATRON` and `TORCHTITAN` name. What has no setting is a
note, never a guess.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from core.formula import Source
from core.messages import Message, message, pick_message
from core.models.spec import TransformerSpec
from core.search.request import SearchRequest
from core.training.custom_policy import ABSENT, OwnPolicy, own_like, state_names
from core.training.layout import Layout, Recompute, layers_of, named_modules, way_of
from core.training.optimizers import Optimizer
from core.training.precision import STORAGE_TYPES, PrecisionPolicy

_HALF = ("bf16", "fp16")
_ADAM = ("Adam", "AdamW")
_PARTS: Mapping[str, str] = {
    "weights": "launch.part.weights",
    "master": "launch.part.master",
    "gradients": "launch.part.gradients",
    "gradient_copy": "launch.part.gradient_copy",
    "accumulation": "launch.part.accumulation",
    "multiplies": "launch.part.multiplies",
}


@dataclass(frozen=True, slots=True)
class Precision:
    """Data types of a program.

    arguments: settings by name, in order; a switch is True. kept: the types that the program then stores. notes: what
    differs from the plan.
    """

    arguments: Mapping[str, Any]
    kept: OwnPolicy
    notes: tuple[Message, ...] = ()


def megatron_precision(policy: PrecisionPolicy, optimizer: Optimizer, layout: Layout, dtype: str) -> Precision:
    """Return the arguments of Megatron-LM. dtype: of the matmuls."""
    want, arguments, notes = _wanted(policy, optimizer, dtype), dict[str, Any](), list[Message]()
    weights, gradients = _stored(want), _summed(want)
    fsdp, adam = layout.zero >= 2, optimizer.name in _ADAM
    named = _MEGATRON_OPTIMIZERS.get(optimizer.name)
    if named is None or (fsdp and named.get("optimizer") not in (None, "sgd")):
        no = "launch.megatron.no_optimizer_fsdp" if named else "launch.megatron.no_optimizer"
        notes.append(message(no, optimizer=optimizer.name))
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
            notes.append(message("launch.megatron.half_master"))
        elif not layout.offload and (fsdp or weights == "fp32"):
            notes.append(message("launch.megatron.extra_master"))
    if layout.offload and adam:
        arguments["optimizer-cpu-offload"] = True
    elif layout.offload:
        notes.append(message("launch.megatron.offload_adam"))
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
    """Return the fields of torchtitan's ``TrainingConfig``, and ``implementation`` of
    ``OptimizersContainer.Config``."""
    want = _wanted(policy, optimizer, dtype)
    stored, products, given, notes = _one_copy(want, layout, "bf16")
    if want.multiplies == "fp8":
        notes.append(message("launch.torchtitan.matmuls", dtype="fp8"))
        given = replace(given, multiplies="fp8")
    fields: dict[str, Any] = {"dtype": LONG[stored], "mixed_precision_param": LONG[products]}
    if stored == "fp32" and want.states[:2] == ("bf16", "bf16") and optimizer.name in _ADAM:
        fields["implementation"] = "fused_opt_states_bf16"
        given = replace(given, states=("bf16", "bf16", "fp32"))
    if optimizer.name not in (*_ADAM, "Muon"):
        notes.append(message("launch.torchtitan.no_optimizer", optimizer=optimizer.name))
    return Precision(fields, given, (*_unlike(want, given, optimizer), *notes))


def trainer(
    policy: PrecisionPolicy, optimizer: Optimizer, layout: Layout, dtype: str, *, paged: bool = False
) -> Precision:
    """Return the dtypes of transformers' Trainer compared with the plan's, for trained weights and matmuls.

    paged: whether bitsandbytes stores the optimizer state, which is fp32 unless quantized.
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


def _one_copy(want: OwnPolicy, layout: Layout, half: str) -> tuple[str, str, OwnPolicy, list[Message]]:
    """Return the types of a program that stores one copy of the weights and casts a layer's for its matmuls: of the
    copy, of the matmuls, all that it stores, and what differs."""
    stored = "bf16" if (want.master if want.master != ABSENT else want.weights) == "bf16" else "fp32"
    products = "fp32" if stored == want.multiplies == "fp32" else half
    copied = stored == "fp32" and want.master != ABSENT and products != "fp32"
    given = replace(
        want,
        # The cast weights are the plan's weights, and the stored ones their master weights.
        weights=products if copied else stored,
        master="fp32" if copied else ABSENT,
        gradients=stored,
        accumulation=ABSENT,
        gradient_copy=ABSENT,
        multiplies=products,
        states=(stored, stored, stored),
    )
    only_shards = copied and layout.zero == 3
    return stored, products, given, [message("launch.one_copy")] * only_shards


LONG = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def _wanted(policy: PrecisionPolicy, optimizer: Optimizer, dtype: str) -> OwnPolicy:
    """Return the types of the plan, with matmuls in ``dtype``; in fp16 all of its 16-bit types are fp16."""
    want = own_like(policy, optimizer)
    if dtype == "fp8":
        return replace(want, multiplies="fp8")
    if dtype != "fp16":
        return want
    names = ("weights", "gradients", "accumulation", "multiplies")
    return replace(want, **{name: "fp16" for name in names if getattr(want, name) == "bf16"})


def _stored(want: OwnPolicy) -> str:
    """Return the type of the weights, or the nearest that every program has."""
    return want.weights if want.weights in ("fp32", *_HALF) else "bf16"


def _summed(want: OwnPolicy) -> str:
    """Return the type in which gradients of micro-batches are accumulated."""
    weights = _stored(want)
    wanted = want.gradients if want.accumulation == ABSENT else want.accumulation
    return "fp32" if wanted == "fp32" else weights


def _unlike(want: OwnPolicy, policy: OwnPolicy, optimizer: Optimizer) -> tuple[Message, ...]:
    """Return which types of a program differ from the plan, and by how many bytes per parameter."""
    pairs = [(message(_PARTS[name]), getattr(policy, name), getattr(want, name)) for name in _PARTS]
    pairs += [(name, policy.states[i], want.states[i]) for i, name in enumerate(state_names(optimizer)[:3])]
    other = [(what, given, wanted) for what, given, wanted in pairs if given != wanted]
    if not other:
        return ()
    types = [_other(*each) for each in other]
    stored = [(given, wanted) for what, given, wanted in other if what != message(_PARTS["multiplies"])]
    more = sum(_bytes(given) - _bytes(wanted) for given, wanted in stored)
    way = "launch.differs.more" if more > 0 else "launch.differs.less" if more else "launch.differs.equal"
    return (pick_message(way, types=types, bytes=abs(more)),)


def _other(what: str, given: str, wanted: str) -> Message:
    way = "launch.type.extra" if wanted == ABSENT else "launch.type.none" if given == ABSENT else "launch.type.other"
    return pick_message(way, what=what, given=given, wanted=wanted)


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
"""The program that fine-tunes; its settings name a model as well."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Settings of one program.

    text: empty if the program cannot run the plan; the first note then has the reason. notes: what the settings leave
    out or do differently.
    """

    system: str
    language: Literal["bash", "python"]
    text: str
    notes: tuple[Message, ...]
    source: Source


def launches(request: SearchRequest, layout: Layout) -> tuple[Launch, ...]:
    """Return the settings of a layout in both programs."""
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
    """Return the arguments of Megatron-LM's ``pretrain_gpt.py`` for layout and precision."""
    item, notes = layout, list[Message]()
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
            notes.append(message("launch.megatron.uneven", layers=float(spec.layers), chunks=float(chunks)))
    if spec.experts:
        arguments |= {"expert-model-parallel-size": item.expert, "expert-tensor-parallel-size": int(item.expert_split)}
    if item.sequence_parallel and item.tensor > 1:
        arguments["sequence-parallel"] = True
    arguments |= {"micro-batch-size": item.micro_batch, "global-batch-size": _batch(item), "seq-length": seq_len}
    if item.context > 1 and seq_len % (2 * item.context):
        why = message("launch.megatron.context", length=float(seq_len), twice=2.0 * item.context)
        return Launch("Megatron-LM", "bash", "", (why,), MEGATRON)
    arguments |= _megatron_sharding(item, notes)
    arguments["overlap-grad-reduce"] = True
    if item.zero:
        arguments["overlap-param-gather"] = True
    arguments |= _megatron_again(spec, item, notes)
    if item.offload > 1:
        notes.append(message("launch.megatron.offload_optimizer"))
    arguments |= precision.arguments
    if dtype not in _USUAL_PRODUCTS:
        notes.append(message("launch.megatron.matmuls", dtype=dtype))
    if item.tensor * item.pipeline * item.context * item.expert > 1:
        notes.append(message("launch.megatron.ranks"))
    text = " \\\n".join(f"--{name}" if value is True else f"--{name} {value}" for name, value in arguments.items())
    return Launch("Megatron-LM", "bash", text, (*precision.notes, *notes), MEGATRON)


def _megatron_again(spec: TransformerSpec, layout: Layout, notes: list[Message]) -> dict[str, Any]:
    """Return the arguments of recomputation."""
    way, some = int(way_of(layout.recompute)), int(layers_of(layout.recompute))
    if way == Recompute.FULL:
        if some > 0 and some % layout.interleave:
            notes.append(message("launch.megatron.block", layers=float(some), chunks=float(layout.interleave)))
        each = max(1, some // int(layout.interleave)) if some > 0 else max(1, -some)
        method = "block" if some > 0 else "uniform"
        return {"recompute-granularity": "full", "recompute-method": method, "recompute-num-layers": each}
    if way == Recompute.PER_OPERATION:
        notes.append(message("launch.megatron.per_operation"))
    if way in (Recompute.NONE, Recompute.PER_OPERATION):
        return {}
    if some:
        notes.append(message("launch.megatron.every_layer", layers=float(some)))
    names = named_modules(layout.recompute)
    if way == Recompute.SELECTIVE:
        modules = f"layernorm{' moe_act' * bool(spec.experts)}"
        notes.append(message("launch.megatron.selective", modules=modules))
    if "act" in names and spec.dense_layers:
        notes.append(message("launch.megatron.activations"))
    own = [{"act": "moe_act"}.get(name, name) for name in names if name != "act" or spec.experts]
    if names and not own:
        return {}  # without modules it would be core attention
    return {"recompute-granularity": "selective"} | ({"recompute-modules": " ".join(own)} if own else {})


def _megatron_sharding(layout: Layout, notes: list[Message]) -> dict[str, Any]:
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
        notes.append(message("launch.megatron.connections"))
        if layout.pipeline > 1:
            notes.append(message("launch.megatron.fsdp_pipeline", stage=float(layout.zero)))
    if layout.zero and layout.shard_group and layout.shard_group < ranks:
        arguments["num-distributed-optimizer-instances"] = ranks // int(layout.shard_group)
    return arguments


def torchtitan(spec: TransformerSpec, layout: Layout, precision: Precision, *, seq_len: int, dtype: str) -> Launch:
    """Return torchtitan's ``ParallelismConfig`` and ``TrainingConfig``, as a configuration function has them."""
    item, notes = layout, list[Message]()
    group = int(item.shard_group or item.data * item.context)
    shards = group // int(item.context) if item.zero else 1
    if item.zero and group % item.context:
        shards = int(item.data)
        notes.append(message("launch.torchtitan.group", group=float(group), context=float(item.context)))
    if item.zero == 1:
        notes.append(message("launch.torchtitan.zero_1"))
    if not item.zero and item.context > 1:
        notes.append(message("launch.torchtitan.context"))
    parallel: dict[str, Any] = {
        "data_parallel_replicate_degree": int(item.data) // max(1, shards),
        "data_parallel_shard_degree": shards,
        "tensor_parallel_degree": item.tensor,
        "pipeline_parallel_degree": item.pipeline,
        "context_parallel_degree": item.context,
        "expert_parallel_degree": item.expert,
    }
    if item.expert_tensor:
        notes.append(message("launch.torchtitan.expert_tensor"))
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
        training["disable_cuda_graphs"] = True  # torchtitan rejects both with CUDA graphs
    if item.offload:
        training["enable_cpu_offload"] = True
    if item.offload == 1:
        notes.append(message("launch.torchtitan.offload"))
    again: dict[int, str] = {Recompute.NONE: "None", Recompute.FULL: "FullAC.Config()"}
    way = int(way_of(item.recompute))
    checkpointed = again.get(way, "SelectiveAC.Config()")
    if way not in (*again, Recompute.PER_OPERATION):
        notes.append(message("launch.torchtitan.selective"))
    if layers_of(item.recompute):
        notes.append(message("launch.torchtitan.every_layer"))
    parts = int(item.tensor if item.sequence_parallel else 1) * int(2 * item.context if item.context > 1 else 1)
    if training["num_tokens_per_microbatch_per_dp_rank"] % parts:
        why = message("launch.torchtitan.micro_batch", parts=float(parts))
        return Launch("torchtitan", "python", "", (why,), TORCHTITAN)
    if dtype not in _USUAL_PRODUCTS:
        notes.append(message("launch.torchtitan.matmuls", dtype=dtype))
    rows = [
        _python("parallelism=ParallelismConfig", parallel),
        _python("training=TrainingConfig", training),
        f"activation_checkpoint={checkpointed},",
    ]
    if how := precision.arguments.get("implementation"):
        rows.append(f'optimizer=dataclasses.replace(default_adamw(), implementation="{how}"),')
    return Launch("torchtitan", "python", "\n".join(rows), (*precision.notes, *notes), TORCHTITAN)


def _torchtitan_chunks(layers: int, layout: Layout, notes: list[Message]) -> dict[str, Any]:
    """Return the fields for the layers of a chunk. By default torchtitan counts embedding and head as a layer each."""
    chunks = int(layout.pipeline * layout.interleave)
    ends = 2 if layers % chunks else 0
    fields = {} if ends else {f"pipeline_parallel_{end}_stage_less_layers": 0 for end in ("first", "last")}
    each = math.ceil((layers + ends) / chunks)
    if layout.interleave > 1 and math.ceil((layers + ends) / each) == chunks:
        fields["pipeline_parallel_layers_per_stage"] = each
    elif layout.interleave > 1:
        notes.append(message("launch.torchtitan.uneven", layers=float(layers), chunks=float(chunks)))
    return fields


def _python(head: str, fields: dict[str, Any]) -> str:
    rows = [f"    {name}={json.dumps(v) if isinstance(v, str) else v}," for name, v in fields.items()]
    return "\n".join((f"{head}(", *rows, "),"))
