"""One setup's account taken apart: each part of it with its formula, values and sources."""

from __future__ import annotations

import numpy as np

from core.formula import Explanation
from core.training.activations.derivation import explain_stage
from core.training.device.buffers import device_bytes, process_groups, runtime_bytes, sharded_bytes
from core.training.device.inputs import states_of
from core.training.device.memory import rank_of
from core.training.device.setup import Setup
from core.training.device.states_only import on_device, shared_over
from core.training.layout import degrees_of
from core.training.memory import PARTS


def explain_device(setup: Setup) -> tuple[Explanation, ...]:
    """The steps to what the fullest accelerator holds: states, activations, runtime, and their sum.

    Bytes per parameter are those of the layers' matrices; parts that are none or lie on the host are left out.
    """
    held, one = setup.device_memory, setup.runtime
    degrees = degrees_of(setup.layout)
    stages, rank = rank_of(setup.spec, degrees, (int(held.stage),))
    dense, experts = (float(np.ravel(value)[0]) for value in (rank.dense, rank.experts))
    layers, experts_layers = (float(np.ravel(value)[0]) for value in (stages.layers, stages.moe_layers))
    each = states_of(setup.optimizer, setup.policy, setup.spec).of["layers"]
    found: list[Explanation] = []
    for field, name in PARTS.items():
        size = float(getattr(each, field))
        if not size or not on_device(field, degrees):
            continue
        shards, expert_shards = (
            float(shared_over(field, degrees, ranks)) for ranks in (degrees.shards, degrees.expert_shards)
        )
        step = sharded_bytes.explain(
            dense=dense, shards=shards, experts=experts, expert_shards=expert_shards, each=size
        )
        found.append(step.about(name))
    found += explain_stage(
        setup.spec,
        setup.implementation,
        setup.layout,
        setup.seq_len,
        stage=int(held.stage),
        layers=(layers - experts_layers, experts_layers),
        width=setup.step.width,
        residual=setup.step.residual,
        loss=setup.loss,
        chunks=setup.chunks,
        imbalance=float(np.max(setup.imbalance)),
        capacity=float(np.max(setup.capacity)),
    )
    groups = float(process_groups(degrees))
    found.append(
        runtime_bytes.explain(
            tensors=held.tensors, slack=one.slack, context=one.context, groups=groups, communicator=one.communicator
        )
    )
    there = held.states - held.later
    parts = {"states": there, "activations": held.activations, "buffers": held.buffers, "runtime": held.runtime}
    found.append(device_bytes.explain(**parts))
    return tuple(found)
