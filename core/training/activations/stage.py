"""Activation memory of one accelerator: what forward saves for backward, of a layer and of a pipeline stage.

Everything takes numbers or integer arrays that broadcast, and gives float64 arrays of bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from core.limits import cached
from core.models.building.record import BATCH
from core.models.operation import AttentionCore
from core.models.operations import operations
from core.models.spec import TransformerSpec
from core.training.activations.operations import kept_by_operation
from core.training.activations.saved import final_tensors, saved_tensors
from core.training.activations.tensors import (
    COMPILED_WHOLE,
    FP32,
    FUSED,
    HF_EAGER,
    LOGITS_KEPT,
    Implementation,
    LayerKind,
    Loss,
    Split,
    in_flight_interleaved,
    in_flight_plain,
    logits_bytes,
    rank_tokens,
    saved_bytes,
    stage_bytes,
    ways,
)
from core.training.layout import (
    Counts,
    LayerModule,
    Layout,
    Recompute,
    layers_of,
    modules_of,
    pick,
    share_again,
    way_of,
)
from core.training.precision import PrecisionPolicy
from core.training.trained import EVERYTHING, Trained

Amounts: TypeAlias = "float | npt.NDArray[Any]"
"""Numbers, whole or not, or arrays of them that broadcast."""

Bytes: TypeAlias = npt.NDArray[np.float64]


def in_flight(layout: Layout, stage: Counts = 0) -> Bytes:
    """Micro-batches whose activations stage ``stage`` holds at most: never more than a step has."""
    plain = in_flight_plain.over(pipeline=layout.pipeline, stage=stage)
    chunked = in_flight_interleaved.over(pipeline=layout.pipeline, interleave=layout.interleave, stage=stage)
    return np.minimum(layout.micro_batches, np.where(np.asarray(layout.interleave) > 1, chunked, plain))


def stage_layers(spec: TransformerSpec, layout: Layout) -> Counts:
    """Layers of the fullest stages: those that do not divide evenly are rounded up in each chunk."""
    return -(-spec.layers // (layout.pipeline * layout.interleave)) * layout.interleave


def routed_load(layout: Layout, imbalance: Amounts = 1.0, capacity: Amounts = 0.0) -> Bytes:
    """Tokens that the busiest rank's experts work on, over their even share.

    imbalance: of the busiest rank, 1 being balanced; one rank with all experts has its even share whatever happens,
    and one of e ranks at most e times its share.  capacity: places of a rank's experts over the even share, beyond
    which tokens are dropped; 0 where none is.
    """
    load = np.minimum(np.maximum(imbalance, 1.0), layout.expert)
    return np.asarray(np.where(np.asarray(capacity) > 0, np.minimum(load, capacity), load), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class StepSettings:
    """How one step is computed, as far as its activations depend on it.

    width: bytes of an element of the format computed in. residual: of the residual stream, None where that is as wide.
    loss, chunks: how cross-entropy is worked out, None as the implementation does, and in how many pieces. imbalance,
    capacity: see `routed_load`.
    """

    seq_len: Counts
    implementation: Implementation = FUSED
    width: int = 2
    loss: Loss | None = None
    chunks: Counts = 1
    imbalance: Amounts = 1.0
    capacity: Amounts = 0.0
    residual: int | None = None

    def under(self, policy: PrecisionPolicy, trained: Trained = EVERYTHING) -> StepSettings:
        """The same in the types of a policy, or in those that frozen weights are computed in."""
        if trained.everything:
            return replace(self, width=int(policy.activations.bytes), residual=int(policy.residual.bytes))
        computed = trained.computed
        return replace(self, width=min(computed, int(policy.activations.bytes)), residual=computed)

    @property
    def stream(self) -> int:
        """Bytes of an element of the residual stream."""
        return self.residual or self.width

    def rank_tokens(self, layout: Layout) -> Bytes:
        """Tokens of one micro-batch on one rank."""
        return rank_tokens.over(micro_batch=layout.micro_batch, seq_len=self.seq_len, context=layout.context)

    def routed_load(self, layout: Layout) -> Bytes:
        """Tokens that the busiest rank's experts work on, over their even share."""
        return routed_load(layout, self.imbalance, self.capacity)


_WHOLE = (LayerModule.CORE_ATTN, LayerModule.MLP, LayerModule.MOE)
"""Modules that are done again as a whole; of the others each output is, just before it is read."""


_Pair: TypeAlias = tuple[float, float]


