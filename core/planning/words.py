"""The sentences of a budget: answers and reasons with their numbers filled in, in the page's small markup."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.hardware.accelerators import Accelerator, find
from core.hardware.roofline import peak_from_clock, ridge_point
from core.models.catalog import CatalogModel
from core.models.flops import Attention, FlopCount, rule_gap
from core.models.parameters import parameters
from core.planning.budget import Counted, Plan, budget, format_cost, format_price
from core.planning.runs import AS_PUBLISHED, Comparison, models_with_runs
from core.training.words import plural
from core.units import Kind, format_count, format_duration, format_quantity, scientific

SCOPE = (
    "Counted are matrix products, a multiply-add as two FLOPs. Norms, softmax, activation functions and the optimizer "
    "step are left out, as in published counts of model FLOPs. Recomputing activations is work of the hardware (HFU), "
    "not of the model (MFU), and is not counted either."
)
"""What every count on the page holds and leaves out."""


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


def amount(value: float) -> str:
    """A count of hours or of tokens per second, which may also be tiny: ``3.537M``, ``0.25``, ``3.37 × 10⁻¹⁸``."""
    return scientific(value) if 0 < value < 1e-3 else format_count(value)


def size(params: float, model: CatalogModel | None) -> str:
    """What is trained: ``70B parameters``, or the model's name with its count."""
    if model is None:
        return f"**{format_count(params)}** {plural(params, 'parameter')}"
    if model.mixture:
        return f"**{model.name}** ({format_count(params)} active of {format_count(model.parameters)} parameters)"
    return f"**{model.name}** ({format_count(params)} parameters)"


def answer(plan: Plan, model: CatalogModel | None, device: Accelerator) -> str:
    """The answer as a sentence."""
    return (
        f"Training {size(plan.params, model)} on **{format_count(plan.tokens)}** {plural(plan.tokens, 'token')} takes "
        f"**{format_duration(budget(plan).seconds)}** on **{format_count(plan.accelerators)}** {device.name}."
    )


def assumptions(plan: Plan, device: Accelerator, dtype: str) -> str:
    """The quieter line: compute, accelerator-hours, dollars, token rate, and what they rest on."""
    made = budget(plan)
    cost = (
        f"**price of {device.name} unknown**, type one under More"
        if math.isnan(made.usd_low)
        else f"**{format_cost(made.usd_low, made.usd_high)}** at {format_price(plan.price_low, plan.price_high)}"
    )
    return (
        f"**{format_quantity(made.flop, 'flop')}** by 6ND · **{amount(made.hours)}** accelerator-hours · "
        f"{cost} · **{amount(made.tokens_per_s)}** tokens/s · "
        f"MFU\u00a0{format_quantity(plan.mfu, 'ratio')} of {format_quantity(plan.peak, 'flop_per_s')} dense {dtype}"
    )


def price_kept(low: float, high: float) -> str:
    """Which price stays in force after a bad one."""
    return "It stays unknown." if math.isnan(low) else f"Still using {format_price(low, high)}."


def ceiling(plan: Plan, device: Accelerator, dtype: str) -> str:
    """A caution when the MFU is beyond the best bare matmul anyone measured on the device; else empty."""
    best = device.best_measured(dtype)
    if not plan.mfu > best / plan.peak:
        return ""
    return (
        f"MFU {format_quantity(plan.mfu, 'ratio')} is beyond what anyone measured: the best bare "
        f"matmul on {device.name} in {dtype} ran at {format_quantity(best, 'flop_per_s')}, "
        f"{format_quantity(best / plan.peak, 'ratio')} of peak."
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
        f"A number of parameters has no layers, so these are the layers of **{model.name}** "
        f"({format_count(model.active)}), the nearest dense model of the catalogue, with every count scaled by "
        f"{typed} / {format_count(model.active)}, so that the row 6ND is the answer above.{rough} Choose a model "
        "above for its own layers, and for its published run where there is one."
    )


def fixed_parameters(model: CatalogModel) -> tuple[str, str]:
    """Label and text of the field that shows a catalogue model's parameters; both counts of a mixture."""
    if not model.mixture:
        return "Parameters", format_count(model.parameters)
    return "Active parameters", f"{format_count(model.active)} of {format_count(model.parameters)}"


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


