"""The budget of a training run: from its compute and a cluster to time, accelerator-hours and dollars."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.formula import Explanation, Source, Symbol, formula
from core.limits import limit
from core.models.flops import Attention, conventions, flops_per_token, train_flop_6nd, train_flop_by_layer
from core.models.parameters import parameters
from core.models.spec import TransformerSpec
from core.planning.budget.equations import mfu_needed
from core.sources import DEEPSEEK_V3, OWN, PALM
from core.units import QuantityError, format_quantity, parse_quantity

_PALM = PALM.at("section 4.1 and appendix B")
_NARAYANAN = Source("Narayanan et al. 2021, Megatron-LM", "section 5.1, eq. 4", "https://arxiv.org/abs/2104.04473")
_DEEPSEEK_V3 = DEEPSEEK_V3.at("table 1")

_COMPUTE = Symbol("C", "training compute", "flop")
_COUNT = Symbol("n", "accelerators", "count")
_PEAK = Symbol("P", "dense peak of one accelerator", "flop_per_s")
_MFU = Symbol("u", "MFU, the share of the peak that model FLOPs use", "ratio")
_HOURS = Symbol("H", "accelerator-hours", "accelerator_hours")
_SECONDS = Symbol("t", "training time", "seconds")
_TOKENS = Symbol("D", "training tokens", "count")


@formula(
    r"\frac{\v{flop}}{\v{accelerators} \cdot \v{peak} \cdot \v{mfu}}",
    result=_SECONDS,
    symbols={"flop": _COMPUTE, "accelerators": _COUNT, "peak": _PEAK, "mfu": _MFU},
    sources=(_PALM, _NARAYANAN),
)
def training_seconds(flop: float, accelerators: float, peak: float, mfu: float) -> float:
    """Training time at a steady MFU.

    Restarts, evaluation and waiting are not in it: published runs take longer than their steady MFU says.
    """
    return flop / (accelerators * peak * mfu)


@formula(
    r"\frac{\v{accelerators} \cdot \v{seconds}}{3600}",
    result=_HOURS,
    symbols={"accelerators": _COUNT, "seconds": _SECONDS},
    sources=(_DEEPSEEK_V3,),
)
def accelerator_hours(accelerators: float, seconds: float) -> float:
    """Accelerator-hours.

    Every accelerator of the cluster counts for the whole time.
    """
    return accelerators * seconds / 3600


@formula(
    r"\v{hours} \cdot \v{price}",
    result=Symbol(r"\text{cost}", "rent of the accelerators", "usd"),
    symbols={"hours": _HOURS, "price": Symbol("p", "price per accelerator-hour", "usd_per_hour")},
    sources=(_DEEPSEEK_V3,),
)
def rent(hours: float, price: float) -> float:
    """Rent of the accelerators.

    Storage, network, staff and failed experiments are not in it.
    """
    return hours * price


@formula(
    r"\frac{\v{tokens}}{\v{seconds}}",
    result=Symbol("r", "tokens per second, whole cluster", "tokens_per_s"),
    symbols={"tokens": _TOKENS, "seconds": _SECONDS},
    sources=(_PALM,),
)
def tokens_per_second(tokens: float, seconds: float) -> float:
    """Tokens per second of the whole cluster."""
    return tokens / seconds


@formula(
    r"\frac{\v{flop}}{\v{hours} \cdot 3600 \cdot \v{peak}}",
    result=Symbol("u", "effective utilisation", "ratio"),
    symbols={"flop": _COMPUTE, "hours": _HOURS, "peak": _PEAK},
    sources=(_PALM,),
)
def effective_utilisation(flop: float, hours: float, peak: float) -> float:
    """Effective utilisation of a whole run.

    Its compute over what the billed hours could have done at peak. Lower than the MFU of a steady step, because
    the hours also hold restarts, evaluation, other stages and waiting.
    """
    return flop / (hours * 3600 * peak)


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


@dataclass(frozen=True, slots=True)
class Plan:
    """What one plans with: N parameters (active ones), D tokens, n accelerators of a dense peak, MFU, price range.

    peak is in FLOP/s; prices are dollars per accelerator-hour, NaN when unknown.
    """

    params: float
    tokens: float
    accelerators: float
    peak: float
    mfu: float
    price_low: float = math.nan
    price_high: float = math.nan


@dataclass(frozen=True, slots=True)
class Budget:
    """What the plan takes. Dollars are a range because the price is one; NaN when it is unknown."""

    flop: float
    seconds: float
    hours: float
    usd_low: float
    usd_high: float
    tokens_per_s: float


def budget(plan: Plan) -> Budget:
    """Compute by 6ND, and the time, accelerator-hours, dollars and token rate that follow."""
    flop = train_flop_6nd(plan.params, plan.tokens)
    seconds = training_seconds(flop, plan.accelerators, plan.peak, plan.mfu)
    hours = accelerator_hours(plan.accelerators, seconds)
    return Budget(
        flop=flop,
        seconds=seconds,
        hours=hours,
        usd_low=rent(hours, plan.price_low),
        usd_high=rent(hours, plan.price_high),
        tokens_per_s=tokens_per_second(plan.tokens, seconds),
    )


def explain_days(plan: Plan) -> list[Explanation]:
    """The compute and the time of ``plan``, no more."""
    return explain_budget(plan)[:2]


def explain_budget(plan: Plan) -> list[Explanation]:
    """Every number of ``budget(plan)`` with its formula, in the order in which they follow from each other."""
    made = budget(plan)
    steps = [
        train_flop_6nd.explain(params=plan.params, tokens=plan.tokens),
        training_seconds.explain(flop=made.flop, accelerators=plan.accelerators, peak=plan.peak, mfu=plan.mfu),
        accelerator_hours.explain(accelerators=plan.accelerators, seconds=made.seconds),
        tokens_per_second.explain(tokens=plan.tokens, seconds=made.seconds),
    ]
    prices = sorted({price for price in (plan.price_low, plan.price_high) if not math.isnan(price)})
    return steps + [rent.explain(hours=made.hours, price=price) for price in prices]


@dataclass(frozen=True, slots=True)
class Counted:
    """A run counted one way: FLOPs per token of training, of the whole run, and against 6ND.

    mfu: of the run that takes as long as the plan by 6ND; the same run has another MFU under every convention.
    seconds: of a run that reaches the plan's MFU as this convention counts it, which is another run.
    """

    id: str
    name: str
    per_token: float
    flop: float
    against_rule: float
    mfu: float
    seconds: float


def count_every_way(spec: TransformerSpec, seq_len: int, plan: Plan) -> list[Counted]:
    """The plan's tokens through ``spec`` under every counting convention, 6ND first.

    Where the plan has other parameters than ``spec``, every count is scaled to the plan's, so that 6ND here is 6ND
    of the plan.
    """
    ways = conventions(spec, seq_len)
    rule = train_flop_6nd(plan.params, 1)
    found: list[Counted] = []
    for way in ways:
        share = way.per_token / ways[0].per_token
        flop = rule * share * plan.tokens
        seconds = training_seconds(flop, plan.accelerators, plan.peak, plan.mfu)
        found.append(Counted(way.id, way.name, rule * share, flop, share - 1, plan.mfu * share, seconds))
    return found


def explain_way(way: Counted, plan: Plan, *, typed: bool) -> Explanation:
    """How the last column of ``way`` is computed: its time where the MFU was typed, else the MFU of the same run."""
    cluster = {"flop": way.flop, "accelerators": plan.accelerators, "peak": plan.peak}
    if typed:
        return training_seconds.explain(**cluster, mfu=plan.mfu)
    return mfu_needed.explain(**cluster, seconds=budget(plan).seconds)


def scale_of(spec: TransformerSpec, plan: Plan) -> float:
    """The plan's parameters over the active ones of ``spec``; 1 where ``spec`` is the plan's own model."""
    return plan.params / parameters(spec).active


def explain_count(spec: TransformerSpec, seq_len: int, attention: Attention, plan: Plan) -> list[Explanation]:
    """Every component of the count by layer with its formula, their sum, and its scaling to the plan's parameters."""
    counted = flops_per_token(spec, seq_len, attention)
    whole = train_flop_by_layer.explain(forward=counted.forward, tokens=plan.tokens)
    found = [*(part.explain() for part in counted.parts), whole]
    if scale_of(spec, plan) != 1:
        active = parameters(spec).active
        found.append(scaled_flop.explain(flop=whole.value, params=plan.params, counted=active))
    return found