@cached("small_results_kept")
def _sums(
    spec: TransformerSpec,
    implementation: Implementation,
    kind: LayerKind,
    width: int,
    residual: int | None,
    modules: int,
) -> tuple[tuple[Split, _Pair, _Pair, _Pair], ...]:
    """Return bytes per token of all tensors that are split alike, per token and key, and of routed tokens.

    Each are two numbers: what is always kept, and what is dropped where ``modules`` are computed again.
    """
    table: dict[Split, list[list[float]]] = {}
    for tensor in saved_tensors(spec, implementation, kind, width=width, residual=residual):
        sums = table.setdefault(tensor.split, [[0.0, 0.0] for _ in range(3)])
        size = float(tensor.elements * tensor.each)
        kept = tensor.kept if tensor.by & modules else 1.0
        here = sums[1 if tensor.per_key else 2 if tensor.routed else 0]
        here[0] += size * kept
        here[1] += size * (1 - kept)
    return tuple((split, (p[0], p[1]), (k[0], k[1]), (r[0], r[1])) for split, (p, k, r) in table.items())


def layer_activation_bytes(
    spec: TransformerSpec, layout: Layout, step: StepSettings, kind: LayerKind = "dense"
) -> Bytes:
    """Bytes that one layer saves of one micro-batch on one rank, as ``layout`` splits and recomputes it.

    kind: "experts" for a layer with a mixture of experts. Full recomputation keeps the layer's input only, or of so
    many layers the first one's; per-operation what `kept_by_operation` names. Layers that compute nothing again are
    none of them.
    """
    per_token = _LayerBytes(spec, layout, step, kind).left()
    return saved_bytes.over(tokens=step.rank_tokens(layout), elements=per_token, each=1, spread=1)


_ALIKE = 0.02
"""Share by which saved bytes may differ from those that were recorded."""


def eager_bytes(spec: TransformerSpec, layout: Layout, seq_len: int) -> float:
    """Bytes that all layers save where each operation of transformers runs by itself, in 16 bits."""
    kinds: tuple[tuple[LayerKind, int], ...] = (("dense", spec.dense_layers), ("experts", spec.moe_layers))
    step = StepSettings(seq_len, HF_EAGER)
    return sum(layers * float(layer_activation_bytes(spec, layout, step, kind)) for kind, layers in kinds if layers)


def settled(spec: TransformerSpec) -> TransformerSpec:
    """Return ``spec`` without what was recorded of a built model, where its own operations save as much within 2%."""
    sequences, seq_len = BATCH
    plain = replace(spec, kept=())
    ours, recorded = (eager_bytes(one, Layout(micro_batch=sequences), seq_len) for one in (plain, spec))
    return plain if abs(ours / recorded - 1) <= _ALIKE else spec


class _LayerBytes:
    """Bytes per token that one layer keeps on one rank."""

    def __init__(self, spec: TransformerSpec, layout: Layout, step: StepSettings, kind: LayerKind) -> None:
        self.spec, self.layout, self.step, self.kind = spec, layout, step, kind
        self.load = step.routed_load(layout)

    def saved(self, again: Any = None) -> Any:
        """What it saves. again: flags of the modules that are computed again, None for those of the layout."""
        if again is None:
            again = modules_of(self.layout.recompute, flash=self.step.implementation.flash)
        (first, *others) = (set(np.ravel(again).tolist()) - {0}) or {0}
        total = self._with(first, (np.asarray(again) != first) * 1.0 if first else 1.0)
        for other in others:
            total = pick(again == other, self._with(other, 0.0), total)
        return total

    def _with(self, modules: int, keeps: Any) -> Any:
        """The same with one set of modules. keeps: share of what they drop, 1 where they are not done again."""

        def worth(pair: tuple[float, float]) -> Any:
            return pair[0] + pair[1] * keeps if pair[1] else pair[0]

        total: Any = 0.0
        step, layout = self.step, self.layout
        settings = (step.implementation, self.kind, step.width, step.residual, modules)
        for split, plain, per_key, routed in _sums(self.spec, *settings):
            here = worth(plain)
            if any(per_key):
                here = here + worth(per_key) * step.seq_len
            if any(routed):
                gathered = _tokens_gathered(layout) if split == "sequence" else 1.0
                here = here + worth(routed) * self.load * gathered
            total = total + here / ways(split, layout.tensor, layout.sequence_parallel)
        return total

    def left(self, saved: Any = None) -> Bytes:
        """What it keeps, whatever is recomputed. saved: `saved`, where it is known."""
        layout, step = self.layout, self.step
        recompute, saved = way_of(layout.recompute), self.saved() if saved is None else saved
        together = np.maximum(1, -layers_of(layout.recompute))
        left = pick(recompute == Recompute.FULL, _input_per_token(self.spec, layout, step.stream) / together, saved)
        if np.any(recompute == Recompute.PER_OPERATION):
            per_operation: Any = 0.0
            for tensor in kept_by_operation(self.spec, step.implementation, self.kind, step.width, step.residual):
                size = tensor.present(layout) * float(tensor.tensor.elements * tensor.tensor.each)
                spread = ways(tensor.tensor.split, layout.tensor, layout.sequence_parallel)
                per_operation = per_operation + size * (self.load if tensor.tensor.routed else 1) / spread
            left = pick(recompute == Recompute.PER_OPERATION, per_operation, left)
        return np.asarray(left, dtype=np.float64)


