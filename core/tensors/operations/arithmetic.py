"""Numbers computed: element by element, along dimensions, and products of matrices."""

from __future__ import annotations

from core.tensors.operations import guards, guards_of_results, guards_of_values
from core.tensors.operations.operation import (
    BOTH,
    COMPUTED,
    COMPUTING,
    EITHER,
    EVERY,
    NUMBER,
    OPERAND,
    TORCH,
    Operation,
    Takes,
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
    return Operation(name, COMPUTED, example, takes, (parameter, *_ALSO.get(name, ())), BOTH, guard, why=COMPUTING)


def _plain(name: str, example: str, takes: tuple[Takes, ...] = (), keywords: tuple[str, ...] = ()) -> Operation:
    """A row without a guard: what it makes is no larger than what it takes."""
    return Operation(name, COMPUTED, example, takes, keywords, why=COMPUTING)


EACH: tuple[Operation, ...] = (
    *(_plain(name, f"x.{name}()") for name in UNARY if name not in ("logit", "sigmoid", "tanh")),
    *(_plain(name, f"x.float().{name}()") for name in FLOATING if name == "frac"),
    *(_plain(name, f"x.{name}()") for name in QUESTIONS),
    *(Operation(name, COMPUTED, f"x.{name}()", forms=EVERY, why=COMPUTING) for name in ("sigmoid", "tanh")),
    _plain("logit", "x.logit()", ("float", "int", "none"), ("eps",)),
    _plain("nan_to_num", "x.float().nan_to_num()", ("float", "int", "none"), ("nan", "posinf", "neginf")),
    _plain("round", "x.round()", ("int",), ("decimals",)),
    _plain("bitwise_not", "x.bitwise_not()"),
    Operation("positive", EITHER, "x.positive()", why="there is nothing to compute"),
    *(_binary(name) for name in BINARY),
    *(
        Operation(
            name,
            COMPUTED,
            f"x.{name}(1, 4)",
            (*OPERAND, "none"),
            ("min", "max"),
            BOTH,
            guards.elementwise,
            why=COMPUTING,
        )
        for name in ("clamp", "clip")
    ),
    *(
        Operation(name, COMPUTED, f"x.{name}(2)", OPERAND, (name[6:],), BOTH, guards.elementwise, why=COMPUTING)
        for name in ("clamp_min", "clamp_max")
    ),
    *(
        Operation(
            name,
            COMPUTED,
            f"x.float().{name}(torch.ones(3), torch.ones(2, 1))",
            (*NUMBER, "tensor"),
            ("tensor1", "tensor2", "value"),
            BOTH,
            guards.elementwise,
            why=COMPUTING,
        )
        for name in ("addcmul", "addcdiv")
    ),
    Operation(
        "lerp",
        COMPUTED,
        "x.float().lerp(torch.ones(3), 0.5)",
        (*NUMBER, "tensor"),
        ("end", "weight"),
        BOTH,
        guards.elementwise,
        why=COMPUTING,
    ),
    Operation(
        "rsub", COMPUTED, "torch.rsub(x, 2)", OPERAND, ("other", "alpha"), TORCH, guards.elementwise, why=COMPUTING
    ),
    *(
        Operation(name, COMPUTED, example, ("tensor",), (parameter,), TORCH, guards.elementwise, why=COMPUTING)
        for name, example, parameter in (
            ("complex", "torch.complex(torch.ones(2), torch.ones(2))", "imag"),
            ("polar", "torch.polar(torch.ones(2), torch.ones(2))", "angle"),
        )
    ),
    _plain("angle", "x.angle()"),
)

REDUCED: tuple[Operation, ...] = (
    *(_plain(name, f"x.{name}(0)", _SUMS, (*_KEPT, "dtype")) for name in ("sum", "nansum", "prod")),
    *(_plain(name, f"x.float().{name}(0)", _SUMS, (*_KEPT, "dtype")) for name in ("mean", "nanmean")),
    *(_plain(name, f"x.{name}(0)", _DIMS, _KEPT) for name in ("amax", "amin", "any", "all", "logsumexp")),
    *(_plain(name, f"x.{name}(0)", _DIM, _KEPT) for name in ("argmax", "argmin")),
    *(
        Operation(
            name,
            COMPUTED,
            f"x.{name}(0).values",
            (*_DIM, "tensor"),
            (*_KEPT, "other"),
            BOTH,
            guards.elementwise,
            why=COMPUTING,
            several_with="dim",
            fields=_PAIR,
        )
        for name in ("max", "min")
    ),
    *(
        Operation(
            name,
            COMPUTED,
            f"x.float().{name}(0).values",
            _DIM,
            _KEPT,
            why=COMPUTING,
            several_with="dim",
            fields=_PAIR,
        )
        for name in ("median", "nanmedian")
    ),
    Operation("mode", COMPUTED, "x.mode(0).values", _DIM, _KEPT, why=COMPUTING, several=True, fields=_PAIR),
    Operation(
        "aminmax", COMPUTED, "x.aminmax(dim=0).max", _DIM, _KEPT, why=COMPUTING, several=True, fields=("min", "max")
    ),
    *(
        _plain(name, f"x.float().{name}(0)", (*_DIMS, "float"), ("dim", "unbiased", "keepdim", "correction"))
        for name in ("std", "var")
    ),
    *(
        Operation(
            name,
            COMPUTED,
            f"torch.{name}(x.float(), 0)[1]",
            (*_DIMS, "float"),
            ("dim", "unbiased", "keepdim", "correction"),
            TORCH,
            why=COMPUTING,
            several=True,
        )
        for name in ("std_mean", "var_mean")
    ),
    _plain("norm", "x.float().norm()", (*_SUMS, "float", "text"), ("p", *_KEPT, "dtype")),
    Operation(
        "dist",
        COMPUTED,
        "x.float().dist(torch.ones(3))",
        (*NUMBER, "tensor"),
        ("other", "p"),
        BOTH,
        guards.elementwise,
        why=COMPUTING,
    ),
    _plain("count_nonzero", "x.count_nonzero(0)", ("int", "ints", "none"), ("dim",)),
    _plain("trace", "x.trace()"),
    Operation(
        "bincount",
        COMPUTED,
        "x[0].bincount()",
        ("tensor", "int", "none"),
        ("weights", "minlength"),
        why=COMPUTING,
        measured=guards_of_values.counts,
    ),
)

ALONG: tuple[Operation, ...] = (
    *(_plain(name, f"x.{name}(1)", ("int", "dtype", "none"), ("dim", "dtype")) for name in ("cumsum", "cumprod")),
    _plain("logcumsumexp", "x.float().logcumsumexp(1)", ("int",), ("dim",)),
    *(
        Operation(name, COMPUTED, f"x.{name}(1).values", ("int",), ("dim",), why=COMPUTING, several=True, fields=_PAIR)
        for name in ("cummax", "cummin")
    ),
    Operation(
        "diff",
        COMPUTED,
        "x.diff()",
        ("int", "tensor", "none"),
        ("n", "dim", "prepend", "append"),
        BOTH,
        guards_of_results.differences,
        why=COMPUTING,
    ),
    Operation(
        "sort",
        COMPUTED,
        "x.sort(1, descending=True).values",
        ("int", "bool"),
        ("dim", "descending", "stable"),
        why=COMPUTING,
        several=True,
        fields=_PAIR,
    ),
    _plain("argsort", "x.argsort(1)", ("int", "bool"), ("dim", "descending", "stable")),
    _plain("msort", "x.msort()"),
    Operation(
        "topk",
        COMPUTED,
        "x.topk(2).indices",
        ("int", "bool"),
        ("k", "dim", "largest", "sorted"),
        why=COMPUTING,
        several=True,
        fields=_PAIR,
    ),
    Operation(
        "kthvalue",
        COMPUTED,
        "x.kthvalue(2).values",
        ("int", "bool"),
        ("k", "dim", "keepdim"),
        why=COMPUTING,
        several=True,
        fields=_PAIR,
    ),
    _plain("renorm", "x.float().renorm(2, 0, 1)", (*NUMBER,), ("p", "dim", "maxnorm")),
)

PRODUCTS: tuple[Operation, ...] = (
    Operation("matmul", COMPUTED, "x @ x.t()", ("tensor",), ("other",), guard=guards.matmul, why=COMPUTING),
    *(
        Operation(name, COMPUTED, example, ("tensor",), (parameter,), BOTH, guards.matmul, why=COMPUTING)
        for name, parameter, example in (
            ("mm", "mat2", "x.mm(x.t())"),
            ("bmm", "mat2", "x[None].bmm(x.t()[None])"),
            ("mv", "vec", "x.mv(x[0])"),
            ("dot", "tensor", "x[0].dot(x[1])"),
            ("vdot", "other", "x[0].vdot(x[1])"),
        )
    ),
    Operation("inner", COMPUTED, "x.inner(x)", ("tensor",), ("other",), BOTH, guards_of_results.inner, why=COMPUTING),
    *(
        Operation(
            name,
            COMPUTED,
            f"x[0].{name}(x[1])",
            ("tensor",),
            (parameter,),
            BOTH,
            guards_of_results.products,
            why=COMPUTING,
        )
        for name, parameter in (("outer", "vec2"), ("kron", "other"))
    ),
    Operation(
        "tensordot",
        COMPUTED,
        "torch.tensordot(x, x, ([1], [1]))",
        ("tensor", "int", "ints", "data"),
        ("other", "dims"),
        TORCH,
        guards_of_results.contracted,
        why=COMPUTING,
    ),
    *(
        Operation(
            name,
            COMPUTED,
            example,
            (*NUMBER, "tensor"),
            parameters,
            BOTH,
            guards_of_results.added_matmul,
            why=COMPUTING,
        )
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
    Operation(
        "addr",
        COMPUTED,
        "torch.ones(2, 3).addr(torch.ones(2), torch.ones(3))",
        (*NUMBER, "tensor"),
        ("vec1", "vec2", "beta", "alpha"),
        BOTH,
        guards_of_results.added_outer,
        why=COMPUTING,
    ),
    Operation(
        "cross",
        COMPUTED,
        "x.cross(x + 1)",
        ("tensor", "int", "none"),
        ("other", "dim"),
        BOTH,
        guards.elementwise,
        why=COMPUTING,
    ),
)

ROWS: tuple[Operation, ...] = (*EACH, *REDUCED, *ALONG, *PRODUCTS)
