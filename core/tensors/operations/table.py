"""The operations an expression may use: one row each, how they are written, what they take, and why they copy or not.

The rows stand in `core.tensors.operations`. What an operation could allocate is bounded by its guard, see
`core.tensors.operations.guards`.
"""

from __future__ import annotations

from core.tensors.operations import (
    arithmetic,
    copies,
    creation,
    guards,
    indexing,
    layers,
    named,
    training,
    views,
    writes,
)
from core.tensors.operations.operation import (
    COMPUTED,
    COMPUTING,
    IN_PLACE,
    PART,
    PICKED,
    PIECES,
    SCATTERED,
    VIEW,
    WRITE,
    Operation,
)

ROWS: tuple[Operation, ...] = (
    *views.ROWS,
    *copies.ROWS,
    *indexing.ROWS,
    *arithmetic.ROWS,
    *layers.ROWS,
    *named.ROWS,
    *writes.ROWS,
    *creation.ROWS,
    *training.ROWS,
)

ELEMENTWISE = Operation("elementwise", COMPUTED, "x * 2 + x", guard=guards.elementwise, why=COMPUTING)
"""``+ - * / // % **``, comparisons and ``& |`` between tensors and numbers."""

INDEXING = Operation("indexing", VIEW, "x[0, None, ::2]", why=PART)
"""Square brackets with integers, slices, None and Ellipsis."""

PICKING = Operation("picking", PICKED, "x[x > 2]", why=SCATTERED)
"""Square brackets with a mask, a list or a tensor of integers."""

WRITING = Operation("write", WRITE, "x[0, 0] = 100", why=IN_PLACE)
"""A number or tensor assigned through square brackets."""

UPDATING = Operation("update", WRITE, "x[:, 1] += 1", why=IN_PLACE)
"""``+= -= *= /= //= %= **=`` on a name or through square brackets."""

NAMING = Operation("name", VIEW, "y = x", why="a name is no tensor: nothing is made")
"""A second name for a tensor, or a line that only shows one."""

PIECE = Operation("piece", VIEW, "y, z = x.chunk(2)", why=PIECES)
"""One of the tensors that split, chunk or unbind made."""

GRADIENT = Operation("gradient", COMPUTED, "w.grad", why="backward leaves it: as many elements as the tensor it is for")
"""What ``backward()`` leaves at one tensor."""
