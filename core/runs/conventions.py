"""What a token is counted to cost: by each convention, and at sequences longer than any published run’s.

6ND has no sequence length. The utilisation of published runs is by 6ND all the same, so the work of attention at their
lengths is in it already; what longer sequences add on top has to be counted. Shorter ones are not made cheaper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.budget.equations import BudgetError
from core.formula import Explanation, Source, Symbol, formula
from core.limits import cached
from core.models.catalog import CatalogModel
from core.models.flops import conventions, flops_per_token, train_flop_6nd
from core.models.spec import TransformerSpec
from core.runs.published import evidence
from core.sources import OWN_CONSTRUCTION, PALM
from core.units import format_quantity

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

    This is 6, times the FLOPs of a token at this length, divided by those at the longest published sequence length, up
    to which published hours include attention. The MFU is assumed to stay the same.
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
    """Return the longest sequence of any whole run in the evidence."""
    return max(row.run.seq_len for row in evidence("whole"))


@dataclass(frozen=True, slots=True)
class TokenWork:
    """What a token costs at ``seq_len``. model: whose layers are counted; None if only parameters are known."""

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
        """Return the training FLOPs per token and parameter for ``params`` parameters; 6 up to the published
        lengths."""
        if not self.long:
            return 6.0
        return flop_per_parameter_of_long.function(
            counted=self._flop(params, self.seq_len), usual=self._flop(params, self.usual_len)
        )

    def explain(self, params: float) -> list[Explanation]:
        """Return the steps from 6 to the FLOPs of long sequences; empty if it stays 6."""
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
    """Return the work of a token of ``model`` at ``seq_len``."""
    return TokenWork(seq_len, usual_length(), model)


Score: TypeAlias = Literal["MFU", "HFU"]

_PALM = PALM.at("section 4.1 and appendix B")


@formula(
    r"\frac{\v{rate} \cdot \v{per_token}}{\v{accelerators} \cdot \v{peak}}",
    result=Symbol("u", "utilisation", "ratio"),
    symbols={
        "rate": Symbol("r", "tokens per second, whole cluster", "number"),
        "per_token": Symbol("F", "FLOPs per token of training, as the convention counts them", "flop"),
        "accelerators": Symbol("n", "accelerators", "count"),
        "peak": Symbol("P", "dense peak of one accelerator", "flop_per_s"),
    },
    sources=(_PALM,),
)
def utilisation_of_rate(rate: float, per_token: float, accelerators: float, peak: float) -> float:
    """Utilisation from the token rate.

    MFU where the FLOPs are those the model needs, HFU where repeated ones count too.
    """
    return rate * per_token / (accelerators * peak)


@formula(
    r"\frac{\v{batch}}{\v{step}}",
    result=Symbol("r", "tokens per second, whole cluster", "tokens_per_s"),
    symbols={
        "batch": Symbol("B", "tokens of one step, whole cluster", "count"),
        "step": Symbol("t", "time of one step", "seconds"),
    },
    sources=(_PALM,),
)
def rate_of_steps(batch: float, step: float) -> float:
    """Tokens per second from the time of a step."""
    return batch / step


@dataclass(frozen=True, slots=True)
class Scored:
    """A run under one convention. per_token: FLOPs per token counted. per_rule: utilization over that by 6N."""

    id: str
    name: str
    kind: Score
    per_token: float
    utilisation: float
    per_rule: float
    explanation: Explanation

    @property
    def possible(self) -> bool:
        """Whether it stays within the peak; a rate beyond it, or a wrong peak, does not."""
        return self.utilisation <= 1


def which_mfu(
    spec: TransformerSpec,
    seq_len: int,
    *,
    accelerators: float,
    peak: float,
    tokens_per_second: float | None = None,
    step_seconds: float | None = None,
    batch_tokens: float | None = None,
) -> tuple[Scored, ...]:
    """Return one run under every convention, 6N first; five MFUs, then HFU with attention or every layer done again.

    Give the tokens per second of the whole cluster, or the time of a step and its tokens. HFU counts the full
    attention square.
    Raises `BudgetError` for neither or both, and for numbers that are not above 0.
    """
    if tokens_per_second is not None and (step_seconds is not None or batch_tokens is not None):
        raise BudgetError("tokens_per_second", "Give tokens per second or the time of a step, not both.")
    if tokens_per_second is None:
        if step_seconds is None or batch_tokens is None:
            raise BudgetError("tokens_per_second", "Give tokens per second, or the time of a step and its tokens.")
        _positive("step_seconds", step_seconds)
        _positive("batch_tokens", batch_tokens)
        rate = rate_of_steps(batch_tokens, step_seconds)
    else:
        rate = tokens_per_second
    for name, value in (("tokens_per_second", rate), ("accelerators", accelerators), ("peak", peak)):
        _positive(name, value)
    full, counted = flops_per_token(spec, seq_len, "full"), conventions(spec, seq_len)
    ways: tuple[tuple[str, str, Score, float], ...] = (
        *((way.id, way.name, "MFU", way.per_token) for way in counted),
        ("hfu_selective", "full attention, core attention recomputed", "HFU", full.training + full.squares),
        ("hfu_full", "full attention, every layer recomputed", "HFU", full.training + full.in_layers),
    )
    scores: list[Scored] = []
    for way, name, kind, per_token in ways:
        how = utilisation_of_rate.explain(rate=rate, per_token=per_token, accelerators=accelerators, peak=peak)
        relative = per_token / counted[0].per_token
        scores.append(Scored(way, name, kind, per_token, how.value, relative, how.about(name)))
    return tuple(scores)


def _positive(field: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        text = format_quantity(value, "number")
        raise BudgetError(field, f"{field.replace('_', ' ')} is {text}; it must be more than zero and finite.")
