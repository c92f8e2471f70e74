"""What is said of a model's FLOPs and parameters: takeaways, table cells, and notices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress

from core.messages import Message, message, pick_message
from core.models.attention_share import Growth
from core.models.catalog import CatalogModel
from core.models.flops import Attention, FlopCount, FlopPart, rule_gap
from core.models.parameters import parameters
from core.models.rule_of_six import MODELS, rule_error
from core.runs.conventions import Scored
from core.units import format_exact, format_quantity
from core.views.common.rows import known
from core.views.common.table import Table, table_of
from core.wording import percent, percent_of_whole, signed, strong

# ------------------------------------------------------------------------------ FLOPs


def components_text(counted: FlopCount) -> Message:
    """Return the takeaway of the count by component."""
    name, share = largest(counted)
    return message(
        "flops.components.takeaway",
        weights=counted.weights / counted.forward,
        flop=counted.training,
        name=name,
        share=share,
    )


def scope_text() -> Message:
    """Return what every count includes and excludes."""
    return message("flops.scope")


def components_alt(model: CatalogModel, counted: FlopCount) -> Message:
    """Return what the picture of components shows."""
    name, share = largest(counted)
    return message("flops.components.alt", model=model.name, name=name, share=share)


def largest(counted: FlopCount) -> tuple[str, float]:
    """Return the component with the most FLOPs, or its group of equal components, and its share."""
    alike: dict[tuple[str, float], list[FlopPart]] = {}
    for part in counted.parts:
        alike.setdefault((part.group, part.flop), []).append(part)
    (group, _), top = max(alike.items(), key=lambda same: sum(part.flop for part in same[1]))
    share = sum(part.flop for part in top) / counted.forward
    if len(top) == 1:
        name = top[0].name
        return (name[:1].lower() + name[1:] if name[1:2].islower() else name), share
    return message("flops.components.equal", n=float(len(top)), group=group), share


def attention_name(states: bool) -> Message:
    """Return what matmuls of activations are called: attention, unless layers with a state have some as well."""
    return message("flops.growth.activations" if states else "flops.growth.attention")


def growth_text(g: Growth) -> Message:
    """Return the takeaway of the sweep over sequence lengths."""
    way = "never" if math.isinf(g.crossing) else "always" if g.crossing <= 1 else "overtakes"
    full = g.attention == "full"
    return pick_message(
        f"flops.growth.{way}",
        share=g.share,
        length=float(g.here),
        attention=g.attention,
        crossing=g.crossing,
        rule="6H" if full else "12H",
        estimate=float(g.six_h if full else 2 * g.six_h),
    )


def growth_alt(g: Growth) -> Message:
    """Return what the picture of the sweep shows."""
    return message("flops.growth.alt", attention=attention_name(g.states), takeaway=growth_text(g))


# ------------------------------------------------------------------------------ conventions


def gap_text(model: CatalogModel, seq_len: int, attention: Attention) -> Message:
    """Return how far the count by layer is from 6ND."""
    g = rule_gap(model.spec, seq_len, attention)
    total = g.counted / g.rule - 1
    return message("flops.gap.takeaway", total=total, length=float(seq_len), attention=attention)


def gap_headings() -> tuple[Message, Message]:
    """Return the headings of `gap_rows`."""
    return message("flops.gap.term"), message("flops.gap.share")


def gap_rows(model: CatalogModel, seq_len: int, attention: Attention) -> list[tuple[str, str]]:
    """Return why the count by layer differs from 6ND, term by term."""
    g, spec = rule_gap(model.spec, seq_len, attention), model.spec
    there = (not spec.tied_head, bool(spec.position_rows), bool(spec.layer_embedding))
    tables = [message(table) for table in compress(_TABLES, there)]
    state = bool(spec.mixer)
    terms = [
        (message("flops.gap.tables", tables=tables), -g.lookup),
        (message("flops.gap.vectors_state" if state else "flops.gap.vectors"), -g.vectors),
        (message("flops.gap.again"), g.again),
        (message("flops.gap.activations" if state else "flops.gap.attention"), g.square),
    ]
    return [(term, signed(share / g.rule)) for term, share in terms if share]


_TABLES = ("flops.gap.embedding", "flops.gap.positions", "flops.gap.layer_embedding")
"""Tables that are looked up."""


def rule_table(attention: Attention) -> Table:
    """Return how far 6N is off, from a small model to a large one."""
    rows = [rule_error(name, attention) for name in MODELS]
    return table_of(
        {
            message("flops.rule.model"): [one.model.name for one in rows],
            message("flops.rule.tokens"): [f"{one.seq_len:,}" for one in rows],
            message("flops.rule.six_n"): [format_quantity(6 * one.model.active, "flop") for one in rows],
            message("flops.rule.layers"): [format_quantity(3 * one.forward, "flop") for one in rows],
            message("flops.rule.error"): [signed(one.error) for one in rows],
        }
    )


def score_table(scores: Sequence[Scored]) -> Table:
    """Return one run under every convention."""
    used = [
        percent(s.utilisation) if s.possible else message("flops.score.impossible", utilization=s.utilisation)
        for s in scores
    ]
    return table_of(
        {
            message("flops.score.convention"): [message("flops.score.name", name=s.name, kind=s.kind) for s in scores],
            message("flops.score.per_token"): [format_quantity(s.per_token, "flop") for s in scores],
            message("flops.score.utilization"): used,
            message("flops.score.relative"): [signed(s.per_rule - 1) if s.per_rule != 1 else "" for s in scores],
        }
    )


_SPARSE = 1.5
"""PaLM's count over that of the model's own attention from which it says little of a model: it has windows, or chooses
what it attends to."""


def scores_text(scores: Sequence[Scored], rate: float) -> Message:
    """Return that one speed is many MFUs."""
    by = {s.id: s for s in scores}
    beyond = by["palm"].per_token > _SPARSE * by["full"].per_token
    mfu = sorted(s.utilisation for s in scores if s.kind == "MFU" and not (beyond and s.id == "palm"))
    hfu = max(s.utilisation for s in scores if s.kind == "HFU")
    takeaway = message("flops.score.takeaway", rate=rate, low=mfu[0], high=mfu[-1], hfu=hfu)
    return message("flops.score.sparse", takeaway=takeaway, name=by["palm"].name) if beyond else takeaway


def cautions(model: CatalogModel, seq_len: int) -> list[Message]:
    """Return what the count by layer or 6ND does not know about this model."""
    spec, name = model.spec, model.name
    parts: list[Message] = []
    if model.mixture:
        factor = model.parameters / model.active
        parts.append(
            message("flops.caution.mixture", active=model.active, total=float(model.parameters), factor=factor)
        )
    layers = float(spec.layers)
    if window := spec.window:
        having, size = float(spec.windowed_layers), float(window.size)
        windowed = "flops.caution.window_compressed" if spec.compressed else "flops.caution.window"
        parts.append(message(windowed, layers=having, total=layers, model=name, window=size))
    if mixer := spec.mixer:
        having, operations = float(mixer.layers), float(mixer.operations)
        state = "flops.caution.state_parallel" if mixer.parallel else "flops.caution.state"
        parts.append(message(state, layers=having, total=layers, model=name, operations=operations))
    if seq_len > model.max_seq:
        most, length = float(model.max_seq), float(seq_len)
        parts.append(message("plan.notice.too_long", model=name, most=most, length=length))
    return parts


# ------------------------------------------------------------------------------ parameters


def proxy_text(model: CatalogModel) -> Message:
    """Return which model's layers are counted if only a parameter count is known."""
    return message("flops.proxy", model=model.name)


