"""Axes of a sweep: fields of a plan, numbers or choices, with the values that they take."""

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
from core.messages import message
from core.number_text import QuantityError
from core.planning.form.layout import BATCH, CONTEXT, LAYING, MICRO_BATCH, OWN_LAYOUT_FIELDS, PIPELINE, TENSOR
from core.planning.form.plan_form import ACCELERATOR, COUNT, MFU, MODEL_NAME, PARAMETERS, PRICE, SEQ_LEN, TRAINED
from core.planning.plan import OWN_LAYOUT, TYPED, Batch, Plan
from core.units import format_count

Want: TypeAlias = Literal["less", "more", ""]
"""Which of two sufficient values a planner prefers; empty for neither."""

Center: TypeAlias = Callable[[Plan], float]

_DOUBLINGS = 3
"""Steps of a ladder on each side of the plan’s value."""

_LEAST = 7
"""Minimum length of a ladder: it continues upward where it cannot go down."""

_OPTIONS = 7
"""Accelerators around the plan’s."""

_USUAL_LENGTH = 8_192
"""Tokens of a sequence, by which batches of sequences and of tokens are ordered."""

_ITEM = re.compile(r"\s*\$?\d{1,3}(?:,\d{3})+(?!\d)[^,;\n]*|[^,;\n]+")
"""One value of a list: 1,024 is one number, 512,1024 are two."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A field of a plan that can be swept.

    name: its option in the menu, which links store. usual: default values. ladder: center of values that double.
    """

    field: Field
    name: str
    usual: tuple[str, ...] = ()
    ladder: Center | None = None
    want: Want = ""

    @property
    def id(self) -> str:
        """The field’s id."""
        return self.field.id

    @property
    def is_choice(self) -> bool:
        """Whether its values are options and not numbers."""
        return bool(self.field.options)

    def overrides(self, text: str) -> dict[str, str]:
        """Return the texts of a plan that a value sets: another size is a model of unknown layers, and a degree is one
        of a custom layout."""
        layout = {LAYING.id: OWN_LAYOUT} if self.field in OWN_LAYOUT_FIELDS else {}
        return {self.id: text} | layout | ({MODEL_NAME.id: TYPED} if self.id == PARAMETERS.id else {})

    def changes(self, text: str, plan: Plan) -> dict[str, str]:
        """Return the texts that a value changes in ``plan``; empty for the parameter count of its own model, whose
        layers it keeps."""
        known = plan.catalog_model if self.id == PARAMETERS.id else None
        return {} if known and text == format_count(known.active) else self.overrides(text)

    def plan_text(self, plan: Plan, texts: Mapping[str, str]) -> str:
        """Return the plan’s value as text; for a known model’s parameters, their number."""
        if self.id == PARAMETERS.id and plan.catalog_model:
            return format_count(plan.catalog_model.active)
        return texts[self.id]


def _doubling(field: Field, name: str, ladder: Center, want: Want = "") -> Axis:
    return Axis(field, name, ladder=ladder, want=want)


def _active_parameters(plan: Plan) -> float:
    return float(plan.catalog_model.active) if plan.catalog_model else plan.parameters


AXES: Mapping[str, Axis] = {
    axis.name: axis
    for axis in (
        _doubling(COUNT, "accelerators", lambda plan: plan.accelerators, "less"),
        Axis(ACCELERATOR, "accelerator kind"),
        Axis(MFU, "MFU", ("25%", "30%", "35%", "40%", "45%", "50%", "55%", "60%"), want="less"),
        Axis(PRICE, "price"),
        _doubling(PARAMETERS, "parameters", _active_parameters, "more"),
        _doubling(TRAINED, "tokens", lambda plan: plan.tokens, "more"),
        _doubling(SEQ_LEN, "sequence length", lambda plan: float(plan.seq_len), "more"),
        Axis(BATCH, "global batch", tuple(f"{size}M tokens" for size in (1, 2, 4, 8, 16, 32))),
        _doubling(MICRO_BATCH, "micro-batch", lambda plan: float(plan.layout.micro_batch), "more"),
        _doubling(TENSOR, "tensor parallel", lambda plan: float(plan.layout.tensor)),
        _doubling(PIPELINE, "pipeline parallel", lambda plan: float(plan.layout.pipeline)),
        _doubling(CONTEXT, "context parallel", lambda plan: float(plan.layout.context)),
    )
}
"""The axes by name."""


def default_values(axis: Axis, plan: Plan, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Return texts around the plan’s, which is one of them: doublings, usual values, or other options."""
    own = axis.plan_text(plan, texts)
    if axis.is_choice:
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
    """Return the values of a list such as ``512, 1024, 2048``, sorted and each once; options keep their order.

    Raises `QuantityError` for a value that cannot be read, and for too many values.
    """
    names = {name.lower(): name for name in axis.field.options}
    items: list[str] = [item.strip() for item in _ITEM.findall(text[: limit("sweep_chars")])]
    parts = [names.get(item.lower(), item) for item in items if item]
    for part in parts:
        axis.field.parse(part)
    ordered = tuple(dict.fromkeys(parts)) if axis.is_choice else _ordered(axis, parts)
    most = limit("sweep_values")
    if len(ordered) > most:
        raise QuantityError(message("sweep.error.values", values=float(len(ordered)), most=float(most)))
    return ordered


def _ordered(axis: Axis, texts: Sequence[str]) -> tuple[str, ...]:
    """Return texts from least to most, the first of equal ones, with what is no number first."""
    table: dict[float, str] = {}
    for text in texts:
        table.setdefault(_size(axis.field.parse(text)), text)
    return tuple(table[size] for size in sorted(table))


def _size(value: Any) -> float:
    if isinstance(value, Interval):
        return value.mid
    if isinstance(value, Batch):
        return float(value.sequences(_USUAL_LENGTH))
    if isinstance(value, tuple):
        return mean(value)  # pyright: ignore[reportUnknownArgumentType]
    return -1.0 if value is None or math.isnan(value) else float(value)


def _ladder(axis: Axis, center: float, own: str) -> tuple[str, ...]:
    texts = [own]
    for power in range(-_DOUBLINGS, 64):
        if power > _DOUBLINGS and len(texts) > _LEAST:
            break
        size = center * 2.0**power
        text = (own if power == 0 else "") or format_count(max(1.0, round(size)))
        try:
            axis.field.parse(text)
        except QuantityError:
            if power > 0:
                break
        else:
            texts += [text] if size >= 1 else []
    return _ordered(axis, texts)


def _comparable_accelerators(here: Accelerator) -> tuple[str, ...]:
    """Return the plan’s accelerator and its nearest alternatives: same vendor, at most a generation apart, and not much
    less memory."""
    names = [
        a.name
        for a in accelerators()
        if a.vendor == here.vendor
        and abs(a.generation - here.generation) <= 1
        and not a.memory_bytes < 0.75 * here.memory_bytes
    ]
    start = min(max(0, names.index(here.name) - _OPTIONS // 2), max(0, len(names) - _OPTIONS))
    return tuple(names[start : start + _OPTIONS])
