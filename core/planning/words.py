"""The sentences of a budget: answers and reasons with their numbers filled in, in the page's small markup."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from core.hardware.accelerators import Accelerator
from core.models.catalog import CatalogModel
from core.models.flops import Attention, FlopCount, rule_gap
from core.models.parameters import parameters
from core.planning.budget import format_cost, format_price
from core.planning.deadline import fewest_accelerators
from core.planning.outlook import UNKNOWN, Find, Outlook
from core.training.words import plural
from core.units import format_count, format_duration, format_quantity, scientific, significant

SCOPE = (
    "Counted are matrix products, a multiply-add as two FLOPs. Norms, softmax, activation functions and the optimizer "
    "step are left out, as in published counts of model FLOPs. Recomputing activations is work of the hardware (HFU), "
    "not of the model (MFU), and is not counted either."
)
"""What every count on the page holds and leaves out."""


FIRST = "Below is not your plan but this page’s first example, 70B parameters on 15T tokens."
"""What stands below a question that cannot be answered, when nothing was answered before it."""


def signed(share: float) -> str:
    """A difference as a signed percentage: ``+18.5 %``, ``−0.02 %``."""
    digits = 1 if abs(share) >= 0.0995 else 2 if abs(share) >= 0.000995 else 3
    return f"{share:+,.{digits}%}".replace("-", "−").replace("%", " %")


def interval(values: tuple[float, ...]) -> str:
    """``38–43 %`` of a sorted tuple of shares; a single one as it is."""
    if len(values) == 1:
        return format_quantity(values[0], "ratio")
    return f"{100 * values[0]:.3g}–{format_quantity(values[-1], 'ratio')}"


def known(confidence: str) -> str:
    """How a row of the catalogues is known, in words."""
    return {"verified": "read in the source", "recalled": "recalled from the named source"}[confidence]


def amount(value: float, digits: int = 4) -> str:
    """A count of hours or of tokens per second, which may also be tiny: ``3.537M``, ``0.25``, ``3.37 × 10⁻¹⁸``."""
    return scientific(value) if 0 < value < 1e-3 else format_count(value, digits)


def digits(o: Outlook) -> int:
    """Significant digits of what was found: four of a plain product, three where it is the middle of a range."""
    found = o.over(UNKNOWN[o.find])
    return 3 if found.low < found.high else 4


def found_count(o: Outlook) -> str:
    """The tokens or parameters that were found."""
    return format_count(float(getattr(o.middle, UNKNOWN[o.find])), digits(o))


def size(params: float, model: CatalogModel | None) -> str:
    """What is trained: ``70B parameters``, or the model's name with its count."""
    if model is None:
        return f"**{format_count(params)}** {plural(params, 'parameter')}"
    if model.mixture:
        return f"**{model.name}** ({format_count(params)} active of {format_count(model.parameters)} parameters)"
    return f"**{model.name}** ({format_count(params)} parameters)"


def answer(o: Outlook, model: CatalogModel | None, device: Accelerator, spread: str = "") -> str:
    """The answer as a sentence, with its range; ``spread`` says what the range is, as ``P10–P90``."""
    if o.find == "parameters":
        trained = f"**{found_count(o)}** parameters{_range(o, 'parameters', _three, spread)}"
    else:
        trained = size(o.plan.params, model)
    tokens = found_count(o) if o.find == "tokens" else format_count(o.plan.tokens)
    text = f"**{tokens}** {plural(o.plan.tokens, 'token')}"
    count = f"**{format_count(whole_accelerators(o))}** {device.name}"
    cost = _cost(o)
    money = f", for {cost}" if cost else ""
    days = f"**{format_duration(86400 * o.over('days').mid, digits(o))}**"
    if o.find == "time":
        took = _range(o, "days", _days, spread)
        return f"Training {trained} on {text} takes {days}{took} on {count}{money}."
    if o.find == "cost":
        hours = f"**{amount(float(o.middle.hours), digits(o))}** accelerator-hours{_range(o, 'hours', _three, spread)}"
        said = f"costs {cost}" if cost else "has no known price"
        return f"Training {trained} on {text} {said}: {hours} of {device.name}."
    limit = _limit(o)
    if o.find == "tokens":
        return f"{count} train {trained} on {text}{_range(o, 'tokens', _three, spread)} {limit}{money}."
    if o.find == "parameters":
        return f"{count} train {trained} on {text} {limit}{money}."
    if o.find == "accelerators":
        near = _range(o, "accelerators", lambda n: format_count(math.ceil(n - 1e-9)), spread)
        return f"Training {trained} on {text} {limit} takes {count}{near}{money}."
    return f"Training {trained} on {text} {limit} takes an MFU of **{percent(o.plan.mfu)}** on {count}{money}."


_FIELDS: Mapping[Find, str] = {
    "tokens": "Tokens, found",
    "parameters": "Parameters, found",
    "accelerators": "How many, found",
    "MFU": "MFU, found",
}


