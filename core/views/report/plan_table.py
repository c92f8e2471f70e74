"""The plan as a table to take away: what was asked and given, and what follows in three scenarios."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core.budget.compute_optimal import overtraining
from core.models.flops import conventions, train_flop_6nd
from core.planning.estimate import PlanEstimate, RunEstimate
from core.planning.measured import replaced_rates
from core.planning.plan import whole_accelerators
from core.planning.plan_limits import Check, Limited
from core.training.layout import LayoutError
from core.units import UNIT, Kind, format_quantity
from core.views.plan import text_limits, text_memory
from core.views.plan.text import OWNED, bound, dollars_over, rule_of, steps_of
from core.views.runs.text_goodput import failures, power_basis
from core.views.search.text import degrees, stepped
from core.wording import rent

HEADINGS = ("quantity", "pessimistic", "median", "optimistic", "unit", "note")
"""Columns are scenarios: in each of them MFU, price and all that follows belong together."""


@dataclass(frozen=True, slots=True)
class Line:
    """One quantity in its base unit; text where it is no number. worst, best: of its scenarios, NaN without any."""

    name: str
    value: float | str
    kind: Kind = "number"
    worst: float = math.nan
    best: float = math.nan
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        """The line for a reader: name, pessimistic, median, optimistic, note; three digits where it has a range."""
        return (self.name, *self._three(self._written), self.note)

    def _written(self, value: float, digits: int) -> str:
        return rent(value) if self.kind == "usd" else format_quantity(value, self.kind, digits)

    def raw(self) -> tuple[str, ...]:
        """The line for a program: every number in full, in the unit named; empty where unknown or never."""
        unit = "" if isinstance(self.value, str) else UNIT[self.kind].replace("%", "share")
        return (self.name, *self._three(lambda value, _: repr(value) if math.isfinite(value) else ""), unit, self.note)

    def _three(self, write: Callable[[float, int], str]) -> tuple[str, str, str]:
        if isinstance(self.value, str):
            return "", self.value, ""
        ranged = not math.isnan(self.worst) and not math.isclose(self.worst, self.best, rel_tol=1e-9)
        # Things that come whole are counted whole; a share has one digit fewer than asked for.
        whole = self.kind == "count" and float(self.value).is_integer() and self.value < 1e6
        if not ranged:
            return "", write(self.value, 15 if whole else 4), ""
        digits = 15 if whole else 4 if self.kind == "ratio" else 3
        return write(self.worst, digits), write(self.value, digits), write(self.best, digits)


def plan_lines(a: PlanEstimate) -> tuple[Line, ...]:
    """Every quantity of the plan."""
    plan, model, device = a.plan, a.model, a.device
    columns = (a.low, a.middle, a.high)

    def line(name: str, of: Callable[[RunEstimate], float], kind: Kind = "number", note: str = "") -> Line:
        return scenarios(name, [of(column) for column in columns], kind, note)

    def scenarios(name: str, values: Iterable[Any], kind: Kind, note: str = "") -> Line:
        worst, middle, best = (float(value) for value in values)
        return Line(name, middle, kind, worst, best, note)

    stops = [a.interruptions_at(end) for end in a.ends]

    def rule(estimate: RunEstimate) -> float:
        return train_flop_6nd(estimate.parameters, estimate.tokens)

    counted = {way.id: way for way in conventions(a.shape.spec, plan.seq_len)}
    by_layer = counted[plan.attention].per_token / counted["rule"].per_token
    layers = f"layers of {a.shape.name}"
    whose = plan.measured.origin
    origin = "published runs" if a.plan.expects_mfu else "found" if a.find == "MFU" else "typed"
    return (
        Line("asked for", a.find),
        *((Line("within", bound(plan.within)),) if a.find != "time" else ()),
        Line("model", model.name if model else "typed parameters"),
        line("parameters that work on each token", lambda estimate: estimate.parameters, "count"),
        *((Line("parameters in all", float(model.parameters), "count"),) if model else ()),
        line("training tokens", lambda estimate: estimate.tokens, "count"),
        line("tokens per parameter", lambda estimate: estimate.tokens / estimate.parameters),
        line(
            "times Chinchilla’s 20 tokens per parameter",
            lambda estimate: overtraining(estimate.tokens, estimate.parameters),
        ),
        Line("sequence length", float(plan.seq_len), "count"),
        Line("accelerator", device.name, note=device.source),
        line("accelerators", lambda estimate: whole_accelerators(estimate.accelerators), "count"),
        Line("dense peak of one", a.peak, "flop_per_s", note=a.dtype),
        *(Line(f"measured, {rate.name}", rate.measured, rate.kind, note=whose) for rate in replaced_rates(plan)),
        line("MFU over all hours", lambda estimate: estimate.mfu, "ratio", origin),
        line("MFU of the steps alone", lambda estimate: estimate.steps_mfu, "ratio", steps_of(a)),
        line("days of the steps alone", lambda estimate: estimate.steps_days, "number", steps_of(a)),
        line(
            "MFU while it trains",
            lambda estimate: estimate.mfu_while_training,
            "ratio",
            "impossible" if a.impossible else "",
        ),
        line("goodput", lambda estimate: estimate.goodput, "ratio", "share left by checkpoints, failures and restarts"),
        line("training compute, 6ND", rule, "flop"),
        *(
            (line("training compute, long sequences counted", lambda estimate: estimate.flop, "flop"),)
            if a.token_work.long
            else ()
        ),
        line(
            f"training compute by layer, {plan.attention} attention",
            lambda estimate: rule(estimate) * by_layer,
            "flop",
            f"{layers} at {plan.seq_len:,} tokens",
        ),
        line("time", lambda estimate: 86400 * estimate.days, "seconds"),
        line("accelerator-hours", lambda estimate: estimate.hours, "accelerator_hours"),
        line("tokens per second, whole cluster", lambda estimate: estimate.tokens_per_second),
        Line(
            "price per accelerator-hour",
            a.middle.price,
            "usd_per_hour",
            plan.price_range[1],
            plan.price_range[0],
            "typed" if plan.prices else device.price_source,
        ),
        Line("rent", a.dollars.mid, "usd", a.dollars.high, a.dollars.low, OWNED if plan.owned else dollars_over(a)),
        scenarios("failures expected", failures(a), "number"),
        scenarios("checkpoint", (s.checkpoint for s in stops), "bytes"),
        scenarios("checkpoint every", (s.interval for s in stops), "seconds"),
        *_held(a),
        Line("energy", a.energy.mid, "watt_hours", a.energy.high, a.energy.low),
        line("peak power", lambda estimate: estimate.peak_watts, "watts", power_basis(a)),
        Line("carbon, CO₂ equivalent", a.carbon.mid, "kg_co2", a.carbon.high, a.carbon.low),
        *map(_limit, text_limits.limit_checks(a)),
    )


_LIMITED: Mapping[Limited, tuple[Kind, float]] = {
    "deadline": ("seconds", 86400.0),
    "money": ("usd", 1.0),
    "power": ("watts", 1.0),
    "host": ("bytes_binary", 1.0),
    "memory": ("bytes_binary", 1.0),
}
"""What is limited → the unit of a table, and how many of them its own unit is."""


def _limit(check: Check) -> Line:
    """A limit, and beside it whether it is kept, by how much and how surely."""
    kind, each = _LIMITED[check.id]
    sure = "" if math.isnan(check.probability) else f", {text_limits.likely(check.probability)} to hold"
    name = "peak memory" if check.id == "memory" else text_limits.NAMES[check.id]
    return Line(f"limit: {name}", check.limit * each, kind, note=text_limits.outcome(check) + sure)


def step_lines(item: PlanEstimate) -> tuple[Line, ...]:
    """The layout of a plan and what a step of it comes to."""
    result, layout = item.step, item.step.layout
    low, high, rule = result.low, result.high, rule_of(item.request.work_share_of(item.request.spec))
    return (
        Line("layout", degrees(layout), note=stepped(item)),
        *(Line(name, float(getattr(layout, field)), "count") for name, field in _DEGREES.items()),
        Line("sequences of a step", float(item.request.batch), "count"),
        Line("a step", result.seconds, "seconds", high, low, "P10–P90 of comparable readings"),
        Line(
            "MFU of a step",
            item.step_values["step_mfu"],
            "ratio",
            note=f"by {rule}, of dense {item.request.running.dtype}",
        ),
        Line(
            "time of all steps of this layout",
            86400 * item.days_of_steps(result.seconds),
            "seconds",
            86400 * item.days_of_steps(high),
            86400 * item.days_of_steps(low),
        ),
    )


_DEGREES = {
    "tensor-parallel degree": "tensor",
    "pipeline stages": "pipeline",
    "chunks of a stage": "interleave",
    "context-parallel degree": "context",
    "expert-parallel degree": "expert",
    "data-parallel degree": "data",
    "sequences of a micro-batch": "micro_batch",
    "micro-batches": "micro_batches",
    "ZeRO stage": "zero",
}


def _held(a: PlanEstimate) -> tuple[Line, ...]:
    """What the fullest accelerator holds and has; nothing where the plan cannot be laid out."""
    try:
        h = a.memory
    except LayoutError:
        return ()
    return (
        Line(
            "model states on one accelerator",
            float(h.device_memory.states),
            "bytes_binary",
            note=f"{h.optimizer.name} {h.policy.phrase}",
        ),
        Line("peak memory per accelerator", h.total, "bytes_binary", note=text_memory.laid_out(h.layout)),
        Line("memory capacity", h.usable, "bytes_binary"),
    )
