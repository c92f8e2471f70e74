"""New tensors out of nothing but sizes and numbers, and of the sizes of others."""

from __future__ import annotations

from core.tensors.operations import guards, guards_of_results
from core.tensors.operations.operation import COUNTING, METHOD, NUMBER, NUMBERS, SMALL, TORCH, ZEROED, Operation, Takes

_SIZES: tuple[Takes, ...] = ("int", "ints", "dtype", "format")
_LIKE: tuple[Takes, ...] = ("dtype", "format")

ROWS: tuple[Operation, ...] = (
    Operation(
        "tensor",
        SMALL,
        "torch.tensor([[1, 2], [3, 4]])",
        ("data", "int", "float", "bool", "dtype"),
        ("dtype",),
        TORCH,
        subject=False,
        why=NUMBERS,
    ),
    *(
        Operation(
            name, SMALL, f"torch.{name}(2, 3)", _SIZES, ("size", "dtype"), TORCH, guards.exact_sizes, False, why=NUMBERS
        )
        for name in ("zeros", "ones")
    ),
    Operation(
        "empty",
        SMALL,
        "torch.empty(2, 3)",
        _SIZES,
        ("size", "dtype", "memory_format"),
        TORCH,
        guards.exact_sizes,
        False,
        why=ZEROED,
        fill="zeros",
    ),
    Operation(
        "empty_strided",
        SMALL,
        "torch.empty_strided((2, 3), (1, 2))",
        _SIZES,
        ("size", "stride", "dtype"),
        TORCH,
        guards_of_results.integer_sizes,
        False,
        why=ZEROED,
        fill="zeros",
    ),
    Operation(
        "full",
        SMALL,
        "torch.full((2, 3), 7)",
        ("int", "ints", "float", "bool", "dtype"),
        ("size", "fill_value", "dtype"),
        TORCH,
        guards_of_results.full_size,
        False,
        why=NUMBERS,
    ),
    Operation(
        "eye",
        SMALL,
        "torch.eye(3)",
        ("int", "dtype"),
        ("n", "m", "dtype"),
        TORCH,
        guards_of_results.square,
        False,
        why=NUMBERS,
    ),
    Operation(
        "arange",
        SMALL,
        "torch.arange(6)",
        (*NUMBER, "bool", "dtype"),
        ("start", "end", "step", "dtype"),
        TORCH,
        guards.counted,
        False,
        why=NUMBERS,
    ),
    *(
        Operation(
            name,
            SMALL,
            f"torch.{name}(0, 1, 5)",
            (*NUMBER, "tensor", "dtype"),
            ("start", "end", "steps", *(("base",) if name == "logspace" else ()), "dtype"),
            TORCH,
            guards_of_results.steps,
            False,
            why=NUMBERS,
        )
        for name in ("linspace", "logspace")
    ),
    *(
        Operation(
            name,
            SMALL,
            f"torch.{name}(3, 3)",
            ("int", "dtype"),
            ("row", "col", "offset", "dtype"),
            TORCH,
            guards_of_results.triangle,
            False,
            why=NUMBERS,
        )
        for name in ("tril_indices", "triu_indices")
    ),
    *(
        Operation(
            name,
            SMALL,
            f"torch.{name}(2, 3)",
            _SIZES,
            ("size", "dtype"),
            TORCH,
            guards.exact_sizes,
            False,
            why=COUNTING,
            fill="counting",
        )
        for name in ("randn", "rand")
    ),
    Operation(
        "randint",
        SMALL,
        "torch.randint(0, 10, (2, 3))",
        _SIZES,
        ("low", "high", "size", "dtype"),
        TORCH,
        guards_of_results.integer_sizes,
        False,
        why=COUNTING,
        fill="counting",
    ),
    Operation(
        "randperm",
        SMALL,
        "torch.randperm(6)",
        ("int", "dtype"),
        ("n", "dtype"),
        TORCH,
        guards_of_results.line,
        False,
        why=COUNTING,
        fill="counting",
    ),
    *(
        Operation(
            f"{name}_like",
            SMALL,
            f"torch.{name}_like(x{', dtype=torch.float32' if name.startswith('rand') else ''})",
            _LIKE,
            ("dtype", "memory_format"),
            TORCH,
            why=COUNTING if name.startswith("rand") else ZEROED if name == "empty" else NUMBERS,
            fill="counting" if name.startswith("rand") else "zeros" if name == "empty" else "",
        )
        for name in ("zeros", "ones", "empty", "rand", "randn")
    ),
    Operation(
        "full_like",
        SMALL,
        "torch.full_like(x, 7)",
        (*NUMBER, "bool", "dtype", "format"),
        ("fill_value", "dtype", "memory_format"),
        TORCH,
        why=NUMBERS,
    ),
    Operation(
        "randint_like",
        SMALL,
        "torch.randint_like(x, 10)",
        ("int", "dtype", "format"),
        ("low", "high", "dtype", "memory_format"),
        TORCH,
        why=COUNTING,
        fill="counting",
    ),
    *(
        Operation(
            f"new_{name}",
            SMALL,
            f"x.new_{name}(2, 3)",
            _SIZES,
            ("size", "dtype"),
            METHOD,
            guards.exact_sizes,
            why=ZEROED if name == "empty" else NUMBERS,
            fill="zeros" if name == "empty" else "",
        )
        for name in ("zeros", "ones", "empty")
    ),
    Operation(
        "new_tensor",
        SMALL,
        "x.new_tensor([1, 2])",
        ("data", "int", "float", "bool", "dtype"),
        ("data", "dtype"),
        METHOD,
        why=NUMBERS,
    ),
    Operation(
        "new_full",
        SMALL,
        "x.new_full((2, 3), 7)",
        ("int", "ints", "float", "bool", "dtype"),
        ("size", "fill_value", "dtype"),
        METHOD,
        guards_of_results.full_size,
        why=NUMBERS,
    ),
)
