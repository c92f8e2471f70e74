"""What the panels of a budget say: takeaways, table cells and notes with their numbers filled in."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.models.attention_share import Growth
from core.models.catalog import CatalogModel
from core.models.flops import Attention, FlopCount, FlopPart, rule_gap
from core.models.parameters import parameters
from core.models.rule_of_six import MODELS, rule_error
from core.runs.conventions import Scored
from core.units import format_count, format_exact, format_quantity
from core.wording import amount, known, listed, percent, percent_of_whole, signed, strong


def where(counted: FlopCount, scale: float = 1.0) -> str:
    """Takeaway of the count by component; ``scale`` as in the pictures: the plan's parameters over the counted ones."""
    name, share = _largest(counted)
    return (
        f"Of **{format_quantity(scale * counted.training, 'flop')}** per token of training, **{name}** {takes(name)} "
        f"**{percent(share)}**; products with weights are **{percent(counted.weights / counted.forward)}** of all."
    )


def of_activations(states: bool) -> str:
    """What products of activations are called: those of attention, unless layers with a state have some as well."""
    return "products of activations" if states else "attention’s products"


def growing(g: Growth) -> str:
    """Takeaway of the sweep over sequence lengths."""
    share = format_quantity(g.share, "ratio")
    here = f"At **{g.here:,}** tokens {of_activations(g.states)} are **{share}** of the FLOPs ({g.attention} count)."
    if math.isinf(g.crossing):
        return f"{here} They never overtake the rest: no layer looks at the whole sequence."
    if g.crossing <= 1:
        return f"{here} They are the larger part at every length."
    rule = f"6H = {g.six_h:,}" if g.attention == "full" else f"12H = {2 * g.six_h:,}"
    return (
        f"{here} They overtake the rest at **{g.crossing:,.0f}** tokens; the rule of thumb for dense layers, with "
        f"heads that add up to H and a feed-forward network of 4H, says {rule} ({g.attention} count)."
    )


SCOPE = (
    "Counted are matrix products, a multiply-add as two FLOPs. Norms, softmax, activation functions and the optimizer "
    "step are left out, as in published counts of model FLOPs. Recomputing activations is work of the hardware (HFU), "
    "not of the model (MFU), and is not counted either."
)
"""What every count holds and leaves out."""


SCORES = ("the same run, counted as", "FLOPs per token", "utilisation", "relative to 6ND")
"""Headings of the table of `scores`."""


def scores(scoreds: Sequence[Scored]) -> list[tuple[str, ...]]:
    """Rows of the table of conventions."""
    return [
        (
            f"{s.name} ({s.kind})",
            format_quantity(s.per_token, "flop"),
            percent(s.utilisation) if s.possible else f"**{percent(s.utilisation)}**, impossible",
            signed(s.per_rule - 1) if s.per_rule != 1 else "",
        )
        for s in scoreds
    ]


_SPARSE = 1.5
"""PaLM's count over that of the model's own attention from which it says little of a model: it has windows, or chooses
what it attends to."""


def scored_run(scoreds: Sequence[Scored], rate: float) -> str:
    """Takeaway: one speed, many MFUs."""
    by = {s.id: s for s in scoreds}
    beyond = by["palm"].per_token > _SPARSE * by["full"].per_token
    mfu = sorted(s.utilisation for s in scoreds if s.kind == "MFU" and not (beyond and s.id == "palm"))
    hfu = max(s.utilisation for s in scoreds if s.kind == "HFU")
    sparse = f" {by['palm'].name} counts more attention than this model computes." if beyond else ""
    return (
        f"**{amount(rate)}** tokens per second are an MFU of **{percent(mfu[0])}** to **{percent(mfu[-1])}**, by how "
        f"work is counted; with every layer recomputed the same speed is an HFU of **{percent(hfu)}**. Compare "
        f"published figures only under one convention.{sparse}"
    )


def stand_in(model: CatalogModel, params: float) -> str:
    """Whose layers are counted where only a number of parameters was typed, and how the counts are scaled."""
    typed, ratio = format_count(params), params / model.active
    rough = (
        f" **The shares are only rough:** no dense model of the catalogue is within a factor of two of {typed}."
        if not 0.5 <= ratio <= 2
        else ""
    )
    return (
        f"Its own layers are not known, so these are the layers of **{model.name}** "
        f"({format_count(model.active)}), the nearest dense model of the catalogue, with every count scaled by "
        f"{typed} / {format_count(model.active)}, so that the row 6ND is the answer’s.{rough} Choose a model "
        "for its own layers, and for its published run where there is one."
    )


def active_counts(model: CatalogModel) -> str:
    """The exact count of a mixture's active parameters beside the published one; empty for a dense model."""
    if not model.mixture:
        return ""
    table = 0 if model.spec.tied_head else model.spec.vocab * model.spec.hidden
    lookup = f", or {format_count(model.active - table)} without the input embedding, which is only looked up"
    text = f"**Active parameters:** counted layer by layer {format_count(model.active)}{lookup if table else ''}."
    if math.isnan(model.published_active):
        return f"{text} Its authors print no active count."
    off = model.active / model.published_active - 1
    return (
        f"{text} Published: {format_count(model.published_active)} ({model.published_source}). 6ND is in proportion "
        f"to N, so the 6ND here is {signed(off)} relative to one with the published count."
    )


