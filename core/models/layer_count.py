"""The count by layer of a plan, with every formula, carried over to the plan's parameters."""

from __future__ import annotations

from core.formula import Explanation, Symbol, formula
from core.models.flops import Attention, flops_per_token, train_flop_by_layer
from core.models.parameters import parameters
from core.models.spec import TransformerSpec
from core.sources import OWN_CONSTRUCTION


@formula(
    r"\v{flop} \cdot \frac{\v{params}}{\v{counted}}",
    result=Symbol("C'", "training compute at the plan’s parameters", "flop"),
    symbols={
        "flop": Symbol("C", "training compute of the model whose layers were counted", "flop"),
        "params": Symbol("N", "parameters of the plan", "count"),
        "counted": Symbol(r"N_\ell", "parameters of the model whose layers were counted", "count"),
    },
    sources=(OWN_CONSTRUCTION.at("in proportion to the parameters, as 6ND is"),),
)
def scaled_flop(flop: float, params: float, counted: float) -> float:
    """A count by layer carried over to another number of parameters.

    A number of parameters alone has no layers: the shares are those of the model that was counted, the total is in
    proportion to the parameters, as in 6ND.
    """
    return flop * params / counted


def scale_of(spec: TransformerSpec, params: float) -> float:
    """A plan's parameters over the active ones of the model whose layers are counted; 1 where it is its own."""
    return params / parameters(spec).active


def explain_count(
    spec: TransformerSpec, seq_len: int, attention: Attention, *, params: float, tokens: float
) -> list[Explanation]:
    """Every component of the count by layer with its formula, their sum, and its scaling to the plan's parameters."""
    counted = flops_per_token(spec, seq_len, attention)
    whole = train_flop_by_layer.explain(forward=counted.forward, tokens=tokens)
    scaled = scaled_flop.explain(flop=whole.value, params=params, counted=parameters(spec).active)
    own = scale_of(spec, params) == 1
    return [*([] if own else [scaled]), whole, *(part.explain() for part in counted.parts)]
