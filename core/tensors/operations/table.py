"""The operations an expression may use: how they are written, what they take, and why they copy or not.

They are the rows of ``assets/data/tensor_operations.csv``; what an operation could allocate is bounded by its guards,
functions of `core.tensors.operations.guards`; what ``grows`` is seen beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from core.rows import read_rows
from core.tensors.operations import guards
from core.tensors.operations.operation import COMPUTING, IN_PLACE, PART, Operation


def _operation(row: Mapping[str, str]) -> Operation:
    names = row["guard"].split()
    several: dict[str, Any] = {name: tuple(row[name].split()) for name in ("takes", "keywords", "forms", "fields")}
    flags = row["flags"].split()
    return Operation(
        row["name"],
        cast(Any, row["group"]),
        row["example"],
        guards=tuple(getattr(guards, name) for name in names if name != "grows"),
        grows="grows" in names,
        subject="makes" not in flags,
        several="several" in flags,
        writes="writes" in flags,
        restrides="restrides" in flags,
        several_with=row["several_with"],
        fill=cast(Any, row["fill"]),
        why=row["why"],
        **several,
    )


TOPICS: dict[str, list[Operation]] = {}
"""What one wants to do, and every operation that does it."""

for _row in read_rows("tensor_operations"):
    TOPICS.setdefault(_row["topic"], []).append(_operation(_row))

ROWS: tuple[Operation, ...] = tuple(row for rows in TOPICS.values() for row in rows)
TRAINED = TOPICS["Train: parameters, gradients, random numbers, devices"]

ELEMENTWISE = Operation(
    "elementwise", "Computed into a new tensor", "x * 2 + x", guards=(guards.elementwise,), why=COMPUTING
)
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


_BY_NAME: Mapping[str, Operation] = {
    **{row.name: row for row in ROWS},
    **{row.name: row for row in (ELEMENTWISE, INDEXING, PICKING, WRITING, UPDATING, NAMING, PIECE, GRADIENT)},
}


def by_name(name: str) -> Operation:
    """The row of an operation; one that says nothing where the table has none."""
    return _BY_NAME.get(name) or Operation(name, "Computed into a new tensor", "")
