"""Which kinds of layers a model has: by their attention, their sliding window, and their feed-forward network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from core.models.operations import attention_kinds
from core.models.spec import SlidingWindow, TransformerSpec, listed

NONE = -1
"""Of a layer without attention, or without a network."""


@dataclass(frozen=True, slots=True)
class LayerKind:
    """Layers of a model that cost the same.

    window: tokens that attention looks at, the token itself included, 0 where it looks at all of them. mixture:
    whether the feed-forward network is a mixture of experts. layers: how many of the model's layers are like this.
    attention, network: place among the model's kinds of attention and among its dense networks, or `NONE`.
    """

    window: int
    mixture: bool
    layers: int
    attention: int = 0
    network: int = 0


def kinds_of(spec: TransformerSpec, seq_len: int) -> tuple[LayerKind, ...]:
    """The kinds of layers in ``spec`` over sequences of ``seq_len`` tokens, the most frequent first.

    Of kinds as frequent as each other, the one that comes first in the stack is first. A window as long as the
    sequence hides nothing, and such layers are of the kind that sees everything, as in `core.models.flops`. A spec
    does not say which layers are dense, nor which have attention or networks of other sizes; the former are taken to be
    the lowest, the latter to be spread evenly, which decides only how many layers have both of two, and no sum over all
    layers.
    """
    listed(spec)
    kinds = attention_kinds(spec)
    seen = [[_window(of_kind.window, seq_len, i) for i in range(layers)] for layers, of_kind, _ in kinds]
    attended = _spread([*map(len, seen), spec.bare_layers])
    counts = [spec.own_dense_layers, *(one.layers for one in spec.networks)]
    widths = [spec.ffn, *(one.width for one in spec.networks)]
    there = [i for i, (layers, width) in enumerate(zip(counts, widths, strict=True)) if layers and width]
    networks = _spread(counts)
    counter = Counter[tuple[int, bool, int, int]]()
    for i, (kind, place) in enumerate(attended):
        mixture = i >= spec.dense_layers
        bare, network = kind == len(kinds), 0
        if not mixture:
            network = there.index(networks[i][0]) if networks[i][0] in there else NONE
        counter[0 if bare else seen[kind][place], mixture, NONE if bare else kind, network] += 1
    return tuple(
        LayerKind(window, mixture, layers, attention, network)
        for (window, mixture, attention, network), layers in counter.most_common()
    )


def _window(window: SlidingWindow | None, seq_len: int, layer: int) -> int:
    """Return the tokens that a layer sees, of those with attention of its kind; 0 for all."""
    if window is None or window.size >= seq_len:
        return 0
    return window.size * window.pattern[layer % len(window.pattern)]


def _spread(counts: Iterable[int]) -> list[tuple[int, int]]:
    """Return kind and place in it of all layers, each kind spread evenly among the others."""
    places = [((i + 0.5) / count, kind, i) for kind, count in enumerate(counts) for i in range(count)]
    return [(kind, i) for _, kind, i in sorted(places)]