def runs_to_compare() -> str:
    """Which models have a published whole run, for the help of the choice."""
    return f"With a published full run to compare with: {', '.join(models_with_runs())}."


def no_run(model: CatalogModel) -> str:
    """That there is no published run of ``model`` to compare with."""
    return (
        f"**No published full run of {model.name}:** no source at hand gives its tokens, accelerator and hours "
        f"together. {len(models_with_runs())} models of the catalogue have one; the help of Model names them."
    )


def largest(counted: FlopCount) -> str:
    """The component with most FLOPs and its share."""
    top = max(counted.parts, key=lambda part: part.flop)
    return f"{top.name} takes {format_quantity(top.flop / counted.forward, 'ratio')}"


def gap(model: CatalogModel, seq_len: int, attention: Attention) -> str:
    """Why the count by layer differs from 6ND for this model, term by term."""
    g = rule_gap(model.spec, seq_len, attention)
    tables = "embedding and position tables" if model.spec.position_rows else "input embedding"
    if model.spec.tied_head:
        tables = "position table" if model.spec.position_rows else ""
    charged = f"{signed(-g.lookup / g.rule)} for the {tables}, looked up and not multiplied; " if g.lookup else ""
    shared = " The embedding is also the output head, so N holds it once and it is multiplied once."
    return (
        f"From 6ND to the count by layer, **{signed(g.counted / g.rule - 1)}** of 6ND: {charged}"
        f"{signed(-g.vectors / g.rule)} for norms and biases, which no matrix product uses; "
        f"**{signed(g.square / g.rule)}** for attention’s products of activations at {seq_len:,} tokens ({attention}), "
        f"which 6ND leaves out.{shared if model.spec.tied_head else ''}"
    )


def cautions(model: CatalogModel, seq_len: int) -> list[str]:
    """What the count by layer does not know about this model."""
    found: list[str] = []
    if model.mixture:
        found.append(
            f"6ND takes the {format_count(model.active)} parameters each token runs through. With all "
            f"{format_count(model.parameters)} it would be {model.parameters / model.active:.3g} times too high."
        )
    if model.windowed:
        found.append(
            f"Layers of {model.name} attend to a sliding window; here every layer attends to the whole sequence, so "
            "attention’s products are an upper bound."
        )
    if seq_len > model.max_seq:
        found.append(f"{model.name} was built for at most {model.max_seq:,} tokens; you count {seq_len:,}.")
    return found


def beside_headings(c: Comparison) -> tuple[str, str, str, str]:
    """Headings of the table of `beside`."""
    return "quantity", f"this run by 6ND at {format_quantity(c.mfu, 'ratio')} MFU", "as published", "difference"


def beside(c: Comparison, accelerators: float) -> list[tuple[str, str, str, str]]:
    """Rows of a published run beside 6ND for the same model, tokens and accelerator; differences from the published."""
    flop, flop_off = ("unknown", "") if math.isnan(c.run.flop) else _against(c.rule_flop, c.run.flop, "flop")
    hours, hours_off = _against(c.rule_hours, c.hours.value, "accelerator_hours")
    share, share_off = _against(c.mfu, c.utilisation, "ratio")
    if not c.evidence:
        hours_off = share_off = "not evidence"
    mfu = format_quantity(c.mfu, "ratio")
    rule_time, time = (h / accelerators * 3600 for h in (c.rule_hours, c.hours.value))
    how = "" if c.hours.origin == AS_PUBLISHED else f", {c.hours.origin}"
    return [
        ("Training compute", format_quantity(c.rule_flop, "flop"), flop, flop_off),
        (f"Accelerator-hours{how}", format_quantity(c.rule_hours, "accelerator_hours"), hours, hours_off),
        (f"Time on {format_count(accelerators)} at once", format_duration(rule_time), format_duration(time), ""),
        ("MFU of steady steps", mfu, interval(c.steady) if c.steady else "unknown", ""),
        ("Utilisation over all these hours", mfu, share, share_off),
    ]


def _against(rule: float, published: float, kind: Kind) -> tuple[str, str]:
    return format_quantity(published, kind), signed(rule / published - 1)


