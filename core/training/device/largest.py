"""The largest that fits: micro-batch, sequence length, model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.limits import limit
from core.models.spec import SpecError, TransformerSpec
from core.training.device.setup import Setup
from core.training.layout import Layout, LayoutError

Scale: TypeAlias = Literal["depth", "width", "both"]
"""What of a family of models grows: its layers, its widths, or both in proportion."""

_TRIED = 1024
"""Candidates worked out at once; each round narrows the range by as much."""


def _largest(fits: Callable[[npt.NDArray[np.int64]], Any], most: int) -> int:
    """The largest whole number up to ``most`` that fits, where all smaller ones do; 0 where 1 does not."""
    low, high = 0, most + 1
    while high - low > 1:
        tried = np.unique(np.linspace(low, high, min(_TRIED, high - low) + 1).astype(np.int64)[1:-1])
        if not len(tried):
            tried = np.array([low + 1])
        good = np.asarray(fits(tried), dtype=bool)
        first = int(np.argmin(good)) if not good.all() else len(tried)
        low, high = int(tried[first - 1]) if first else low, int(tried[first]) if first < len(tried) else high
    return low


def largest_micro_batch(setup: Setup, most: int = 65_536) -> int:
    """Sequences of the largest micro-batch that fits, all else as it is; 0 where one is too many."""
    return _largest(lambda sizes: setup.account(replace(setup.layout, micro_batch=sizes)).total <= setup.memory, most)


def split_sequence(layout: Layout) -> int:
    """Into how many equal pieces a layout cuts a sequence."""
    return int(layout.context) * (int(layout.tensor) if layout.sequence_parallel else 1)


def largest_seq_len(setup: Setup) -> int:
    """The longest sequence that fits, a multiple of the ranks that split it; 0 where none does."""
    each = split_sequence(setup.layout)
    most = limit("model_dimension") // each
    return each * _largest(lambda times: setup.account(setup.layout, seq_len=times * each).total <= setup.memory, most)


def largest_of_family(setup: Setup, by: Scale = "depth") -> TransformerSpec | None:
    """The largest model of the family that fits the layout; None where not even one layer, or the narrowest, does.

    depth: layers are added. width: heads are, with hidden and feed-forward widths in proportion. both: widths, and
    layers in proportion.
    """
    spec, layout = setup.spec, setup.layout

    def fits(size: int) -> bool:
        result = _scaled(setup, by, size)
        if result is None:
            return False
        try:
            return replace(setup, spec=result).fits
        except LayoutError:
            return False

    chunks = int(layout.pipeline * layout.interleave)  # embedding and head fill two of them
    least = max(int(layout.pipeline), chunks - 2) if by == "depth" else 1
    most = limit("model_layers") if by == "depth" else limit("model_dimension") // max(1, spec.hidden)
    size = _largest_of(fits, least, most)
    return _scaled(setup, by, size) if size else None


def _largest_of(fits: Callable[[int], bool], least: int, most: int) -> int:
    """The largest number from ``least`` to ``most`` that fits, found by doubling and halving; 0 where none does."""
    if not fits(least):
        return 0
    low = least
    while 2 * low <= most and fits(2 * low):
        low *= 2
    high = min(2 * low, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _scaled(setup: Setup, by: Scale, size: int) -> TransformerSpec | None:
    """The family's model of ``size`` layers, or with ``size`` groups of heads; None where it cannot be."""
    spec, tensor = setup.spec, int(setup.layout.tensor)
    if by == "depth":
        changes: dict[str, Any] = {"layers": size}
    else:
        group = math.lcm(spec.heads // spec.kv_heads, tensor)
        heads = group * size
        by_how_much = heads / spec.heads
        step = math.lcm(128, tensor)
        changes = {
            "heads": heads,
            "kv_heads": heads * spec.kv_heads // spec.heads,
            "hidden": max(1, round(spec.hidden * by_how_much / 128)) * 128,
            "ffn": max(1, round(spec.ffn * by_how_much / step)) * step if spec.ffn else 0,
        }
        if spec.experts:
            width = max(1, round(spec.experts.width * by_how_much / step)) * step
            changes["experts"] = replace(spec.experts, width=width)
        if by == "both":
            changes["layers"] = max(int(setup.layout.pipeline), round(spec.layers * by_how_much))
    layers = int(changes.get("layers", spec.layers))
    if spec.experts:
        dense = min(layers, round(spec.experts.dense_layers * layers / spec.layers))
        changes["experts"] = replace(changes.get("experts", spec.experts), dense_layers=dense)
    if mixer := spec.mixer:
        wider = int(changes.get("heads", spec.heads)) / spec.heads
        shared = max(1, round(mixer.heads * wider / mixer.groups))
        deep = max(1, round(mixer.layers * layers / spec.layers))
        changes["mixer"] = replace(mixer, layers=deep, heads=mixer.groups * shared)
    try:
        return replace(spec, **changes)
    except SpecError:
        return None