def in_its_field(wanted: Find, o: Outlook) -> tuple[str, str]:
    """Label and text of the field that shows what was found; none where ``o`` is the answer to another question."""
    plan = o.plan
    if o.find != wanted:
        return _FIELDS[wanted], "none"
    text = {
        "tokens": found_count(o),
        "parameters": found_count(o),
        "accelerators": format_count(whole_accelerators(o)),
        "MFU": percent(plan.mfu),
    }[wanted]
    return _FIELDS[wanted], text


def whole_accelerators(o: Outlook) -> float:
    """Accelerators of the answer: they come whole, so the fewest that do."""
    return math.ceil(o.plan.accelerators - 1e-9)


def percent(share: float) -> str:
    """A share to three digits: ``38.4 %``."""
    return format_quantity(share, "ratio")


def _three(value: float) -> str:
    return amount(value, 3)


def _days(value: float) -> str:
    return format_duration(value * 86400, 3)


def _range(o: Outlook, name: str, shown: Callable[[float], str], spread: str) -> str:
    found = o.over(name)
    if found.low == found.high:
        return ""
    named = f"{spread}: " if spread and o.mfu.low < o.mfu.high else ""
    return f" ({named}{span(shown(found.low), shown(found.high))})"


def span(low: str, high: str) -> str:
    """Two quantities as a range, a unit that both have only once: ``193–512 days``, ``$14.2–44 M``."""
    number, _, unit = low.rpartition(" ")
    if number and high.endswith(f" {unit}"):
        low, high = number, high.removeprefix("$")
    return f"{low}–{high}"


def _cost(o: Outlook) -> str:
    """Dollars in the middle with their range: ``about **$11.5 M** ($10.6–12.4 M)``; empty without a price."""
    if math.isnan(o.usd.mid):
        return ""
    if o.usd.low == o.usd.high:
        return f"**{format_cost(o.usd.mid, o.usd.mid)}**"
    rounded = (float(f"{value:.3g}") for value in (o.usd.low, o.usd.mid, o.usd.high))
    low, middle, high = (format_cost(value, value) for value in rounded)
    if low == high:
        return f"**{middle}**"
    return f"about **{middle}** ({span(low, high)})"


def _limit(o: Outlook) -> str:
    within = "in" if o.limits is None or o.limits.in_money else "within"
    return f"{within} {format_duration(86400 * o.over('days').mid)}"


def assumptions(o: Outlook, device: Accelerator, dtype: str, origin: str = "") -> str:
    """The quieter line: compute, accelerator-hours, dollars, token rate, and what they rest on."""
    plan, made = o.plan, o.middle
    long = f" × **{significant(o.work.factor, 3)}** for long sequences" if o.work else ""
    nodes = f"{said} · " if (said := whole_nodes(o, device)) else ""
    price = (
        f"**price of {device.name} unknown**, type one under More"
        if math.isnan(o.usd.mid)
        else f"rented at {format_price(plan.price_low, plan.price_high)}"
    )
    used = (
        percent(plan.mfu) if o.mfu.low == o.mfu.high else f"{percent(plan.mfu)} ({interval((o.mfu.low, o.mfu.high))})"
    )
    return (
        f"{nodes}**{format_quantity(float(made.flop), 'flop')}** by 6ND{long} · "
        f"**{amount(float(made.hours), digits(o))}** accelerator-hours, "
        f"{price} · **{amount(float(made.tokens_per_second), digits(o))}** tokens/s · MFU\u00a0**{used}**{origin} of "
        f"{format_quantity(plan.peak, 'flop_per_s')} dense {dtype}"
    )


def whole_nodes(o: Outlook, device: Accelerator) -> str:
    """The accelerators that were found as whole nodes of ``device``; empty where they come singly."""
    size = device.node_size
    if o.find != "accelerators" or size == 1:
        return ""
    fleet = fewest_accelerators(
        flop=float(o.middle.flop), peak=o.plan.peak, mfu=o.plan.mfu, days=o.over("days").mid, per_node=size
    )
    return (
        f"**{fleet.nodes:,}** whole {plural(fleet.nodes, 'node')} of {size} ({fleet.accelerators:,}) take "
        f"{format_duration(fleet.seconds, 3)}"
    )


def price_kept(low: float, high: float) -> str:
    """Which price stays in force after a bad one."""
    return "It stays unknown." if math.isnan(low) else f"Still using {format_price(low, high)}."


def stand_in(model: CatalogModel, params: float) -> str:
    """Whose layers are counted where only a number of parameters was typed, and how the counts are scaled."""
    typed, ratio = format_count(params), params / model.active
    rough = (
        f" **The shares are only rough:** no dense model of the catalogue is within a factor of two of {typed}."
        if not 0.5 <= ratio <= 2
        else ""
    )
    return (
        f"A number of parameters has no layers, so these are the layers of **{model.name}** "
        f"({format_count(model.active)}), the nearest dense model of the catalogue, with every count scaled by "
        f"{typed} / {format_count(model.active)}, so that the row 6ND is the answer above.{rough} Choose a model "
        "above for its own layers, and for its published run where there is one."
    )


