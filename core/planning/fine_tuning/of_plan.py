"""The part of a plan that fine-tuning programs are told."""

from __future__ import annotations

from core.planning.fine_tuning.launch import fine_tuning_launches
from core.planning.fine_tuning.settings import DROPOUT, FOREIGN, FineTuning, FineTuningLaunch
from core.planning.memory_estimate import MemoryEstimate
from core.training.layout import Layout, Recompute, layers_of, way_of
from core.training.precision import FP32
from core.training.tensors import tensors_of
from core.training.trained import module_of


def fine_tuning_of(h: MemoryEstimate) -> FineTuning:
    """What the plan trains and how, in the words of these programs."""
    plan, layout, policy = h.plan, h.layout, h.policy
    known = plan.catalog_model
    named = known is not None and not known.counted and "(" not in known.hf_id
    # A master copy in fp32 is what programs keep alone, casting it for the products.
    wide = policy.weights is FP32 or (policy.master is not None and policy.master is FP32)
    return FineTuning(
        model=known.name if known and named else "",
        base=known.hf_id if known and named else "",
        layers=h.spec.layers,
        trained=plan.trained.method,
        rank=plan.trained.rank,
        alpha=plan.trained.alpha,
        targets=_targets(h),
        dropout=DROPOUT if plan.trained.dropout else 0.0,
        foreign=known is not None and known.family in FOREIGN,
        stacked=h.spec.experts is not None,
        dora=plan.trained.dora,
        head=plan.trained.head,
        norms=plan.trained.norms,
        biases=h.spec.attention_bias or h.spec.output_bias or h.spec.ffn_bias,
        last=plan.trained.last,
        patterns=plan.trained.names,
        frozen=plan.trained.frozen,
        stored="fp32" if wide else "bf16",
        autocast=wide and policy.multiplies is not FP32,
        optimizer=h.optimizer.name,
        paged=plan.runtime_options.paged,
        in_backward=plan.runtime_options.in_backward,
        seq_len=plan.seq_len,
        packed=not plan.lengths.mean,
        micro_batch=int(layout.micro_batch),
        accumulated=int(layout.micro_batches),
        data=int(layout.data),
        zero=int(layout.zero),
        tensor=int(layout.tensor),
        others=_others(layout),
        offload=int(layout.offload),
        recompute=int(way_of(layout.recompute)) == Recompute.FULL,
        activations=plan.runtime_options.offload_activations,
        chunks=plan.runtime_options.chunks,
    )


def _targets(h: MemoryEstimate) -> tuple[str, ...]:
    """The matrices of the model that adapters are asked for, by the names of their modules, each once."""
    leaves = (module_of(tensor).rpartition(".")[2] for tensor in tensors_of(h.spec) if tensor.columns > 1)
    return tuple(dict.fromkeys(leaf for leaf in leaves if leaf in h.plan.trained.modules))


def _others(layout: Layout) -> tuple[str, ...]:
    """What of the layout is no setting of any of them."""
    group = int(layout.shard_group)
    present = {
        "pipeline parallelism": layout.pipeline > 1,
        "context parallelism": layout.context > 1,
        "expert parallelism": layout.sends_tokens,
        f"sharding over {group} of {int(layout.data)} ranks": 0 < group < layout.data,
        "selective recomputation": way_of(layout.recompute) not in (Recompute.NONE, Recompute.FULL),
        "recomputation of some layers": layers_of(layout.recompute) != 0,
    }
    return tuple(name for name, there in present.items() if there)


def launches_of(h: MemoryEstimate) -> tuple[FineTuningLaunch, ...]:
    """The plan's settings in each of five programs."""
    return fine_tuning_launches(fine_tuning_of(h))
