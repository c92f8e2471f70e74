"""Seconds of one training step under a layout, or under a million of them, by what the time goes to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core.budget.equations import BudgetError
from core.hardware.cluster import Cluster, Rates
from core.messages import message
from core.models.spec import TransformerSpec
from core.step_time.formulas import (
    Constants,
    constants_of,
    contention_share,
    exposed_seconds,
    family_of,
    jitter_share,
    update_bytes,
)
from core.step_time.layer import layer_time
from core.step_time.running import AS_USUAL, BITS, Running, Speeds, StepTime, added_up, check_peak, speeds_of
from core.step_time.work import BYTES_16BIT, LayerWork, layer_work
from core.training.activations.tensors import FUSED, Implementation, rank_tokens
from core.training.device.inputs import States, states_of, usual
from core.training.device.ranks import pieces_of
from core.training.device.traffic import bubble_seconds, handed_on, ring_bytes
from core.training.layout import Counts, Degrees, Layout, check, degrees_of, pick
from core.training.optimizers import Optimizer
from core.training.precision import PrecisionPolicy

_TENSORS = 12.0
"""Tensors of one layer that DeepSpeed of 2021 gathered one by one; FSDP gathers a layer at once."""

_LOCAL_BYTES = 8.0
"""Moved per parameter of a rank whatever its share of the update: gradients cleared, scaled and their norm taken."""

_FULL_NODE, _ALONE = 8.0, 4.5
"""Accelerators that share a host where the published rate was taken, and times that rate that one has for itself:
DeepSpeed 0.19 and 16 cores, on one H100, updated 1.24B parameters in 0.48 s, or 72 GB/s."""


class Exchange:
    """Data parallelism of each layout: parameters of the fullest stage's rank, and who shares them."""

    def __init__(
        self,
        spec: TransformerSpec,
        d: Degrees,
        running: Running,
        speeds: Speeds,
        constants: Constants,
        states: States,
        work: LayerWork,
        *,
        regathers: bool = False,
    ) -> None:
        self.once = d.once_a_step(regathers)
        self.d, self.running, self.speeds, self.c, self.states = d, running, speeds, constants, states
        self.updated = states.updated or states.of["layers"]
        pieces = pieces_of(spec, d)
        self.layers = np.ceil(work.layers / d.pipeline)
        mixed = work.moe_share
        layer = pieces["layer"] + pieces["layer norms"] + (1 - mixed) * (pieces["dense"] + pieces["dense norms"])
        layer = layer + mixed * (pieces["moe"] + pieces["moe norms"])
        self.dense = self.layers * layer + np.maximum(pieces["embedding"], pieces["head"])
        self.shards, self.groups = d.shards, d.replicas / d.shards
        self.experts = self.layers * mixed * pieces["experts"] if mixed else 0.0
        self.expert_shards = d.expert_shards

    def _one(self, each: float) -> Any:
        """Seconds of one reduce-scatter, or all-gather, of all parameters of a rank over their shards."""
        speeds, d = self.speeds, self.d
        sent = ring_bytes.over(times=1.0, size=self.dense * each, ranks=self.shards)
        time = sent / speeds.group(self.shards, d.tensor)
        if not np.any(self.experts):
            return time
        sent = ring_bytes.over(times=1.0, size=self.experts * each, ranks=self.expert_shards)
        return time + sent / speeds.group(self.expert_shards, d.expert_ranks)

    def data(self, forward: Any, backward: Any) -> Any:
        """Seconds of the step that wait for reductions and gathers.

        forward, backward: of one micro-batch on the stage. Where it is not once a step, ZeRO-2 reduces after each
        micro-batch, and ZeRO-3 gathers for each forward and backward, what lies in the host's memory once it is here.
        """
        d, c = self.d, self.c
        gradients, weights = self.updated.gradients, self.states.gathered
        reduce, gather = self._one(gradients), self._one(weights)
        often = pick(self.once, 1.0, d.micro_batches)
        reduces = pick(d.zero >= 2, often, 1.0)
        sharded = (d.zero >= 3) * pick(self.once, 0.0, 1.0)
        gather = pick(d.zero >= 3, gather, pick(d.zero >= 1, gather * self.states.trained, reduce))
        # Of ZeRO-3's two gathers one runs beside forward, the other beside backward like the reduction.
        front, behind = pick(sharded > 0, d.micro_batches, 1.0) * gather, reduces * reduce
        late = self._late() * sharded * d.micro_batches
        ring = front + late + self._fetched(weights) * d.micro_batches
        behind = behind + sharded * ring + late
        share = 1.0 + self.running.overlap * (c.data_wait - 1.0)
        ahead = pick(sharded > 0, d.micro_batches, 1.0)
        waited = exposed_seconds.over(time=ring, share=share, behind=forward * ahead)
        waited = waited + exposed_seconds.over(time=behind, share=share, behind=backward * reduces)
        if self.running.software == "internevo":
            # Each rank's share of the updated weights is a broadcast of its own, one after the other.
            waited = waited + c.broadcast * (d.zero == 1) * (self.shards - 1)
        if not np.any(self.groups > 1):
            return waited
        own = self.dense * gradients / self.shards + self.experts * gradients / self.expert_shards
        across = ring_bytes.over(times=2.0, size=own, ranks=self.groups)
        return waited + share * across / self.speeds.group(self.groups, d.tensor * self.shards)

    def _fetched(self, each: Any) -> Any:
        """Seconds in which a rank's shard of all weights comes from the host, layer by layer, in one of two passes."""
        if not np.any(self.d.offload > 1):
            return 0.0
        own = self.dense / self.shards + self.experts / self.expert_shards
        return (self.d.offload > 1) * own * each / self.speeds.host

    def _late(self) -> Any:
        """Seconds of latency of one gather of every layer: a ring of as many hops as shards."""
        tensors = _TENSORS if self.running.software == "deepspeed 2021" else 1.0
        inside = self.shards * self.d.tensor <= self.speeds.domain
        return self.layers * tensors * (self.shards - 1) * np.where(inside, 0.0, self.c.ring)

    def update(self) -> Any:
        """Seconds of the optimizer, in the accelerator's memory or the host's."""
        d, states = self.d, self.updated
        each = float(
            update_bytes(kept=states.master + states.optimizer, gradients=states.gradients, weights=states.parameters)
        )
        divided = d.zero >= 1
        updated = self.dense / pick(divided, self.shards, 1.0)
        updated = updated + self.experts / pick(divided, self.expert_shards, 1.0)
        local = _LOCAL_BYTES * self.states.trained * (self.dense + self.experts) / self.speeds.memory
        moved = each * updated
        if not np.any(d.offload > 0):
            return local + moved / self.speeds.memory
        beside = np.minimum(d.tensor * d.pipeline * d.replicas, self.speeds.domain)
        host = self.c.host * np.minimum(_ALONE, _FULL_NODE / beside)
        return local + moved * pick(d.offload > 0, 1 / host, 1 / self.speeds.memory)


