"""One operation of the language: how it is written, what it takes, and what it does to memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from core.tensors.operations.guards import Guard

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
Fill: TypeAlias = Literal["", "zeros", "input"]

REPEATED = "stride 0 reads one cell many times"
PART = "a part of the same cells: only offset, sizes and strides change"
IN_PLACE = "written in place: no new storage"
COMPUTING = "computed values need cells of their own"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: how it may be written and what it takes.

    takes: kinds of arguments after the tensor it works on. keywords: its parameters in their order, all of which may
    be named; ``*`` means any (axes of einops).
    forms: ``method`` x.name(…), ``property`` x.name, ``torch`` torch.name(x, …), ``bare`` name(x, …) as in einops,
    ``F`` F.name(x, …). guards: what it could allocate. grows: what it gives may be larger than what it takes, which is
    seen beforehand.
    subject: its first argument is the tensor it works on. several: it returns several tensors; several_with: it does
    when this parameter is given. fields: their names.
    writes: it writes into the tensor it works on; restrides: it gives that tensor other sizes and strides.
    fill: what stands in the place of its random or unwritten numbers. why: the reason for what it does to memory,
    as the end of a sentence; empty where the layouts decide.
    """

    name: str
    group: Group
    example: str
    takes: tuple[Takes, ...] = ()
    keywords: tuple[str, ...] = ()
    forms: tuple[Written, ...] = ("method", "torch")
    guards: tuple[Guard, ...] = ()
    subject: bool = True
    several: bool = False
    writes: bool = False
    why: str = ""
    several_with: str = ""
    fields: tuple[str, ...] = ()
    restrides: bool = False
    fill: Fill = ""
    grows: bool = False

    def gives_several(self, rest: Sequence[Any], named: Mapping[str, Any]) -> bool:
        """Whether a call gives several tensors. rest: its arguments after the tensor; named: those with a name."""
        if not self.several_with:
            return self.several
        first, given = rest[0] if rest else None, named.get(self.several_with)
        return not (given is None or given is False) or (isinstance(first, int) and not isinstance(first, bool))
