"""The plan as a table to take away: what was given, what follows with its range, and what it rests on."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

from core.hardware.accelerators import Accelerator
from core.models.catalog import CatalogModel
from core.models.flops import Attention, conventions
from core.planning.outlook import Outlook
from core.units import UNIT, Kind, format_quantity

HEADINGS = ("quantity", "value", "low", "high", "unit", "note")


@dataclass(frozen=True, slots=True)
class Line:
    """One quantity in its base unit; text where it is no number. low, high: NaN where it has no range."""

    name: str
    value: float | str
    kind: Kind = "number"
    low: float = math.nan
    high: float = math.nan
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        """The line for a reader: name, value, low, high, note."""
        shown = self.value if isinstance(self.value, str) else format_quantity(self.value, self.kind)
        ends = ("" if math.isnan(end) else format_quantity(end, self.kind) for end in (self.low, self.high))
        return (self.name, shown, *ends, self.note)

    def raw(self) -> tuple[str, ...]:
        """The line for a program: every number in full, in the unit named."""
        ends = ("" if math.isnan(end) else repr(end) for end in (self.low, self.high))
        value = self.value if isinstance(self.value, str) else "" if math.isnan(self.value) else repr(self.value)
        unit = "" if isinstance(self.value, str) else UNIT[self.kind].replace("%", "share")
        return (self.name, value, *ends, unit, self.note)


def plan_lines(
    o: Outlook,
    model: CatalogModel | None,
    shape: CatalogModel,
    device: Accelerator,
    dtype: str,
    seq_len: int,
    attention: Attention,
    origin: str,
) -> tuple[Line, ...]:
    """Every quantity of the plan. origin: where the MFU comes from, in words."""
    plan, made = o.plan, o.middle

    def ranged(name: str, quantity: str, kind: Kind, scale: float = 1.0, note: str = "") -> Line:
        over = o.over(quantity)
        low, high = (math.nan, math.nan) if over.low == over.high else (over.low * scale, over.high * scale)
        return Line(name, over.mid * scale, kind, low, high, note)

    counted = {way.id: way for way in conventions(shape.spec, seq_len)}
    rule, layers = counted["rule"].per_token, counted[attention].per_token
    mfu = (math.nan, math.nan) if o.mfu.low == o.mfu.high else (o.mfu.low, o.mfu.high)
    return (
        Line("model", model.name if model else "typed parameters"),
        ranged("parameters that work on each token", "parameters", "count"),
        *((Line("parameters in all", float(model.parameters), "count"),) if model else ()),
        ranged("training tokens", "tokens", "count"),
        Line("tokens per parameter", plan.tokens / plan.params),
        Line("accelerator", device.name, note=device.source),
        ranged("accelerators", "accelerators", "count"),
        Line("dense peak of one", plan.peak, "flop_per_s", note=dtype),
        Line("MFU", plan.mfu, "ratio", *mfu, note=origin),
        ranged("training compute, 6ND", "flop", "flop"),
        Line(
            f"training compute by layer, {attention} attention",
            float(made.flop) * layers / rule,
            "flop",
            note=f"layers of {shape.name} at {seq_len:,} tokens",
        ),
        ranged("time", "days", "seconds", 86400.0),
        ranged("accelerator-hours", "hours", "accelerator_hours"),
        ranged("tokens per second, whole cluster", "tokens_per_second", "number"),
        Line("price per accelerator-hour, low", plan.price_low, "usd_per_hour", note=device.price_source),
        Line("price per accelerator-hour, high", plan.price_high, "usd_per_hour"),
        Line("rent", o.usd.mid, "usd", o.usd.low, o.usd.high, "over the ranges of MFU and price"),
    )


def as_csv(lines: Sequence[Line]) -> str:
    """The lines as CSV with headings, numbers in full."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADINGS)
    writer.writerows(line.raw() for line in lines)
    return out.getvalue()


def as_markdown(lines: Sequence[Line], answer: str, link: str) -> str:
    """The answer as a sentence, the lines as a Markdown table, and the link that opens them again."""
    head = ("quantity", "value", "low", "high", "note")
    rows = [head, tuple("---" for _ in head), *(line.cells() for line in lines)]
    table = "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows)
    return f"# Compute budget\n\n{answer}\n\n{table}\n\nTo open it in Napkin, add to its address: `{link}`\n"
