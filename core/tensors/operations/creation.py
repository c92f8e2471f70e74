"""New tensors out of nothing but sizes and numbers, and of the sizes of others."""

from __future__ import annotations

from collections.abc import Mapping

from core.tensors.operations import guards, guards_of_results
from core.tensors.operations.operation import (
    COUNTING,
    METHOD,
    NUMBER,
    NUMBERS,
    SMALL,
    TORCH,
    ZEROED,
    Fill,
    Operation,
    Takes,
    Written,
)

_SIZES: tuple[Takes, ...] = ("int", "ints", "dtype", "format")
_LIKE: tuple[Takes, ...] = ("dtype", "format")
_WHY: Mapping[Fill, str] = {"": NUMBERS, "zeros": ZEROED, "counting": COUNTING}


def _small(
    name: str,
    example: str,
    takes: tuple[Takes, ...],
    keywords: tuple[str, ...],
    guard: guards.Guard | None = None,
    *,
    forms: tuple[Written, ...] = TORCH,
    subject: bool = False,
    fill: Fill = "",
) -> Operation:
    """A row whose reason is what its numbers are."""
    takes = (*takes, *(() if "bool" in takes else ("bool",)))
    keywords = (*keywords, "requires_grad")
    return Operation(name, SMALL, example, takes, keywords, forms, guard, subject, why=_WHY[fill], fill=fill)


ROWS: tuple[Operation, ...] = (
    _small("tensor", "torch.tensor([[1, 2], [3, 4]])", ("data", "int", "float", "bool", "dtype"), ("dtype",)),
    *(_small(name, f"torch.{name}(2, 3)", _SIZES, ("size", "dtype"), guards.exact_sizes) for name in ("zeros", "ones")),
    _small("empty", "torch.empty(2, 3)", _SIZES, ("size", "dtype", "memory_format"), guards.exact_sizes, fill="zeros"),
    _small(
        "empty_strided",
        "torch.empty_strided((2, 3), (1, 2))",
        _SIZES,
        ("size", "stride", "dtype"),
        guards_of_results.integer_sizes,
        fill="zeros",
    ),
    _small(
        "full",
        "torch.full((2, 3), 7)",
        ("int", "ints", "float", "bool", "dtype"),
        ("size", "fill_value", "dtype"),
        guards_of_results.full_size,
    ),
    _small("eye", "torch.eye(3)", ("int", "dtype"), ("n", "m", "dtype"), guards_of_results.square),
    _small("arange", "torch.arange(6)", (*NUMBER, "bool", "dtype"), ("start", "end", "step", "dtype"), guards.counted),
    *(
        _small(
            name,
            f"torch.{name}(0, 1, 5)",
            (*NUMBER, "tensor", "dtype"),
            ("start", "end", "steps", *(("base",) if name == "logspace" else ()), "dtype"),
            guards_of_results.steps,
        )
        for name in ("linspace", "logspace")
    ),
    *(
        _small(
            name, f"torch.{name}(3, 3)", ("int", "dtype"), ("row", "col", "offset", "dtype"), guards_of_results.triangle
        )
        for name in ("tril_indices", "triu_indices")
    ),
    *(
        _small(name, f"torch.{name}(2, 3)", _SIZES, ("size", "dtype"), guards.exact_sizes, fill="counting")
        for name in ("randn", "rand")
    ),
    _small(
        "randint",
        "torch.randint(0, 10, (2, 3))",
        _SIZES,
        ("low", "high", "size", "dtype"),
        guards_of_results.integer_sizes,
        fill="counting",
    ),
    _small("randperm", "torch.randperm(6)", ("int", "dtype"), ("n", "dtype"), guards_of_results.line, fill="counting"),
    *(
        _small(
            f"{name}_like",
            f"torch.{name}_like(x{(', dtype=torch.float32' if name.startswith('rand') else '')})",
            _LIKE,
            ("dtype", "memory_format"),
            fill="counting" if name.startswith("rand") else "zeros" if name == "empty" else "",
            subject=True,
        )
        for name in ("zeros", "ones", "empty", "rand", "randn")
    ),
    _small(
        "full_like",
        "torch.full_like(x, 7)",
        (*NUMBER, "bool", "dtype", "format"),
        ("fill_value", "dtype", "memory_format"),
        subject=True,
    ),
    _small(
        "randint_like",
        "torch.randint_like(x, 10)",
        ("int", "dtype", "format"),
        ("low", "high", "dtype", "memory_format"),
        fill="counting",
        subject=True,
    ),
    *(
        _small(
            f"new_{name}",
            f"x.new_{name}(2, 3)",
            _SIZES,
            ("size", "dtype"),
            guards.exact_sizes,
            fill="zeros" if name == "empty" else "",
            subject=True,
            forms=METHOD,
        )
        for name in ("zeros", "ones", "empty")
    ),
    _small(
        "new_tensor",
        "x.new_tensor([1, 2])",
        ("data", "int", "float", "bool", "dtype"),
        ("data", "dtype"),
        subject=True,
        forms=METHOD,
    ),
    _small(
        "new_full",
        "x.new_full((2, 3), 7)",
        ("int", "ints", "float", "bool", "dtype"),
        ("size", "fill_value", "dtype"),
        guards_of_results.full_size,
        subject=True,
        forms=METHOD,
    ),
)
