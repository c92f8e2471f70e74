"""One plan's activations taken apart: every tensor of a layer with its bytes, and the steps to what a stage holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from core.formula import Explanation
from core.models.spec import TransformerSpec
from core.training.activations.operations import kept_by_operation
from core.training.activations.saved import saved_tensors
from core.training.activations.stage import (
    Bytes,
    StepSettings,
    in_flight,
    logit_width,
    shared_out,
    stage_activation_bytes,
)
from core.training.activations.tensors import (
    LayerKind,
    SavedTensor,
    in_flight_interleaved,
    in_flight_plain,
    logits_bytes,
    rank_tokens,
    saved_bytes,
    stage_bytes,
    ways,
)
from core.training.layout import Layout, Recompute, layers_of, modules_of, way_of


def tensor_bytes(
    spec: TransformerSpec, layout: Layout, step: StepSettings, kind: LayerKind = "dense"
) -> tuple[tuple[SavedTensor, Bytes], ...]:
    """The tensors that one layer saves with their bytes on one rank; they sum to `layer_activation_bytes`.

    For one way of recomputing: ``layout.recompute`` is a single number. What it drops is left out; where some layers
    alone compute again they are those of one that does.
    """
    tokens = step.rank_tokens(layout)
    return tuple(
        (tensor, saved_bytes.over(tokens=tokens, **_factors(tensor, layout, step)))
        for tensor in _kept(spec, layout, step, kind)
    )


def _factors(tensor: SavedTensor, layout: Layout, step: StepSettings) -> dict[str, Any]:
    """What its tokens are multiplied by."""
    elements = tensor.elements * (step.seq_len if tensor.per_key else 1)
    elements = elements * step.routed_load(layout) if tensor.routed else elements
    spread = ways(tensor.split, layout.tensor, layout.sequence_parallel)
    return {"elements": elements, "each": tensor.each, "spread": spread}


def _kept(spec: TransformerSpec, layout: Layout, step: StepSettings, kind: LayerKind) -> tuple[SavedTensor, ...]:
    """The tensors that the layout's recomputation leaves, at the size in which it leaves them."""
    recompute, how = int(way_of(layout.recompute)), step.implementation
    if recompute == Recompute.PER_OPERATION:
        per_operation = kept_by_operation(spec, how, kind, step.width, step.residual)
        there = ((tensor.tensor, tensor.present(layout)) for tensor in per_operation)
        return tuple(replace(tensor, elements=tensor.elements * many) for tensor, many in there if np.any(many))
    if recompute == Recompute.FULL:
        together = max(1, -int(layers_of(layout.recompute)))
        return (SavedTensor("layer input", "norms", spec.stream_width / together, step.stream, "sequence"),)
    modules = int(modules_of(layout.recompute, flash=how.flash))
    tensors = saved_tensors(spec, how, kind, width=step.width, residual=step.residual)
    left = ((tensor, tensor.kept if tensor.by & modules else 1.0) for tensor in tensors)
    return tuple(replace(tensor, each=tensor.each * kept) for tensor, kept in left if kept)


def explain_stage(
    spec: TransformerSpec,
    layout: Layout,
    step: StepSettings,
    *,
    stage: int = 0,
    layers: tuple[float, float] | None = None,
) -> tuple[Explanation, ...]:
    """The steps to one plan's `stage_activation_bytes`: each tensor of a layer, micro-batches, stage and logits.

    layers: as there. Where a model has dense layers and layers with experts, the tensors are those of the latter.
    """
    kind: LayerKind = "experts" if spec.moe_layers else "dense"
    tokens = rank_tokens.explain(
        micro_batch=int(layout.micro_batch), seq_len=int(step.seq_len), context=int(layout.context)
    )
    explanations = [tokens]
    for tensor in _kept(spec, layout, step, kind):
        factors = {name: float(value) for name, value in _factors(tensor, layout, step).items()}
        explanations.append(saved_bytes.explain(tokens=tokens.value, **factors).about(tensor.name))
    flying = float(in_flight(layout, stage))
    pipeline, interleave = int(layout.pipeline), int(layout.interleave)
    if interleave > 1:
        scheduled = in_flight_interleaved.explain(pipeline=pipeline, interleave=interleave, stage=stage)
    else:
        scheduled = in_flight_plain.explain(pipeline=pipeline, stage=stage)
    if scheduled.value == flying:  # a step may have fewer
        explanations.append(scheduled)
    activations = stage_activation_bytes(spec, layout, step, stage=stage, layers=layers)
    stacked = float(sum(shared_out(spec, layout) if layers is None else layers))
    layer = float(activations.layers) / (stacked * flying)
    explanations.append(stage_bytes.explain(layers=stacked, in_flight=flying, layer=layer))
    if stage == layout.pipeline - 1:
        each = float(logit_width(step.loss or step.implementation.loss, step.width, layout.tensor, spec.vocab))
        vocab, chunks = spec.vocab * (1 + spec.mtp_modules), int(step.chunks)
        explanations.append(
            logits_bytes.explain(tokens=tokens.value, vocab=vocab, each=each, tensor=int(layout.tensor), chunks=chunks)
        )
    return tuple(explanations)
