"""Dimensions by name, as jaxtyping annotates them, checked against shapes; and what moving a tensor to a device costs.

``Float[Tensor, "batch seq hidden"]`` says what the dimensions are; with a checker around the function, the same name
must have the same size in every argument of a call. Nothing here needs jaxtyping: the rules are its rules for fixed
sizes, names, ``_``, ``...`` and ``*name``, and tests hold verdicts that jaxtyping gave.
Source: https://docs.kidger.site/jaxtyping/api/array/
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.formula import Explanation
from core.limits import limit
from core.tensors.cost import tensor_bytes
from core.tensors.reading.guards import check_size
from core.tensors.reading.text import read_shape
from core.tensors.reading.values import ExpressionError

EXAMPLE = "x: batch seq hidden = 2, 3, 8"


@dataclass(frozen=True, slots=True)
class NamedTensor:
    """A tensor of a call: its parameter's name, the annotation of its dimensions, its shape."""

    name: str
    annotation: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NamedDimension:
    """A symbol of an annotation and the sizes it met; several for ``...`` and ``*name``."""

    symbol: str
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NameCheck:
    """A call whose shapes were checked, tensor by tensor.

    tensors: as given. dimensions: per accepted tensor, its symbols with their sizes. sizes: what each name stands for,
    and which tensor said so first. refused: the tensor that does not fit, ``None`` when all do. message: why not.
    """

    tensors: tuple[NamedTensor, ...]
    dimensions: tuple[tuple[NamedDimension, ...], ...]
    sizes: dict[str, tuple[tuple[int, ...], str]]
    refused: NamedTensor | None
    message: str

    @property
    def accepted(self) -> bool:
        return self.refused is None

    @property
    def signature(self) -> str:
        """The function as one would write it."""
        tensors = ", ".join(f'{t.name}: Float[Tensor, "{t.annotation}"]' for t in self.tensors)
        return f"@jaxtyped(typechecker=beartype)\ndef f({tensors}): ..."

    @property
    def headline(self) -> tuple[str, str]:
        """The answer as one sentence and a quieter line of detail, in small markup."""
        known = ", ".join(f"{name} = {_sizes(found)}" for name, (found, _) in self.sizes.items())
        if self.refused is None:
            return "The shapes **fit** their names.", f"{known}." if known else "No names to compare."
        return f"`{self.refused.name}` is **refused**: {self.message}.", f"Known by then: {known or 'nothing'}."


def check_names(tensors: Sequence[NamedTensor]) -> NameCheck:
    """Check the shapes of a call in order; a name takes its size from the tensor that uses it first.

    Raises `ExpressionError` for an annotation that means nothing, and beyond the caps.
    """
    sizes: dict[str, tuple[tuple[int, ...], str]] = {}
    done: list[tuple[NamedDimension, ...]] = []
    for tensor in tensors:
        symbols = _symbols(tensor.annotation)
        check_size(tensor.shape, f"`{tensor.name}`")
        found = dict(sizes)
        dimensions, message = _match(tensor, symbols, found)
        if message:
            return NameCheck(tuple(tensors), tuple(done), sizes, tensor, message)
        sizes = found
        done.append(dimensions)
    return NameCheck(tuple(tensors), tuple(done), sizes, None, "")


def _match(
    tensor: NamedTensor, symbols: Sequence[str], known: dict[str, tuple[tuple[int, ...], str]]
) -> tuple[tuple[NamedDimension, ...], str]:
    """The dimensions of one tensor, or why it is refused; new names are added to ``known``."""
    several = next((at for at, symbol in enumerate(symbols) if symbol.startswith(("*", "..."))), None)
    rank, wanted = len(tensor.shape), len(symbols) - (several is not None)
    if rank < wanted or (several is None and rank > wanted):
        least = "at least " if several is not None else ""
        plural = "" if wanted == 1 else "s"
        return (), f"“{tensor.annotation}” has {least}{wanted} dimension{plural}, its shape {tensor.shape} has {rank}"
    dimensions: list[NamedDimension] = []
    dim = 0
    for at, symbol in enumerate(symbols):
        count = rank - wanted if at == several else 1
        sizes = tensor.shape[dim : dim + count]
        where = f"dimension {dim}" if count == 1 else f"dimensions {dim} to {dim + count - 1}"
        dim += count
        dimensions.append(NamedDimension(symbol, sizes))
        if symbol in ("_", "..."):
            continue
        if symbol.isdecimal():
            if sizes != (int(symbol),):
                return (), f"{where} must be {symbol}, but is {sizes[0]}"
            continue
        before = known.setdefault(symbol, (sizes, tensor.name))
        if before[0] != sizes:
            said = f"`{symbol}` is {_sizes(before[0])} in `{before[1]}`"
            return (), f"{said}, but {where} of `{tensor.name}` has {_sizes(sizes)}"
    return tuple(dimensions), ""


def _sizes(sizes: tuple[int, ...]) -> str:
    return str(sizes[0]) if len(sizes) == 1 else str(sizes)


