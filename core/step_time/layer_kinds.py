"""Which kinds of layers a model has: with a sliding window or without, with experts or without."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from core.models.spec import TransformerSpec, listed


@dataclass(frozen=True, slots=True)
class LayerKind:
    """Layers of a model that cost the same.

    window: tokens that attention looks at, the token itself included, 0 where it looks at all of them. mixture:
    whether the feed-forward network is a mixture of experts. layers: how many of the model's layers are like this.
    """

    window: int
    mixture: bool
    layers: int


def kinds_of(spec: TransformerSpec, seq_len: int) -> tuple[LayerKind, ...]:
    """The kinds of layers in ``spec`` over sequences of ``seq_len`` tokens, the most frequent first.

    Of kinds as frequent as each other, the one that comes first in the stack is first. A window as long as the
    sequence hides nothing, and such layers are of the kind that sees everything, as in `core.models.flops`. A spec
    does not say which layers are dense; they are taken to be the lowest, which decides only how many layers have
    both a window and a dense network, and no sum over all layers.
    """
    listed(spec)
    window = spec.window if spec.window and spec.window.size < seq_len else None
    pattern = window.pattern if window else (False,)
    dense = spec.dense_layers if spec.experts else spec.layers
    counter = Counter((pattern[i % len(pattern)], i >= dense) for i in range(spec.layers))
    return tuple(
        LayerKind(window.size if window and windowed else 0, mixture, layers)
        for (windowed, mixture), layers in counter.most_common()
    )
