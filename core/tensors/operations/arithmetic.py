"""Numbers computed: element by element, along dimensions, and products of matrices."""

from __future__ import annotations

from core.tensors.operations import guards, guards_of_results, guards_of_values
from core.tensors.operations.operation import (
    BOTH,
    EITHER,
    EVERY,
    NUMBER,
    OPERAND,
    TORCH,
    Operation,
    Takes,
    computed,
)

_SUMS: tuple[Takes, ...] = ("int", "ints", "bool", "none", "dtype")
_DIMS: tuple[Takes, ...] = ("int", "ints", "bool", "none")
_DIM: tuple[Takes, ...] = ("int", "bool", "none")
_KEPT = ("dim", "keepdim")
_PAIR = ("values", "indices")

UNARY = (
    *("abs", "absolute", "neg", "negative", "sign", "sgn", "square", "sqrt", "rsqrt", "reciprocal"),
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logit", "sigmoid", "erf", "erfc", "erfinv"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sinc"),
    *("floor", "ceil", "trunc", "deg2rad", "rad2deg", "lgamma", "digamma", "i0", "logical_not"),
)
"""One tensor in, one of its shape out."""

FLOATING = ("frac", "nan_to_num")
"""The same, of fractions alone."""

QUESTIONS = ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "isreal", "signbit")
"""Yes or no for each element."""

BINARY = (
    *("add", "sub", "mul", "div", "subtract", "multiply", "divide", "true_divide", "floor_divide", "remainder", "fmod"),
    *("pow", "float_power", "atan2", "arctan2", "hypot", "copysign", "xlogy", "eq", "ne", "lt", "le", "gt", "ge"),
    *("not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor"),
    *("maximum", "minimum", "fmax", "fmin", "bitwise_and", "bitwise_or", "bitwise_xor", "isclose", "heaviside"),
    *("logaddexp", "logaddexp2", "nextafter", "gcd", "lcm", "ldexp"),
)
"""Two operands that broadcast against each other."""

