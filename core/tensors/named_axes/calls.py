"""One call of einops or einsum as a person types it, and presets from a transformer.

>>> from core.tensors.named_axes.calls import explain_call
>>> explain_call("rearrange(x, 'b s (h d) -> b h s d', h=2)", [(2, 3, 8)]).bytes_allocated
0
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from core.limits import limit
from core.tensors.layout import Layout
from core.tensors.named_axes.einsums import EinsumPlan, explain_einsum
from core.tensors.named_axes.patterns import FUNCTIONS, PatternPlan, explain_pattern
from core.tensors.operations.guards import check_size
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.steps import Step, Trace

Plan: TypeAlias = PatternPlan | EinsumPlan

EXAMPLE = "rearrange(x, 'b s (h d) -> b h s d', h=2)"


@dataclass(frozen=True, slots=True)
class PatternCall:
    """A call read from text. function: an einops function or ``einsum``; words: names of several letters.

    operands: the tensors as typed. sizes: axis sizes given as keywords. reduction: of ``reduce``.
    """

    function: str
    pattern: str
    operands: tuple[str, ...]
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    reduction: str = ""
    words: bool = False


@dataclass(frozen=True, slots=True)
class PatternPreset:
    """A chip: the call, one shape per operand, and what it is good for in a sentence."""

    label: str
    call: str
    shapes: tuple[tuple[int, ...], ...]
    why: str


PRESETS: tuple[PatternPreset, ...] = (
    PatternPreset(
        "Split heads",
        "rearrange(x, 'b s (h d) -> b h s d', h=4)",
        ((2, 3, 32),),
        "Attention works head by head; the split is a view, because h and d lie side by side in memory.",
    ),
    PatternPreset(
        "Merge heads",
        "rearrange(x, 'b h s d -> b s (h d)')",
        ((2, 4, 3, 8),),
        "After attention the heads go back side by side; s lies between them, so this is a copy.",
    ),
    PatternPreset(
        "Split QKV",
        "rearrange(x, 'b s (three h d) -> three b h s d', three=3, h=4)",
        ((2, 3, 96),),
        "One fused projection gives queries, keys and values; x[0], x[1], x[2] of the result are views of it.",
    ),
    PatternPreset(
        "Patchify",
        "rearrange(x, 'b c (h p1) (w p2) -> b (h w) (c p1 p2)', p1=4, p2=4)",
        ((1, 3, 8, 8),),
        "A vision transformer cuts an image into patches, a token each; rows of a patch lie apart, so this is a copy.",
    ),
    PatternPreset(
        "Repeat KV heads",
        "repeat(x, 'b kv s d -> b (kv g) s d', g=4)",
        ((1, 2, 3, 8),),
        "Grouped-query attention without a kernel for it: g query heads read the same keys, here copied g times.",
    ),
    PatternPreset(
        "Group query heads",
        "rearrange(x, 'b (kv g) s d -> b kv g s d', g=4)",
        ((1, 8, 3, 8),),
        "The other way to group queries: split their heads instead of copying the keys. A view.",
    ),
    PatternPreset(
        "Mean over positions",
        "reduce(x, 'b s d -> b d', 'mean')",
        ((2, 3, 8),),
        "One vector per sequence, for an embedding model.",
    ),
    PatternPreset(
        "Attention scores",
        "torch.einsum('bhqd,bhkd->bhqk', q, k)",
        ((2, 4, 3, 8), (2, 4, 5, 8)),
        "Queries times keys: a batched matmul per head. The keys are read transposed, without a copy.",
    ),
    PatternPreset(
        "Scores before the split",
        "torch.einsum('bqhd,bkhd->bhqk', q, k)",
        ((2, 3, 4, 8), (2, 5, 4, 8)),
        "The same with positions before heads: b and h are not neighbours, so both operands are copied first.",
    ),
    PatternPreset(
        "Values by scores",
        "torch.einsum('bhqk,bhkd->bhqd', p, v)",
        ((2, 4, 3, 5), (2, 4, 5, 8)),
        "Softmaxed scores times values: the second matmul of attention.",
    ),
    PatternPreset(
        "Linear layer",
        "torch.einsum('bsi,oi->bso', x, w)",
        ((2, 3, 8), (16, 8)),
        "nn.Linear keeps its weight as (out, in); it is read transposed, and batch and position are one dimension.",
    ),
    PatternPreset(
        "The lecture's einsum",
        "einsum(x, y, 'batch seq1 hidden, batch seq2 hidden -> batch seq1 seq2')",
        ((2, 3, 4), (2, 3, 4)),
        "Names instead of positions: what is missing on the right is summed.",
    ),
    PatternPreset(
        "Three matrices",
        "torch.einsum('ij,jk,kl->il', a, b, c)",
        ((40, 30), (30, 20), (20, 1)),
        "Left to right is not the cheapest order.",
    ),
)


def read_call(text: str) -> PatternCall:
    """Read one call of ``rearrange``, ``reduce``, ``repeat`` or ``einsum``; nothing is evaluated.

    ``torch.einsum('ij,jk->ik', x, y)`` takes letters, ``einsum(x, y, 'a b, b c -> a c')`` (of einops) takes words.
    Raises `ExpressionError` with an example for anything else.
    """
    text = text.strip()
    if len(text) > limit("expression_chars"):
        raise ExpressionError(f"That is {len(text):,} characters long; at most {limit('expression_chars')}.")
    try:
        node = ast.parse(text, mode="eval").body  # parses only
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(f"This is not a complete call. For example: {EXAMPLE}.") from None
    call = _call(node)
    if call is None:
        raise ExpressionError(f"`{text[:60]}` is no call of {', '.join(FUNCTIONS)} or einsum. For example: {EXAMPLE}.")
    return call


def _call(node: ast.expr) -> PatternCall | None:
    """The call ``node`` is, ``None`` for any other syntax."""
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(value=ast.Name(id="einops"), attr=name)):
            of_torch = False
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="einsum" as name)):
            of_torch = True
        case _:
            return None
    if name not in (*FUNCTIONS, "einsum"):
        return None
    texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    tensors = tuple(ast.unparse(a) for a in node.args if not isinstance(a, ast.Constant))
    sizes: dict[str, int] = {}
    reduction = texts[1] if len(texts) > 1 else ""
    for keyword in node.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if keyword.arg == "reduction" and isinstance(value, str):
            reduction = value
        elif keyword.arg and isinstance(value, int) and not isinstance(value, bool):
            if value > limit("expression_integer"):
                raise ExpressionError(f"`{keyword.arg[:40]}` is at most {limit('expression_integer'):,}.")
            sizes[keyword.arg] = value
        else:
            raise ExpressionError(f"The size of an axis is a whole number, `h=2`. For example: {EXAMPLE}.")
    if not texts:
        raise ExpressionError(f"`{name}` needs a pattern in quotes. For example: {EXAMPLE}.")
    if name != "einsum" and len(tensors) != 1:
        raise ExpressionError(f"`{name}` takes one tensor and a pattern. For example: {EXAMPLE}.")
    return PatternCall(name, texts[0], tensors, sizes, reduction, words=name == "einsum" and not of_torch)


def explain_call(
    text: str | PatternCall,
    shapes: Sequence[Sequence[int] | Layout],
    *,
    element_size: int = 4,
    reduced_size: int | None = None,
) -> Plan:
    """What one call does on operands of these shapes (contiguous) or layouts.

    Raises `ExpressionError` when the call cannot be read or einops or torch would refuse it.
    """
    call = read_call(text) if isinstance(text, str) else text
    layouts: list[Layout] = []
    for shape in shapes:
        layout = shape if isinstance(shape, Layout) else Layout.contiguous(shape)
        check_size(layout.shape, "An operand")
        layouts.append(layout)
    if call.function == "einsum":
        plan = explain_einsum(call.pattern, layouts, words=call.words, element_size=element_size)
        check_size(plan.shape, "The result")
        return plan
    if len(layouts) != 1:
        raise ExpressionError(f"`{call.function}` takes one tensor, but {len(layouts)} shapes are given.")
    return explain_pattern(
        call.function,
        call.pattern,
        layouts[0],
        call.sizes,
        reduction=call.reduction,
        element_size=element_size,
        reduced_size=reduced_size,
    )


def plans_of(trace: Trace) -> tuple[tuple[Step, Plan], ...]:
    """The einops and einsum steps of a trace, each with what it became on the layouts it met.

    Steps torch or einops refused are left out: they became nothing.
    """
    rows: list[tuple[Step, Plan]] = []
    for planned, step in zip(trace.planned, trace.steps[1:], strict=True):
        function = planned.operation.name
        bare = planned.form == "bare"
        if step.kind == "refused" or not (function == "einsum" or (bare and function in FUNCTIONS)):
            continue
        texts = [value for value in planned.args if isinstance(value, str)]
        named = dict(planned.keywords)
        reduction = named.get("reduction", texts[1] if len(texts) > 1 else "")
        sizes = {name: size for name, size in named.items() if isinstance(size, int)}
        call = PatternCall(
            function,
            texts[0],
            tuple(trace.label(trace[number], step.number - 1) for number in planned.inputs),
            sizes,
            str(reduction),
            words=bare and function == "einsum",
        )
        layouts = [trace[number].layout for number in planned.inputs]
        size = trace[planned.inputs[0]].element_size
        try:
            plan = explain_call(call, layouts, element_size=size, reduced_size=step.element_size)
        except ExpressionError:
            continue  # torch ran it, but it is beyond what the explanation takes
        rows.append((step, plan))
    return tuple(rows)
