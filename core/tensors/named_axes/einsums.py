"""What an einsum does: the names it sums, the batched matmuls it becomes, and their FLOPs.

Tests compare layouts, copies and FLOPs with torch.
Source: https://docs.pytorch.org/docs/stable/generated/torch.einsum.html
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core.formula import Explanation
from core.messages import Message, message, pick_message
from core.products import elementwise_flop, matmul_flop
from core.tensors.cost import tensor_bytes
from core.tensors.layout import TensorLayout
from core.tensors.named_axes.contraction import Names, Pair, align, contract
from core.tensors.tracing.steps import TraceStep


@dataclass(frozen=True, slots=True)
class EinsumPlan:
    """An einsum applied to layouts.

    operands, output: names, with ``…0`` for the first dimension an ellipsis stands for. sizes: by name.
    summed: names that are not in the output. pairs: the products in order, left to right. flop: of the products; of one
    tensor the additions. elements: of the result; bytes_inside: what torch allocated besides and gave back.
    """

    equation: str
    operands: tuple[Names, ...]
    output: Names
    sizes: dict[str, int]
    summed: Names
    pairs: tuple[Pair, ...]
    flop: int
    elements: int
    element_size: int
    bytes_inside: int

    @property
    def headline(self) -> list[Message]:
        """The answer, and the bytes of temporary memory where there are any."""
        flop, size = float(self.flop), float(self.elements * self.element_size)
        pair = self.pairs[0] if self.pairs else None
        if pair is None:
            kind = "axes.einsum.sum" if self.summed else "axes.einsum.view"
        elif len(self.pairs) > 1:
            kind = "axes.einsum.products"
        elif not pair.inner:
            kind = "axes.einsum.multiply"
        else:
            kind = "axes.einsum.bmm" if pair.sizes[0] > 1 else "axes.einsum.matmul"
        call, count = "" if pair is None else pair.call, float(len(self.pairs))
        said = pick_message(kind, equation=self.equation, flop=flop, bytes=size, call=call, count=count)
        inside = float(self.bytes_inside)
        return [said, message("axes.einsum.inside", bytes=inside)] if inside else [said]

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """The formulas of every product and copy, in order."""
        result: list[Explanation] = []
        for pair in self.pairs:
            batch, rows, columns, inner = pair.sizes
            if pair.inner:
                result.append(matmul_flop.explain(m=rows, n=columns, k=inner, groups=batch))
            else:
                result.append(elementwise_flop.explain(per_element=1, elements=pair.flop))
            result += [
                tensor_bytes.explain(elements=plan.layout.numel, element_bytes=self.element_size)
                for plan in pair.sides
                if plan.copied
            ]
        if self.summed and not self.pairs:
            result.append(elementwise_flop.explain(per_element=1, elements=self.flop))
        return tuple(result)


def explain_einsum(
    equation: str, layouts: Sequence[TensorLayout], step: TraceStep, *, words: bool = False
) -> EinsumPlan:
    """Return what ``torch.einsum(equation, …)``, a step of a trace, did on operands of these layouts.

    words: names of several letters, separated by spaces, as ``einops.einsum`` takes them.
    """
    terms, output = _read(equation, words)
    operands, covered = _open(terms, layouts)
    output = _output(output, operands, covered)
    later = sorted({name for names in operands for name in names} - set(output), key=_torch_order(operands, words))
    order = (*output, *later)
    pairs = contract(
        [align(names, layout, order) for names, layout in zip(operands, layouts, strict=True)], order, len(output)
    )
    flop = sum(pair.flop for pair in pairs) if pairs else layouts[0].numel * bool(later)
    elements, item, inside = step.layout.numel, step.element_size, step.bytes_inside
    sizes = _sizes(operands, layouts)
    return EinsumPlan(
        equation, tuple(operands), output, sizes, tuple(later), tuple(pairs), flop, elements, item, inside
    )


# ------------------------------------------------------------------------------------------------ reading

_DOTS = "..."


def _read(equation: str, words: bool) -> tuple[list[list[str]], list[str] | None]:
    """Return the names of each operand and of the output, ``None`` when torch is to work it out."""
    left, arrow, right = equation.partition("->")
    name = r"\.\.\.|\w+" if words else r"\.\.\.|[A-Za-z]"
    terms = [re.findall(name, term) for term in left.split(",")]
    return terms, re.findall(name, right) if arrow else None


def _open(terms: Sequence[Sequence[str]], layouts: Sequence[TensorLayout]) -> tuple[list[Names], int]:
    """Return names by dimension, each ellipsis opened; dimensions under an ellipsis are aligned at their right end."""
    covered = max((layout.rank - len(t) + 1 for t, layout in zip(terms, layouts, strict=True) if _DOTS in t), default=0)
    opened: list[Names] = []
    for term, layout in zip(terms, layouts, strict=True):
        names = tuple(f"…{i}" for i in range(covered - (layout.rank - len(term) + 1), covered))
        opened.append(tuple(n for name in term for n in (names if name == _DOTS else (name,))))
    return opened, covered


def _output(output: list[str] | None, operands: Sequence[Names], covered: int) -> Names:
    dots = tuple(f"…{i}" for i in range(covered))
    seen = [name for names in operands for name in names]
    if output is None:
        return (*dots, *sorted(name for name in seen if not name.startswith("…") and seen.count(name) == 1))
    return tuple(n for name in output for n in (dots if name == _DOTS else (name,)))


def _sizes(operands: Sequence[Names], layouts: Sequence[TensorLayout]) -> dict[str, int]:
    """Return the size of every name; size 1 broadcasts between operands."""
    sizes: dict[str, int] = {}
    for names, layout in zip(operands, layouts, strict=True):
        for name, size in zip(names, layout.shape, strict=True):
            sizes[name] = size if sizes.get(name, 1) == 1 else sizes[name]
    return sizes


def _torch_order(operands: Sequence[Names], words: bool) -> Callable[[str], tuple[int, int]]:
    """Return the order in which torch sorts names: ellipses first, then capitals, then small letters.

    Words become letters in order of appearance, as in einops.
    """
    letters = string.ascii_letters
    appeared = list(dict.fromkeys(name for names in operands for name in names if not name.startswith("…")))

    def key(name: str) -> tuple[int, int]:
        if name.startswith("…"):
            return (0, int(name[1:]))
        letter = letters[appeared.index(name) % 52] if words else name
        return (1, ord(letter))

    return key
