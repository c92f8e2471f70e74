"""The plan as a table to take away: what was asked and given, and what follows in three scenarios."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core.hardware.accelerators import Accelerator
from core.models.catalog import CatalogModel
from core.models.flops import Attention, conventions, train_flop_6nd
from core.planning.deadline import fewest_accelerators
from core.planning.outlook import Outlook
from core.planning.scaling import overtraining
from core.planning.solver import SolvedBudget
from core.planning.wall import Wall
from core.units import UNIT, Kind, format_duration, format_money, format_quantity

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
        return (self.name, *self._three(lambda value, digits: format_quantity(value, self.kind, digits)), self.note)

    def raw(self) -> tuple[str, ...]:
        """The line for a program: every number in full, in the unit named."""
        unit = "" if isinstance(self.value, str) else UNIT[self.kind].replace("%", "share")
        return (self.name, *self._three(lambda value, _: "" if math.isnan(value) else repr(value)), unit, self.note)

    def _three(self, shown: Callable[[float, int], str]) -> tuple[str, str, str]:
        if isinstance(self.value, str):
            return "", self.value, ""
        ranged = not math.isnan(self.worst) and self.worst != self.best
        if not ranged:
            return "", shown(self.value, 4), ""
        # Things that come whole are counted whole; a share has one digit fewer than asked for.
        whole = self.kind == "count" and float(self.value).is_integer() and self.value < 1e6
        digits = 15 if whole else 4 if self.kind == "ratio" else 3
        return shown(self.worst, digits), shown(self.value, digits), shown(self.best, digits)


@dataclass(frozen=True, slots=True)
class Context:
    """What the plan is about beside its numbers. origin: where the MFU comes from, in words."""

    model: CatalogModel | None
    shape: CatalogModel
    device: Accelerator
    dtype: str
    seq_len: int
    attention: Attention
    origin: str


def plan_lines(o: Outlook, context: Context, wall: Wall | None) -> tuple[Line, ...]:
    """Every quantity of the plan. wall: its hours taken apart, None where failures leave no progress."""
    plan, model, device = o.plan, context.model, context.device
    columns = (o.at_low, o.middle, o.at_high)

    def line(name: str, of: Callable[[SolvedBudget], float], kind: Kind = "number", note: str = "") -> Line:
        worst, middle, best = (float(of(column)) for column in columns)
        return Line(name, middle, kind, worst, best, note)

    def rule(made: SolvedBudget) -> float:
        return train_flop_6nd(float(made.parameters), float(made.tokens))

    counted = {way.id: way for way in conventions(context.shape.spec, context.seq_len)}
    by_layer = counted[context.attention].per_token / counted["rule"].per_token
    layers = f"layers of {context.shape.name}"
    limits = o.limits
    within = limits and (format_money(limits.dollars) if limits.in_money else format_duration(86400 * limits.days))
    return (
        Line("asked for", o.find),
        *((Line("within", within),) if within else ()),
        Line("model", model.name if model else "typed parameters"),
        line("parameters that work on each token", lambda made: float(made.parameters), "count"),
        *((Line("parameters in all", float(model.parameters), "count"),) if model else ()),
        line("training tokens", lambda made: float(made.tokens), "count"),
        line("tokens per parameter", lambda made: float(made.tokens) / float(made.parameters)),
        line(
            "times Chinchilla’s 20 tokens per parameter",
            lambda made: overtraining(float(made.tokens), float(made.parameters)),
        ),
        Line("sequence length", f"{context.seq_len:,}"),
        Line("accelerator", device.name, note=device.source),
        line("accelerators", lambda made: math.ceil(float(made.accelerators) - 1e-9), "count"),
        *_nodes(o, device, columns),
        Line("dense peak of one", plan.peak, "flop_per_s", note=context.dtype),
        line("MFU", lambda made: float(made.mfu), "ratio", context.origin),
        line("training compute, 6ND", rule, "flop"),
        *(
            (line("training compute, long sequences counted", lambda made: float(made.flop), "flop", layers),)
            if o.work
            else ()
        ),
        line(
            f"training compute by layer, {context.attention} attention",
            lambda made: rule(made) * by_layer,
            "flop",
            f"{layers} at {context.seq_len:,} tokens",
        ),
        line("time", lambda made: 86400 * float(made.days), "seconds"),
        line("accelerator-hours", lambda made: float(made.hours), "accelerator_hours"),
        line("tokens per second, whole cluster", lambda made: float(made.tokens_per_second)),
        Line(
            "price per accelerator-hour",
            (plan.price_low + plan.price_high) / 2,
            "usd_per_hour",
            plan.price_high,
            plan.price_low,
            device.price_source,
        ),
        _rent(o),
        *(_whole(o, wall, columns) if wall else ()),
    )


def _rent(o: Outlook) -> Line:
    if o.limits and o.limits.in_money:
        return Line("rent", o.limits.dollars, "usd")
    worst, best = (
        float(made.hours) * price for made, price in ((o.at_low, o.plan.price_high), (o.at_high, o.plan.price_low))
    )
    return Line("rent", o.usd.mid, "usd", worst, best)


def _nodes(o: Outlook, device: Accelerator, columns: Sequence[SolvedBudget]) -> tuple[Line, ...]:
    """The accelerators that were found, rounded up to whole nodes; none where they come singly."""
    size = device.node_size
    if o.find != "accelerators" or size == 1:
        return ()
    worst, middle, best = (
        float(
            fewest_accelerators(
                flop=float(made.flop), peak=o.plan.peak, mfu=float(made.mfu), days=float(made.days), per_node=size
            ).accelerators
        )
        for made in columns
    )
    return (Line(f"accelerators, in whole nodes of {size}", middle, "count", worst, best),)


def _whole(o: Outlook, wall: Wall, columns: Sequence[SolvedBudget]) -> tuple[Line, ...]:
    """Checkpoints, failures, energy and carbon of the hours above; the first ones at the median."""
    run, hours = wall.run, float(o.middle.hours)
    energy, carbon = (
        tuple(of_all * float(made.hours) / hours for made in columns) for of_all in (wall.energy.mid, wall.carbon.mid)
    )
    steady = "if the typed MFU is of steady steps" if wall.typed else ""
    return (
        Line("goodput", run.goodput, "ratio", note="share left by checkpoints, failures and restarts"),
        Line("MFU of the steps", wall.pace, "ratio"),
        *((Line("time not explained", wall.unexplained, "ratio"),) if wall.unexplained else ()),
        *((Line("time with stops", run.wall, "seconds", note=steady),) if wall.typed else ()),
        Line("failures expected", run.failures, "number"),
        Line("checkpoint", run.checkpoint, "bytes"),
        Line("checkpoint every", run.interval, "seconds"),
        Line("energy", energy[1], "watt_hours", energy[0], energy[2]),
        Line("carbon, CO₂ equivalent", carbon[1], "kg_co2", carbon[0], carbon[2]),
    )


def as_csv(lines: Sequence[Line]) -> str:
    """The lines as CSV with headings, numbers in full."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADINGS)
    writer.writerows(line.raw() for line in lines)
    return out.getvalue()


def as_markdown(lines: Sequence[Line], answer: str, link: str) -> str:
    """The answer as a sentence, the lines as a Markdown table, and the whole address that opens them again."""
    head = tuple(heading for heading in HEADINGS if heading != "unit")
    rows = [head, tuple("---" for _ in head), *(line.cells() for line in lines)]
    table = "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows)
    return f"# Compute budget\n\n{answer}\n\n{table}\n\nTo open it again: <{link}>\n"