def largest(counted: FlopCount) -> str:
    """The component with most FLOPs and its share."""
    name, share = _largest(counted)
    return f"{name} {takes(name)} {percent(share)}"


_NUMERALS = {2: "two", 3: "three"}


def _largest(counted: FlopCount) -> tuple[str, float]:
    """What takes most FLOPs, and its share: a component, or together those of its group that take exactly as many."""
    alike: dict[tuple[str, float], list[FlopPart]] = {}
    for part in counted.parts:
        alike.setdefault((part.group, part.flop), []).append(part)
    (group, _), top = max(alike.items(), key=lambda same: sum(part.flop for part in same[1]))
    share = sum(part.flop for part in top) / counted.forward
    if len(top) == 1:
        name = top[0].name
        return (name[:1].lower() + name[1:] if name[1:2].islower() else name), share
    return f"the {_NUMERALS.get(len(top), len(top))} equal {group} products", share


def takes(component: str) -> str:
    """The verb after a component's name: queries, experts and ``Q, K, V`` are many."""
    return "take" if component.endswith(("s", "V")) else "takes"


def gap(model: CatalogModel, seq_len: int, attention: Attention) -> str:
    """Why the count by layer differs from 6ND for this model, term by term."""
    g = rule_gap(model.spec, seq_len, attention)
    spec = model.spec
    tables = {
        "input embedding": not spec.tied_head,
        "position table": spec.position_rows,
        "embedding of layers": spec.layer_embedding,
    }
    looked_up = listed([name for name, there in tables.items() if there])
    charged = f"{signed(-g.lookup / g.rule)} for the {looked_up}, looked up and not multiplied; " if g.lookup else ""
    again = (
        f"{signed(g.again / g.rule)} for the output head, which multi-token prediction multiplies again; "
        if g.again
        else ""
    )
    mixer = model.spec.mixer
    vectors = "norms, biases and what steers a state" if mixer else "norms and biases"
    products = of_activations(True) if mixer else "attention’s products of activations"
    shared = " The embedding is also the output head, so N holds it once and it is multiplied once."
    return (
        f"From 6ND to the count by layer, **{signed(g.counted / g.rule - 1)}** of 6ND: {charged}"
        f"{signed(-g.vectors / g.rule)} for {vectors}, which no matrix product uses; {again}"
        f"**{signed(g.square / g.rule)}** for {products} at {seq_len:,} tokens ({attention}), which 6ND leaves out."
        f"{shared if model.spec.tied_head else ''}"
    )


RULE = ("Model", "Tokens", "6N per token", "Counted by layer", "Off by")
"""Headings of `rule`."""


def rule(attention: Attention) -> list[tuple[str, ...]]:
    """Rows of the table of how far 6N is off, from a small model to a large one."""
    return [
        (
            one.model.name,
            f"{one.seq_len:,}",
            format_quantity(6 * one.model.active, "flop"),
            format_quantity(3 * one.forward, "flop"),
            signed(one.error),
        )
        for one in (rule_error(name, attention) for name in MODELS)
    ]


def cautions(model: CatalogModel, seq_len: int) -> list[str]:
    """What the count by layer does not know about this model."""
    parts: list[str] = []
    if model.mixture:
        parts.append(
            f"6ND takes the {format_count(model.active)} parameters each token runs through. With all "
            f"{format_count(model.parameters)} it would be {model.parameters / model.active:.3g} times as high."
        )
    if window := model.spec.window:
        further = " and to compressed earlier ones" if model.spec.compressed else ""
        parts.append(
            f"In {model.spec.windowed_layers} of {model.spec.layers} layers, a token attends to a sliding window of "
            f"{window.size:,} tokens{further}. The count by layer includes this, and 6ND does not."
        )
    if mixer := model.spec.mixer:
        parts.append(
            f"In {mixer.layers} of {model.spec.layers} layers, a recurrent state "
            f"{'runs in parallel with' if mixer.parallel else 'replaces'} attention. Napkin counts {mixer.operations} "
            "FLOPs per state element and token. Kernels that work in chunks compute more."
        )
    if seq_len > model.max_seq:
        parts.append(f"{model.name} was built for at most {model.max_seq:,} tokens; you count {seq_len:,}.")
    return parts


def components(model: CatalogModel) -> tuple[list[str], list[list[str]]]:
    """The table of parameters by component: headings and rows, the sum last; active ones only with experts."""
    counted = parameters(model.spec)
    rows = [
        [part.name, format_exact(part.total), percent_of_whole(part.total / counted.total), format_exact(part.active)]
        for part in counted.components
    ]
    rows.append(["**Sum**", strong(format_exact(counted.total)), "", strong(format_exact(counted.active))])
    headings = ["component", "parameters", "share", "each token runs through"]
    number = len(headings) if model.mixture else len(headings) - 1
    return headings[:number], [row[:number] for row in rows]


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
