"""The count by layer of a plan, with every formula, carried over to the plan's parameters."""

from __future__ import annotations

from core.formula import Explanation, Symbol, formula
from core.models.flops import flops_per_token, train_flop_by_layer
from core.models.parameters import parameters
from core.planning.answer.answer import Answer
from core.sources import OWN


@formula(
    r"\v{flop} \cdot \frac{\v{params}}{\v{counted}}",
    result=Symbol("C'", "training compute at the plan’s parameters", "flop"),
    symbols={
        "flop": Symbol("C", "training compute of the model whose layers were counted", "flop"),
        "params": Symbol("N", "parameters of the plan", "count"),
        "counted": Symbol(r"N_\ell", "parameters of the model whose layers were counted", "count"),
    },
    sources=(OWN.at("in proportion to the parameters, as 6ND is"),),
)
def scaled_flop(flop: float, params: float, counted: float) -> float:
    """A count by layer carried over to another number of parameters.

    A number of parameters alone has no layers: the shares are those of the model that was counted, the total is in
    proportion to the parameters, as in 6ND.
    """
    return flop * params / counted


def scale_of(a: Answer) -> float:
    """The plan's parameters over the active ones of the model whose layers are counted; 1 where it is its own."""
    return a.middle.parameters / parameters(a.shape.spec).active


def explain_count(a: Answer) -> list[Explanation]:
    """Every component of the count by layer with its formula, their sum, and its scaling to the plan's parameters."""
    spec, m = a.shape.spec, a.middle
    counted = flops_per_token(spec, a.plan.seq_len, a.plan.attention)
    whole = train_flop_by_layer.explain(forward=counted.forward, tokens=m.tokens)
    scaled = scaled_flop.explain(flop=whole.value, params=m.parameters, counted=parameters(spec).active)
    return [*([scaled] if scale_of(a) != 1 else []), whole, *(part.explain() for part in counted.parts)]
