"""What a sweep can sweep: fields of a plan that are a number or a choice, and the values that they take."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, Literal, TypeAlias

from core.budget.interval import Interval
from core.fields import Field
from core.hardware.accelerators import Accelerator, accelerators
from core.limits import limit
from core.models.catalog import CATALOG
from core.planning.form.layout import (
    CHUNKS,
    CONTEXT,
    EXPERT,
    IMPLEMENTATION,
    INTERLEAVE,
    LAYING,
    LOSS,
    MICRO_BATCH,
    MICRO_BATCHES,
    OFFLOAD,
    OVERHEAD,
    OWN_LAYOUT_FIELDS,
    PIPELINE,
    RECOMPUTE,
    SEQUENCE_PARALLEL,
    SHARD_GROUP,
    SLACK,
    SWITCHED,
    TENSOR,
    ZERO,
)
from core.planning.form.plan_form import (
    ACCELERATOR,
    COUNT,
    DTYPE,
    MFU,
    MFU_KIND,
    MODEL_NAME,
    OPTIMIZER,
    PARAMETERS,
    PRICE,
    SEQ_LEN,
    TRAINED,
)
from core.planning.form.precision import POLICY
from core.planning.form.whole_run import (
    DRAW,
    EVERY,
    FAILURES,
    GRID,
    OTHER,
    PUE,
    RESTART,
    WAITS,
    WRITES,
)
from core.planning.plan import OWN_LAYOUT, OWN_POLICY, TYPED, Plan
from core.runs.goodput import Failures
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
"""Options of a choice around the plan's own."""


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
        return bool(self.field.options) or self.field.kind == "switch"

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
        if self.field.kind == "switch":
            return "on" if text == "true" else "off"
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


def _rounds(plan: Plan) -> float:
    return max(1.0, float(plan.layout.micro_batches))


AXES: Mapping[str, Axis] = {
    axis.name: axis
    for axis in (
        _numbers(COUNT, "accelerators", "{} accelerators", lambda p: p.accelerators, "less"),
        Axis(ACCELERATOR, "accelerator kind", "{}"),
        Axis(MFU, "MFU", "an MFU of {}", ("25%", "30%", "35%", "40%", "45%", "50%", "55%", "60%"), want="less"),
        Axis(PRICE, "price", "${}/h"),
        Axis(MODEL_NAME, "model", "{}"),
        _numbers(
            PARAMETERS,
            "parameters",
            "{} parameters",
            lambda p: float(p.catalog_model.active) if p.catalog_model else p.parameters,
            "more",
        ),
        _numbers(TRAINED, "tokens", "{} tokens", lambda p: p.tokens, "more"),
        _numbers(SEQ_LEN, "sequence length", "sequences of {}", lambda p: float(p.seq_len), "more"),
        _numbers(MICRO_BATCH, "micro-batch", "micro-batches of {}", lambda p: float(p.layout.micro_batch), "more"),
        _numbers(MICRO_BATCHES, "micro-batches a step", "{} micro-batches", _rounds),
        _numbers(TENSOR, "tensor parallel", "tensor {}", lambda p: float(p.layout.tensor)),
        _numbers(PIPELINE, "pipeline parallel", "pipeline {}", lambda p: float(p.layout.pipeline)),
        _numbers(INTERLEAVE, "chunks of a stage", "{} chunks", lambda p: float(p.layout.interleave)),
        _numbers(CONTEXT, "context parallel", "context {}", lambda p: float(p.layout.context)),
        _numbers(EXPERT, "expert parallel", "expert {}", lambda p: float(p.layout.expert)),
        _numbers(SHARD_GROUP, "shard over", "shards over {}", lambda p: float(p.layout.shard_group or 8)),
        Axis(ZERO, "ZeRO stage", "ZeRO-{}"),
        Axis(RECOMPUTE, "recompute", "recompute {}"),
        Axis(OPTIMIZER, "optimizer", "{}"),
        Axis(POLICY, "precision", "{}"),
        Axis(DTYPE, "peak of", "the {} peak"),
        Axis(MFU_KIND, "a typed MFU is of", "MFU of {}"),
        Axis(SEQUENCE_PARALLEL, "sequence parallel", "sequence parallel {}"),
        Axis(OFFLOAD, "offload optimizer", "offload {}"),
        Axis(IMPLEMENTATION, "layers written as", "{} layers"),
        Axis(LOSS, "loss", "a {} loss"),
        _numbers(CHUNKS, "loss in pieces", "a loss in {}", lambda p: float(p.runtime_options.chunks)),
        Axis(OVERHEAD, "runtime", "a runtime of {}", ("0 GB", "1 GB", "2 GB", "4 GB", "8 GB")),
        Axis(SLACK, "fragmentation", "{} fragmentation", ("0%", "3%", "5%", "10%", "15%", "20%")),
        Axis(FAILURES, "failures", "{} failures", ("0", "0.1", "0.25", "1", "2.5", "5", "10")),
        Axis(
            WRITES,
            "writes, each acc.",
            "writes of {}",
            ("10 MB/s", "30 MB/s", "120 MB/s", "500 MB/s", "1 GB/s", "2 GB/s"),
        ),
        Axis(RESTART, "restart", "restarts of {}", ("1 min", "5 min", "10 min", "30 min", "1 h", "3 h")),
        Axis(
            EVERY, "checkpoint every", "checkpoints every {}", ("5 min", "15 min", "30 min", "1 h", "2 h", "4 h", "8 h")
        ),
        Axis(WAITS, "training waits", "training waiting {}", ("0%", "5%", "25%", "50%", "75%", "100%")),
        Axis(OTHER, "other stops", "{} of other stops", ("0%", "2%", "5%", "10%", "15%", "20%", "30%")),
        Axis(DRAW, "power drawn", "power drawn {}", ("50%", "60%", "70%", "80%", "90%", "100%")),
        Axis(PUE, "PUE", "a PUE of {}", ("1.0", "1.05", "1.1", "1.2", "1.3", "1.5", "1.7")),
        Axis(GRID, "grid", "{} kg/kWh", ("0.02", "0.05", "0.1", "0.2", "0.385", "0.5", "0.7")),
    )
}
"""Everything that can be swept, by name; what no result depends on is left out."""


