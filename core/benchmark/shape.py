"""The shape that one layer of a plan's model has for a measurement."""

from __future__ import annotations

from core.benchmark.points import clip
from core.benchmark.programme import LayerShape
from core.limits import limit
from core.models.spec import TransformerSpec


def layer_shape(spec: TransformerSpec, name: str, seq_len: int, micro_batch: int) -> LayerShape:
    """One layer of ``spec`` and a micro-batch of it; of a mixture, a layer with routed experts.

    Latent attention becomes ordinary attention of as many heads as wide. Raises ``pydantic.ValidationError`` for a
    layer without a feed-forward network, or sizes below 1.
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
