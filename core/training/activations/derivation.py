"""One plan's activations taken apart: every tensor of a layer with its bytes, and the steps to what a stage holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.formula import Explanation
from core.models.spec import TransformerSpec
from core.training.activations.operations import kept_by_operation
from core.training.activations.saved import saved_tensors
from core.training.activations.stage import (
    Amounts,
    Bytes,
    Widths,
    in_flight,
    logit_width,
    rank_tokens_of,
    routed_load,
    shared_out,
    stage_activation_bytes,
)
from core.training.activations.tensors import (
    Implementation,
    LayerKind,
    Loss,
    SavedTensor,
    in_flight_interleaved,
    in_flight_plain,
    logits_bytes,
    rank_tokens,
    saved_bytes,
    stage_bytes,
    ways,
)
from core.training.layout import Counts, Layout, Recompute, layers_of, modules_of, way_of


def tensor_bytes(
    spec: TransformerSpec,
    implementation: Implementation,
    layout: Layout,
    seq_len: Counts,
    *,
    kind: LayerKind = "dense",
    width: int = 2,
    residual: int | None = None,
    imbalance: Amounts = 1.0,
    capacity: Amounts = 0.0,
) -> tuple[tuple[SavedTensor, Bytes], ...]:
    """The tensors that one layer saves with their bytes on one rank; they sum to `layer_activation_bytes`.

    For one way of recomputing: ``layout.recompute`` is a single number. What it drops is left out; where some layers
    alone compute again they are those of one that does.
    """
    rows: list[tuple[SavedTensor, Bytes]] = []
    load, tokens = routed_load(layout, imbalance, capacity), rank_tokens_of(layout, seq_len)
    for tensor in _kept(spec, implementation, kind, (width, residual), layout):
        spread = ways(tensor.split, layout.tensor, layout.sequence_parallel)
        elements = tensor.elements * (seq_len if tensor.per_key else 1) * (load if tensor.routed else 1)
        rows.append((tensor, saved_bytes.over(tokens=tokens, elements=elements, each=tensor.each, spread=spread)))
    return tuple(rows)


def _kept(
    spec: TransformerSpec, implementation: Implementation, kind: LayerKind, widths: Widths, layout: Layout
) -> tuple[SavedTensor, ...]:
    """The tensors that the layout's recomputation leaves, at the size in which it leaves them."""
    recompute, (width, residual) = int(way_of(layout.recompute)), widths
    if recompute == Recompute.PER_OPERATION:
        per_operation = kept_by_operation(spec, implementation, kind, *widths)
        there = ((tensor.tensor, tensor.present(layout)) for tensor in per_operation)
        return tuple(replace(tensor, elements=tensor.elements * many) for tensor, many in there if np.any(many))
    if recompute == Recompute.FULL:
        together = max(1, -int(layers_of(layout.recompute)))
        return (SavedTensor("layer input", "norms", spec.stream_width / together, residual or width, "sequence"),)
    tensors = saved_tensors(spec, implementation, kind, width=width, residual=residual)
    modules = int(modules_of(layout.recompute, flash=implementation.flash))
    left = ((tensor, tensor.kept if tensor.by & modules else 1.0) for tensor in tensors)
    return tuple(replace(tensor, each=tensor.each * kept) for tensor, kept in left if kept)


def explain_stage(
    spec: TransformerSpec,
    implementation: Implementation,
    layout: Layout,
    seq_len: int,
    *,
    stage: int = 0,
    layers: tuple[float, float] | None = None,
    width: int = 2,
    residual: int | None = None,
    loss: Loss | None = None,
    chunks: int = 1,
    imbalance: float = 1.0,
    capacity: float = 0.0,
) -> tuple[Explanation, ...]:
    """The steps to one plan's `stage_activation_bytes`: each tensor of a layer, micro-batches, stage and logits.

    layers: as there. Where a model has dense layers and layers with experts, the tensors are those of the latter.
    """
    kind: LayerKind = "experts" if spec.moe_layers else "dense"
    tokens = rank_tokens.explain(micro_batch=int(layout.micro_batch), seq_len=seq_len, context=int(layout.context))
    explanations = [tokens]
    load = float(routed_load(layout, imbalance, capacity))
    for tensor in _kept(spec, implementation, kind, (width, residual), layout):
        elements = tensor.elements * (seq_len if tensor.per_key else 1) * (load if tensor.routed else 1)
        spread = int(ways(tensor.split, layout.tensor, layout.sequence_parallel))
        explanation = saved_bytes.explain(tokens=tokens.value, elements=elements, each=tensor.each, spread=spread)
        explanations.append(explanation.about(tensor.name))
    flying = float(in_flight(layout, stage))
    pipeline, interleave = int(layout.pipeline), int(layout.interleave)
    if interleave > 1:
        scheduled = in_flight_interleaved.explain(pipeline=pipeline, interleave=interleave, stage=stage)
    else:
        scheduled = in_flight_plain.explain(pipeline=pipeline, stage=stage)
    if scheduled.value == flying:  # a step may have fewer
        explanations.append(scheduled)
    activations = stage_activation_bytes(
        spec,
        implementation,
        layout,
        seq_len,
        stage=stage,
        layers=layers,
        width=width,
        residual=residual,
        loss=loss,
        chunks=chunks,
        imbalance=imbalance,
        capacity=capacity,
    )
    stacked = float(sum(shared_out(spec, layout) if layers is None else layers))
    layer = float(activations.layers) / (stacked * flying)
    explanations.append(stage_bytes.explain(layers=stacked, in_flight=flying, layer=layer))
    if stage == layout.pipeline - 1:
        vocab = spec.vocab * (1 + spec.mtp_modules)
        each = float(logit_width(loss or implementation.loss, width, layout.tensor, spec.vocab))
        explanations.append(
            logits_bytes.explain(tokens=tokens.value, vocab=vocab, each=each, tensor=int(layout.tensor), chunks=chunks)
        )
    return tuple(explanations)