def active_counts(model: CatalogModel) -> list[Message]:
    """Return the exact active parameters of a mixture of experts and the published count; empty for a dense model."""
    if not model.mixture:
        return []
    published, table = model.published_active, model.spec.vocab * model.spec.hidden
    if math.isnan(published):
        notices = [message("flops.active.unpublished", active=model.active)]
    else:
        off, source = model.active / published - 1, model.published_source
        notices = [message("flops.active.published", active=model.active, published=published, source=source, off=off)]
    if not model.spec.tied_head:
        notices.append(message("flops.active.without_embedding", active=float(model.active - table)))
    return notices


def parameter_rows(model: CatalogModel) -> tuple[list[Message], list[list[str]]]:
    """Return the table of parameters by component: headings and rows, the sum last; active ones only with experts."""
    counted = parameters(model.spec)
    rows = [
        [part.name, format_exact(part.total), percent_of_whole(part.total / counted.total), format_exact(part.active)]
        for part in counted.components
    ]
    total = strong(format_exact(counted.total))
    rows.append([message("flops.parameters.sum"), total, "", strong(format_exact(counted.active))])
    headings = [
        message("flops.parameters.component"),
        message("flops.parameters.parameters"),
        message("flops.parameters.share"),
        message("flops.parameters.active"),
    ]
    number = len(headings) if model.mixture else len(headings) - 1
    return headings[:number], [row[:number] for row in rows]


def model_origin(model: CatalogModel) -> Message:
    """Return how the count by component compares with the model as built and as published."""
    built = float(model.parameters)
    if math.isnan(model.published_total):
        return message("flops.origin.unpublished", parameters=built)
    off = built / model.published_total - 1
    return pick_message(
        "flops.origin.off" if off else "flops.origin.equal",
        parameters=built,
        published=model.published_total,
        off=-off,
        source=model.published_source,
        known=known(model.published_confidence),
    )
