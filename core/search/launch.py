"""A plan as the settings of Megatron-LM, torchtitan and DeepSpeed, and what of it they cannot do or are not known to.

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
from core.search import launch_precision
from core.search.launch_precision import Precision
from core.training.layout import Layout, Recompute
from core.training.optimizers import Optimizer
from core.training.precision import PrecisionPolicy

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
DEEPSPEED = Source(
    "DeepSpeed",
    "docs/_pages/config-json.md, August 2026",
    "https://github.com/deepspeedai/DeepSpeed/blob/edaa7221267243c7be7fb49c5d5f5c4fb97b4641/docs/_pages/config-json.md",
)


@dataclass(frozen=True, slots=True)
class Launch:
    """Settings of one system. notes: what they leave out, do otherwise, or are not known to do; empty where nothing."""

    system: str
    language: Literal["bash", "python", "json"]
    text: str
    notes: tuple[str, ...]
    source: Source


def launches(
    spec: TransformerSpec,
    layout: Layout,
    *,
    seq_len: int,
    dtype: str,
    overlap: bool,
    policy: PrecisionPolicy,
    optimizer: Optimizer,
) -> tuple[Launch, ...]:
    """The layout's settings in each of three systems. dtype: of the matrix products."""
    precise = (policy, optimizer, layout, dtype)
    return (
        megatron(spec, layout, launch_precision.megatron(*precise), seq_len=seq_len, dtype=dtype, overlap=overlap),
        torchtitan(spec, layout, launch_precision.torchtitan(*precise), seq_len=seq_len, dtype=dtype),
        deepspeed(layout, launch_precision.deepspeed(*precise), overlap=overlap, dtype=dtype),
    )


_USUAL_PRODUCTS = ("bf16", "fp16", "fp8", "fp32", "tf32")
"""What `launch_precision` speaks of."""


def _batch(layout: Layout) -> int:
    return int(layout.micro_batch * layout.micro_batches * layout.data)


def megatron(
    spec: TransformerSpec, layout: Layout, precision: Precision, *, seq_len: int, dtype: str, overlap: bool
) -> Launch:
    """Arguments of Megatron-LM's ``pretrain_gpt.py``: those of layout and precision."""
    one, notes = layout, list[str]()
    said: dict[str, Any] = {
        "tensor-model-parallel-size": one.tensor,
        "pipeline-model-parallel-size": one.pipeline,
        "context-parallel-size": one.context,
    }
    if one.interleave > 1:
        said["num-virtual-stages-per-pipeline-rank"] = one.interleave
    chunks = int(one.pipeline * one.interleave)
    if one.pipeline > 1 and spec.layers % chunks:
        if (spec.layers + 2) % chunks == 0:
            said |= {"account-for-embedding-in-pipeline-split": True, "account-for-loss-in-pipeline-split": True}
        else:
            notes.append(
                f"{spec.layers} layers do not divide into {chunks} equal chunks: which chunk has fewer is to be "
                "written as `--pipeline-model-parallel-layout`."
            )
    if spec.experts:
        said |= {"expert-model-parallel-size": one.expert, "expert-tensor-parallel-size": 1}
    if one.sequence_parallel and one.tensor > 1:
        said["sequence-parallel"] = True
    said |= {"micro-batch-size": one.micro_batch, "global-batch-size": _batch(one), "seq-length": seq_len}
    if one.context > 1 and seq_len % (2 * one.context):
        notes.append(f"**It refuses {seq_len:,} tokens**, which do not divide by twice the context-parallel degree.")
    said |= _megatron_sharding(one, notes)
    if overlap:
        said["overlap-grad-reduce"] = True
        if one.zero:
            said["overlap-param-gather"] = True
    if one.recompute == Recompute.SELECTIVE:
        said["recompute-granularity"] = "selective"
    if one.recompute == Recompute.FULL:
        said |= {"recompute-granularity": "full", "recompute-method": "uniform", "recompute-num-layers": 1}
    if one.recompute == Recompute.PER_OPERATION:
        notes.append("It does not recompute single matrix products; what is nearest is selective recomputation.")
    said |= precision.arguments
    if dtype not in _USUAL_PRODUCTS:
        notes.append(f"Matrix products in {dtype} are set up by other arguments, which are not given here.")
    if one.tensor * one.pipeline * one.context * one.expert > 1:
        notes.append(
            "Ranks are numbered tensor first, then context, data and pipeline, which is Megatron-LM’s default."
        )
    text = " \\\n".join(f"--{name}" if value is True else f"--{name} {value}" for name, value in said.items())
    return Launch("Megatron-LM", "bash", text, (*precision.notes, *notes), MEGATRON)


