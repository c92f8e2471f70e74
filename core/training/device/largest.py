"""The largest that fits: micro-batch, sequence length, model."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from core.limits import limit
from core.models.spec import SpecError, TransformerSpec
from core.training.device.setup import Setup
from core.training.layout import Layout, LayoutError

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


def most_layers(setup: Setup) -> int:
    """Layers of the deepest model of such layers that fits the layout; 0 where not even the fewest do."""
    chunks = int(setup.layout.pipeline * setup.layout.interleave)  # embedding and head fill two of them

    def fits(layers: int) -> bool:
        with suppress(LayoutError, SpecError):
            return replace(setup, spec=_deepened(setup.spec, layers)).fits
        return False

    return _largest_of(fits, max(int(setup.layout.pipeline), chunks - 2), limit("model_layers"))


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


def _deepened(spec: TransformerSpec, layers: int) -> TransformerSpec:
    """The model with so many layers, in proportion of each kind."""
    changes: dict[str, Any] = {"layers": layers}
    if spec.experts:
        dense = min(layers, round(spec.experts.dense_layers * layers / spec.layers))
        changes["experts"] = replace(spec.experts, dense_layers=dense)
    if mixer := spec.mixer:
        changes["mixer"] = replace(mixer, layers=max(1, round(mixer.layers * layers / spec.layers)))
    return replace(spec, **changes)