def _tokens_gathered(layout: Layout) -> Any:
    """How many ranks' tokens an expert's ranks gather, where each of them has part of the expert alone."""
    apart = (np.asarray(layout.sequence_parallel) > 0) & layout.sends_tokens
    return pick(apart, layout.expert_split, 1.0) if np.any(np.greater(layout.expert_tensor, 0)) else 1.0


def _input_per_token(spec: TransformerSpec, layout: Layout, width: float) -> Any:
    """Bytes per token of the residual stream, or of several, split where sequence parallelism splits it."""
    return spec.stream_width * width / ways("sequence", layout.tensor, layout.sequence_parallel)


def _gathered_per_token(spec: TransformerSpec, layout: Layout, width: float) -> Any:
    """Bytes per token of one vector of the hidden width where sequence parallelism divides it: products gather it."""
    return spec.hidden * width * ((np.asarray(layout.tensor) > 1) & (np.asarray(layout.sequence_parallel) > 0))


def _ring_per_token(spec: TransformerSpec, implementation: Implementation, layout: Layout, width: float) -> Any:
    """Bytes per token of keys and values of all context-parallel ranks, where software gathers them at once."""
    if not implementation.ring_gathers:
        return 0.0
    context = np.asarray(layout.context)
    cores = (op for op in operations(spec) if type(op) is AttentionCore)
    keys = [sum(x.width for x in op.reads[1:]) / op.every / np.minimum(layout.tensor, op.kv_heads) for op in cores]
    return (context > 1) * context * (width * reduce(np.maximum, keys, 0))


@dataclass(frozen=True, slots=True)
class StageActivations:
    """Activations that one rank of a pipeline stage holds at its fullest, in bytes.

    layers: of all micro-batches in flight.  working: what one layer at a time makes anew, by recomputation or by
    gathering what sequence parallelism divides.  embedding: dropout masks of the first stage.  head: final norm and the
    head's input, gathered, on the last stage.  logits: on the last stage, with what the loss makes of them, and
    late: what of that only its backward makes.
    again: share of the micro-batches in flight that there can be once a first one has left its gradients; 0 where a
    step has but one.  one: of the layer at work alone, all that is left where the backward of a single one ends.
    """

    layers: Bytes
    working: Bytes
    embedding: Bytes
    head: Bytes
    logits: Bytes
    late: Bytes
    one: Bytes
    again: Bytes

    @property
    def total(self) -> Bytes:
        """All at once, but that logits are gone before a layer is done again."""
        return self.layers + np.maximum(self.working, self.logits) + self.embedding + self.head