def step_time(
    spec: TransformerSpec,
    cluster: Cluster,
    layout: Layout,
    *,
    seq_len: Counts,
    running: Running = AS_USUAL,
    implementation: Implementation = FUSED,
    policy: PrecisionPolicy | None = None,
    optimizer: Optimizer | None = None,
    rates: Rates | None = None,
    constants: Constants | None = None,
) -> StepTime:
    """Seconds of one step of ``spec`` on ``cluster`` under ``layout``, whose fields may be arrays.

    policy, optimizer: mixed bf16 with AdamW where they are None. Raises `LayoutError` for a layout that cannot be or
    takes more accelerators than there are, and `BudgetError` for a format that is not timed or whose peak is not known,
    and for a link whose bandwidth is not known but needed. Layouts that are known to be sound go to `step_over`.
    """
    check(spec, layout, seq_len, cluster.count)
    device = cluster.accelerator
    check_peak(device, running.dtype)
    states = default_states(spec, policy, optimizer)
    time = step_over(
        spec, cluster, layout, states, seq_len=seq_len, running=running, implementation=implementation,
        rates=rates, constants=constants,
    )  # fmt: skip
    if np.any(np.isnan(time.total)):
        unknown = math.isnan((rates or Rates()).of("between", cluster.link_between))
        far = np.any(np.greater(layout.accelerators, cluster.per_node)) and unknown
        missing = "step.error.no_network" if far else "step.error.no_links"
        raise BudgetError("accelerator", message(missing, device=device.name))
    return time


def default_states(
    spec: TransformerSpec, policy: PrecisionPolicy | None = None, optimizer: Optimizer | None = None
) -> States:
    """Bytes per parameter of the model states: mixed bf16 with AdamW where they are None."""
    policy, optimizer = usual(policy, optimizer)
    return states_of(optimizer, policy, spec)


