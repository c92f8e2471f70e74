"""The sentences of an answer: what a plan comes to, on what it rests, and what is wrong with it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import compress

from core.hardware.accelerators import best_matmul
from core.models.catalog import CatalogModel
from core.planning.cost.form import CAPITAL, RESERVED
from core.planning.estimate import PlanEstimate
from core.planning.form.layout import NETWORK, PER_NODE
from core.planning.form.plan_form import PRICE
from core.planning.form.whole_run import MATURITY
from core.planning.nearest_runs import run_features
from core.planning.plan import BY_AGE, Plan, Within, whole_accelerators
from core.runs.run_efficiency import run_shares
from core.runs.scores import beyond_evidence
from core.step_time.running import JAX
from core.training.layout import LayoutError
from core.training.optimizers import find_optimizer
from core.units import QuantityText, format_count, format_duration, format_money, format_quantity, significant
from core.views.plan import text_fixes, text_memory
from core.wording import amount, interval, listed, percent, percent_of_whole, plural, price, rent, span

EXAMPLE_SHOWN = "This is not your plan but the first example, 70B parameters on 15T tokens."
"""What is said where a question cannot be answered and nothing was answered before it."""

NO_MODEL = (
    "**No model has been read yet.**",
    "Paste a config.json under “Model” in the sidebar, or upload the file. You can also choose another model.",
)
"""What is said, and its detail, where a plan has a model of its own and none was read."""

P10_P90 = "P10–P90"

OWNED = "owned, no rent counted"
"""What stands where the rent of a plan would, whose price is 0."""


def dollars_over(a: PlanEstimate) -> str:
    """Of what the dollars are a range: of hours, of prices, or both; empty where they are one amount."""
    if not a.on_found_accelerators.dollars.low < a.on_found_accelerators.dollars.high:
        return ""
    hours = a.on_found_accelerators.range_of("hours")
    over = ["hours"] if hours.low < hours.high else []
    over += ["prices"] if a.plan.price_range[0] < a.plan.price_range[1] else []
    return f"over the range of {' and '.join(over)}"


def size(params: float, model: CatalogModel | None) -> str:
    """What is trained: ``70B parameters``, or the model's name with its count."""
    if model is None:
        return f"**{format_count(params)}** {plural(params, 'parameter')}"
    return f"**{model.name}** ({model.sized})"


def sentence(a: PlanEstimate) -> str:
    """The answer as a sentence, with its range, and whether it is impossible."""
    text = _sentence(a)
    return f"{text.removesuffix('.')}, **which is impossible**." if a.impossible else text


_NUMBER = re.compile(r"[\d.,]+")


def bound(within: Within) -> str:
    """A limit as it was typed, ``3 months (91.3 days)``, or as amounts are shown where that says the same."""
    if within.in_money:
        return format_money(within.dollars)
    text = format_duration(86400 * within.days, 3)
    if _NUMBER.findall(within.typed) in ([], _NUMBER.findall(text)):
        return text
    return QuantityText(f"{within.typed} ({text})", 86400 * within.days, "s")


def _sentence(a: PlanEstimate) -> str:
    m = a.middle
    result = f"**{format_count(m.parameters, 3)}** parameters{_range(a, 'parameters', _three)}"
    trained = result if a.find == "parameters" else size(m.parameters, a.model)
    result = f"**{format_count(m.tokens, 3)}** tokens{_range(a, 'tokens', _three)}"
    text = result if a.find == "tokens" else f"**{format_count(m.tokens)}** {plural(m.tokens, 'token')}"
    count = f"**{format_count(a.count)}** {a.device.name}"
    cost = _cost(a)
    money = f", for {cost}" if cost else ""
    if a.find == "time":
        days = f"**{format_duration(86400 * m.days, 3)}**{_range(a, 'days', _days)}"
        return f"Training {trained} on {text} takes {days} on {count}{money}."
    limit = f"in {format_duration(86400 * m.days, 3)}" if a.plan.within.in_money else f"within {bound(a.plan.within)}"
    if a.find in ("tokens", "parameters"):
        return f"{count} train {trained} on {text} {limit}{money}."
    if a.find == "accelerators":
        near = _range(a, "accelerators", format_count)
        days = format_duration(86400 * m.days, 3)
        return f"Training {trained} on {text} {limit} takes {count}{near}: **{days}**{money}."
    return f"Training {trained} on {text} {limit} takes an MFU of **{percent(m.mfu)}** on {count}{money}."


