"""Written in place: the tensor keeps its storage, and whoever else looks at those cells sees it."""

from __future__ import annotations

from core.tensors.operations import guards, guards_of_results
from core.tensors.operations.operation import IN_PLACE, METHOD, NUMBER, OPERAND, WRITE, Operation, Takes

_WHOLE = ("abs_", "neg_", "sign_", "square_", "floor_", "ceil_", "trunc_", "round_", "relu_", "logical_not_")
_FRACTIONS = (
    *("exp_", "exp2_", "expm1_", "log_", "log2_", "log10_", "log1p_", "sqrt_", "rsqrt_", "reciprocal_", "sin_", "cos_"),
    *("tan_", "tanh_", "sigmoid_", "erf_", "frac_", "nan_to_num_"),
)
_BINARY = (
    *("add_", "sub_", "mul_", "floor_divide_", "remainder_", "fmod_", "pow_", "eq_", "ne_", "lt_", "le_", "gt_", "ge_"),
    *("bitwise_and_", "bitwise_or_", "bitwise_xor_"),
)


def _written(
    name: str,
    example: str,
    takes: tuple[Takes, ...] = (),
    keywords: tuple[str, ...] = (),
    guard: guards.Guard | None = None,
) -> Operation:
    return Operation(name, WRITE, example, takes, keywords, METHOD, guard, writes=True, why=IN_PLACE)


_SCATTERS: tuple[Operation, ...] = (
    _written(
        "scatter_",
        "x.scatter_(1, torch.tensor([[0], [2]]), 9)",
        ("int", "tensor", "float", "bool", "text"),
        ("dim", "index", "src", "value", "reduce"),
    ),
    _written(
        "scatter_add_",
        "x.scatter_add_(0, torch.tensor([[1, 0, 1]]), x.clone())",
        ("int", "tensor"),
        ("dim", "index", "src"),
    ),
    _written(
        "scatter_reduce_",
        "x.scatter_reduce_(0, torch.tensor([[1, 0, 1]]), x.clone(), 'amax')",
        ("int", "tensor", "text", "bool"),
        ("dim", "index", "src", "reduce", "include_self"),
    ),
    _written(
        "index_add_",
        "x.index_add_(0, torch.tensor([1]), x[:1].clone())",
        ("int", "tensor", "float"),
        ("dim", "index", "source", "alpha"),
    ),
    _written(
        "index_copy_",
        "x.index_copy_(0, torch.tensor([1]), x[:1].clone())",
        ("int", "tensor"),
        ("dim", "index", "source"),
    ),
    _written("index_fill_", "x.index_fill_(0, torch.tensor([1]), 9)", (*NUMBER, "tensor"), ("dim", "index", "value")),
    _written("masked_fill_", "x.masked_fill_(x > 2, 9)", OPERAND, ("mask", "value"), guards.elementwise),
    _written(
        "masked_scatter_", "x.masked_scatter_(x > 2, x.clone())", ("tensor",), ("mask", "source"), guards.elementwise
    ),
)

ROWS: tuple[Operation, ...] = (
    _written("fill_", "x.fill_(7)", NUMBER, ("value",)),
    _written("zero_", "x.zero_()"),
    _written("copy_", "x.copy_(x.flip(0))", ("tensor",), ("other",), guards.elementwise),
    *(
        _written(
            name,
            f"x.{name}(1)",
            OPERAND,
            ("other", "alpha") if name in ("add_", "sub_") else ("other",),
            guards.one_operand,
        )
        for name in _BINARY
    ),
    *(
        _written(name, f"x.float().{name}(2)", OPERAND, ("other",), guards.one_operand)
        for name in ("div_", "true_divide_")
    ),
    _written("clamp_", "x.clamp_(1, 4)", (*OPERAND, "none"), ("min", "max"), guards.elementwise),
    _written("clamp_min_", "x.clamp_min_(1)", OPERAND, ("min",), guards.elementwise),
    _written("clamp_max_", "x.clamp_max_(4)", OPERAND, ("max",), guards.elementwise),
    *(_written(name, f"x.{name}()") for name in _WHOLE),
    *(_written(name, f"x.float().{name}()") for name in _FRACTIONS),
    *(_written(name, f"x.{name}()", ("int",), ("diagonal",)) for name in ("tril_", "triu_")),
    *(_written(name, f"x.{name}(1)", ("int", "dtype"), ("dim", "dtype")) for name in ("cumsum_", "cumprod_")),
    *(
        _written(
            name,
            f"x.float().{name}(torch.ones(3), torch.ones(2, 1))",
            (*NUMBER, "tensor"),
            ("tensor1", "tensor2", "value"),
            guards.elementwise,
        )
        for name in ("addcmul_", "addcdiv_")
    ),
    _written(
        "lerp_", "x.float().lerp_(torch.ones(3), 0.5)", (*NUMBER, "tensor"), ("end", "weight"), guards.elementwise
    ),
    _written(
        "addmm_",
        "torch.ones(2, 2).addmm_(x.float(), torch.ones(3, 2))",
        (*NUMBER, "tensor"),
        ("mat1", "mat2", "beta", "alpha"),
        guards_of_results.added_matmul,
    ),
    *_SCATTERS,
)