def parse_price(text: str) -> tuple[float, float]:
    """A price per accelerator-hour as typed: ``2.50`` or a range ``2.5-3.5``.

    Raises `QuantityError` with an example otherwise.
    """
    ends = text.replace("–", "-").strip().split("-")
    if len(ends) > 2 or (len(ends) == 2 and not all(end.strip() for end in ends)):
        rule = "neither a price nor a range of prices, and a price is not negative"
        raise QuantityError(f"“{text.strip()}” is {rule}. For example: 2.50, or 2.50-3.50 for a range.")
    prices = sorted(parse_quantity(end, "usd_per_hour", low=0.0, high=limit("price_per_hour")) for end in ends)
    return prices[0], prices[-1]


def format_price(low: float, high: float) -> str:
    """``$2.50/h``, ``$2.50–3.50/h`` or ``unknown``."""
    if low == high or math.isnan(low):
        return format_quantity(low, "usd_per_hour")
    return f"${low:,.2f}–{format_quantity(high, 'usd_per_hour').removeprefix('$')}"


def format_cost(low: float, high: float) -> str:
    """``$5.6 M``, ``$10.6 M to $12.4 M``, ``under $0.01`` or ``unknown``."""
    cheapest, dearest = _dollars(low), _dollars(high)
    return cheapest if cheapest == dearest else f"{cheapest} to {dearest}"


def _dollars(value: float) -> str:
    return "under $0.01" if 0 < value < 0.005 else format_quantity(value, "usd")