def _three(value: float) -> str:
    return amount(value, 3)


def _days(value: float) -> str:
    return format_duration(value * 86400, 3)


def _range(a: PlanEstimate, name: str, write: Callable[[float], str]) -> str:
    result = a.range_of(name)
    if result.low == result.high:
        return ""
    named = f"{P10_P90}: " if a.plan.expects_mfu else ""
    return f" ({named}{span(write(result.low), write(result.high))})"


def _cost(a: PlanEstimate) -> str:
    """Dollars in the middle with their range: ``about **$11.5 M** ($10.6–12.4 M)``; empty without a price or rent."""
    usd = a.on_found_accelerators.dollars
    if math.isnan(usd.mid) or a.plan.owned:
        return ""
    low, middle, high = (rent(value) for value in (usd.low, usd.mid, usd.high))
    if a.find != "time" and a.plan.within.in_money:
        return f"**{middle}** at {price(a.middle.price, a.middle.price)}"
    return f"**{middle}**" if low == high else f"about **{middle}** ({span(low, high)})"


def assumptions(a: PlanEstimate) -> str:
    """The quieter line: compute, accelerator-hours, price, token rate, and what they rest on."""
    m = a.middle
    each = 6 * a.terms.work_share
    long = f" × **{significant(m.per_parameter / each, 3)}** for long sequences" if a.token_work.long else ""
    rule = f"{rule_of(a.terms.work_share)}D{'' if each == 6 else ' (6ND if all were trained)'}"
    first = idle(a) + (f"{text} · " if (text := whole_nodes(a)) else "")
    return (
        f"{first}**{format_quantity(m.flop, 'flop', 3)}** by {rule}{long} · "
        f"**{amount(m.hours, 3)}** accelerator-hours, {_rented(a)} · **{amount(m.tokens_per_second, 3)}** tokens/s · "
        f"{_mfu(a)} of {format_quantity(a.peak, 'flop_per_s')} dense {a.dtype}{_products(a)}"
    )


def _products(a: PlanEstimate) -> str:
    """That products are slower than that peak; mostly empty."""
    with suppress(LayoutError):
        if a.memory.step.implementation.in_fp32:
            share = a.device.peak("fp32") / a.peak
            most = f", at most {percent_of_whole(share)} of that" if share < 1 else ""
            return f" · **matrix products in fp32**{most}, as its precision says; TF32 would be several times faster"
    return ""


AS_ASKED = 0.005
"""Share by which a step's tokens may differ from those asked for without a word."""


def rule_of(work_share: float) -> str:
    """FLOPs of a token by its N parameters: ``6N``, or less where some are frozen. work_share: FLOPs over those of one
    that trains everything."""
    return "6N" if work_share == 1 else f"{significant(6 * work_share, 2)}N"


def idle(a: PlanEstimate) -> str:
    """That its layout leaves some accelerators idle, or takes a batch other than the one asked for; mostly empty."""
    said = ""
    if not a.plan.expects_mfu:  # whose days do not rest on a layout
        return said
    with suppress(LayoutError):
        h = a.memory
        count, layout, seq_len = whole_accelerators(h.plan.accelerators), h.layout, h.plan.seq_len
        if rest := count - int(layout.accelerators):
            said = f"**{rest:,} of {count:,}** idle · "
        taken = int(layout.data * layout.micro_batch * layout.micro_batches) * seq_len
        wanted = h.plan.batch.target(seq_len) * seq_len
        if abs(taken / wanted - 1) > AS_ASKED:
            said += f"**{format_count(taken, 3)}** of {format_count(wanted, 3)} tokens a step · "
    return said


def _rented(a: PlanEstimate) -> str:
    """The price, and over what the dollars range."""
    low, high = a.plan.price_range
    if math.isnan(low):
        return f"**price of {a.device.name} unknown**"
    if a.plan.owned:
        return OWNED
    over = dollars_over(a)
    ranged = f" (dollars {over})" if over else ""
    if a.find != "time" and a.plan.within.in_money and low < high:
        ranged = " (the answer’s range holds these prices)"
    return f"rented at {price(low, high)}{ranged}"


