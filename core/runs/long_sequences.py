"""Sequences longer than any published run's: how much more work a token is there than 6N has in the runs' hours.

6ND has no sequence length. The utilisation of published runs is by 6ND all the same, so the work of attention at their
lengths is in it already; what longer sequences add on top has to be counted. Shorter ones are not made cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from core.formula import Explanation, Source, Symbol, formula
from core.limits import cached
from core.models.catalog import CatalogModel
from core.models.flops import flops_per_token, train_flop_6nd
from core.runs.utilisation import evidence
from core.sources import OWN_CONSTRUCTION

_KAPLAN = Source("Kaplan et al. 2020, Scaling Laws", "sections 2.1 and 3.1", "https://arxiv.org/abs/2001.08361")
_SEQ = Symbol("s", "sequence length", "count")
_PARAMETERS = Symbol("N", "parameters", "count")


@formula(
    r"6 \cdot \frac{\v{counted}}{\v{usual}}",
    result=Symbol("k", "training FLOPs per token and parameter, 6 by the rule", "number"),
    symbols={
        "counted": Symbol("F_s", "training FLOPs per token at the plan’s sequence length, causal", "flop"),
        "usual": Symbol("F_u", "the same at the longest sequence of any published run in the evidence", "flop"),
    },
    sources=train_flop_6nd.sources,
)
def flop_per_parameter_of_long(counted: float, usual: float) -> float:
    """Training FLOPs per token and parameter of long sequences.

    The rule’s 6, times what a token costs at this length over what it costs at the longest one that a published run
    had: the hours of those runs hold attention up to there. The MFU is taken to stay the same.
    """
    return 6 * counted / usual


USUAL_ASPECT = 128.0
"""Hidden width over layers of a usual dense model: Llama 3's are 102 to 130, GPT-3's 128."""


@formula(
    r"6 \cdot \v{params} + 6 \cdot \v{seq_len} \cdot \v{aspect}^{-1/3} \cdot (\frac{\v{params}}{12})^{2/3}",
    result=Symbol("F", "training FLOPs per token, causal attention included", "flop"),
    symbols={
        "params": _PARAMETERS,
        "seq_len": _SEQ,
        "aspect": Symbol("a", "hidden width over layers, as usual", "number"),
    },
    sources=(_KAPLAN, OWN_CONSTRUCTION.at("12·L·H² parameters at a usual H/L")),
)
def flop_of_usual_shape(params: float, seq_len: float, aspect: float) -> float:
    """Training FLOPs per token of a dense model of which only the number of parameters is known.

    A model of L layers as wide as H has 12·L·H² parameters, and attention, causal, adds 6·L·H per token looked back on.
    Embeddings are taken as part of the layers, which they hardly are in small models.
    """
    return 6 * params + 6 * seq_len * aspect ** (-1 / 3) * (params / 12) ** (2 / 3)


@cached("tables_kept")
def usual_length() -> int:
    """The longest sequence of any whole run in the evidence."""
    return max(row.run.seq_len for row in evidence("whole"))


@dataclass(frozen=True, slots=True)
class TokenWork:
    """What a token costs at ``seq_len``. model: whose layers are counted; None where only parameters are known."""

    seq_len: int
    usual_len: int
    model: CatalogModel | None

    @property
    def long(self) -> bool:
        """Whether the sequence is longer than those of published runs."""
        return self.seq_len > self.usual_len

    def _flop(self, params: Any, length: int) -> Any:
        if self.model is None:
            return flop_of_usual_shape.function(params=params, seq_len=length, aspect=USUAL_ASPECT)
        return _counted(self.model, length)

    def per_parameter(self, params: npt.NDArray[np.float64] | float) -> Any:
        """Training FLOPs per token and parameter, for so many parameters; 6 up to the usual length."""
        if not self.long:
            return 6.0
        return flop_per_parameter_of_long.function(
            counted=self._flop(params, self.seq_len), usual=self._flop(params, self.usual_len)
        )

    def explain(self, params: float) -> list[Explanation]:
        """The steps from 6 to what long sequences take; none where it stays 6."""
        if not self.long:
            return []
        steps = [
            flop_per_parameter_of_long.explain(
                counted=self._flop(params, self.seq_len), usual=self._flop(params, self.usual_len)
            )
        ]
        if self.model is None:
            steps.append(flop_of_usual_shape.explain(params=params, seq_len=self.seq_len, aspect=USUAL_ASPECT))
        return steps


@cached("small_results_kept")
def _counted(model: CatalogModel, length: int) -> float:
    if model.counted:
        return 3 * model.counted.forward(length)
    return float(flops_per_token(model.spec, length, "causal").training)


def token_work(model: CatalogModel | None, seq_len: int) -> TokenWork:
    """The work of a token of ``model`` at ``seq_len``."""
    return TokenWork(seq_len, usual_length(), model)
