"""A plan as the settings of Megatron-LM and torchtitan, and what of it they cannot do or are not known to.

Every setting was read in the projects' own sources of August 2026. What a project has no setting for is said, never
guessed.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Literal

from core.formula import Source
from core.models.spec import TransformerSpec
from core.search.launch_precision import megatron_precision, torchtitan_precision
from core.search.launch_precision import Precision
from core.search.request import SearchRequest
from core.training.layout import Layout, Recompute, layers_of, named_modules, way_of

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