def _mfu(a: PlanEstimate) -> str:
    """The MFU, what it is of, and where it is from."""
    m = a.middle
    used, steps = a.range_of("mfu"), a.range_of("steps_mfu")
    if a.plan.mfu_is_of_steps:
        ends = (steps.low, steps.high) if steps.low < steps.high else (steps.mid,)
        return f"MFU\u00a0**{interval(ends)}** of steady steps, typed, {percent(m.mfu)} over all hours,"
    text = f"**{percent(m.mfu)}**" + (f" ({interval((used.low, used.high))})" if used.low < used.high else "")
    origin = "" if a.plan.expects_mfu else ", found," if a.find == "MFU" else ", typed,"
    return f"MFU\u00a0{text} over all hours{origin}"


def steps_of(a: PlanEstimate) -> str:
    """What the steps alone are: typed, of the plan's layout, or, where no step is timed, of the best matmul."""
    if a.plan.mfu_is_of_steps:
        return "typed"
    if not a.plan.expects_mfu and _faster(a):
        return "as the MFU over all hours needs them"
    if not a.terms.has_step_estimate:
        return "best matmul, as no step can be estimated"
    return "own layout" if a.plan.own_layout else "fastest layout"


def _faster(a: PlanEstimate) -> bool:
    """Whether the answer needs faster steps than its layout is estimated at."""
    return a.middle.steps_mfu > a.layout_mfu * (1 + 1e-9)


def by_6n(a: PlanEstimate) -> float:
    """MFU of the steps alone by 6 N, the work of long sequences not counted."""
    return _by_6n(a, a.middle.steps_mfu)


def _by_6n(a: PlanEstimate, mfu: float) -> float:
    return mfu * 6 * a.terms.work_share / a.middle.per_parameter


def typed_elsewhere(plan: Plan, accelerators: Iterable[str]) -> str:
    """That the MFU which was typed is taken for other accelerators too, and what else was typed is not; empty where
    nothing was."""
    others = [name for name in dict.fromkeys(accelerators) if name != plan.accelerator]
    if not others:
        return ""
    sentences: list[str] = []
    if plan.typed_mfu is not None:
        sentences.append(f"The typed MFU, {percent(plan.typed_mfu.mid)}, is taken for {listed(others)} too.")
    given = (plan.prices is not None, plan.network is not None, plan.per_node is not None, plan.maturity != BY_AGE)
    if entered := list(compress(_OF_ACCELERATOR.values(), given)):
        applies = "applies" if len(entered) == 1 else "apply"
        sentences.append(f"The {listed(entered)} you entered {applies} to {plan.accelerator} only.")
    return " ".join(sentences)


_OF_ACCELERATOR = {
    PRICE.id: "price",
    NETWORK.id: "network",
    PER_NODE.id: "node size",
    MATURITY.id: "software",
    RESERVED.id: "reserved price",
    CAPITAL.id: "capital",
}
"""What is entered for one accelerator, by field."""


def set_aside(before: str, after: str, entered: Mapping[str, str], restored: Mapping[str, str]) -> str:
    """That what was entered for one accelerator does not apply to another, which has its own back; texts by field."""

    def named(texts: Mapping[str, str]) -> str:
        return listed([f"{_OF_ACCELERATOR[name]} ({text})" for name, text in texts.items()])

    sentences: list[str] = []
    if entered:
        do, it = ("does", "it") if len(entered) == 1 else ("do", "them")
        sentences.append(
            f"The {named(entered)} you entered for {before} {do} not apply to {after}. Select {before} again to "
            f"restore {it}."
        )
    if restored:
        applies = "applies" if len(restored) == 1 else "apply"
        sentences.append(f"The {named(restored)} you entered for {after} {applies} again.")
    return " ".join(sentences)


DECIDES = "the typed MFU decides the days"
"""What the days of a plan follow from where an MFU was typed, in the same words wherever its days are shown."""


