"""The sentences of an answer: what a plan comes to, on what it rests, and what is wrong with it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import compress

from core.hardware.accelerators import best_matmul
from core.messages import Message, message, pick_message
from core.planning.estimate import PlanEstimate
from core.planning.form.layout import NETWORK, PER_NODE
from core.planning.form.plan_form import PRICE
from core.planning.form.whole_run import MATURITY
from core.planning.nearest_runs import run_features
from core.planning.plan import BY_AGE, OWN_SHAPE, Find, Plan, Within, whole_accelerators
from core.runs.run_efficiency import run_shares
from core.runs.scores import Beyond, beyond_evidence, is_proven
from core.step_time.running import JAX
from core.training.layout import LayoutError
from core.training.optimizers import find_optimizer
from core.units import significant
from core.wording import Amount, format_value

EXAMPLE_SHOWN = message("plan.fallback.example")
"""What is said where a question cannot be answered and nothing was answered before it."""

NO_MODEL = (message("plan.fallback.no_model"), message("plan.fallback.no_model_detail"))
"""What is said, and its detail, where a plan has a custom model and none was read."""

OWNED = message("plan.basis.owned")
"""What is shown in place of the rent of a plan whose price is 0."""

# ------------------------------------------------------------------------------ the answer


_RESULTS: Mapping[Find, tuple[str, str]] = {
    "time": ("days", "days"),
    "tokens": ("tokens", "tokens"),
    "parameters": ("parameters", "parameters"),
    "accelerators": ("accelerators", "count"),
    "MFU": ("mfu", "percent"),
}
"""What is solved for → the quantity of `RunEstimate` that answers it, and its format."""


def headline(a: PlanEstimate) -> Message:
    """Return the answer as a sentence, and whether it is impossible."""
    text = _headline(a)
    return message("plan.headline.impossible", headline=text) if a.impossible else text


def _headline(a: PlanEstimate) -> Message:
    m, dollars = a.middle, cost_of(a)
    given = "" if math.isnan(dollars) else "_cost"
    if a.find != "time" and a.plan.within.in_money:
        given = "_budget"
    return pick_message(
        f"plan.headline.{a.find.lower()}{given}",
        model=model_text(a),
        tokens=m.tokens,
        parameters=m.parameters,
        accelerators=float(a.count),
        device=a.device.name,
        days=m.days,
        mfu=m.mfu,
        limit=limit_text(a.plan.within),
        price=m.price,
        dollars=dollars,
    )


def model_text(a: PlanEstimate) -> Message | str:
    """Return what is trained: a model's name, with its size where the name does not say it, or a model of a size."""
    model = a.model
    if model is None or a.find == "parameters":
        return message("plan.model.parameters", parameters=a.middle.parameters)
    if a.plan.model == OWN_SHAPE:
        return message("plan.model.custom", size=model.sized)
    if model.mixture or model.counted:
        return message("plan.model.sized", model=model.name, size=model.sized)
    return model.name


_NUMBER = re.compile(r"[\d.,]+")


def limit_text(within: Within) -> Message | str:
    """Return a limit as it was entered, ``3 months (91.3 days)``, or as amounts are shown where that says the same."""
    if within.in_money:
        return format_value(within.dollars, "dollars")
    text = format_value(within.days, "days")
    if _NUMBER.findall(within.typed) in ([], _NUMBER.findall(text)):
        return text
    return message("plan.limit.entered", entered=within.typed, days=within.days)


def cost_of(a: PlanEstimate) -> float:
    """Return the dollars of the middle; NaN without a price or rent."""
    return math.nan if a.plan.owned else a.on_found_accelerators.dollars.mid


def range_text(a: PlanEstimate) -> Message | str:
    """Return the range of the result and of the cost; empty if they are single values."""
    name, kind = _RESULTS[a.find]
    result, dollars = a.range_of(name), a.on_found_accelerators.dollars
    if a.find == "accelerators":  # the result is a number, and what has a range are its days
        name, kind, result = "days", "days", a.on_found_accelerators.range_of("days")
    costs = dollars.low < dollars.high and not a.plan.owned
    ends = (dollars.low, dollars.high)
    if not result.low < result.high:
        return message("plan.range.cost", dollars=ends) if costs else ""
    table = _LOW_IS_GOOD if kind == "days" else _HIGH_IS_GOOD
    if not a.plan.expects_mfu:
        entered = a.plan.typed_mfu
        table = _ENTERED_RANGE if entered and entered.low < entered.high else _PRICE_RANGE
    return pick_message(table[costs], result=Amount((result.low, result.high), kind), dollars=ends)