def _megatron_sharding(one: Layout, notes: list[str]) -> dict[str, Any]:
    ranks, said = int(one.data * one.context), dict[str, Any]()
    if one.zero == 1:
        said["use-distributed-optimizer"] = True
    elif one.zero >= 2:
        strategy = "optim_grads" if one.zero == 2 else "optim_grads_params"
        said |= {"use-megatron-fsdp": True, "data-parallel-sharding-strategy": strategy, "ckpt-format": "fsdp_dtensor"}
        notes.append("Its FSDP refuses `CUDA_DEVICE_MAX_CONNECTIONS=1`: leave that variable unset.")
        if one.pipeline > 1:
            notes.append(
                f"Whether Megatron-FSDP runs as ZeRO-{one.zero} with a pipeline is not known here; try it small."
            )
    if one.zero and one.shard_group and one.shard_group < ranks:
        said["num-distributed-optimizer-instances"] = ranks // int(one.shard_group)
    return said


def torchtitan(spec: TransformerSpec, layout: Layout, precision: Precision, *, seq_len: int, dtype: str) -> Launch:
    """torchtitan's ``ParallelismConfig`` and ``TrainingConfig``, as a configuration function writes them."""
    one, notes = layout, list[str]()
    group = int(one.shard_group or one.data * one.context)
    shards = group // int(one.context) if one.zero else 1
    if one.zero and group % one.context:
        shards = int(one.data)
        notes.append(
            f"It shards over all context-parallel ranks, and {group:,} is no multiple of {one.context:,} of them."
        )
    if one.zero == 1:
        notes.append("torchtitan has no ZeRO-1: what is nearest shards gradients and parameters as well.")
    if not one.zero and one.context > 1:
        notes.append("With context parallelism torchtitan shards over those ranks, also where ZeRO is off.")
    parallel: dict[str, Any] = {
        "data_parallel_replicate_degree": int(one.data) // max(1, shards),
        "data_parallel_shard_degree": shards,
        "tensor_parallel_degree": one.tensor,
        "pipeline_parallel_degree": one.pipeline,
        "context_parallel_degree": one.context,
        "expert_parallel_degree": one.expert,
    }
    if one.tensor > 1:
        parallel["enable_sequence_parallel"] = bool(one.sequence_parallel)
    if one.pipeline > 1:
        parallel["pipeline_parallel_schedule"] = "Interleaved1F1B" if one.interleave > 1 else "1F1B"
        parallel["num_pp_microbatches"] = one.micro_batches
        parallel |= _torchtitan_chunks(spec.layers, one, notes)
    if 1 <= one.zero <= 2:
        parallel["fsdp_reshard_after_forward"] = "never"
    elif one.zero == 3 and one.pipeline > 1:
        parallel["fsdp_reshard_after_forward"] = "default"
    training: dict[str, Any] = {
        "max_context_length": seq_len,
        "num_tokens_per_microbatch_per_dp_rank": int(one.micro_batch) * seq_len,
        "num_tokens_per_train_step": _batch(one) * seq_len,
    }
    training |= {name: value for name, value in precision.arguments.items() if name != "implementation"}
    if one.pipeline > 1 or one.expert > 1:
        training["disable_cuda_graphs"] = True  # without it both are refused
    if one.offload:
        training["enable_cpu_offload"] = True
        notes.append("Its offload takes parameters and gradients to the host, too.")
    again = {Recompute.NONE: "None", Recompute.FULL: "FullAC.Config()"}
    checkpointed = again.get(Recompute(int(one.recompute)), "SelectiveAC.Config()")
    if one.recompute == Recompute.SELECTIVE:
        notes.append("Its selective recomputation recomputes every second matrix product, not the core of attention.")
    parts = int(one.tensor if one.sequence_parallel else 1) * int(2 * one.context if one.context > 1 else 1)
    if training["num_tokens_per_microbatch_per_dp_rank"] % parts:
        notes.append(f"**It refuses this micro-batch**: its tokens do not divide by {parts:,}.")
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


