"""How to split a FLOP budget between parameters and tokens, by the published laws, each under its name.

A law of loss L(N, D) = E + A / N^α + B / D^β has one best split of C = k N D. The rule of thumb of 20 tokens per
parameter has no loss. Both laws here are fits of Hoffmann's runs, the second on points read off their figure: their
losses are nats per token of that text under its tokeniser, and compare with each other but with nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from core.budget.equations import BudgetError
from core.formula import Explanation, Source, Symbol, formula

_HOFFMANN = Source(
    "Hoffmann et al. 2022, Chinchilla", "section 3.3 and appendix D.3", "https://arxiv.org/abs/2203.15556"
)
_BESIROGLU = Source(
    "Besiroglu et al. 2024, Chinchilla Scaling: A replication attempt", "section 4", "https://arxiv.org/abs/2404.10102"
)

TOKENS_PER_PARAMETER = 20.0
"""Chinchilla's rule of thumb."""

_PARAMETERS = Symbol("N", "parameters", "count")
_TOKENS = Symbol("D", "training tokens", "count")
_COMPUTE = Symbol("C", "training compute", "flop")
_PER_PARAMETER = Symbol("k", "training FLOPs per token and parameter, 6 by the rule", "number")
_LAW: Mapping[str, Symbol] = {
    "a": Symbol("A", "weight of the loss from too few parameters", "number"),
    "b": Symbol("B", "weight of the loss from too few tokens", "number"),
    "alpha": Symbol(r"\alpha", "how fast more parameters help", "number"),
    "beta": Symbol(r"\beta", "how fast more tokens help", "number"),
}


@formula(
    r"\v{floor} + \frac{\v{a}}{\v{params}^{\v{alpha}}} + \frac{\v{b}}{\v{tokens}^{\v{beta}}}",
    result=Symbol("L", "loss in nats per token", "number"),
    symbols={
        "floor": Symbol("E", "loss that neither parameters nor tokens remove", "number"),
        "params": _PARAMETERS,
        "tokens": _TOKENS,
        **_LAW,
    },
    sources=(_HOFFMANN, _BESIROGLU),
)
def loss(params: float, tokens: float, floor: float, a: float, b: float, alpha: float, beta: float) -> float:
    """Loss after training a number of parameters on a number of tokens."""
    return floor + a / params**alpha + b / tokens**beta


@formula(
    r"(\frac{\v{alpha} \cdot \v{a}}{\v{beta} \cdot \v{b}})^{\frac{1}{\v{alpha} + \v{beta}}}"
    r" \cdot (\frac{\v{flop}}{\v{per_parameter}})^{\frac{\v{beta}}{\v{alpha} + \v{beta}}}",
    result=Symbol(r"N^{*}", "parameters of the lowest loss", "parameters"),
    symbols={"flop": _COMPUTE, "per_parameter": _PER_PARAMETER, **_LAW},
    sources=(_HOFFMANN,),
)
def optimal_parameters(flop: float, per_parameter: float, a: float, b: float, alpha: float, beta: float) -> float:
    """Parameters of the lowest loss that the compute can reach."""
    return (alpha * a / (beta * b)) ** (1 / (alpha + beta)) * (flop / per_parameter) ** (beta / (alpha + beta))


@formula(
    r"\sqrt{\frac{\v{flop}}{\v{per_parameter} \cdot \v{ratio}}}",
    result=Symbol("N", "parameters", "parameters"),
    symbols={
        "flop": _COMPUTE,
        "per_parameter": _PER_PARAMETER,
        "ratio": Symbol("r", "tokens per parameter", "number"),
    },
    sources=(_HOFFMANN,),
)
def parameters_by_ratio(flop: float, per_parameter: float, ratio: float) -> float:
    """Parameters where tokens are a fixed multiple of them."""
    return np.sqrt(flop / (per_parameter * ratio))


@formula(
    r"\frac{\v{flop}}{\v{per_parameter} \cdot \v{params}}",
    result=Symbol("D", "training tokens", "tokens"),
    symbols={"flop": _COMPUTE, "per_parameter": _PER_PARAMETER, "params": _PARAMETERS},
    sources=(_HOFFMANN,),
)
def tokens_left(flop: float, per_parameter: float, params: float) -> float:
    """Tokens that the rest of the compute pays for."""
    return flop / (per_parameter * params)


@formula(
    r"\frac{\v{tokens}}{20 \cdot \v{params}}",
    result=Symbol("o", "over-training factor", "number"),
    symbols={"tokens": _TOKENS, "params": _PARAMETERS},
    sources=(_HOFFMANN,),
)
def overtraining(tokens: float, params: float) -> float:
    """Over-training factor: tokens against 20 per parameter.

    Above 1 the model is smaller than the compute would allow, which costs training loss and makes every later token
    of inference cheaper.
    """
    return tokens / (20 * params)