_SYMBOL = re.compile(r"[0-9]{1,9}|\*?[A-Za-z][A-Za-z0-9_]*|_|\.\.\.", re.ASCII)


def _symbols(annotation: str) -> list[str]:
    if len(annotation) > limit("expression_chars"):
        raise ExpressionError(f"An annotation of {len(annotation):,} characters is too long. For example: {EXAMPLE}.")
    symbols = annotation.split()
    for symbol in symbols:
        if not _SYMBOL.fullmatch(symbol):
            raise ExpressionError(f"`{symbol[:40]}` is no size, name, `_`, `...` or `*name`. For example: {EXAMPLE}.")
    if len(symbols) > limit("pattern_axes"):
        raise ExpressionError(f"{len(symbols)} dimensions in one annotation; at most {limit('pattern_axes')} here.")
    if sum(symbol.startswith(("*", "...")) for symbol in symbols) > 1:
        raise ExpressionError("Only one of `...` and `*name` may stand in an annotation.")
    return symbols


def read_named(text: str) -> tuple[NamedTensor, ...]:
    """Read one tensor per line, ``x: batch seq hidden = 2, 3, 8``. Raises `ExpressionError` for anything else."""
    if len(text) > limit("expression_chars"):
        raise ExpressionError(f"That is {len(text):,} characters long; at most {limit('expression_chars'):,}.")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not 1 <= len(lines) <= limit("expression_lines"):
        raise ExpressionError(
            f"Between 1 and {limit('expression_lines')} tensors, a line each. For example: {EXAMPLE}."
        )
    found: list[NamedTensor] = []
    for line in lines:
        parts = re.fullmatch(r"([A-Za-z_]\w{0,15})\s*:\s*([^=:]*?)\s*=\s*([^=:]+)", line, re.ASCII)
        if parts is None:
            raise ExpressionError(f"“{line[:60]}” is not written name: dimensions = shape. For example: {EXAMPLE}.")
        found.append(NamedTensor(parts[1], parts[2], read_shape(parts[3])))
    return tuple(found)


# --------------------------------------------------------------------------------------------------- devices


@dataclass(frozen=True, slots=True)
class Placement:
    """One way to get tensors onto a device, in bytes: kept in host memory, sent over the bus, kept on the device."""

    how: str
    code: str
    host: int
    bus: int
    device: int


@dataclass(frozen=True, slots=True)
class Placements:
    """The ways to get ``tensors`` equal tensors onto a device, dearest first."""

    shape: tuple[int, ...]
    dtype: str
    element_size: int
    tensors: int
    ways: tuple[Placement, ...]

    @property
    def bytes(self) -> int:
        """Bytes of all tensors together."""
        return self.tensors * int(tensor_bytes(math.prod(self.shape), self.element_size))

    @property
    def headline(self) -> tuple[str, str]:
        """The answer as one sentence and a quieter line of detail, in small markup."""
        size = " × ".join(map(str, self.shape)) or "a single element in"
        what = f"1 tensor of {size} {self.dtype} takes" if self.tensors == 1 else ""
        what = what or f"{self.tensors:,} tensors of {size} {self.dtype} take"
        return (
            f"{what} **{self.bytes:,} B** on the device either way.",
            f"Created on the CPU first, the same {self.bytes:,} B also cross the bus; created on the device, none do.",
        )

    @property
    def explanation(self) -> Explanation:
        """The bytes as a formula."""
        elements = self.tensors * math.prod(self.shape)
        return tensor_bytes.explain(elements=elements, element_bytes=self.element_size)


def placements(shape: Sequence[int], dtype: str = "float32", element_size: int = 4, tensors: int = 2) -> Placements:
    """What it costs to have ``tensors`` tensors of ``shape`` on a device.

    Nothing is made, so only numbers are bounded. Raises `ExpressionError` for a negative size, fewer than one tensor,
    or more elements than ``device_elements`` of core.limits.
    """
    sizes = tuple(shape)
    if min(sizes, default=0) < 0 or tensors < 1:
        raise ExpressionError(f"{tensors} tensors of shape {sizes}: sizes are not negative, and there is at least one.")
    if math.prod(sizes) > limit("device_elements"):
        raise ExpressionError(f"Shape {sizes} has more than {limit('device_elements'):,} elements, beyond any device.")
    size = tensors * int(tensor_bytes(math.prod(sizes), element_size))
    text = ", ".join(map(str, sizes)) or "()"
    return Placements(
        shape=sizes,
        dtype=dtype,
        element_size=element_size,
        tensors=tensors,
        ways=(
            Placement(
                "On the CPU, then moved, the original kept",
                f'x = torch.zeros({text})\ny = x.to("cuda")',
                size,
                size,
                size,
            ),
            Placement("On the CPU, then moved", f'x = torch.zeros({text}).to("cuda")', 0, size, size),
            Placement("On the device at once", f'x = torch.zeros({text}, device="cuda")', 0, 0, size),
        ),
    )