def step_over(
    spec: TransformerSpec,
    cluster: Cluster,
    layout: Layout,
    states: States,
    *,
    seq_len: Counts,
    running: Running = AS_USUAL,
    implementation: Implementation = FUSED,
    rates: Rates | None = None,
    constants: Constants | None = None,
) -> StepTime:
    """The same for many layouts at once, none of which is checked; NaN where a bandwidth is unknown but needed.

    Fields of the layout broadcast against each other as they are: what depends on few of them stays small.
    """
    c, how = constants or constants_of(family_of(cluster.accelerator)), implementation
    speeds, d = speeds_of(cluster, running, c, rates), degrees_of(layout)
    speeds = speeds.in_fp32() if how.in_fp32 else speeds
    # A stage's parts are those of a mean stage; what the fullest has more is a wait.
    with np.errstate(invalid="ignore", divide="ignore"):
        layer = layer_time(spec, how, d, seq_len, running, speeds, c)
        work = layer_work(spec, how, BITS[running.dtype] / 8)
        p, v, many = d.pipeline, d.interleave, d.micro_batches
        each = many * (work.layers / p)
        head = layer.head + layer.head_elementwise
        share = many / p
        stage = layer.total * (work.layers / p)
        transfer = _transfer(spec, d, seq_len, running, speeds, c)
        exchange = Exchange(spec, d, running, speeds, c, states, work, regathers=how.regathers)
        data = exchange.data(layer.forward * (work.layers / p), layer.backward * (work.layers / p))
        update = exchange.update()
        parts: dict[str, Any] = {
            "matmul": each * layer.matmul + share * layer.head,
            "attention": each * layer.attention,
            "elementwise": each * layer.elementwise + share * layer.head_elementwise,
            "recompute": each * layer.recompute,
            "tensor": each * layer.tensor,
            "context": each * layer.context,
            "expert": each * layer.expert,
            "transfer": many * c.transfer_wait * transfer,
            "bubble": bubble_seconds.over(pipeline=p, interleave=v, stage=stage, transfer=transfer)
            + many * _unevenness(work.layers, layer.total, head, p, v),
            "data": data,
            "optimizer": update,
            "fixed": each * layer.fixed + c.per_step,
        }
        factors = {
            "eager": 1.0 if how.written_out else c.eager,
            "deepspeed 2021": c.deepspeed,
            "megatron tuned": c.megatron_tuned,
            "internevo": c.internevo,
        }
        factor = factors.get(running.software)
        if factor is not None:
            parts = {name: factor * value for name, value in parts.items()}
        accelerators = d.tensor * p * d.context * d.data
        beside = contention_share.over(share=c.contention, accelerators=accelerators)
        nodes = np.maximum(1.0, accelerators / speeds.domain)
        parts["jitter"] = added_up(parts.values()) * (beside + jitter_share.over(share=c.jitter, nodes=nodes))
    if all(np.ndim(value) == 0 for value in parts.values()):
        parts = {name: float(value) for name, value in parts.items()}
    return StepTime(**parts)


def _unevenness(layers: float, layer: Any, head: Any, p: Any, v: Any) -> Any:
    """Seconds per micro-batch by which the fullest stage takes longer than the mean one.

    Layers that divide evenly leave the head on top of the last stage's; else embedding and head take the places that
    layers leave.
    """
    chunk = layers / (p * v)
    full = np.ceil(chunk)
    return pick(full == chunk, head * (1 - 1 / p), np.maximum(0.0, (full - chunk) * v * layer - head / p))


def _transfer(
    spec: TransformerSpec, d: Degrees, seq_len: Counts, running: Running, speeds: Speeds, c: Constants
) -> Any:
    """Seconds in which one micro-batch's activations and their gradients go from stage to stage."""
    if not np.any(d.pipeline > 1):
        return 0.0
    tokens = rank_tokens.over(micro_batch=d.micro_batch, seq_len=np.asarray(seq_len), context=d.context)
    stride = d.tensor * d.context * d.data
    far = stride * d.pipeline > speeds.domain
    size = tokens * handed_on(d, BYTES_16BIT * spec.stream_width, running.scattered)
    sent = size / np.where(far, speeds.between, speeds.inside)
    hop = pick(far, c.hop_between, c.hop_inside)
    return np.where(d.pipeline > 1, 2.0 * d.interleave * (sent + hop), 0.0)
