"""One operation of the language: how it is written, what it takes, and what it does to memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from core.tensors.operations.guards import Guard
from core.tensors.operations.guards_of_values import Measured

Group: TypeAlias = Literal[
    "Always a view",
    "A view if it can, else a copy",
    "A new tensor",
    "Picked into a new tensor",
    "Computed into a new tensor",
    "Named axes",
    "Written in place",
    "Laid out anew in place",
    "Small tensors",
    "Gradients and devices",
]
Takes: TypeAlias = Literal[
    "int", "ints", "data", "float", "bool", "none", "dtype", "format", "text", "tensor", "tensors"
]
Written: TypeAlias = Literal["method", "property", "torch", "bare", "F", "nn", "init"]
Fill: TypeAlias = Literal["", "zeros", "counting", "input"]

VIEW: Group = "Always a view"
EITHER: Group = "A view if it can, else a copy"
NEW: Group = "A new tensor"
PICKED: Group = "Picked into a new tensor"
COMPUTED: Group = "Computed into a new tensor"
AXES: Group = "Named axes"
WRITE: Group = "Written in place"
RESTRIDE: Group = "Laid out anew in place"
SMALL: Group = "Small tensors"
TRAINED: Group = "Gradients and devices"

METHOD: tuple[Written, ...] = ("method",)
PROPERTY: tuple[Written, ...] = ("property",)
TORCH: tuple[Written, ...] = ("torch",)
BARE: tuple[Written, ...] = ("bare",)
FUNCTIONAL: tuple[Written, ...] = ("F",)
BOTH: tuple[Written, ...] = ("method", "torch")
EVERY: tuple[Written, ...] = ("method", "torch", "F")

INTS: tuple[Takes, ...] = ("int", "ints")
NUMBER: tuple[Takes, ...] = ("int", "float")
OPERAND: tuple[Takes, ...] = ("int", "float", "bool", "tensor")
"""A number or a tensor."""

STRIDES = "the same cells, read with other strides"
PART = "a part of the same cells: only offset, sizes and strides change"
REPEATED = "stride 0 reads one cell many times"
PIECES = "each piece is a part of the same cells"
FEWER = "a size-1 dimension takes no step"
COMPUTING = "computed values need cells of their own"
COPIED = "each element is copied as often as asked; expand would read its cell again instead"
SCATTERED = "picked elements need not lie at even steps"
SIDE = "tensors from several places need one storage to lie side by side"
NUMBERS = "new numbers, new storage"
ZEROED = "new storage; filled with zeros here, because fresh memory may hold another visitor’s numbers"
COUNTING = "new storage; it counts 0, 1, 2, … here instead of random numbers, so that elements can be told apart"
IN_PLACE = "written in place: no new storage"
RESTRIDED = "the very same tensor: only its sizes and strides change, no cell does"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: how it may be written and what it takes.

    takes: kinds of arguments after the tensor it works on. keywords: its parameters in their order, all of which may
    be named; ``*`` means any (axes of einops).
    forms: ``method`` x.name(…), ``property`` x.name, ``torch`` torch.name(x, …), ``bare`` name(x, …) as in einops,
    ``F`` F.name(x, …). guard: what it could allocate, from shapes and arguments; measured: the same where it hangs on
    the values of a tensor. subject: its first argument is the tensor it works on.
    several: it returns several tensors; several_with: it does when this parameter is given. fields: their names.
    writes: it writes into the tensor it works on; restrides: it gives that tensor other sizes and strides.
    fill: what stands in the place of its random or unwritten numbers. why: the reason for what it
    does to memory, as the end of a sentence; empty where the layouts decide.
    """

    name: str
    group: Group
    example: str
    takes: tuple[Takes, ...] = ()
    keywords: tuple[str, ...] = ()
    forms: tuple[Written, ...] = BOTH
    guard: Guard | None = None
    subject: bool = True
    several: bool = False
    writes: bool = False
    why: str = ""
    measured: Measured | None = None
    several_with: str = ""
    fields: tuple[str, ...] = ()
    restrides: bool = False
    fill: Fill = ""

    def gives_several(self, rest: Sequence[Any], named: Mapping[str, Any]) -> bool:
        """Whether a call gives several tensors. rest: its arguments after the tensor; named: those with a name."""
        if not self.several_with:
            return self.several
        first, given = rest[0] if rest else None, named.get(self.several_with)
        return not (given is None or given is False) or (isinstance(first, int) and not isinstance(first, bool))


def computed(
    name: str,
    example: str,
    takes: tuple[Takes, ...] = (),
    keywords: tuple[str, ...] = (),
    forms: tuple[Written, ...] = BOTH,
    guard: Guard | None = None,
    *,
    measured: Measured | None = None,
    several: bool = False,
    several_with: str = "",
    fields: tuple[str, ...] = (),
) -> Operation:
    """A row of numbers computed anew. Without a guard, what it makes is no larger than what it takes."""
    return Operation(
        name,
        COMPUTED,
        example,
        takes,
        keywords,
        forms,
        guard,
        several=several,
        why=COMPUTING,
        measured=measured,
        several_with=several_with,
        fields=fields,
    )