def _torchtitan_chunks(layers: int, one: Layout, notes: list[str]) -> dict[str, Any]:
    """How many layers a chunk has. Unless told otherwise torchtitan counts embedding and head as a layer each."""
    chunks = int(one.pipeline * one.interleave)
    ends = 2 if layers % chunks else 0
    said = {} if ends else {f"pipeline_parallel_{end}_stage_less_layers": 0 for end in ("first", "last")}
    each = math.ceil((layers + ends) / chunks)
    if one.interleave > 1 and math.ceil((layers + ends) / each) == chunks:
        said["pipeline_parallel_layers_per_stage"] = each
    elif one.interleave > 1:
        notes.append(
            f"{layers} layers do not make {chunks} chunks by `pipeline_parallel_layers_per_stage`: which chunk has "
            "which is to be written as `module_fqns_per_model_part`."
        )
    return said


def _python(head: str, fields: dict[str, Any]) -> str:
    rows = [f"    {name}={json.dumps(v) if isinstance(v, str) else v}," for name, v in fields.items()]
    return "\n".join((f"{head}(", *rows, "),"))


def deepspeed(layout: Layout, precision: Precision, *, overlap: bool, dtype: str) -> Launch:
    """DeepSpeed's ``ds_config.json``, and what its models are given in code."""
    one, notes = layout, list[str]()
    zero: dict[str, Any] = {"stage": int(one.zero)}
    if overlap:
        zero["overlap_comm"] = True
    if one.offload:
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    ranks = int(one.data * one.context)
    if one.zero and one.shard_group and one.shard_group < ranks:
        notes.append(
            f"Sharding over {one.shard_group:,} of {ranks:,} ranks is not among its documented settings; "
            "`zero_hpz_partition_size` keeps a second copy of the weights within a node, which is another thing."
        )
    made: dict[str, Any] = {
        "train_batch_size": _batch(one),
        "train_micro_batch_size_per_gpu": int(one.micro_batch),
        "gradient_accumulation_steps": int(one.micro_batches),
        "zero_optimization": zero,
        **precision.arguments,
    }
    if one.tensor > 1:
        made["tensor_parallel"] = {"autotp_size": int(one.tensor)}
    if one.expert > 1:
        made["expert_parallel"] = {"enabled": True, "autoep_size": int(one.expert)}
    if one.expert > 1 and one.tensor > 1:
        notes.append("It does not combine expert with tensor parallelism in these settings.")
    if one.pipeline > 1:
        notes.append(f"The pipeline is made in code: `PipelineModule(…, num_stages={one.pipeline})`.")
    if one.pipeline > 1 and one.zero >= 2:
        notes.append(f"**It refuses ZeRO-{one.zero} with a pipeline**; ZeRO-1 is the most it takes.")
    if one.interleave > 1:
        notes.append("It has no interleaved schedule.")
    if one.context > 1:
        notes.append("Sequences are split in code, by Ulysses, which sends other bytes than ring attention does.")
    if one.recompute:
        notes.append("What is recomputed is chosen in the model’s code.")
    if dtype not in _USUAL_PRODUCTS:
        notes.append(f"Matrix products in {dtype} are not among these settings.")
    return Launch("DeepSpeed", "json", json.dumps(made, indent=2), (*precision.notes, *notes), DEEPSPEED)
