"""What an einsum does: the names it sums, the batched matmuls it becomes, and their FLOPs.

torch itself says what it refuses; tests compare layouts, copies, FLOPs and results with it.
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
from core.tensors.operations.values import ExpressionError, check_length
from core.tensors.sealed.running import ask_torch


@dataclass(frozen=True, slots=True)
class EinsumPlan:
    """An einsum applied to layouts.

    operands, output: names, with ``…0`` for the first dimension an ellipsis stands for. sizes: by name.
    summed: names that are not in the output. summed_alone: elements of operands that are summed by themselves.
    pairs: the products in order, left to right. layout: of the result. flop: of all pairs and sums. between: elements
    of sums of one operand and of products that are not the last.
    """

    equation: str
    operands: tuple[Names, ...]
    output: Names
    sizes: dict[str, int]
    summed: Names
    summed_alone: int
    pairs: tuple[Pair, ...]
    layout: TensorLayout
    element_size: int
    flop: int
    between: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.shape

    @property
    def bytes_copied(self) -> int:
        """Bytes all operands copy to get ready."""
        return sum(pair.bytes_copied for pair in self.pairs)

    @property
    def bytes_inside(self) -> int:
        """Bytes that are freed again: what operands copy, sums of one of them, and products that are not the last."""
        return self.bytes_copied + int(tensor_bytes(self.between, self.element_size))

    @property
    def headline(self) -> list[Message]:
        """The answer, and the bytes of temporary memory where there are any."""
        flop, size = float(self.flop), float(self.layout.numel * self.element_size)
        pair = self.pairs[0] if self.pairs else None
        if pair is None:
            kind = "axes.einsum.sum" if self.summed else "axes.einsum.view"
        elif len(self.pairs) > 1:
            kind = "axes.einsum.products"
        elif pair.kind == "multiply":
            kind = "axes.einsum.multiply"
        else:
            kind = "axes.einsum.bmm" if pair.sizes[0] > 1 else "axes.einsum.matmul"
        call, count = "" if pair is None else pair.call, float(len(self.pairs))
        said = pick_message(kind, equation=self.equation, flop=flop, bytes=size, call=call, count=count)
        inside = float(self.bytes_inside)
        return [said, message("axes.einsum.inside", bytes=inside)] if inside else [said]

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """The formulas of every product, sum and copy, in order."""
        result: list[Explanation] = []
        for pair in self.pairs:
            batch, rows, columns, inner = pair.sizes
            if pair.kind == "bmm":
                result.append(matmul_flop.explain(m=rows, n=columns, k=inner, groups=batch))
            else:
                result.append(elementwise_flop.explain(per_element=1, elements=pair.layout.numel))
            result += [
                tensor_bytes.explain(elements=plan.layout.numel, element_bytes=self.element_size)
                for plan in (pair.left, pair.right)
                if plan is not None and plan.bytes
            ]
        if self.summed_alone:
            result.append(elementwise_flop.explain(per_element=1, elements=self.summed_alone))
        return tuple(result)


def explain_einsum(
    equation: str, layouts: Sequence[TensorLayout], *, words: bool = False, element_size: int = 4
) -> EinsumPlan:
    """What ``torch.einsum(equation, …)`` does on operands of these layouts.

    words: names of several letters, separated by spaces, as ``einops.einsum`` takes them. element_size: bytes.
    Raises `ExpressionError` for whatever torch (or einops) refuses, and beyond the caps.
    """
    check_length(len(equation))
    _check(equation, layouts, words)
    terms, output = _read(equation, words)
    operands, covered = _open(terms, layouts)
    output = _output(output, operands, covered)
    sizes = _sizes(operands, layouts)
    later = sorted({name for names in operands for name in names} - set(output), key=_torch_order(operands, words))
    order = (*output, *later)
    ready = [align(names, layout, order) for names, layout in zip(operands, layouts, strict=True)]
    pairs, layout, alone, between = contract(ready, order, len(output), element_size)
    return EinsumPlan(
        equation=equation,
        operands=tuple(operands),
        output=output,
        sizes=sizes,
        summed=tuple(later),
        summed_alone=alone,
        pairs=tuple(pairs),
        layout=layout,
        element_size=element_size,
        flop=sum(pair.flop for pair in pairs) + int(elementwise_flop(alone, 1)),
        between=between,
    )


# ------------------------------------------------------------------------------------------------ reading

_DOTS = "..."


def _check(equation: str, layouts: Sequence[TensorLayout], words: bool) -> None:
    """Raise what torch, or einops, says of an equation that it refuses: on the meta device, which has no memory."""
    tensors = ", ".join(f"torch.empty({layout.shape}, device='meta')" for layout in layouts)
    called = f"einops.einsum({tensors}, {equation!r})" if words else f"torch.einsum({equation!r}, {tensors})"
    if error := next(iter(ask_torch(called)[1].strip().splitlines()), ""):
        raise ExpressionError(message("axes.problem.rejected", pattern=equation, error=error[:200]))


def _read(equation: str, words: bool) -> tuple[list[list[str]], list[str] | None]:
    """The names of each operand and of the output, ``None`` when torch is to work it out."""
    left, arrow, right = equation.partition("->")
    name = r"\.\.\.|\w+" if words else r"\.\.\.|[A-Za-z]"
    terms = [re.findall(name, term) for term in left.split(",")]
    return terms, re.findall(name, right) if arrow else None


def _open(terms: Sequence[Sequence[str]], layouts: Sequence[TensorLayout]) -> tuple[list[Names], int]:
    """Names by dimension, each ellipsis opened; dimensions under an ellipsis are aligned at their right end."""
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
    """Size of every name; size 1 broadcasts between operands."""
    sizes: dict[str, int] = {}
    for names, layout in zip(operands, layouts, strict=True):
        for name, size in zip(names, layout.shape, strict=True):
            sizes[name] = size if sizes.get(name, 1) == 1 else sizes[name]
    return sizes


def _torch_order(operands: Sequence[Names], words: bool) -> Callable[[str], tuple[int, int]]:
    """Where torch puts a summed name: ellipses first, then capitals, then small letters.

    Words become letters in order of appearance, as einops does it.
    """
    letters = string.ascii_letters
    appeared = list(dict.fromkeys(name for names in operands for name in names if not name.startswith("…")))

    def key(name: str) -> tuple[int, int]:
        if name.startswith("…"):
            return (0, int(name[1:]))
        letter = letters[appeared.index(name) % 52] if words else name
        return (1, ord(letter))

    return key
