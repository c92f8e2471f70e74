"""What operations do to memory: the rows of ``assets/data/tensor_operations.csv``, and those that have no name.

torch says what each call gave; this says why, and lists what one may want to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from core.rows import read_rows

Written: TypeAlias = Literal["method", "property", "torch", "bare", "F", "nn", "init"]

REPEATED = "stride 0 reads one cell many times"
PART = "a part of the same cells: only offset, sizes and strides change"
IN_PLACE = "written in place: no new storage"
COMPUTING = "computed values need cells of their own"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. group: what it does to memory; example: on ``x`` of shape (2, 3).

    forms: ``method`` x.name(…), ``property`` x.name, ``torch`` torch.name(x, …), ``bare`` name(x, …) as in einops,
    ``F`` F.name(x, …). why: the reason for what it does to memory, as the end of a sentence; empty where the layouts
    decide.
    """

    name: str
    group: str
    example: str
    forms: tuple[Written, ...] = ()
    why: str = ""


TOPICS: dict[str, list[Operation]] = {}
"""What one wants to do, and every operation that does it."""

for _row in read_rows("tensor_operations"):
    TOPICS.setdefault(_row["topic"], []).append(
        Operation(
            _row["name"],
            _row["group"],
            _row["example"],
            cast("tuple[Written, ...]", tuple(_row["forms"].split())),
            _row["why"],
        )
    )

ROWS: tuple[Operation, ...] = tuple(row for rows in TOPICS.values() for row in rows)

ELEMENTWISE = Operation("elementwise", "Computed into a new tensor", "x * 2 + x", why=COMPUTING)
"""``+ - * / // % **``, comparisons and ``& |`` between tensors and numbers."""

INDEXING = Operation("indexing", "Always a view", "x[0, None, ::2]", why=PART)
"""Square brackets with integers, slices, None and Ellipsis."""

PICKING = Operation("picking", "Picked into a new tensor", "x[x > 2]", why="picked elements need not lie at even steps")
"""Square brackets with a mask, a list or a tensor of integers."""

WRITING = Operation("write", "Written in place", "x[0, 0] = 100", why=IN_PLACE)
"""A number or tensor assigned through square brackets."""

UPDATING = Operation("update", "Written in place", "x[:, 1] += 1", why=IN_PLACE)
"""``+= -= *= /= //= %= **=`` on a name or through square brackets."""

NAMING = Operation("name", "Always a view", "y = x", why="a name is no tensor: nothing is made")
"""A second name for a tensor, or a line that only shows one."""

PIECE = Operation("piece", "Always a view", "y, z = x.chunk(2)", why="each piece is a part of the same cells")
"""One of the tensors that split, chunk or unbind made."""

GRADIENT = Operation(
    "gradient",
    "Computed into a new tensor",
    "w.grad",
    why="backward leaves it: as many elements as the tensor it is for",
)
"""What ``backward()`` leaves at one tensor."""

SHORT_CASTS = ("float", "double", "half", "bfloat16", "long", "int", "short", "bool")
"""Casts with a method of their own: ``x.float()`` is ``x.to(torch.float32)``."""


_UNNAMED = (ELEMENTWISE, INDEXING, PICKING, WRITING, UPDATING, NAMING, PIECE, GRADIENT)

_BY_NAME: Mapping[str, Operation] = {row.name: row for row in (*ROWS, *_UNNAMED)}
_BY_FORM: Mapping[tuple[str, str], Operation] = {(form, row.name): row for row in ROWS for form in row.forms}


def find(form: str, name: str) -> Operation:
    """The row of an operation that is written so; one that says nothing where the table has none."""
    return _BY_FORM.get((form, name)) or _BY_NAME.get(name) or Operation(name, "Computed into a new tensor", "")


def topics() -> dict[str, dict[str, tuple[str, ...]]]:
    """Examples of what one wants to do, by what each does to memory."""
    return {
        topic: _by_group([*rows, *(row for name, row in _WITHOUT_NAMES if topic.startswith(name))])
        for topic, rows in sorted(TOPICS.items(), key=lambda item: not item[0].startswith("Start"))
    }


_WITHOUT_NAMES = (
    ("View", INDEXING),
    ("Pick", PICKING),
    ("Compute", ELEMENTWISE),
    ("Write", WRITING),
    ("Write", UPDATING),
)
"""Operations that have no name, and where they stand."""


def _by_group(rows: Sequence[Operation]) -> dict[str, tuple[str, ...]]:
    groups: dict[str, list[str]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row.example)
    return {group: tuple(examples) for group, examples in groups.items()}