def stage_activation_bytes(
    spec: TransformerSpec,
    layout: Layout,
    step: StepSettings,
    *,
    stage: Counts = 0,
    layers: tuple[Amounts, Amounts] | None = None,
) -> StageActivations:
    """Activations of pipeline stage ``stage`` (0 the first, ``layout.pipeline - 1`` the last) on its busiest rank.

    layers: dense layers and layers with experts of the stage; without it those of a fullest one, mixed as in the model.
    Multi-token prediction modules are further layers of the last stage, each with logits of its own.
    """
    implementation, width, stream, tokens = step.implementation, step.width, step.stream, step.rank_tokens(layout)
    flying, alone = in_flight(layout, stage), bool(np.any(np.equal(layout.micro_batches, 1)))
    way, modules = way_of(layout.recompute), modules_of(layout.recompute, flash=implementation.flash)
    full, mixed_in = way == Recompute.FULL, way == Recompute.PER_OPERATION
    together = np.maximum(1, -layers_of(layout.recompute))
    given = _input_per_token(spec, layout, stream)
    whole = _gathered_per_token(spec, layout, width)
    beside = implementation.gathered * whole + _ring_per_token(spec, implementation, layout, width)
    again: Any = given if _starts_from_input(spec, implementation, stream) else 0.0
    once = largest = topmost = most = np.zeros(())
    dense, mixed = shared_out(spec, layout) if layers is None else layers
    partly = implementation.partly
    copied = partly.largest_dequantised_bytes if partly else 0.0
    if partly:
        dense, mixed = dense * partly.active_share, mixed * partly.active_share
    share = share_again(layout.recompute, dense + mixed)
    kinds: tuple[tuple[LayerKind, int, Amounts], ...] = (
        ("dense", spec.dense_layers, dense),
        ("experts", spec.moe_layers, mixed),
    )
    for kind, there, on_stage in kinds:
        if there:
            layer = _LayerBytes(spec, layout, step, kind)
            saved = layer.saved(modules)
            topmost = layer.left(saved)
            if alone or np.any(share < 1):
                each = layer.saved(0)
                most = np.maximum(most, each, dtype=np.float64)
                once = once + on_stage * (1 - share) * (each - topmost)
            once = once + on_stage * topmost
            anew = np.where(full, together * saved - again, np.where(mixed_in, saved - topmost, 0.0))
            for module in _WHOLE:  # one module's tensors are all there while it is at work
                if np.any(here := (way > Recompute.PER_OPERATION) & (modules & module > 0)):
                    anew = np.maximum(anew, here * (layer.saved(0) - layer.saved(int(module))))
            largest = np.maximum(largest, anew, dtype=np.float64)
    first, last = np.asarray(stage) == 0, np.asarray(stage) == np.asarray(layout.pipeline) - 1

    def held(layers: Counts, per_token: Any) -> Bytes:
        layer = saved_bytes.over(tokens=tokens, elements=per_token, each=1, spread=1)
        return stage_bytes.over(layers=layers, in_flight=flying, layer=layer)

    stacked = held(1, once)
    if spec.mtp_modules:
        stacked = stacked + last * held(spec.mtp_modules, topmost)
    if implementation.offloads:  # two layers' worth is on its way
        stacked = np.minimum(stacked, 2.0 * held(1, topmost))
    final = sum(t.elements * t.each for t in final_tensors(spec, implementation, width=width, residual=step.residual))
    loss = step.loss or implementation.loss
    each = logit_width(loss, width, layout.tensor, spec.vocab)
    logits = logits_bytes.over(
        tokens=tokens,
        vocab=spec.vocab * (1 + spec.mtp_modules),
        each=each,
        tensor=layout.tensor,
        chunks=step.chunks,
    )
    return StageActivations(
        layers=stacked,
        working=np.asarray(tokens * (largest + beside) + copied),
        embedding=np.asarray(first * held(1, given / stream) if implementation.dropout else 0.0),
        head=np.asarray(last * tokens * (given * (final / (spec.stream_width * stream)) + whole)),
        logits=np.asarray(last * logits),
        late=np.asarray(last * logits * _late_width(loss, width) / each),
        one=np.where(np.equal(layout.micro_batches, 1), tokens * (most + beside), 0.0),
        again=np.where(np.asarray(layout.micro_batches) > flying, 1.0, 1.0 - 1.0 / flying),
    )


def shared_out(spec: TransformerSpec, layout: Layout) -> tuple[Amounts, Amounts]:
    """Dense layers and layers with experts of a fullest stage, mixed as they are in the model."""
    share = stage_layers(spec, layout) / spec.layers
    return share * spec.dense_layers, share * spec.moe_layers


def _starts_from_input(spec: TransformerSpec, implementation: Implementation, stream: int) -> bool:
    """Whether a layer keeps its input as it is, so that one done again needs no second copy of what was stored."""
    first = saved_tensors(spec, implementation)[0]
    return stream == FP32 or first.name != "norm 1 input in fp32"


_GRADIENTS_IN_PLACE: Mapping[Loss, float] = {"fused": 2.0, COMPILED_WHOLE: 1.0}
"""Arrays as wide as the logits, where their gradient takes the place of one."""

_ALIGNED = 8
"""A compiler pads sides of products to a multiple, and cuts the results [torch/_inductor/fx_passes/pad_mm.py]: logits
and their gradient are there twice."""


def logit_width(loss: Loss, width: int, tensor: Counts, vocab: int) -> Any:
    """Bytes per logit, with what the loss makes of it, where ``tensor`` ranks divide the vocabulary."""
    if loss in _GRADIENTS_IN_PLACE:
        padded = 2.0 * (loss == COMPILED_WHOLE and vocab % _ALIGNED > 0)
        return (_GRADIENTS_IN_PLACE[loss] + padded) * width
    return pick(np.asarray(tensor) > 1, 4.0 * FP32, 3.0 * FP32 + (loss == LOGITS_KEPT) * width)


def _late_width(loss: Loss, width: int) -> float:
    """How many of these only backward makes: forward has the logits, their copy and its log-softmax."""
    return 0.0 if loss in _GRADIENTS_IN_PLACE else FP32 - (loss != LOGITS_KEPT) * width
