"""What a sweep can sweep: fields of a plan that are a number or a choice, and the values that they take."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, Literal, TypeAlias

from core.budget.equations import Interval
from core.fields import Field
from core.hardware.accelerators import Accelerator, accelerators
from core.limits import limit
from core.planning.form.layout import BATCH, CONTEXT, LAYING, MICRO_BATCH, OWN_LAYOUT_FIELDS, PIPELINE, TENSOR
from core.planning.form.plan_form import ACCELERATOR, COUNT, MFU, MODEL_NAME, PARAMETERS, PRICE, SEQ_LEN, TRAINED
from core.planning.plan import OWN_LAYOUT, TYPED, Batch, Plan
from core.units import QuantityError, QuantityText, format_count

Want: TypeAlias = Literal["less", "more", ""]
"""What a person would rather have of something, all else enough: fewer accelerators and a lower MFU to rest on, more
tokens. Empty: neither."""

Centre: TypeAlias = Callable[[Plan], float]

_DOUBLINGS = 3
"""Steps of a ladder on each side of the plan's own value."""

_LEAST = 7
"""Steps of a ladder at least: it goes on upwards where it cannot go down."""

_OPTIONS = 7
"""Accelerators around the plan's own."""

_USUAL_LENGTH = 8_192
"""Tokens of a sequence, by which batches of sequences and of tokens are put in order."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One field of a plan that can be swept.

    name: how it is called among the others. phrase_template: one of its values in a sentence. usual: values that are
    tried beside
    the plan's own. ladder: tried are doublings of what this gives. want: which of two that are enough one would take.
    """

    field: Field
    name: str
    phrase_template: str
    usual: tuple[str, ...] = ()
    ladder: Centre | None = None
    want: Want = ""

    @property
    def id(self) -> str:
        """The field's id."""
        return self.field.id

    @property
    def chosen(self) -> bool:
        """Whether its values are options and not numbers."""
        return bool(self.field.options)

    def sets(self, text: str) -> dict[str, str]:
        """The texts of a plan that a value sets: another size of a model is one of unknown layers, and what a layout is
        made of belongs to one's own."""
        own = {LAYING.id: OWN_LAYOUT} if self.field in OWN_LAYOUT_FIELDS else {}
        return {self.id: text} | own | ({MODEL_NAME.id: TYPED} if self.id == PARAMETERS.id else {})

    def changes(self, text: str, plan: Plan) -> dict[str, str]:
        """The texts that a value sets in ``plan``: none where it is the size of its model, whose layers it keeps."""
        known = plan.catalog_model if self.id == PARAMETERS.id else None
        return {} if known and text == format_count(known.active) else self.sets(text)

    def own(self, plan: Plan, texts: Mapping[str, str]) -> str:
        """The text that the plan has: of a known model's parameters, their number."""
        if self.id == PARAMETERS.id and plan.catalog_model:
            return format_count(plan.catalog_model.active)
        return texts[self.id]

    def format_value(self, text: str) -> str:
        """A value as it stands at a cell."""
        if not text:
            return self.field.placeholder or "usual"
        value = self.field.parse(text)
        if self.ladder and isinstance(value, float) and value >= 1:
            return format_count(value)
        written = re.sub(r"\s*%", " %", text.strip())
        number = value.mid if isinstance(value, Interval) and value.low == value.high else value
        return QuantityText(written, number) if isinstance(number, float) else written

    def phrase(self, text: str) -> str:
        """A value in a sentence."""
        return self.phrase_template.format(self.format_value(text))


def _numbers(field: Field, name: str, text: str, ladder: Centre, want: Want = "") -> Axis:
    return Axis(field, name, text, ladder=ladder, want=want)


AXES: Mapping[str, Axis] = {
    axis.name: axis
    for axis in (
        _numbers(COUNT, "accelerators", "{} accelerators", lambda p: p.accelerators, "less"),
        Axis(ACCELERATOR, "accelerator kind", "{}"),
        Axis(MFU, "MFU", "an MFU of {}", ("25%", "30%", "35%", "40%", "45%", "50%", "55%", "60%"), want="less"),
        Axis(PRICE, "price", "${}/h"),
        _numbers(
            PARAMETERS,
            "parameters",
            "{} parameters",
            lambda p: float(p.catalog_model.active) if p.catalog_model else p.parameters,
            "more",
        ),
        _numbers(TRAINED, "tokens", "{} tokens", lambda p: p.tokens, "more"),
        _numbers(SEQ_LEN, "sequence length", "sequences of {}", lambda p: float(p.seq_len), "more"),
        Axis(BATCH, "global batch", "a batch of {}", tuple(f"{size}M tokens" for size in (1, 2, 4, 8, 16, 32))),
        _numbers(MICRO_BATCH, "micro-batch", "micro-batches of {}", lambda p: float(p.layout.micro_batch), "more"),
        _numbers(TENSOR, "tensor parallel", "tensor {}", lambda p: float(p.layout.tensor)),
        _numbers(PIPELINE, "pipeline parallel", "pipeline {}", lambda p: float(p.layout.pipeline)),
        _numbers(CONTEXT, "context parallel", "context {}", lambda p: float(p.layout.context)),
    )
}
"""What people plan by, each by its name."""