def fixed_parameters(model: CatalogModel) -> tuple[str, str]:
    """Label and text of the field that shows a catalogue model's parameters; both counts of a mixture."""
    if not model.mixture:
        return "Parameters", format_count(model.parameters)
    return "Active of all", f"{format_count(model.active)} of {format_count(model.parameters)}"


def active_counts(model: CatalogModel) -> str:
    """The exact count of a mixture's active parameters beside the published one; empty for a dense model."""
    if not model.mixture:
        return ""
    table = 0 if model.spec.tied_head else model.spec.vocab * model.spec.hidden
    lookup = f", or {format_count(model.active - table)} without the input embedding, which is only looked up"
    said = f"**Active parameters:** counted layer by layer {format_count(model.active)}{lookup if table else ''}."
    if math.isnan(model.published_active):
        return f"{said} Its authors print no active count."
    off = model.active / model.published_active - 1
    return (
        f"{said} Published: {format_count(model.published_active)} ({model.published_source}). 6ND is in proportion "
        f"to N, so the 6ND here is {signed(off)} relative to one with the published count."
    )


def largest(counted: FlopCount) -> str:
    """The component with most FLOPs and its share."""
    top = max(counted.parts, key=lambda part: part.flop)
    return f"{top.name} {takes(top.name)} {format_quantity(top.flop / counted.forward, 'ratio')}"


def takes(component: str) -> str:
    """The verb after a component's name: queries, experts and ``Q, K, V`` are many."""
    return "take" if component.endswith(("s", "V")) else "takes"


def gap(model: CatalogModel, seq_len: int, attention: Attention) -> str:
    """Why the count by layer differs from 6ND for this model, term by term."""
    g = rule_gap(model.spec, seq_len, attention)
    tables = "embedding and position tables" if model.spec.position_rows else "input embedding"
    if model.spec.tied_head:
        tables = "position table" if model.spec.position_rows else ""
    charged = f"{signed(-g.lookup / g.rule)} for the {tables}, looked up and not multiplied; " if g.lookup else ""
    again = (
        f"{signed(g.again / g.rule)} for the output head, which multi-token prediction multiplies again; "
        if g.again
        else ""
    )
    shared = " The embedding is also the output head, so N holds it once and it is multiplied once."
    return (
        f"From 6ND to the count by layer, **{signed(g.counted / g.rule - 1)}** of 6ND: {charged}"
        f"{signed(-g.vectors / g.rule)} for norms and biases, which no matrix product uses; {again}"
        f"**{signed(g.square / g.rule)}** for attention’s products of activations at {seq_len:,} tokens ({attention}), "
        f"which 6ND leaves out.{shared if model.spec.tied_head else ''}"
    )


def cautions(model: CatalogModel, seq_len: int) -> list[str]:
    """What the count by layer does not know about this model."""
    found: list[str] = []
    if model.mixture:
        found.append(
            f"6ND takes the {format_count(model.active)} parameters each token runs through. With all "
            f"{format_count(model.parameters)} it would be {model.parameters / model.active:.3g} times as high."
        )
    if window := model.spec.window:
        found.append(
            f"In {model.spec.windowed_layers} of {model.spec.layers} layers of {model.name} a token attends to a "
            f"sliding window, the last {window.size:,} tokens; the count by layer knows it, 6ND does not."
        )
    if seq_len > model.max_seq:
        found.append(f"{model.name} was built for at most {model.max_seq:,} tokens; you count {seq_len:,}.")
    return found


def components(model: CatalogModel) -> tuple[list[str], list[list[str]]]:
    """The table of parameters by component: headings and rows, the sum last; active ones only with experts."""
    counted = parameters(model.spec)
    rows = [
        [part.name, f"{part.total:,}", share_of(part.total / counted.total), f"{part.active:,}"]
        for part in counted.components
    ]
    rows.append(["**Sum**", f"**{counted.total:,}**", "", f"**{counted.active:,}**"])
    headings = ["component", "parameters", "share", "each token runs through"]
    shown = len(headings) if model.mixture else len(headings) - 1
    return headings[:shown], [row[:shown] for row in rows]


def share_of(share: float) -> str:
    """A part of a whole in percent, to two decimals."""
    return f"{100 * share:.2f} %" if share >= 5e-5 else "under 0.01 %"


def model_origin(model: CatalogModel) -> str:
    """How the count by component compares with the model as built and as published."""
    built = f"The sum equals the {model.parameters:,} parameters of the model as frameworks build it."
    if math.isnan(model.published_total):
        return f"{built} Its authors print no total."
    off = model.parameters / model.published_total - 1
    against = "equals it" if off == 0 else f"is {signed(-off)} from it"
    return (
        f"{built} The published total, {model.published_total:,.0f}, {against} "
        f"({model.published_source}; {known(model.published_confidence)})."
    )
