"""The rows of a plan: what was asked and entered, and what follows from it in three scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from core.budget.compute_optimal import overtraining
from core.budget.equations import accelerator_hours, days_of_steps, rent, tokens_per_second, training_seconds
from core.formula import Formula
from core.messages import Message, message
from core.models.flops import conventions, train_flop_6nd
from core.planning.estimate import PlanEstimate, RunEstimate
from core.planning.measured import replaced_rates
from core.planning.plan import whole_accelerators
from core.planning.plan_limits import Check, Limited
from core.runs.energy import carbon, energy, peak_power
from core.runs.goodput import mfu_of_all_hours
from core.training.layout import LayoutError
from core.units import Kind
from core.views.common.rows import Row
from core.views.plan import text_limits, text_memory
from core.views.plan.text import cost_basis, limit_text, mfu_basis, rule_of, steps_basis
from core.views.plan.text_rates import rate_name
from core.views.runs.text_goodput import failures, power_basis
from core.views.search.names import layout_label
from core.views.search.text import step_text

HEADINGS = (
    message("row.heading.quantity"),
    message("row.heading.pessimistic"),
    message("row.heading.median"),
    message("row.heading.optimistic"),
    message("row.heading.unit"),
    message("row.heading.note"),
)
"""Columns are scenarios: in each of them MFU, price and all that follows belong together."""


def plan_rows(a: PlanEstimate) -> tuple[Row, ...]:
    """Return every quantity of the plan."""
    plan, model, device = a.plan, a.model, a.device
    columns = (a.low, a.middle, a.high)

    def row(
        label: Message,
        of: Callable[[RunEstimate], float],
        kind: Kind = "number",
        note: str = "",
        formula: Formula[...] | None = None,
    ) -> Row:
        return scenarios(label, [of(column) for column in columns], kind, note, formula)

    def scenarios(
        label: Message, values: Iterable[Any], kind: Kind, note: str = "", formula: Formula[...] | None = None
    ) -> Row:
        worst, middle, best = (float(value) for value in values)
        return Row(_key(label), label, middle, kind, worst, best, note, formula.name if formula else "")

    def single(label: Message, value: float | str, kind: Kind = "number", note: str = "") -> Row:
        return Row(_key(label), label, value, kind, note=note)

    stops = [a.interruptions_at(end) for end in a.ends]

    def rule(estimate: RunEstimate) -> float:
        return train_flop_6nd(estimate.parameters, estimate.tokens)

    counted = {way.id: way for way in conventions(a.shape.spec, plan.seq_len)}
    by_layer = counted[plan.attention].per_token / counted["rule"].per_token
    steps = steps_basis(a)
    return (
        single(message("row.find"), a.find),
        *((single(message("row.within"), limit_text(plan.within)),) if a.find != "time" else ()),
        single(message("row.model"), model.name if model else message("row.note.custom_parameters")),
        row(message("row.parameters"), lambda estimate: estimate.parameters, "count"),
        *((single(message("row.total_parameters"), float(model.parameters), "count"),) if model else ()),
        row(message("row.tokens"), lambda estimate: estimate.tokens, "count"),
        row(message("row.tokens_per_parameter"), lambda estimate: estimate.tokens / estimate.parameters),
        row(
            message("row.overtraining"),
            lambda estimate: overtraining(estimate.tokens, estimate.parameters),
            formula=overtraining,
        ),
        single(message("row.seq_len"), float(plan.seq_len), "count"),
        single(message("row.accelerator"), device.name, note=device.source),
        row(message("row.accelerators"), lambda estimate: whole_accelerators(estimate.accelerators), "count"),
        single(message("row.peak"), a.peak, "flop_per_s", a.dtype),
        *(
            Row(
                f"measured_{rate.id}",
                message("row.measured", rate=rate_name(rate)),
                rate.measured,
                rate.kind,
                note=origin,
            )
            for rate in replaced_rates(plan)
            for origin in (plan.measured.origin,)
        ),
        row(message("row.mfu"), lambda estimate: estimate.mfu, "ratio", mfu_basis(a), mfu_of_all_hours),
        row(message("row.steps_mfu"), lambda estimate: estimate.steps_mfu, "ratio", steps),
        row(message("row.steps_days"), lambda estimate: estimate.steps_days, "number", steps, days_of_steps),
        row(
            message("row.mfu_while_training"),
            lambda estimate: estimate.mfu_while_training,
            "ratio",
            message("row.note.impossible") if a.impossible else "",
        ),
        row(message("row.goodput"), lambda estimate: estimate.goodput, "ratio", message("row.note.goodput")),
        row(message("row.flop"), rule, "flop", formula=train_flop_6nd),
        *((row(message("row.flop_long"), lambda estimate: estimate.flop, "flop"),) if a.token_work.long else ()),
        row(
            message("row.flop_layers", attention=plan.attention),
            lambda estimate: rule(estimate) * by_layer,
            "flop",
            message("row.note.layers", model=a.shape.name, length=float(plan.seq_len)),
        ),
        row(message("row.days"), lambda estimate: 86400 * estimate.days, "seconds", formula=training_seconds),
        row(message("row.hours"), lambda estimate: estimate.hours, "accelerator_hours", formula=accelerator_hours),
        row(
            message("row.tokens_per_second"),
            lambda estimate: estimate.tokens_per_second,
            formula=tokens_per_second,
        ),
        scenarios(
            message("row.price"),
            (plan.price_range[1], a.middle.price, plan.price_range[0]),
            "usd_per_hour",
            message("plan.basis.entered") if plan.prices else device.price_source,
        ),
        scenarios(message("row.dollars"), (a.dollars.high, a.dollars.mid, a.dollars.low), "usd", cost_basis(a), rent),
        scenarios(message("row.failures"), failures(a), "number"),
        scenarios(message("row.checkpoint"), (s.checkpoint for s in stops), "bytes"),
        scenarios(message("row.checkpoint_interval"), (s.interval for s in stops), "seconds"),
        *_memory_rows(a),
        scenarios(message("row.watt_hours"), (a.energy.high, a.energy.mid, a.energy.low), "watt_hours", "", energy),
        row(message("row.peak_watts"), lambda estimate: estimate.peak_watts, "watts", power_basis(a), peak_power),
        scenarios(message("row.carbon"), (a.carbon.high, a.carbon.mid, a.carbon.low), "kg_co2", "", carbon),
        *map(_limit_row, text_limits.limit_checks(a)),
    )


def _key(label: Message) -> str:
    return label.id.removeprefix("row.")


MAIN = ("steps_days", "hours", "price", "flop")
"""Keys of the rows that a planner reads after the answer, in their order; the answer has the others."""


def main_rows(a: PlanEstimate) -> tuple[Row, ...]:
    """Return the rows that a planner reads after the answer."""
    rows = {row.key: row for row in plan_rows(a)}
    ends = [86400 * end.steps_days for end in a.ends]
    if a.plan.expects_mfu:  # which has a range of run efficiency, and none of the layout's own steps
        ends = [ends[1]] * 3
    basis = message("plan.basis.entered_mfu") if a.plan.mfu_is_of_steps else steps_basis(a)
    rows["steps_days"] = Row("steps_days", message("row.steps_time"), ends[1], "seconds", ends[0], ends[2], basis)
    price = rows["price"]
    rows["price"] = replace(price, note=price.note.partition(";")[0])  # the first of its sources
    return tuple(rows[key] for key in MAIN)


_LIMITED: Mapping[Limited, tuple[Kind, float]] = {
    "deadline": ("seconds", 86400.0),
    "money": ("usd", 1.0),
    "power": ("watts", 1.0),
    "host": ("bytes_binary", 1.0),
    "memory": ("bytes_binary", 1.0),
}
"""What is limited → the unit of a table, and how many of them its own unit is."""


def _limit_row(check: Check) -> Row:
    """Return a limit, and whether it is met, by how much, and with what chance."""
    kind, each = _LIMITED[check.id]
    label = message("row.limit", limit=text_limits.limit_name(check.id))
    return Row(f"limit_{check.id}", label, check.limit * each, kind, note=text_limits.outcome_with_chance(check))


def step_rows(item: PlanEstimate) -> tuple[Row, ...]:
    """Return the rows of a plan's layout and of its step."""
    result, layout = item.step, item.step.layout
    low, high, rule = result.low, result.high, rule_of(item.request.work_share_of(item.request.spec))
    step_note = message("row.note.step")
    by = message("row.note.step_mfu", rule=rule, dtype=item.request.running.dtype)
    time, longest, shortest = (86400 * item.days_of_steps(end) for end in (result.seconds, high, low))

    def row(label: Message, value: float | str, kind: Kind = "count", note: str = "") -> Row:
        return Row(_key(label), label, value, kind, note=note)

    return (
        row(message("row.layout"), layout_label(layout), "number", step_text(item)),
        *(row(message(f"row.{field}"), float(getattr(layout, field))) for field in _DEGREES),
        row(message("row.batch"), float(item.request.batch)),
        Row("step_seconds", message("row.step_seconds"), result.seconds, "seconds", high, low, step_note),
        row(message("row.step_mfu"), item.step_values["step_mfu"], "ratio", by),
        Row("layout_time", message("row.layout_time"), time, "seconds", longest, shortest, formula=days_of_steps.name),
    )


_DEGREES = ["tensor", "pipeline", "interleave", "context", "expert", "data", "micro_batch", "micro_batches", "zero"]
"""Fields of a layout that have a row."""


def _memory_rows(a: PlanEstimate) -> tuple[Row, ...]:
    """Return what the fullest accelerator uses and has; nothing if the plan has no layout."""
    try:
        h = a.memory
    except LayoutError:
        return ()
    states, peak = float(h.device_memory.states), h.total
    basis = message("row.note.states", optimizer=h.optimizer.name, policy=h.policy.phrase)
    layout = text_memory.laid_out(h.layout)
    return (
        Row("model_states", message("row.model_states"), states, "bytes_binary", note=basis),
        Row("memory_bytes", message("row.memory_bytes"), peak, "bytes_binary", note=layout),
        Row("usable_bytes", message("row.usable_bytes"), h.usable, "bytes_binary"),
    )