def default_values(axis: Axis, plan: Plan, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Texts around the plan's own, which is one of them: a ladder of doublings, usual values, or other options."""
    own = axis.own(plan, texts)
    if axis.chosen:
        return _comparable_accelerators(plan.device)
    if axis.ladder:
        return _ladder(axis, axis.ladder(plan), own)
    usual = axis.usual
    if axis is AXES["price"]:
        middle = mean(plan.price_range)
        middle = 2.0 if math.isnan(middle) or middle == 0 else middle
        usual = tuple(f"{middle * share:.2f}" for share in (0.5, 0.75, 1.0, 1.25, 1.5, 2.0))
    return _ordered(axis, (own, *usual))


def parse_values(axis: Axis, text: str) -> tuple[str, ...]:
    """A typed list, ``512, 1024, 2048``, in order and each once; options in the order in which they were typed.

    Raises `QuantityError` naming the value that cannot be read, and for more values than a side has room for.
    """
    parts = _separate(axis, text[: limit("sweep_chars")])
    for part in parts:
        axis.field.parse(part)
    ordered = tuple(dict.fromkeys(parts)) if axis.chosen else _ordered(axis, parts)
    most = limit("sweep_values")
    if len(ordered) > most:
        raise QuantityError(f"{len(ordered)} values; a side of a sweep has room for {most}.")
    return ordered


def _separate(axis: Axis, text: str) -> list[str]:
    """The values of a list: between semicolons, or commas where a value has none of its own."""
    if ";" in text:
        return [item.strip() for item in text.split(";") if item.strip()]
    if axis.chosen:
        names = {name.lower(): name for name in axis.field.options}
        items = filter(None, (item.strip() for item in text.split(",")))
        return [names.get(item.lower(), item) for item in items]
    parts: list[str] = []
    for item in filter(None, (piece.strip() for piece in re.split(r",\s+|\n", text))):
        inside = [part for part in item.split(",") if part]
        # 1,024 is a number; 512,1024 are two.
        if len(inside) > 1 and not re.match(r"\$?\d{1,3}(,\d{3})+(?!\d)", item):
            parts += inside
        else:
            parts.append(item.strip(","))
    return parts


def _ordered(axis: Axis, texts: Sequence[str]) -> tuple[str, ...]:
    """From the least to the most, of texts that mean the same the first; what stands for no number first of all."""
    table: dict[float, str] = {}
    for text in texts:
        table.setdefault(_size(axis.field.parse(text)), text)
    return tuple(table[size] for size in sorted(table))


def _size(value: Any) -> float:
    """Where a value stands among others of its field."""
    if isinstance(value, Interval):
        return value.mid
    if isinstance(value, Batch):
        return float(value.sequences(_USUAL_LENGTH))
    if isinstance(value, tuple):
        return mean(value)  # pyright: ignore[reportUnknownArgumentType]
    return -1.0 if value is None or math.isnan(value) else float(value)


def _ladder(axis: Axis, centre: float, own: str) -> tuple[str, ...]:
    rows: list[tuple[float, str]] = []
    power = -_DOUBLINGS
    while power <= _DOUBLINGS or len(rows) < _LEAST:
        text = format_count(max(1.0, round(centre * 2.0**power)))
        try:
            value = axis.field.parse(text)
        except QuantityError:
            if power > 0:
                break
        else:
            if power == 0 and own:
                text = own
            if centre * 2.0**power >= 1:
                rows.append((value, text))
        power += 1
    return _ordered(axis, (own, *(text for _, text in rows)))


def _comparable_accelerators(here: Accelerator) -> tuple[str, ...]:
    """The plan's accelerator with those of its maker nearest to it."""
    names = [a.name for a in accelerators() if a.vendor == here.vendor and _comparable(a, here)]
    start = min(max(0, names.index(here.name) - _OPTIONS // 2), max(0, len(names) - _OPTIONS))
    return tuple(names[start : start + _OPTIONS])


def _comparable(accelerator: Accelerator, here: Accelerator) -> bool:
    """Whether one would take the other's place: of about its time, with not much less memory."""
    return (
        abs(accelerator.generation - here.generation) <= 1 and not accelerator.memory_bytes < 0.75 * here.memory_bytes
    )
