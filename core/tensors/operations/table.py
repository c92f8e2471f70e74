"""What operations do to memory: the rows of ``assets/data/tensor_operations.csv``, and those that have no name.

torch says what each call gave; this says why, and lists what one may want to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.rows import read_rows


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. group: what it does to memory; example: on ``x`` of shape (2, 3).

    forms: ``method`` x.name(…), ``property`` x.name, ``torch`` torch.name(x, …), ``bare`` name(x, …) as in einops,
    ``F`` F.name(x, …). why: the reason for what it does to memory, as the end of a sentence; empty if the layouts
    decide.
    """

    name: str
    group: str
    example: str
    forms: tuple[str, ...] = ()
    why: str = ""


_ROWS = [
    (row["topic"], Operation(row["name"], row["group"], row["example"], tuple(row["forms"].split()), row["why"]))
    for row in read_rows("tensor_operations")
]

ROWS: tuple[Operation, ...] = tuple(row for topic, row in _ROWS if topic)
"""Operations with a name; the others are written with brackets, operators, and ``=``."""

SHORT_CASTS = ("float", "double", "half", "bfloat16", "long", "int", "short", "bool")
"""Casts with a method of their own: ``x.float()`` is ``x.to(torch.float32)``."""


_BY_NAME: Mapping[str, Operation] = {row.name: row for _, row in reversed(_ROWS)}
_BY_FORM: Mapping[tuple[str, str], Operation] = {(form, row.name): row for row in ROWS for form in row.forms}


def find(form: str, name: str) -> Operation:
    """Return the row of an operation that is written so, or one without a reason if the table has none."""
    return _BY_FORM.get((form, name)) or _BY_NAME.get(name) or Operation(name, "Computed into a new tensor", "")


def topics() -> dict[str, dict[str, tuple[str, ...]]]:
    """Return examples by topic and by what each does to memory, those that make tensors first."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for topic, row in _ROWS:
        for title in (topic,) if topic else (title for title in found if title.startswith(_TOPIC.get(row.name, "-"))):
            groups = found.setdefault(title, {})
            groups[row.group] = (*groups.get(row.group, ()), row.example)
    return dict(sorted(found.items(), key=lambda item: not item[0].startswith("Start")))


_TOPIC = {"indexing": "View", "picking": "Pick", "elementwise": "Compute", "write": "Write", "update": "Write"}
"""Operations without a name, and how the topic begins that shows them."""
