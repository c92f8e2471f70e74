"""One entry of a comparison: a named plan or decision as texts, in a link and read back.

The first plan of a link spells every field but those omitted if empty, so that the link opens to the same plans
after a default has changed; the others spell what differs from the first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

from core.fields import LINK_VERSION, VERSION, Form, ParsedForm, clipped
from core.limits import limit
from core.messages import message
from core.planning.decide.decision import DECIDE_FORM
from core.planning.estimate import PlanEstimate, estimate
from core.planning.form.plan_form import PLAN_FORM, plan_of
from core.training.layout import LayoutError
from core.wording import cleaned

RESULTS = ("days", "dollars", "accelerators", "mfu", "memory_bytes", "watt_hours")
"""What is kept of an answer beside its plan, in base units, so that a later one can be held against it."""

_ITEM, _PLAN, _VALUE, _RESULT = "~", "~~", ".", "_"
_OMITTED_IF_EMPTY = frozenset(item.id for item in PLAN_FORM.fields if item.omit_if_empty)
_ESCAPES = (("!", "!e"), ("~", "!t"))


EntryKind: TypeAlias = Literal["plan", "decision"]
"""What a named entry is: one plan, or a decision on which run goes where."""

FORMS: Mapping[EntryKind, Form] = {"plan": PLAN_FORM, "decision": DECIDE_FORM}
"""Kind → the form that its texts are of."""


@dataclass(frozen=True)
class Entry:
    """A named plan, or a decision. texts: of every field of its form, by id. results: by `RESULTS`, as they were when
    it was kept; unknown ones are missing, and all of a plan that was never kept are."""

    name: str
    texts: Mapping[str, str]
    results: Mapping[str, float] = field(default_factory=dict[str, float])
    kind: EntryKind = "plan"

    @cached_property
    def reading(self) -> ParsedForm:
        """Its texts, read; a text that cannot be read has its default and a problem."""
        return FORMS[self.kind].parse(self.texts)

    @cached_property
    def answer(self) -> PlanEstimate:
        """Result of the plan. Raises `BudgetError` if it has none."""
        return estimate(plan_of(self.reading))


def entry_of(name: str, texts: Mapping[str, str], kind: EntryKind = "plan") -> Entry:
    """Return a plan or a decision from texts by field id.

    Unknown ids are ignored, missing fields have their defaults, and fields that follow from others get the derived
    text.
    """
    texts = {**texts, **FORMS[kind].imply(texts)}
    own_texts = {field.id: texts.get(field.id, field.default) for field in FORMS[kind].fields}
    reading = FORMS[kind].parse(own_texts)
    own_texts |= {text: reading.texts[text] for text in reading.derived}
    return Entry(cleaned(name, limit("plan_name")), own_texts, kind=kind)


def results_of(a: PlanEstimate) -> dict[str, float]:
    """Return the middle of each result of `RESULTS`; unknown ones are missing."""
    m = a.middle
    try:
        value = float(a.memory.total)
    except LayoutError:
        value = math.nan
    values = (m.days, a.dollars.mid, a.count, m.mfu, value, a.energy.mid)
    return {name: value for name, value in zip(RESULTS, map(float, values), strict=True) if math.isfinite(value)}


def pack(entries: Sequence[Entry]) -> str:
    """Return plans as one text for a link."""
    first: Mapping[str, str] = entries[0].texts if entries else {}
    packed: list[str] = []
    for i, entry in enumerate(entries):
        texts = entry.texts.items()
        changed = {
            name: text
            for name, text in texts
            if (text != first.get(name) if i else text or name not in _OMITTED_IF_EMPTY)
        }
        parts = [_escaped(entry.name)]
        parts += [f"{name}{_VALUE}{_escaped(text)}" for name, text in changed.items()]
        parts += [f"{_RESULT}{name}{_VALUE}{value:.6g}" for name, value in entry.results.items()]
        packed.append(_ITEM.join(parts))
    return _PLAN.join(packed)


def unpack(text: str, version: int = LINK_VERSION) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Return the plans of a link's text, written under ``version``, and messages about them.

    Unknown fields, plans beyond the maximum, and a plan that is cut off are left out with a message.
    """
    sentences: list[str] = []
    entries: list[Entry] = []
    first: dict[str, str] = {}
    most = limit("compared_plans_chars")
    plans = text[:most].split(_PLAN) if text else []
    if len(text) > most and len(plans) > 1:
        plans.pop()  # its end is missing, so what it says of itself would be another plan
    if len(text) > most:
        sentences.append(message("comparison.error.link_long", characters=float(len(text)), most=float(most)))
    if len(plans) > limit("compared_plans"):
        first_ones = float(limit("compared_plans"))
        sentences.append(message("comparison.error.link_plans", plans=float(len(plans)), most=first_ones))
    for i, packed in enumerate(plans[: limit("compared_plans")]):
        name, *items = packed.split(_ITEM)
        given = {k: _unescaped(value) for k, dot, value in (item.partition(_VALUE) for item in items) if dot}
        results = {k.removeprefix(_RESULT): _number(v) for k, v in given.items() if k.startswith(_RESULT)}
        texts = {PLAN_FORM.key(k): (v,) for k, v in (first | given).items() if not k.startswith(_RESULT)}
        plan_texts, about = PLAN_FORM.from_address({**texts, VERSION: (str(version),)})
        first = first or {k: v for k, v in given.items() if not k.startswith(_RESULT)}
        display = cleaned(_unescaped(name), limit("plan_name")) or str(message("comparison.unnamed", number=i + 1.0))
        sentences += [message("comparison.error.field", plan=clipped(display), problem=line) for line in about]
        known = {k: v for k, v in results.items() if k in RESULTS and math.isfinite(v)}
        entries.append(replace(entry_of(display, plan_texts), results=known))
    return tuple(entries), tuple(sentences)


def _escaped(text: str) -> str:
    for plain, escape in _ESCAPES:
        text = text.replace(plain, escape)
    return text


def _unescaped(text: str) -> str:
    for plain, escape in reversed(_ESCAPES):
        text = text.replace(escape, plain)
    return text


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


_MODEL = {"model": "Llama 3 70B", "tokens": "15T", "count": "1,024"}


def examples() -> tuple[Entry, ...]:
    """Return plans of one model on the same number of three accelerator types."""
    return tuple(
        entry_of(f"70B on {gpu.removesuffix(' SXM')}", {**_MODEL, "gpu": gpu})
        for gpu in ("H100 SXM", "H200 SXM", "B200")
    )
