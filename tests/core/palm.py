"""PaLM 540B, whose paper prints an MFU of 45.7 or 46.2 % and an HFU of 57.8 %."""

from __future__ import annotations

from core.models.spec import TransformerSpec

PALM = TransformerSpec(
    layers=118,
    hidden=18432,
    heads=48,
    kv_heads=1,
    head_dim=256,
    ffn=73728,
    vocab=256000,
    glu=True,
    tied_head=True,
    norms_per_layer=1,
    norm="layernorm",
    parallel_blocks=True,
)
"""PaLM 540B: table 1 and section 2 of arXiv:2204.02311."""