def same_field(x: Axis, y: Axis) -> bool:
    """Whether two axes set the same field."""
    return bool((x.sets("").keys() & y.sets("").keys()) - {LAYING.id})


def default_values(axis: Axis, plan: Plan, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Texts around the plan's own, which is one of them: a ladder of doublings, usual values, or other options."""
    own = axis.own(plan, texts)
    if axis.field.kind == "switch":
        return ("false", "true")
    if axis.chosen:
        return _options(axis, plan, own)
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
        return _named(axis, [item.strip() for item in text.split(",") if item.strip()])
    parts: list[str] = []
    for item in filter(None, (piece.strip() for piece in re.split(r",\s+|\n", text))):
        inside = [part for part in item.split(",") if part]
        # 1,024 is a number; 512,1024 are two.
        if len(inside) > 1 and not re.match(r"\$?\d{1,3}(,\d{3})+(?!\d)", item):
            parts += inside
        else:
            parts.append(item.strip(","))
    return parts


def _named(axis: Axis, pieces: Sequence[str]) -> list[str]:
    """Names of options out of pieces between commas, which some names have themselves; the longest that there is."""
    names = {name.lower(): name for name in axis.field.options}
    names |= {"on": "true", "off": "false"} if axis.field.kind == "switch" else {}
    names |= {"on": "optimizer", "off": "none", **SWITCHED} if axis.field is OFFLOAD else {}
    parts: list[str] = []
    at = 0
    while at < len(pieces):
        ends = range(len(pieces), at, -1)
        end = next((end for end in ends if ", ".join(pieces[at:end]).lower() in names), at + 1)
        text = ", ".join(pieces[at:end])
        parts.append(names.get(text.lower(), text))
        at = end
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
    if isinstance(value, Failures):
        return 86400e3 / value.between if math.isnan(value.per_1000_days) else value.per_1000_days
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


def _options(axis: Axis, plan: Plan, own: str) -> tuple[str, ...]:
    """The plan's own option with those nearest to it."""
    names, first = list(axis.field.options), ()
    at = own
    if axis.id == ACCELERATOR.id:
        here = plan.device
        names = [a.name for a in accelerators() if a.vendor == here.vendor and _comparable(a, here)]
    elif axis.id == MODEL_NAME.id:
        names = sorted(CATALOG, key=lambda name: CATALOG[name].parameters)
        if own not in names:
            first = (own,)
            size = float(plan.catalog_model.parameters) if plan.catalog_model else plan.parameters
            at = min(names, key=lambda name: abs(math.log(CATALOG[name].parameters / size)))
    elif axis.id == POLICY.id and own != OWN_POLICY:
        names.remove(OWN_POLICY)
    room = _OPTIONS - len(first)
    start = min(max(0, names.index(at) - room // 2), max(0, len(names) - room))
    return (*first, *names[start : start + room])


def _comparable(accelerator: Accelerator, here: Accelerator) -> bool:
    """Whether one would take the other's place: of about its time, with not much less memory."""
    return (
        abs(accelerator.generation - here.generation) <= 1 and not accelerator.memory_bytes < 0.75 * here.memory_bytes
    )