def whole_run(a: PlanEstimate) -> str:
    """The days of a plan, which stand first wherever its two times do, and what decides them where steps do not."""
    days = a.on_found_accelerators.range_of("days")
    spread = f" ({span(_days(days.low), _days(days.high))})" if days.low < days.high else ""
    decides = f": {DECIDES}" if a.plan.typed_mfu else ", as asked" if a.find == "MFU" else ""
    return f"**Whole run {_days(days.mid)}**{spread}{decides}"


def steps_alone(a: PlanEstimate) -> str:
    """Days of the steps alone, where those of its layout decide the days; else what these would take by themselves."""
    if a.plan.expects_mfu:
        return f"steps alone {_days(a.middle.steps_days)}"
    return f"its layout’s own steps {_days(a.layout_days)}"


def steps_and_whole(a: PlanEstimate) -> str:
    """The two times of a run, on every page alike: the whole of it with the range, and the steps of its layout.

    Both MFUs count the same FLOPs.
    """
    m, has_step_estimate = a.middle, a.terms.has_step_estimate
    mfu = m.steps_mfu if a.plan.expects_mfu else a.layout_mfu
    rule = rule_of(a.terms.work_share)
    rate = f"{percent(mfu)} MFU by {rule}"
    if a.token_work.long:
        rate = f"{percent(mfu)} MFU ({percent(_by_6n(a, mfu))} by {rule}, without the work of long sequences)"
    if not has_step_estimate:
        rate = f"{percent(mfu)} of peak, the best matmul, as no step can be estimated"
    steps = f"**{steps_alone(a)}** at {rate}" + (
        " in your own layout" if a.plan.own_layout and has_step_estimate else ""
    )
    if a.plan.expects_mfu:
        own = len(a.plan.own_runs)
        who = f"your own {plural(own, 'run')} and published ones reach" if own else "published runs reach"
        new = " on an accelerator so new" if a.terms.new_hardware else ""
        early = a.on_found_accelerators.range_of("days").low < m.steps_days <= m.days
        early = " The optimistic case (P10) assumes faster steps." if early else ""
        reached = f"{percent(m.mfu / m.steps_mfu)} of the MFU of their steps"
        return f"{whole_run(a)}, {steps}: {who} {reached}{new}.{early}{_elsewhere(a)}"
    if a.plan.mfu_is_of_steps:
        pace = f"The typed steps take {_days(m.steps_days)}, at {percent(m.steps_mfu / mfu)} of that pace"
        return f"{whole_run(a)}, with what failures and checkpoints take; {steps}. {pace}."
    share = m.mfu / mfu
    reached = [run.share for run in run_shares(has_step_estimate)]
    better = sum(one >= share for one in reached)
    ever = f"{better} of {len(reached)} published runs reached" if better else "no published run ever reached"
    needed = f"; steps alone would have to take {_days(m.steps_days)}" if _faster(a) else ""
    return f"{whole_run(a)}; {steps}. It runs at {percent(share)} of their pace, which {ever}{needed}."


def _elsewhere(a: PlanEstimate) -> str:
    """That no step of the plan's software was published on TPUs; empty elsewhere."""
    foreign = a.device.family == "TPU" and a.plan.software != JAX.id and a.terms.has_step_estimate
    return f" On TPUs only steps of {JAX.id} were published." if foreign else ""


def whole_nodes(a: PlanEstimate) -> str:
    """The nodes of the accelerators that were found; empty where they are a part of one, or no whole ones."""
    nodes, rest = divmod(a.count, a.device.node_size)
    if a.find != "accelerators" or rest or a.device.node_size == 1:
        return ""
    return f"**{nodes:,}** whole {plural(nodes, 'node')} of {a.device.node_size}"


def impossible(a: PlanEstimate) -> str:
    """That the steps would have to be faster than the accelerator multiplies; else empty."""
    if not a.impossible:
        return ""
    m = a.middle
    best = best_matmul(a.device.name, a.dtype)
    bare = f"what the best bare matmul in {a.dtype} reaches on {a.device.name if best.measured else best.of}"
    if math.isnan(best.share):
        bare = "the whole of it"
    because = ""
    if not a.plan.mfu_is_of_steps:
        because = (
            f" Over all hours it is {percent(m.mfu)}, but with a failure every "
            f"{format_duration(float(a.interruptions.mtbf), 3)} only {percent(m.goodput)} of them would train."
            if m.mfu <= a.ceiling
            else f" Over all hours alone it is {percent(m.mfu)}."
        )
    return f"**Impossible:** the steps would have to run above {percent(a.ceiling)} of the peak, {bare}.{because}"


