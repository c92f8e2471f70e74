"""One setup's account taken apart: each part of it with its formula, values and sources."""

from __future__ import annotations

import numpy as np

from core.formula import Explanation
from core.training.activations.derivation import explain_stage
from core.training.device.buffers import device_bytes, process_groups, runtime_bytes, sharded_bytes
from core.training.device.memory import rank_of
from core.training.device.setup import Setup
from core.training.device.states_only import on_device, shared_over
from core.training.layout import degrees_of
from core.training.memory import PARTS


def explain_device(setup: Setup) -> tuple[Explanation, ...]:
    """The steps to what the fullest accelerator holds: states, activations, runtime, and their sum.

    Bytes per parameter are those of the layers' matrices; parts that are none or lie on the host are left out.
    """
    memory, runtime = setup.device_memory, setup.runtime
    degrees = degrees_of(setup.layout)
    stages, rank = rank_of(setup.spec, degrees, (int(memory.stage),))
    dense, experts = (float(np.ravel(value)[0]) for value in (rank.dense, rank.experts))
    layers, experts_layers = (float(np.ravel(value)[0]) for value in (stages.layers, stages.moe_layers))
    each = setup.states.of["layers"]
    explanations: list[Explanation] = []
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
        explanations.append(step.about(name))
    explanations += explain_stage(
        setup.spec,
        setup.step.implementation,
        setup.layout,
        setup.seq_len,
        stage=int(memory.stage),
        layers=(layers - experts_layers, experts_layers),
        width=setup.step.width,
        residual=setup.step.residual,
        loss=setup.loss,
        chunks=setup.chunks,
        imbalance=float(np.max(setup.imbalance)),
        capacity=float(np.max(setup.capacity)),
    )
    groups = float(process_groups(degrees))
    explanations.append(
        runtime_bytes.explain(
            tensors=memory.tensors,
            slack=runtime.slack,
            context=runtime.context,
            groups=groups,
            communicator=runtime.communicator,
        )
    )
    there = memory.states - memory.later
    parts = {"states": there, "activations": memory.activations, "buffers": memory.buffers, "runtime": memory.runtime}
    explanations.append(device_bytes.explain(**parts))
    return tuple(explanations)