_TENSORS_ONLY = (
    *("atan2", "arctan2", "hypot", "maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "logical_xor"),
    *("isclose", "heaviside", "logaddexp", "logaddexp2", "nextafter", "gcd", "lcm", "ldexp"),
)
_FRACTIONS_ONLY = ("logaddexp", "logaddexp2", "nextafter", "copysign", "hypot")
_ALSO = {
    "add": ("alpha",),
    "sub": ("alpha",),
    "subtract": ("alpha",),
    "div": ("rounding_mode",),
    "divide": ("rounding_mode",),
    "isclose": ("rtol", "atol", "equal_nan"),
}


def _binary(name: str) -> Operation:
    subject = "x.float()" if name in _FRACTIONS_ONLY else "x"
    other = subject if name in _TENSORS_ONLY else "2"
    takes: tuple[Takes, ...] = (*OPERAND, "text", "none") if name in _ALSO else OPERAND
    parameter = "exponent" if name in ("pow", "float_power") else "values" if name == "heaviside" else "other"
    guard = guards.elementwise if name == "isclose" else guards.one_operand
    example = f"{subject}.{name}({other})"
    return computed(name, example, takes, (parameter, *_ALSO.get(name, ())), BOTH, guard)


EACH: tuple[Operation, ...] = (
    *(computed(name, f"x.{name}()") for name in UNARY if name not in ("logit", "sigmoid", "tanh")),
    *(computed(name, f"x.float().{name}()") for name in FLOATING if name == "frac"),
    *(computed(name, f"x.{name}()") for name in QUESTIONS),
    *(computed(name, f"x.{name}()", forms=EVERY) for name in ("sigmoid", "tanh")),
    computed("logit", "x.logit()", ("float", "int", "none"), ("eps",)),
    computed("nan_to_num", "x.float().nan_to_num()", ("float", "int", "none"), ("nan", "posinf", "neginf")),
    computed("round", "x.round()", ("int",), ("decimals",)),
    computed("bitwise_not", "x.bitwise_not()"),
    Operation("positive", EITHER, "x.positive()", why="there is nothing to compute"),
    *(_binary(name) for name in BINARY),
    *(
        computed(name, f"x.{name}(1, 4)", (*OPERAND, "none"), ("min", "max"), BOTH, guards.elementwise)
        for name in ("clamp", "clip")
    ),
    *(
        computed(name, f"x.{name}(2)", OPERAND, (name[6:],), BOTH, guards.elementwise)
        for name in ("clamp_min", "clamp_max")
    ),
    *(
        computed(
            name,
            f"x.float().{name}(torch.ones(3), torch.ones(2, 1))",
            (*NUMBER, "tensor"),
            ("tensor1", "tensor2", "value"),
            BOTH,
            guards.elementwise,
        )
        for name in ("addcmul", "addcdiv")
    ),
    computed(
        "lerp", "x.float().lerp(torch.ones(3), 0.5)", (*NUMBER, "tensor"), ("end", "weight"), BOTH, guards.elementwise
    ),
    computed("rsub", "torch.rsub(x, 2)", OPERAND, ("other", "alpha"), TORCH, guards.elementwise),
    *(
        computed(name, example, ("tensor",), (parameter,), TORCH, guards.elementwise)
        for name, example, parameter in (
            ("complex", "torch.complex(torch.ones(2), torch.ones(2))", "imag"),
            ("polar", "torch.polar(torch.ones(2), torch.ones(2))", "angle"),
        )
    ),
    computed("angle", "x.angle()"),
)

REDUCED: tuple[Operation, ...] = (
    *(computed(name, f"x.{name}(0)", _SUMS, (*_KEPT, "dtype")) for name in ("sum", "nansum", "prod")),
    *(computed(name, f"x.float().{name}(0)", _SUMS, (*_KEPT, "dtype")) for name in ("mean", "nanmean")),
    *(computed(name, f"x.{name}(0)", _DIMS, _KEPT) for name in ("amax", "amin", "any", "all", "logsumexp")),
    *(computed(name, f"x.{name}(0)", _DIM, _KEPT) for name in ("argmax", "argmin")),
    *(
        computed(
            name,
            f"x.{name}(0).values",
            (*_DIM, "tensor"),
            (*_KEPT, "other"),
            BOTH,
            guards.elementwise,
            several_with="dim",
            fields=_PAIR,
        )
        for name in ("max", "min")
    ),
    *(
        computed(name, f"x.float().{name}(0).values", _DIM, _KEPT, several_with="dim", fields=_PAIR)
        for name in ("median", "nanmedian")
    ),
    computed("mode", "x.mode(0).values", _DIM, _KEPT, several=True, fields=_PAIR),
    computed("aminmax", "x.aminmax(dim=0).max", _DIM, _KEPT, several=True, fields=("min", "max")),
    *(
        computed(name, f"x.float().{name}(0)", (*_DIMS, "float"), ("dim", "unbiased", "keepdim", "correction"))
        for name in ("std", "var")
    ),
    *(
        computed(
            name,
            f"torch.{name}(x.float(), 0)[1]",
            (*_DIMS, "float"),
            ("dim", "unbiased", "keepdim", "correction"),
            TORCH,
            several=True,
        )
        for name in ("std_mean", "var_mean")
    ),
    computed("norm", "x.float().norm()", (*_SUMS, "float", "text"), ("p", *_KEPT, "dtype")),
    computed("dist", "x.float().dist(torch.ones(3))", (*NUMBER, "tensor"), ("other", "p"), BOTH, guards.elementwise),
    computed("count_nonzero", "x.count_nonzero(0)", ("int", "ints", "none"), ("dim",)),
    computed("trace", "x.trace()"),
    computed(
        "bincount",
        "x[0].bincount()",
        ("tensor", "int", "none"),
        ("weights", "minlength"),
        measured=guards_of_values.counts,
    ),
)

ALONG: tuple[Operation, ...] = (
    *(computed(name, f"x.{name}(1)", ("int", "dtype", "none"), ("dim", "dtype")) for name in ("cumsum", "cumprod")),
    computed("logcumsumexp", "x.float().logcumsumexp(1)", ("int",), ("dim",)),
    *(
        computed(name, f"x.{name}(1).values", ("int",), ("dim",), several=True, fields=_PAIR)
        for name in ("cummax", "cummin")
    ),
    computed(
        "diff",
        "x.diff()",
        ("int", "tensor", "none"),
        ("n", "dim", "prepend", "append"),
        BOTH,
        guards_of_results.differences,
    ),
    computed(
        "sort",
        "x.sort(1, descending=True).values",
        ("int", "bool"),
        ("dim", "descending", "stable"),
        several=True,
        fields=_PAIR,
    ),
    computed("argsort", "x.argsort(1)", ("int", "bool"), ("dim", "descending", "stable")),
    computed("msort", "x.msort()"),
    computed(
        "topk", "x.topk(2).indices", ("int", "bool"), ("k", "dim", "largest", "sorted"), several=True, fields=_PAIR
    ),
    computed("kthvalue", "x.kthvalue(2).values", ("int", "bool"), ("k", "dim", "keepdim"), several=True, fields=_PAIR),
    computed("renorm", "x.float().renorm(2, 0, 1)", (*NUMBER,), ("p", "dim", "maxnorm")),
)

PRODUCTS: tuple[Operation, ...] = (
    computed("matmul", "x @ x.t()", ("tensor",), ("other",), guard=guards.matmul),
    *(
        computed(name, example, ("tensor",), (parameter,), BOTH, guards.matmul)
        for name, parameter, example in (
            ("mm", "mat2", "x.mm(x.t())"),
            ("bmm", "mat2", "x[None].bmm(x.t()[None])"),
            ("mv", "vec", "x.mv(x[0])"),
            ("dot", "tensor", "x[0].dot(x[1])"),
            ("vdot", "other", "x[0].vdot(x[1])"),
        )
    ),
    computed("inner", "x.inner(x)", ("tensor",), ("other",), BOTH, guards_of_results.inner),
    *(
        computed(name, f"x[0].{name}(x[1])", ("tensor",), (parameter,), BOTH, guards_of_results.products)
        for name, parameter in (("outer", "vec2"), ("kron", "other"))
    ),
    computed(
        "tensordot",
        "torch.tensordot(x, x, ([1], [1]))",
        ("tensor", "int", "ints", "data"),
        ("other", "dims"),
        TORCH,
        guards_of_results.contracted,
    ),
    *(
        computed(name, example, (*NUMBER, "tensor"), parameters, BOTH, guards_of_results.added_matmul)
        for name, parameters, example in (
            ("addmm", ("mat1", "mat2", "beta", "alpha"), "torch.ones(2, 2).addmm(x.float(), torch.ones(3, 2))"),
            (
                "baddbmm",
                ("batch1", "batch2", "beta", "alpha"),
                "torch.ones(1, 2, 2).baddbmm(torch.ones(1, 2, 3), torch.ones(1, 3, 2))",
            ),
            (
                "addbmm",
                ("batch1", "batch2", "beta", "alpha"),
                "torch.ones(2, 2).addbmm(torch.ones(1, 2, 3), torch.ones(1, 3, 2))",
            ),
            ("addmv", ("mat", "vec", "beta", "alpha"), "torch.ones(2).addmv(x.float(), torch.ones(3))"),
        )
    ),
    computed(
        "addr",
        "torch.ones(2, 3).addr(torch.ones(2), torch.ones(3))",
        (*NUMBER, "tensor"),
        ("vec1", "vec2", "beta", "alpha"),
        BOTH,
        guards_of_results.added_outer,
    ),
    computed("cross", "x.cross(x + 1)", ("tensor", "int", "none"), ("other", "dim"), BOTH, guards.elementwise),
)

ROWS: tuple[Operation, ...] = (*EACH, *REDUCED, *ALONG, *PRODUCTS)