_LOW_IS_GOOD = {False: "plan.range.low_is_good", True: "plan.range.low_is_good_cost"}
_HIGH_IS_GOOD = {False: "plan.range.high_is_good", True: "plan.range.high_is_good_cost"}
_PRICE_RANGE = {False: "plan.range.price", True: "plan.range.entered_cost"}
_ENTERED_RANGE = {False: "plan.range.entered", True: "plan.range.entered_cost"}
"""Whether the cost has a range → the message."""


# ------------------------------------------------------------------------------ the MFU and the two times


def mfu_text(a: PlanEstimate) -> Message:
    """Return the MFU that the plan uses, and its factor to the steady-state MFU."""
    m, layout = a.middle, a.layout_mfu
    if a.plan.expects_mfu:
        basis = "custom" if a.plan.own_runs else "new" if a.terms.new_hardware else "published"
        basis = basis if a.terms.has_step_estimate else "matmul"
        return message(f"plan.mfu.predicted.{basis}", mfu=m.mfu, steps=m.steps_mfu, efficiency=m.mfu / m.steps_mfu)
    if a.plan.mfu_is_of_steps:
        return message("plan.mfu.steady", steps=m.steps_mfu, mfu=m.mfu, layout=layout)
    efficiency = m.mfu / layout
    shares = [run.share for run in run_shares(a.terms.has_step_estimate)]
    reached = sum(share >= efficiency for share in shares)
    return pick_message(
        (_REACHED if reached else _UNREACHED)[a.find == "MFU"],
        mfu=m.mfu,
        efficiency=efficiency,
        layout=layout,
        reached=float(reached),
        runs=float(len(shares)),
    )


_REACHED = {False: "plan.mfu.entered", True: "plan.mfu.required"}
_UNREACHED = {False: "plan.mfu.entered_unreached", True: "plan.mfu.required_unreached"}
"""Whether the MFU is solved for → the message."""


def steps_time(a: PlanEstimate) -> Message:
    """Return the steady-state time of the plan's layout, as a part of a list."""
    return message("plan.times.steady", days=a.middle.steps_days if a.plan.expects_mfu else a.layout_days)


def times_text(a: PlanEstimate) -> Message:
    """Return the two times of a run: end to end, and of the steps of its layout."""
    m, days = a.middle, a.on_found_accelerators.range_of("days")
    ranged = days.low < days.high
    basis = "predicted" if a.plan.expects_mfu else "required" if a.find == "MFU" else "entered"
    return pick_message(
        _TIMES.get((basis, ranged), "plan.times.required"),
        days=days.mid,
        range=(days.low, days.high),
        steps=m.steps_days if a.plan.expects_mfu else a.layout_days,
        mfu=m.steps_mfu if a.plan.expects_mfu else a.layout_mfu,
    )


_TIMES = {
    ("predicted", True): "plan.times.predicted",
    ("entered", True): "plan.times.entered_range",
    ("entered", False): "plan.times.entered",
}


def rule_of(work_share: float) -> str:
    """Return the rule for FLOPs per token: ``6N``, or less if weights are frozen. work_share: FLOPs relative to full
    training."""
    return "6N" if work_share == 1 else f"{significant(6 * work_share, 2)}N"


def by_6n(a: PlanEstimate) -> float:
    """Return the MFU of the steps by 6N, the work of long sequences not counted."""
    return a.middle.steps_mfu * 6 * a.terms.work_share / a.middle.per_parameter


# ------------------------------------------------------------------------------ what values rest on


def mfu_basis(a: PlanEstimate) -> Message:
    """Return where the end-to-end MFU is from."""
    if a.plan.expects_mfu:
        return message("plan.basis.published")
    return message("plan.basis.solved" if a.find == "MFU" else "plan.basis.entered")


def steps_basis(a: PlanEstimate) -> Message:
    """Return where the steady-state time and MFU are from: entered, of the plan's layout, or, where no step is timed,
    of the best matmul."""
    if a.plan.mfu_is_of_steps:
        return message("plan.basis.entered")
    if not a.plan.expects_mfu and _needs_faster_steps(a):
        return message("plan.basis.required")
    if not a.terms.has_step_estimate:
        return message("plan.basis.matmul")
    return message("plan.basis.custom_layout" if a.plan.own_layout else "plan.basis.fastest_layout")