def about_run(c: Comparison) -> str:
    """What the published run was and what the table's differences mean, for its caption."""
    return (
        f"{c.run.model}: {format_count(c.run.tokens)} tokens on {c.run.accelerator}. Model, tokens and accelerator are "
        "the published run’s, the MFU is yours. Differences: 6ND relative to the published figure."
    )


def reasons(c: Comparison) -> list[str]:
    """Why published hours and 6ND differ, as far as the figures of this run tell."""
    if c.utilisation > 1:
        return [
            f"**Not evidence: these hours are impossible.** They come to **{format_quantity(c.utilisation, 'ratio')}** "
            "of the peak; hours, tokens and accelerator cannot all be as published.",
            *([_remark(c)] if c.run.notes else []),
        ]
    if not c.evidence:
        return [
            "**Not evidence: hours derived from an assumed count.** They restate what was assumed, so their distance "
            "from 6ND says nothing about the run.",
            *([_remark(c)] if c.run.notes else []),
        ]
    lines = [_all_hours(c), _precision(c), _attention(c), _remainder(c), _remark(c)]
    return [line for line in lines if line]


def _all_hours(c: Comparison) -> str:
    share = format_quantity(c.utilisation, "ratio")
    if c.hours.basis == "steps":
        steady = f"; its steady steps are published at {interval(c.steady)} MFU" if c.steady else ""
        return (
            f"**These hours hold training steps only**, {c.hours.origin}: nothing else that was billed is in them. "
            f"They come to **{share}** of the peak by 6ND{steady}."
        )
    if not c.steady:
        rest = "no MFU of its steady steps is published, so how they split into steps and the rest is unknown"
    elif c.utilisation < c.steady[0]:
        rest = f"its steady steps are published at {interval(c.steady)} MFU, so not every hour was a steady step"
    else:
        rest = f"its steady steps are published at {interval(c.steady)} MFU"
    return f"**All hours of the run** come to **{share}** of the peak by 6ND; {rest}."


def _precision(c: Comparison) -> str:
    if not c.run.precision:
        return "**Its precision is not at hand**; it is held against the dense bf16 peak."
    if "fp8" not in c.run.precision:
        return ""
    fp8 = find(c.run.accelerator).peak("fp8")
    share = format_quantity(c.utilisation * c.peak / fp8, "ratio")
    against = f"; of the fp8 peak, {format_quantity(fp8, 'flop_per_s')}, these hours are {share}" if fp8 > 0 else ""
    return (
        "**It is held against the dense bf16 peak but trained mostly in fp8**, as its source says"
        f"{against}. An MFU means nothing without the dtype of its peak."
    )


def _attention(c: Comparison) -> str:
    where = "" if c.run.seq_len else ", the length set above, its own not being at hand"
    return (
        f"**6ND leaves attention’s products out.** At {c.seq_len:,} tokens{where}, causal, they add "
        f"{format_quantity(c.square_hours / c.rule_hours, 'ratio')} of 6ND, {_hours(c.square_hours)}; they belong "
        "to the work where the MFU counts them, and sources differ in that."
    )


def _remainder(c: Comparison) -> str:
    """What the published hours leave over 6ND at the user's MFU and attention: its sign and its size decide."""
    share = c.other_hours / c.hours.value
    rest = f"{_hours(abs(c.other_hours))} ({abs(share):.1%} of the published)".replace("%", " %")
    mfu, whole = format_quantity(c.mfu, "ratio"), format_quantity(c.utilisation, "ratio")
    if abs(share) < 0.02:
        return f"**6ND at your MFU with attention meets the published hours** to within {rest}."
    if share < 0:
        counted = "" if c.utilisation > c.mfu else ", once attention’s products count as work"
        return f"**The run did better than your MFU of {mfu}**{counted}: at that MFU it would have taken {rest} more."
    steady = " Your MFU is above any published for its steps." if c.steady and c.mfu > c.steady[-1] else ""
    if c.hours.basis == "steps":
        below = f"**Its steps ran below your MFU of {mfu}**: {rest} remain."
        return f"{below} 6ND alone meets the hours at {whole} MFU.{steady}"
    if share <= 0.2:
        return (
            f"**Beyond 6ND at your MFU and attention: {rest}.** Restarts and stalls, evaluation, ramp-up and stages at "
            "other lengths are billed like any other hour, and slower steps look the same; the published figures do "
            f"not separate them.{steady}"
        )
    return (
        f"**The published hours cover much more than steady steps at your MFU:** {rest} remain. What fills them is "
        f"unknown. 6ND alone meets the published hours at {whole} MFU.{steady}"
    )