def other_peak(a: PlanEstimate) -> tuple[str, str]:
    """That the peak asked for is none of this accelerator's, and which one counts instead; else empty.

    Where model states are kept in the format that it does not multiply, also what becomes of them.
    """
    if a.dtype == a.plan.dtype:
        return "", ""
    name, wanted = a.device.name, a.plan.dtype
    why = f"{name} has no {wanted} matrix units." if a.device.lacks(wanted) else f"No {wanted} peak of {name} is known."
    phrase = a.plan.policy_under(find_optimizer(a.plan.optimizer)).phrase
    text = f"; model states {phrase} keep their bytes" if wanted in phrase else ""
    return why, f"Using its {a.dtype} peak, {format_quantity(a.peak, 'flop_per_s')}{text}."


def memory(a: PlanEstimate) -> str:
    """That the model states do not fit, and the cheapest change, or that the plan cannot be laid out so; else empty."""
    try:
        h = a.memory
    except LayoutError as problem:
        return f"**It cannot be laid out so:** {problem}"
    if h.states_fit != "over":
        return ""
    return (
        f"**The model does not fit:** its states alone, under {h.optimizer.name} {h.policy.phrase}, take "
        f"{text_memory.gib(float(h.device_memory.states))} on each of {format_count(float(h.layout.accelerators))} × "
        f"{a.device.name}, which has {text_memory.gib(h.usable)}. "
        f"{text_fixes.rescue(h)}"
    )


def too_large_as_laid_out(a: PlanEstimate) -> str:
    """That the states fit and all that one accelerator would hold does not, and the cheapest change; else empty."""
    try:
        h = a.memory
    except LayoutError:
        return ""
    if h.fits != "over" or h.states_fit == "over":
        return ""
    return (
        f"**As it is laid out it does not fit:** each {a.device.name} would hold {text_memory.gib(h.total)} of its "
        f"{text_memory.gib(h.usable)}. {text_fixes.rescue(h)}"
    )


_MATTERS = 1.15
"""Work beyond that of the usual length from which a sentence says so."""


def long_sequences(a: PlanEstimate) -> str:
    """How much longer sequences lengthen the answer, and whether the model was built for them; mostly empty."""
    sentences: list[str] = []
    factor, seq_len = a.middle.per_parameter / (6 * a.terms.work_share), a.plan.seq_len
    if factor >= _MATTERS:
        whose = "" if a.model else ", for a model of a usual shape"
        sentences.append(
            f"**At {seq_len:,} tokens a token is {significant(factor, 3)} times the work** of one at "
            f"{a.token_work.usual_len:,}, the longest sequence of any published run here{whose}; the hours "
            f"are scaled by "
            "that, and the MFU is taken to hold, which no run has shown."
        )
    if a.model and seq_len > a.model.max_seq:
        sentences.append(f"{a.model.name} was built for at most {a.model.max_seq:,} tokens; you count {seq_len:,}.")
    return " ".join(sentences)


_LARGEST_MODEL = 5e12
"""More parameters than any published model has, by far."""


def swapped(a: PlanEstimate) -> str:
    """Whether parameters and tokens look as if each stood in the other's field; mostly empty."""
    plan = a.plan
    if a.model or a.find in ("parameters", "tokens") or not plan.tokens < plan.parameters > _LARGEST_MODEL:
        return ""
    return (
        f"**{format_count(plan.parameters)} parameters on {format_count(plan.tokens)} tokens**: were the two swapped? "
        "No published model has as many parameters as that."
    )


def cautions(a: PlanEstimate) -> list[str]:
    """What is to be said beside the answer: beyond what was ever published, longer than was ever trained."""
    beyond = beyond_evidence(run_features(a)) if a.plan.expects_mfu else ()
    return [*filter(None, (swapped(a), *beyond, long_sequences(a)))]