def days_basis(a: PlanEstimate) -> Message | str:
    """Return what the days follow from if an MFU was entered, in the same words wherever they are shown."""
    return message("plan.basis.entered_mfu") if a.plan.typed_mfu else ""


def _needs_faster_steps(a: PlanEstimate) -> bool:
    """Return whether the answer needs faster steps than its layout is estimated at."""
    return a.middle.steps_mfu > a.layout_mfu * (1 + 1e-9)


def cost_basis(a: PlanEstimate) -> Message | str:
    """Return of what the cost is a range, or that the accelerators are owned; empty if it is one amount."""
    if a.plan.owned:
        return OWNED
    if not a.on_found_accelerators.dollars.low < a.on_found_accelerators.dollars.high:
        return ""
    hours = a.on_found_accelerators.range_of("hours")
    return message(_COST_RANGES[hours.low < hours.high, a.plan.price_range[0] < a.plan.price_range[1]])


_COST_RANGES = {
    (True, False): "plan.basis.range_of_hours",
    (False, True): "plan.basis.range_of_prices",
    (True, True): "plan.basis.range_of_hours_and_prices",
}


# ------------------------------------------------------------------------------ notices


_OTHER_BATCH = 0.1
"""Share by which they may differ without a notice."""

_MATTERS = 1.15
"""Work beyond that of the usual length from which a sentence says so."""

_LARGEST_MODEL = 5e12
"""More parameters than any published model has, by far."""


def impossible(a: PlanEstimate) -> Message | str:
    """Return that the steps would have to be faster than the accelerator multiplies; else empty."""
    if not a.impossible:
        return ""
    best = best_matmul(a.device.name, a.dtype)
    if math.isnan(best.share):
        return message("plan.notice.impossible_peak", device=a.device.name)
    if not a.plan.mfu_is_of_steps and a.middle.mfu <= a.ceiling:
        mtbf = float(a.interruptions.mtbf)
        return message("plan.notice.impossible_failures", mfu=a.middle.mfu, mtbf=mtbf, ceiling=a.ceiling)
    device = a.device.name if best.measured else best.of
    return message("plan.notice.impossible", ceiling=a.ceiling, dtype=a.dtype, device=device)


def other_peak(a: PlanEstimate) -> Message | str:
    """Return that the accelerator has no peak in the selected dtype, and which one is used instead; empty if it has
    one.

    If model states are stored in a format without matmul units, it also says so.
    """
    if a.dtype == a.plan.dtype:
        return ""
    wanted, phrase = a.plan.dtype, a.plan.policy_under(find_optimizer(a.plan.optimizer)).phrase
    return pick_message(
        _OTHER_PEAK[a.device.lacks(wanted), wanted in phrase],
        device=a.device.name,
        wanted=wanted,
        dtype=a.dtype,
        peak=a.peak,
        policy=phrase,
    )


_OTHER_PEAK = {
    (False, False): "plan.notice.peak",
    (False, True): "plan.notice.peak_states",
    (True, False): "plan.notice.no_units",
    (True, True): "plan.notice.no_units_states",
}
"""Whether the accelerator has no such matrix units, and whether model states keep that format → the message."""


def does_not_fit(a: PlanEstimate) -> Message | str:
    """Return that the plan has no layout, or that memory use exceeds the capacity; else empty."""
    try:
        h = a.memory
    except LayoutError as problem:
        return message("plan.notice.invalid_layout", problem=str(problem))
    if h.fits != "over":
        return ""
    if h.states_fit != "over":
        return message("plan.notice.does_not_fit", device=a.device.name, needed=h.total, capacity=h.usable)
    return message(
        "plan.notice.states_do_not_fit",
        needed=float(h.device_memory.states),
        accelerators=float(h.layout.accelerators),
        device=a.device.name,
        capacity=h.usable,
    )


def no_published_run(accelerator: str) -> Message | str:
    """Return that no published run used an accelerator; empty if one did."""
    return "" if is_proven(accelerator) else message("plan.notice.unproven", device=accelerator)


def layout_notices(a: PlanEstimate) -> list[Message]:
    """Return notices that the layout has idle accelerators, another batch than entered, or fp32 matmuls; usually
    empty."""
    notices: list[Message] = []
    with suppress(LayoutError):
        h = a.memory
        if a.plan.expects_mfu:  # else its days do not rest on a layout
            count, layout, seq_len = whole_accelerators(h.plan.accelerators), h.layout, h.plan.seq_len
            if idle := count - int(layout.accelerators):
                notices.append(message("plan.notice.idle", idle=float(idle), accelerators=float(count)))
            taken = int(layout.data * layout.micro_batch * layout.micro_batches) * seq_len
            wanted = h.plan.batch.target(seq_len) * seq_len
            if abs(taken / wanted - 1) > _OTHER_BATCH:
                notices.append(message("plan.notice.batch", taken=float(taken), wanted=float(wanted)))
        if h.step.implementation.in_fp32:
            share = min(1.0, a.device.peak("fp32") / a.peak)
            notices.append(message("plan.notice.fp32", share=share, dtype=a.dtype))
    return notices