def _hours(value: float) -> str:
    return f"{format_count(round(value)) if value >= 100 else amount(value)} hours"


def _remark(c: Comparison) -> str:
    return f"**About the published figures:** {c.run.notes}" if c.run.notes else ""


def other_runs(others: Sequence[Comparison]) -> list[str]:
    """Further published runs of the same model, in one sentence where there are any."""
    named = [
        f"{c.run.model} on {c.run.accelerator}, {format_count(round(c.hours.value))} hours for "
        f"{format_count(c.run.tokens)} tokens, "
        f"{format_quantity(c.utilisation, 'ratio') + ' of peak' if c.evidence else 'not evidence'}"
        for c in others
    ]
    return [f"Also published: {'; '.join(named)}."] if named else []


def ways(counts: Sequence[Counted]) -> list[tuple[str, str, str, str, str]]:
    """Rows of the table of counting conventions."""
    return [
        (
            way.name,
            format_quantity(way.per_token, "flop"),
            format_quantity(way.flop, "flop"),
            signed(way.against_rule) if way.against_rule else "",
            format_duration(way.seconds),
        )
        for way in counts
    ]


def components(model: CatalogModel) -> tuple[list[str], list[list[str]]]:
    """The table of parameters by component: headings and rows, the sum last; active ones only with experts."""
    counted = parameters(model.spec)
    rows = [
        [part.name, f"{part.total:,}", f"{100 * part.total / counted.total:.2f} %", f"{part.active:,}"]
        for part in counted.components
    ]
    rows.append(["**Sum**", f"**{counted.total:,}**", "", f"**{counted.active:,}**"])
    headings = ["component", "parameters", "share", "each token runs through"]
    shown = len(headings) if model.mixture else len(headings) - 1
    return headings[:shown], [row[:shown] for row in rows]


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


def peaks(device: Accelerator) -> list[tuple[str, str, str]]:
    """Rows of the table of peaks: dtype, dense rate, ridge point."""
    return [
        (
            dtype.replace("_", " "),
            format_quantity(rate, "flop_per_s"),
            format_quantity(ridge_point(rate, device.bandwidth), "flop_per_byte"),
        )
        for dtype, rate in device.peaks
    ]


def datasheet(device: Accelerator) -> str:
    """Memory, bandwidth, power and price of the device in one sentence."""
    price = format_price(device.price_low, device.price_high)
    origin = f" ({device.price_source})" if device.price_source else ""
    return (
        f"{device.vendor} {device.form_factor}, {device.year}: {format_quantity(device.memory_bytes, 'bytes')} "
        f"{device.memory_type} at {format_quantity(device.bandwidth, 'bytes_per_s')}; power "
        f"{f'{device.tdp_note} W' if device.tdp_note else 'unknown'}; price {price}{origin}."
    )


def peak_origin(device: Accelerator, dtype: str) -> list[str]:
    """Where the peak comes from and what to beware of."""
    lines: list[str] = []
    if (clock := device.clock) and clock.dtype == dtype:
        derived = peak_from_clock(clock.hertz, clock.fma_per_clock, clock.units)
        off = derived / device.peak(dtype) - 1
        lines.append(
            f"**Cross-check from the clock:** 2 × {clock.hertz / 1e6:,.0f} MHz × {clock.fma_per_clock:,} multiply-adds "
            f"× {clock.units:,} {clock.unit} = {format_quantity(derived, 'flop_per_s')}, "
            f"{'the figure used' if abs(off) < 5e-4 else f'{signed(off)} from the figure used'}."
        )
    best = device.best_measured(dtype)
    if not math.isnan(best):
        lines.append(
            f"**Best matmul measured by others:** {format_quantity(best, 'flop_per_s')}, "
            f"{format_quantity(best / device.peak(dtype), 'ratio')} of the peak: a practical ceiling for MFU."
        )
    if device.traps:
        lines.append(f"**Beware:** {device.traps.removeprefix('TRAP: ')}.")
    return lines
