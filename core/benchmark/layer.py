"""One layer of a model, which is what is timed and what predictions are made for."""

from __future__ import annotations

from core.benchmark.points import clip
from core.benchmark.programme import LayerShape
from core.limits import limit
from core.models.flop_formulas import train_flop_by_layer
from core.models.flops import flops_per_token
from core.models.parameters import parameters
from core.models.spec import Experts, TransformerSpec

DEFAULT_LAYER = LayerShape(
    model="Llama 3 8B",
    hidden=4_096,
    heads=32,
    kv_heads=8,
    head_dim=128,
    ffn=14_336,
    gated=True,
    vocab=128_256,
    seq_len=8_192,
    micro_batch=1,
)
"""What is timed where a program names no layer."""


def layer_shape(spec: TransformerSpec, name: str, seq_len: int, micro_batch: int) -> LayerShape:
    """Return one layer of ``spec`` with a micro-batch; for a mixture of experts, a layer with routed experts.

    Latent attention becomes ordinary attention with the same number and width of heads. Raises
    ``pydantic.ValidationError`` for a layer without a feed-forward network, or for sizes below 1.
    """
    experts = spec.experts
    return LayerShape(
        model=clip(name, limit("measure_name_chars")),
        hidden=spec.hidden,
        heads=spec.heads,
        kv_heads=spec.heads if spec.latent else spec.kv_heads,
        head_dim=spec.score_dim,
        ffn=experts.width if experts else spec.ffn,
        gated=spec.glu,
        vocab=spec.vocab,
        seq_len=seq_len,
        micro_batch=micro_batch,
        experts=experts.count if experts else 0,
        experts_per_token=experts.per_token if experts else 0,
    )


def spec_of(shape: LayerShape, layers: int = 1) -> TransformerSpec:
    """Return a model of several such layers: RMSNorm before either block, rotary positions, no biases, SwiGLU or
    GELU."""
    mixture = Experts(shape.experts, shape.experts_per_token, shape.ffn) if shape.experts else None
    return TransformerSpec(
        layers=layers,
        hidden=shape.hidden,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        ffn=shape.ffn,
        vocab=shape.vocab,
        glu=shape.gated,
        tied_head=True,
        norms_outside=0,
        experts=mixture,
    )


def layer_parameters(shape: LayerShape) -> int:
    """Return the parameters of the layer: its matrices and the gains of its two norms."""
    components = parameters(spec_of(shape)).components
    return sum(part.total for part in components if part.group not in ("embedding", "head"))


def layer_flop(shape: LayerShape) -> float:
    """Return the FLOPs of one step of the layer, forward and backward, with the causal half of attention matmuls."""
    return float(train_flop_by_layer(flops_per_token(spec_of(shape), shape.seq_len).in_layers, shape.tokens))


def with_tokens(shape: LayerShape, micro_batch: int, seq_len: int) -> LayerShape:
    """Return the layer with other tokens, as the shape of a measured point has them."""
    return shape.model_copy(update={"micro_batch": micro_batch, "seq_len": seq_len})


def smaller(shape: LayerShape, least: int = 128) -> tuple[LayerShape, ...]:
    """Return copies of the layer with increasing numbers of tokens.

    The sequence length doubles from at least ``least`` up to its own, and then the micro-batch grows.
    """
    shapes = [shape]
    while shapes[-1].tokens >= 2 * least:
        last = shapes[-1]
        many = last.micro_batch > 1
        less = (last.micro_batch // 2, last.seq_len) if many else (last.micro_batch, last.seq_len // 2)
        shapes.append(with_tokens(shape, *less))
    return tuple(reversed(shapes))
