"""How attention's share of the FLOPs grows with the sequence, and where it overtakes everything else."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.formula import Explanation, Source, Symbol, formula
from core.limits import cached
from core.models.flops import Attention, flops_per_token
from core.models.spec import TransformerSpec

_NARAYANAN = Source("Narayanan et al. 2021, Megatron-LM", "section 5.1, eq. 3", "https://arxiv.org/abs/2104.04473")
_HIDDEN = Symbol("H", "hidden width", "count")
_SHORTEST, _LONGEST, _POINTS = 128, 1 << 21, 57
_BEYOND = 1 << 40


@formula(
    r"\frac{\v{seq_len}}{6 \cdot \v{hidden}}",
    result=Symbol("r", "attention’s products over all other FLOPs", "ratio"),
    symbols={"seq_len": Symbol("N", "sequence length", "count"), "hidden": _HIDDEN},
    sources=(_NARAYANAN,),
)
def attention_over_rest(seq_len: float, hidden: float) -> float:
    """Attention’s products over the layers’ other FLOPs, in a GPT.

    The full square costs 12·N·H per token and layer in training, the matrices 72·H²: compare the sequence with 6H,
    not with the number of parameters. Holds for heads that add up to H and a plain feed-forward network of width 4H;
    a causal count halves it.
    """
    return seq_len / (6 * hidden)


@dataclass(frozen=True, slots=True)
class Growth:
    """FLOPs per token of training over sequence lengths, in two parts: products with weights, and of activations.

    crossing: the length from which attention's products are the larger part; infinite where they never are, as with
    sliding windows in every layer. share: products of activations over all FLOPs at ``here``. states: whether layers
    with a state are among them, whose products do not grow.
    """

    lengths: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]
    squares: npt.NDArray[np.float64]
    here: int
    share: float
    crossing: float
    hidden: int
    attention: Attention
    states: bool

    @property
    def six_h(self) -> int:
        """6H, the rule of thumb for ``crossing`` (full attention)."""
        return 6 * self.hidden

    def explain(self) -> list[Explanation]:
        """The rule of thumb at the present length."""
        return [attention_over_rest.explain(seq_len=self.here, hidden=self.hidden)]


@cached("results_kept")
def growth(spec: TransformerSpec, seq_len: int, attention: Attention) -> Growth:
    """Count ``spec`` by layer over sequence lengths from 128 to two million."""

    def parts(length: int) -> tuple[float, float]:
        counted = flops_per_token(spec, length, attention)
        return 3 * counted.weights, 3 * counted.squares

    lengths = np.unique(np.geomspace(_SHORTEST, _LONGEST, _POINTS).round().astype(np.int64))
    both = np.array([parts(int(length)) for length in lengths])
    weights, squares = parts(seq_len)
    return Growth(
        lengths=lengths,
        weights=both[:, 0],
        squares=both[:, 1],
        here=seq_len,
        share=squares / (weights + squares),
        crossing=_crossing(spec, attention),
        hidden=spec.hidden,
        attention=attention,
        states=spec.mixer is not None,
    )


def _crossing(spec: TransformerSpec, attention: Attention) -> float:
    """The first length at which the squares are no less than the weights, by bisection: attention never shrinks."""

    def ahead(length: int) -> bool:
        counted = flops_per_token(spec, length, attention)
        return counted.squares >= counted.weights

    first = 1 + bisect_left(range(1, _BEYOND + 1), True, key=ahead)
    return float(first) if first <= _BEYOND else math.inf