@dataclass(frozen=True, slots=True)
class LossLaw:
    """A published law of loss with its constants; ``known`` says how well they are known."""

    id: str
    name: str
    floor: float
    a: float
    b: float
    alpha: float
    beta: float
    source: Source
    known: str

    def loss(self, params: float, tokens: float) -> float:
        """Return the loss in nats per token, on the text that the law was fitted to."""
        return loss(params, tokens, **self._constants, floor=self.floor)

    @property
    def _constants(self) -> dict[str, float]:
        return {"a": self.a, "b": self.b, "alpha": self.alpha, "beta": self.beta}

    def explain_loss(self, params: float, tokens: float) -> Explanation:
        """Return `loss` with the constants filled in."""
        explanation = loss.explain(params=params, tokens=tokens, floor=self.floor, **self._constants)
        return replace(explanation.about(self.name), detail=f"{explanation.detail} {self.known}".strip())

    def parameters(self, flop: float, per_parameter: float = 6.0) -> float:
        """Return the parameters of the lowest loss at ``flop``."""
        return optimal_parameters(flop, per_parameter, **self._constants)

    def explain_parameters(self, flop: float, per_parameter: float = 6.0) -> Explanation:
        """Return `parameters` with the constants filled in."""
        return optimal_parameters.explain(flop=flop, per_parameter=per_parameter, **self._constants)


CHINCHILLA = LossLaw(
    "chinchilla",
    "Chinchilla, approach 3",
    1.6934,
    406.4,
    410.7,
    0.3392,
    0.2849,
    _HOFFMANN,
    "The paper’s text rounds the exponents to 0.34 and 0.28, which moves the best split by a quarter; these are those "
    "of its TeX source, as Besiroglu et al. print them.",
)
BESIROGLU = LossLaw(
    "besiroglu",
    "Chinchilla refitted by Besiroglu et al.",
    1.8172,
    482.01,
    2085.43,
    0.3478,
    0.3658,
    _BESIROGLU,
    "Standard errors 0.02 on both exponents, 125 on A and 1,293 on B.",
)
LAWS: tuple[LossLaw, ...] = (CHINCHILLA, BESIROGLU)


@dataclass(frozen=True, slots=True)
class Allocation:
    """A FLOP budget split one way. loss: NaN if the rule has none. overtraining: against 20 per parameter."""

    id: str
    name: str
    params: float
    tokens: float
    tokens_per_parameter: float
    loss: float
    overtraining: float
    source: Source
    explanations: tuple[Explanation, ...]


def _allocation(
    id: str, name: str, source: Source, flop: float, k: float, first: Explanation, law: LossLaw | None
) -> Allocation:
    params = first.value
    tokens = tokens_left.explain(flop=flop, per_parameter=k, params=params)
    over = overtraining.explain(tokens=tokens.value, params=params)
    reached = law.explain_loss(params, tokens.value) if law else None
    return Allocation(
        id=id,
        name=name,
        params=params,
        tokens=tokens.value,
        tokens_per_parameter=tokens.value / params,
        loss=reached.value if reached else math.nan,
        overtraining=over.value,
        source=source,
        explanations=(first.about(name), tokens.about(name), over.about(name), *((reached,) if reached else ())),
    )


def compute_optimal(flop: float, per_parameter: float = 6.0) -> tuple[Allocation, ...]:
    """Return ``flop`` split by the rule of thumb and by each law, in that order.

    per_parameter: training FLOPs per token and parameter, 6 by the rule.
    Raises `BudgetError` for a budget that is not finite or under 1 GFLOP.
    """
    if not math.isfinite(flop) or flop < 1e9:
        raise BudgetError("flop", f"No model can be trained on {flop:g} FLOP. For example: 3.8e25.")
    if not math.isfinite(per_parameter) or per_parameter <= 0:
        raise BudgetError("flop_per_parameter", f"{per_parameter:g} FLOPs per token and parameter. For example: 6.")
    k, ratio = per_parameter, TOKENS_PER_PARAMETER
    thumb = parameters_by_ratio.explain(flop=flop, per_parameter=k, ratio=ratio)
    return (
        _allocation("thumb", f"{ratio:g} tokens per parameter", _HOFFMANN, flop, k, thumb, None),
        *(_allocation(law.id, law.name, law.source, flop, k, law.explain_parameters(flop, k), law) for law in LAWS),
    )
