"""Shapes for numbers of parameters whose layers nobody knows: a family that grows without a leap, and mixtures."""

from __future__ import annotations

import math
from dataclasses import replace

from core.limits import cached, limit
from core.models.parameters import parameters
from core.models.spec import Experts, TransformerSpec

_HEAD_DIM, _KV_HEADS = 128, 8
_VOCABULARY = 128_256
"""Those of Llama 3 [Grattafiori et al. 2024, arXiv:2407.21783, table 3]."""

_TABLE_SHARE = 0.1
"""Share of a small model's parameters that its token tables take at most."""

_NARROWEST = 2.75
"""Feed-forward width over width where a shape begins: it grows with the parameters until the next shape begins there.
Of gated networks that width is 2.7 (Llama 2 7B) to 3.5 (Llama 3)."""

_FLATTEST, _DEEPEST, _DEEPEST_SMALL, _LARGE = 136, 96, 80, 2048
"""Width of a layer over the number of layers, at most and at least: 128 in Llama 3.1 8B and 405B, 102 in 70B, 64 in
GPT-2; and the width from which on layers come in fours."""

_APART = 1.09
"""Share by which the next shape's least parameters are more."""

_WIDEST = 460_000
"""Width of the last shape, of 10 quadrillion parameters."""

_MULTIPLE = 8
"""Feed-forward widths stay a multiple of this, so that eight tensor-parallel ranks divide them."""


@cached("small_results_kept")
def stand_in(count: float) -> TransformerSpec:
    """A dense shape of ``count`` parameters: gated, with grouped heads, as models are built now.

    More parameters never have fewer layers, a narrower one, or fewer heads. The feed-forward width takes up what whole
    layers leave, and a table of positions, which is only looked up, the rest: so the count is met to within one row of
    it, never passed, and no step of more parameters is shorter. Fewer than four thin layers have are not met.
    """
    layers, hidden = next(((one, wide) for least, one, wide in reversed(_family()) if least <= count), _family()[0][1:])
    shape = _shape(layers, hidden)
    wider = (count - parameters(shape).total) / (3 * shape.layers * shape.hidden * _MULTIPLE)
    wide = min(shape.ffn + _MULTIPLE * max(0, math.floor(wider)), limit("model_dimension"))
    spec = replace(shape, ffn=wide)
    rows = math.floor((count - parameters(spec).total) / spec.hidden)
    return replace(spec, position_rows=min(max(0, rows), limit("model_dimension")))


_PER_TOKEN = 8
"""Routed experts that a token runs, beside a shared one: as many as in DeepSeek-V3 and Qwen3."""

MIXTURE_ERROR = 0.27
"""Median error of a step: of 19 mixtures of the catalog, each approximated by its two counts, on 512 or 2,048 H100."""


@cached("small_results_kept")
def mixture_stand_in(total: float, active: float) -> TransformerSpec:
    """A mixture of ``total`` parameters of which a token runs ``active``, to within one expert of a layer.

    Its layers are those of the dense shape of ``active`` parameters, with experts in place of its networks. Where a
    token runs nearly all parameters it is dense.
    """
    base = replace(stand_in(active), position_rows=0)
    network, router = 3 * base.layers * base.hidden, base.layers * base.hidden
    rest = parameters(base).total - network * base.ffn
    count, width = float(_PER_TOKEN), 0.0
    for _ in range(8):
        width = max(_MULTIPLE, (active - rest - router * count) / network / (_PER_TOKEN + 1))
        count = max(0.0, (total - rest - network * width) / (network * width + router))
    wide, number = _MULTIPLE * max(1, round(width / _MULTIPLE)), round(count)
    if number <= _PER_TOKEN:
        return stand_in(total)
    experts = Experts(min(number, limit("model_dimension")), _PER_TOKEN, wide, shared=1)
    return replace(base, ffn=0, experts=experts)


@cached("tables_kept")
def _family() -> tuple[tuple[int, int, int], ...]:
    """Shapes in rising order: parameters from which on each stands in, layers, and width.

    Layers come in twos and then in fours, and from a width of 4,096 on heads in eights, so that stages and
    tensor-parallel ranks divide them.
    """
    family: list[tuple[int, int, int]] = []
    widths = [64, *(128 * i for i in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32))]
    while widths[-1] < _WIDEST:
        widths.append(max(widths[-1] + 1024, 1024 * round(1.07 * widths[-1] / 1024)))
    for hidden in widths:
        step, deepest = 2 if hidden < _LARGE else 4, _DEEPEST_SMALL if hidden < _LARGE / 2 else _DEEPEST
        flattest = step * math.ceil(hidden / _FLATTEST / step)
        for layers in range(flattest, max(flattest, hidden // deepest) + 1, step):
            least = _least(layers, hidden)
            if not family or (least >= _APART * family[-1][0] and layers >= family[-1][1]):
                family.append((least, layers, hidden))
    return tuple(family)


def _least(layers: int, hidden: int) -> int:
    """Parameters of a shape where it begins, as `core.models.parameters` counts them, a hundred times as fast."""
    heads, kv_heads, head_dim, ffn, vocab = _sizes(layers, hidden)
    layer = 2 * hidden * (heads + kv_heads) * head_dim + 3 * hidden * ffn + 2 * hidden
    return layers * layer + 2 * vocab * hidden + hidden


def _sizes(layers: int, hidden: int) -> tuple[int, int, int, int, int]:
    """Heads, those of keys and values, their width, the feed-forward width, and the vocabulary."""
    heads = max(_KV_HEADS, hidden // _HEAD_DIM)
    ffn = math.ceil(_NARROWEST * hidden / _MULTIPLE) * _MULTIPLE
    small = _TABLE_SHARE * layers * 3 * ffn / 2
    return heads, math.gcd(heads, _KV_HEADS), hidden // heads, ffn, min(_VOCABULARY, max(1, round(small)))


def _shape(layers: int, hidden: int) -> TransformerSpec:
    heads, kv_heads, head_dim, ffn, vocab = _sizes(layers, hidden)
    return TransformerSpec(layers, hidden, heads, kv_heads, head_dim, ffn, vocab, glu=True, tied_head=False)
