"""einops and einsum: axes by name."""

from __future__ import annotations

from core.tensors.operations import guards
from core.tensors.operations.operation import AXES, BARE, TORCH, Operation

ROWS: tuple[Operation, ...] = (
    Operation("einsum", AXES, "torch.einsum('ij->ji', x)", ("text", "tensor"), (), TORCH, guards.einsum, subject=False),
    Operation("rearrange", AXES, "rearrange(x, 'a b -> b a')", ("text", "int"), ("*",), BARE, guards.pattern),
    Operation("reduce", AXES, "reduce(x, 'a b -> a', 'sum')", ("text", "int"), ("*",), BARE, guards.pattern),
    Operation("repeat", AXES, "repeat(x, 'a b -> a r b', r=2)", ("text", "int"), ("*",), BARE, guards.pattern),
    Operation(
        "einsum",
        AXES,
        "einsum(x, x, 'a c, b c -> a b')",
        ("text", "tensor"),
        (),
        BARE,
        guards.einops_einsum,
        subject=False,
    ),
)