def long_sequences(a: PlanEstimate) -> list[Message]:
    """Return how much longer sequences lengthen the answer, and whether the model was built for them; mostly none."""
    factor, length = a.middle.per_parameter / (6 * a.terms.work_share), float(a.plan.seq_len)
    notices: list[Message] = []
    if factor >= _MATTERS:
        usual = float(a.token_work.usual_len)
        notices.append(message("plan.notice.long_sequences", length=length, factor=factor, usual=usual))
    if a.model and length > a.model.max_seq:
        most = float(a.model.max_seq)
        notices.append(message("plan.notice.too_long", model=a.model.name, most=most, length=length))
    return notices


def cautions(a: PlanEstimate) -> list[Message]:
    """Return the cautions about an answer, the most important first.

    They are about swapped numbers, plans beyond published runs, sequences longer than the model's maximum, and what the
    layout or the optimistic case requires.
    """
    notices: list[Message] = []
    plan, m = a.plan, a.middle
    if not a.model and a.find not in ("parameters", "tokens") and plan.tokens < plan.parameters > _LARGEST_MODEL:
        notices.append(message("plan.notice.swapped", parameters=plan.parameters, tokens=plan.tokens))
    if plan.expects_mfu:
        notices += [_beyond(row) for row in beyond_evidence(run_features(a))]
    notices += [*long_sequences(a), *layout_notices(a)]
    if plan.expects_mfu and a.device.family == "TPU" and plan.software != JAX.id and a.terms.has_step_estimate:
        notices.append(message("plan.notice.tpu_software", software=JAX.id))
    if plan.expects_mfu and a.on_found_accelerators.range_of("days").low < m.steps_days <= m.days:
        notices.append(message("plan.notice.optimistic"))
    return notices


def _beyond(row: Beyond) -> Message:
    key, device = f"plan.beyond.{row.kind.replace(' ', '_')}", row.accelerator
    return pick_message(key, value=row.value, most=row.most, model=row.model, device=device, width=row.width)


# ------------------------------------------------------------------------------ what was entered for an accelerator


_OF_ACCELERATOR: Mapping[str, str] = {
    PRICE.id: "plan.field.price",
    NETWORK.id: "plan.field.network",
    PER_NODE.id: "plan.field.node_size",
    MATURITY.id: "plan.field.software",
}
"""What is entered for one accelerator, by field."""


def typed_elsewhere(plan: Plan, accelerators: Iterable[str]) -> str:
    """Return notices that the entered MFU also applies to other accelerators, and that other entered values do not.

    Empty if nothing was entered.
    """
    others = [name for name in dict.fromkeys(accelerators) if name != plan.accelerator]
    if not others:
        return ""
    sentences: list[Message] = []
    if plan.typed_mfu is not None:
        sentences.append(message("plan.entered.mfu_applies", mfu=plan.typed_mfu.mid, others=others))
    given = (plan.prices is not None, plan.network is not None, plan.per_node is not None, plan.maturity != BY_AGE)
    if entered := [message(_OF_ACCELERATOR[name]) for name in compress(_OF_ACCELERATOR, given)]:
        n, accelerator = len(entered), plan.accelerator
        sentences.append(message("plan.entered.applies_only", entered=entered, n=n, accelerator=accelerator))
    return " ".join(sentences)


def set_aside(before: str, after: str, entered: Mapping[str, str], restored: Mapping[str, str]) -> str:
    """Return that what was entered for one accelerator does not apply to another, which has its own back; texts by
    field."""

    def named(texts: Mapping[str, str]) -> list[Message]:
        return [
            message("plan.entered.value", field=message(_OF_ACCELERATOR[name]), value=text)
            for name, text in texts.items()
        ]

    sentences: list[Message] = []
    if entered:
        items = named(entered)
        sentences.append(message("plan.entered.set_aside", entered=items, n=len(items), before=before, after=after))
    if restored:
        items = named(restored)
        sentences.append(message("plan.entered.restored", entered=items, n=len(items), after=after))
    return " ".join(sentences)
