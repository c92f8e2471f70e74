"""What data parallelism costs a step: gradients reduced, weights gathered or fetched from the host, the update."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.models.spec import TransformerSpec
from core.step_time.constants import Constants
from core.step_time.formulas import exposed_seconds, update_bytes
from core.step_time.links import Speeds
from core.step_time.parts import Running
from core.step_time.work import LayerWork
from core.training.device.inputs import States
from core.training.device.ranks import pieces_of
from core.training.device.traffic import ring_bytes
from core.training.layout import Degrees, pick

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
        layer = pieces.every + pieces.norms + (1 - mixed) * (pieces.dense + pieces.dense_norms)
        layer = layer + mixed * (pieces.mixed + pieces.mixed_norms)
        self.dense = self.layers * layer + np.maximum(pieces.embedding, pieces.head)
        self.shards, self.groups = d.shards, d.replicas / d.shards
        self.experts = self.layers * mixed * pieces.experts if mixed else 0.0
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
