"""A shape for a number of parameters whose layers nobody knows: the nearest dense model's, made as large."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

from core.limits import limit
from core.models.catalog import nearest_dense
from core.models.parameters import parameters
from core.models.spec import TransformerSpec

_MULTIPLE = 64
"""Feed-forward widths stay a multiple of this, so that tensor parallelism divides them."""

_STAGES, _MANY = 4, 16
"""From so many layers on their number is a multiple of the first."""


@lru_cache(maxsize=256)
def stand_in(count: float, seq_len: int = 1) -> TransformerSpec:
    """A dense shape of ``count`` parameters: that of `nearest_dense` with more or fewer layers of the same width.

    Where there are many, and not as many as there, their number can be cut into pipeline stages, as those of real
    models can: a prime number of layers would rule out layouts for no reason. The feed-forward width and the vocabulary
    take up what whole layers leave, so that the count is met to within one row of the embedding, and never passed.
    Fewer than one thin layer has is not met.
    """
    near = nearest_dense(count, seq_len)
    spec = near.spec
    layers = round(spec.layers * count / near.parameters)
    if layers >= _MANY and layers != near.spec.layers:
        layers = _STAGES * round(layers / _STAGES)
    spec = replace(spec, layers=min(max(1, layers), limit("model_layers")))
    wider = (count - parameters(spec).total) / (spec.layers * spec.ffn_matrices * spec.hidden)
    spec = replace(spec, ffn=_size(spec.ffn + _MULTIPLE * round(wider / _MULTIPLE), _MULTIPLE))
    rows = (count - parameters(spec).total) / (spec.table_width * (1 if spec.tied_head else 2))
    return replace(spec, vocab=_size(spec.vocab + math.floor(rows), 1))


def _size(wanted: float, least: int) -> int:
    return int(min(max(wanted, least), limit("model_dimension")))
