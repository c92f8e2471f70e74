"""A million shapes at once: parameters and FLOPs per token over arrays, by the formulas of one shape.

A batch is the plain numbers of many shapes, an array or one value each; what no shape has stays a plain zero and
costs nothing. Arrays are cut into pieces that a processor's cache holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from core.models.flop_formulas import train_flop_by_layer
from core.models.flops import SQUARES, Attention, flop_numbers, with_extra_layer_flop
from core.models.flops import TERMS as FLOP_TERMS
from core.models.parameters import TERMS as PARAMETER_TERMS
from core.models.parameters import with_extra_layer
from core.models.spec import TransformerSpec
from core.models.terms import NEEDED, OPTIONAL, Numbers, Term, derived, shape_of

Floats: TypeAlias = npt.NDArray[np.float64]

_PIECE = 16_384
"""Shapes per piece: a number of theirs takes 128 KiB, so that a formula's operands stay in the second-level cache."""


@dataclass(frozen=True, slots=True)
class SpecBatch:
    """Many shapes. shape: numbers by name, an array of ``size`` or one value for all; see `batch`."""

    shape: Numbers
    size: int

    def pieces(self) -> Iterator[tuple[slice, Numbers]]:
        """The shapes cut into pieces, with the numbers that terms bind."""
        for start in range(0, self.size, _PIECE):
            part = slice(start, min(start + _PIECE, self.size))
            yield part, derived({n: v[part] if isinstance(v, np.ndarray) else v for n, v in self.shape.items()})


def batch(**numbers: npt.ArrayLike) -> SpecBatch:
    """A batch of shapes from their numbers: those of `core.models.terms.NEEDED`, and any of ``OPTIONAL``.

    Each is one value for all shapes or a sequence with one per shape; they are taken as they come and not checked
    against each other.
    Raises ``KeyError`` for a number that is missing or not known, ``ValueError`` for lengths that do not match.
    """
    unknown = [name for name in numbers if name not in (*NEEDED, *OPTIONAL)]
    missing = [name for name in NEEDED if name not in numbers]
    if unknown or missing:
        raise KeyError(f"missing: {', '.join(missing) or 'none'}; not known: {', '.join(unknown) or 'none'}")
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in numbers.items()}
    (size,) = np.broadcast_shapes((1,), *(array.shape for array in arrays.values()))
    full = {n: float(a) if a.ndim == 0 else np.broadcast_to(a, (size,)) for n, a in arrays.items()}
    return SpecBatch({**OPTIONAL, **full}, size)


def stack(specs: Sequence[TransformerSpec]) -> SpecBatch:
    """The batch of these shapes; raises ``ValueError`` when there is none."""
    if not specs:
        raise ValueError("a batch needs at least one shape")
    rows = [shape_of(spec) for spec in specs]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    shape = {name: v[0] if len(set(v)) == 1 else np.array(v, dtype=np.float64) for name, v in columns.items()}
    return SpecBatch(shape, len(rows))


@dataclass(frozen=True, slots=True)
class ParameterArrays:
    """Parameters of every shape of a batch, all of them and those one token runs through."""

    total: Floats
    active: Floats


@dataclass(frozen=True, slots=True)
class FlopArrays:
    """Forward FLOPs per token of every shape: products with weights, and attention's squares by convention."""

    weights: Floats
    squares: Mapping[Attention, Floats]

    def forward(self, attention: Attention) -> Floats:
        """Forward FLOPs per token under the convention."""
        return self.weights + self.squares[attention]

    def training(self, attention: Attention) -> Floats:
        """Forward and backward FLOPs per token under the convention."""
        return train_flop_by_layer.over(forward=self.forward(attention), tokens=1)


def sum_of(terms: Iterable[Term], numbers: Numbers, values: Callable[[Term, Numbers], Mapping[str, Any]]) -> Any:
    """The sum of the terms. The first parameter of each formula is a factor of all of it: where it is a plain zero,
    no shape of the batch has the component.
    """
    total: Any = 0
    for term in terms:
        given = values(term, numbers)
        first = next(iter(given.values()))
        if isinstance(first, np.ndarray) or first:
            total = total + term.formula.over(**given)
    return total


def parameters_over(shapes: SpecBatch) -> ParameterArrays:
    """Parameters of every shape, as `core.models.parameters.parameters` counts them."""
    total, active = np.empty(shapes.size), np.empty(shapes.size)
    differ = [term for term in PARAMETER_TERMS if term.run]
    for part, plain in shapes.pieces():
        numbers = with_extra_layer(plain) if np.any(plain["mtp_modules"]) else {**plain, **_NO_LAYER}
        total[part] = sum_of(PARAMETER_TERMS, numbers, Term.values)
        idle = sum_of(differ, numbers, Term.values) - sum_of(differ, numbers, Term.run_values)
        active[part] = total[part] - idle
    return ParameterArrays(total, active)


def flops_over(
    shapes: SpecBatch,
    seq_len: npt.ArrayLike,
    conventions: Sequence[Attention] = ("full", "causal"),
    *,
    head: bool = True,
    embedding: bool = False,
) -> FlopArrays:
    """Forward FLOPs per token of every shape, as `core.models.flops.flops_per_token` counts them.

    seq_len: one length, or one per shape.
    """
    lengths = np.broadcast_to(np.asarray(seq_len, dtype=np.float64), (shapes.size,))
    same = float(lengths[0]) if np.ndim(seq_len) == 0 else None
    weights = np.empty(shapes.size)
    squares: dict[Attention, Floats] = {name: np.empty(shapes.size) for name in conventions}
    for part, plain in shapes.pieces():
        numbers = with_extra_layer_flop(plain) if np.any(plain["mtp_modules"]) else {**plain, **_NO_LAYER}
        for index, attention in enumerate(conventions):
            length = lengths[part] if same is None else same
            ready = flop_numbers(numbers, length, attention, head=head, embedding=embedding)
            if not index:
                weights[part] = sum_of(FLOP_TERMS, ready, Term.values)
            squares[attention][part] = sum_of(SQUARES[attention], ready, Term.values)
    return FlopArrays(weights, squares)


_NO_LAYER: Mapping[str, float] = {"extra_layer": 0, "extra_layer_run": 0}
