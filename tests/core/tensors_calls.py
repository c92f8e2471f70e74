"""Random calls of every operation of the table, made from its row: the parameters it names, in shapes that fit.

Each call is a program that runs in Python as it stands, so that torch itself is the reference.
"""

from __future__ import annotations

import ast
import math
import random
import warnings
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch

from core.limits import limit
from core.tensors.operations import guards
from core.tensors.operations.operation import Operation, Written
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.run import ProgramRun
from core.tensors.tracing.steps import Trace, TraceStep
from core.tensors.tracing.trace import trace

Shape = tuple[int, ...]
Given = Callable[[random.Random, Shape], str]


def _tensor(shape: Shape, dtype: str = "") -> str:
    counted = f"torch.arange({math.prod(shape)}).view({shape})"
    return f"{counted}.{dtype}()" if dtype else counted


def _dim(rng: random.Random, shape: Shape) -> str:
    rank = max(len(shape), 1)
    return str(rng.randint(-rank, rank - 1) if rng.random() < 0.95 else rank + 1)


def _dims(rng: random.Random, shape: Shape) -> str:
    return str(tuple(rng.sample(range(len(shape)), rng.randint(1, len(shape)))))


def _broadcasting(rng: random.Random, shape: Shape) -> Shape:
    trailing = shape[rng.randint(0, len(shape)) :]
    return tuple(rng.choice([size, size, 1]) for size in trailing)


def _operand(rng: random.Random, shape: Shape) -> str:
    if rng.random() < 0.4:
        return rng.choice(["2", "0", "-1", "3", "1.5"])
    return _tensor(_broadcasting(rng, shape), rng.choice(["", "float"]))


def _alike(rng: random.Random, shape: Shape) -> str:
    return f"({_tensor(shape, 'float')} + {rng.randint(0, 3)})"


def _index(rng: random.Random, shape: Shape) -> str:
    size = rng.randint(1, 4)
    return f"(torch.arange({size}) % {max(min(shape, default=1), 1)})"


def _sizes(rng: random.Random, shape: Shape) -> str:
    return str(tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 3))))


def _flag(rng: random.Random, shape: Shape) -> str:
    return rng.choice(["True", "False"])


def _small(rng: random.Random, shape: Shape) -> str:
    return str(rng.randint(1, 3))


def _number(rng: random.Random, shape: Shape) -> str:
    return rng.choice(["0.5", "1", "2", "0.1"])


def _dtype(rng: random.Random, shape: Shape) -> str:
    return rng.choice(["torch.float32", "torch.float64", "torch.int64"])


PARAMETERS: dict[str, Given] = {
    **dict.fromkeys(("dim", "dim0", "dim1", "dim2", "axis0", "axis1", "source", "destination", "dimension"), _dim),
    **dict.fromkeys(("start_dim", "end_dim"), _dim),
    **dict.fromkeys(("keepdim", "descending", "largest", "sorted", "stable", "unbiased", "copy"), _flag),
    **dict.fromkeys(("include_self", "right", "out_int32", "is_causal", "as_tuple", "equal_nan"), _flag),
    **dict.fromkeys(("scale_grad_by_freq",), _flag),
    **dict.fromkeys(("inplace", "enable_gqa", "training", "sparse", "requires_grad"), lambda rng, shape: "False"),
    **dict.fromkeys(("other", "exponent", "end", "weight", "min", "max", "tensor1", "tensor2", "value"), _operand),
    **dict.fromkeys(("alpha", "beta", "p", "eps", "lambd", "negative_slope", "nan", "posinf", "neginf"), _number),
    **dict.fromkeys(("min_val", "rtol", "atol", "maxnorm", "threshold", "delta"), _number),
    "max_val": lambda rng, shape: "4",
    **dict.fromkeys(("target", "x2", "end", "imag", "angle"), _alike),
    **dict.fromkeys(("size", "shape"), _sizes),
    **dict.fromkeys(
        ("k", "n", "m", "row", "col", "steps", "decimals", "shifts", "offset", "diagonal", "chunks"), _small
    ),
    **dict.fromkeys(("repeats", "split_size", "correction", "minlength", "step", "num_classes"), _small),
    "dims": _dims,
    "dtype": _dtype,
    "memory_format": lambda rng, shape: rng.choice(["torch.contiguous_format", "torch.preserve_format"]),
    "rounding_mode": lambda rng, shape: rng.choice(["None", "'floor'", "'trunc'"]),
    "approximate": lambda rng, shape: rng.choice(["'none'", "'tanh'"]),
    "reduction": lambda rng, shape: rng.choice(["'mean'", "'sum'", "'none'"]),
    "side": lambda rng, shape: rng.choice(["'left'", "'right'"]),
    "indexing": lambda rng, shape: rng.choice(["'ij'", "'xy'"]),
    "mask": lambda rng, shape: f"({_tensor(_broadcasting(rng, shape))} > 2)",
    "condition": lambda rng, shape: f"({_tensor(_broadcasting(rng, shape))} > 2)",
    "index": _index,
    "indices": _index,
    "normalized_shape": lambda rng, shape: str(shape[rng.randint(0, len(shape) - 1) :]),
    "low": lambda rng, shape: "0",
    "high": lambda rng, shape: str(rng.randint(5, 9)),
    "start": lambda rng, shape: "0",
    "fill_value": lambda rng, shape: rng.choice(["7", "0.5", "True"]),
    "length": lambda rng, shape: "1",
    "base": lambda rng, shape: "2",
    "pad": lambda rng, shape: str(tuple(rng.randint(-1, 3) for _ in range(2 * rng.randint(1, len(shape))))),
    **dict.fromkeys(("prepend", "append"), lambda rng, shape: "x"),
    "pos_weight": lambda rng, shape: "None",
    **dict.fromkeys(("unbiased",), _flag),
}
"""What an argument of this name may be, for a tensor of this shape."""


def _square(rng: random.Random, shape: Shape) -> list[str]:
    return [_tensor((shape[-1], rng.randint(1, 4)), "float")]


def _view_sizes(rng: random.Random, shape: Shape) -> list[str]:
    return [rng.choice([str((math.prod(shape),)), "-1", str((*reversed(shape),)), f"{shape[0]}, -1"])]


def _permuted(rng: random.Random, shape: Shape) -> list[str]:
    return [str(tuple(rng.sample(range(len(shape)), len(shape))))]


def _gathered(rng: random.Random, shape: Shape) -> list[str]:
    dim = rng.randrange(len(shape))
    sizes = tuple(rng.randint(1, size) if at != dim else rng.randint(1, 3) for at, size in enumerate(shape))
    return [str(dim), f"(torch.arange({math.prod(sizes)}) % {shape[dim]}).view({sizes})"]


def _scattered(rng: random.Random, shape: Shape) -> list[str]:
    dim, index = _gathered(rng, shape)
    return [dim, index, f"torch.zeros_like({index}, dtype=torch.float32)"]


def _along(rng: random.Random, shape: Shape) -> list[str]:
    dim = rng.randrange(len(shape))
    return [str(dim), "torch.tensor([0, 0])", f"x.index_select({dim}, torch.tensor([0, 0])) * 2"]


def _cells(rng: random.Random, shape: Shape) -> list[str]:
    return [f"torch.tensor([0, {math.prod(shape) - 1}, -1])"]


def _grown(rng: random.Random, shape: Shape) -> list[str]:
    new = [rng.randint(1, 3) for _ in range(rng.randint(0, 2))]
    return [str((*new, *(rng.choice([-1, size, 4]) if size == 1 else rng.choice([-1, size]) for size in shape)))]


def _joined(rng: random.Random, shape: Shape) -> list[str]:
    other = ", ".join([_tensor(shape, "float")] * rng.randint(1, 2))
    return [f"[x, {other}]"]


CALLS: dict[str, Callable[[random.Random, Shape], list[str]]] = {
    **dict.fromkeys(("view", "reshape"), _view_sizes),
    **dict.fromkeys(("view_as", "reshape_as"), lambda rng, shape: [_tensor((math.prod(shape),))]),
    **dict.fromkeys(("expand", "broadcast_to"), _grown),
    "expand_as": lambda rng, shape: [_tensor((2, *shape))],
    "permute": _permuted,
    "unflatten": lambda rng, shape: ["0", str((shape[0], 1))],
    "as_strided": lambda rng, shape: [str((math.prod(shape), 2)), str((rng.randint(0, 1), 0))],
    "narrow": lambda rng, shape: ["-1", "0", str(rng.randint(0, shape[-1]))],
    "select": lambda rng, shape: ["0", str(rng.randint(-shape[0], shape[0]))],
    "unfold": lambda rng, shape: ["-1", str(rng.randint(1, shape[-1])), str(rng.randint(1, 2))],
    "split_with_sizes": lambda rng, shape: [str((1, shape[0] - 1)), "0"],
    **dict.fromkeys(
        ("tensor_split", "hsplit", "vsplit", "dsplit"), lambda rng, shape: [rng.choice(["1", "(1,)", "2"])]
    ),
    "to": lambda rng, shape: [_dtype(rng, shape)],
    "rot90": lambda rng, shape: [str(rng.randint(-1, 4)), "(0, 1)"],
    "roll": lambda rng, shape: [rng.choice(["1", "(1,), (0,)", "-2, 0"])],
    **dict.fromkeys(("repeat", "tile"), lambda rng, shape: [str(tuple(rng.randint(1, 3) for _ in shape))]),
    "repeat_interleave": lambda rng, shape: [rng.choice(["2", f"torch.arange({shape[0]}), 0", "2, -1"])],
    "diag_embed": lambda rng, shape: [str(rng.randint(-2, 2))],
    "diagonal_scatter": lambda rng, shape: [f"x.diagonal(0, {len(shape) - 2}, {len(shape) - 1}) * 0"],
    "select_scatter": lambda rng, shape: [f"x.select(0, 0) * 0, 0, {rng.randrange(shape[0])}"],
    "slice_scatter": lambda rng, shape: ["x[:1] * 0, 0, 0, 1"],
    **dict.fromkeys(
        ("cat", "concat", "concatenate", "stack"), lambda rng, shape: [*_joined(rng, shape), _dim(rng, shape)]
    ),
    **dict.fromkeys(("hstack", "vstack", "dstack", "column_stack", "row_stack"), _joined),
    **dict.fromkeys(
        ("block_diag", "cartesian_prod", "meshgrid"), lambda rng, shape: ["x.flatten()", "torch.arange(3).float()"]
    ),
    "broadcast_tensors": lambda rng, shape: ["x", _tensor(_broadcasting(rng, shape))],
    "gather": _gathered,
    **dict.fromkeys(("scatter", "scatter_add", "scatter_", "scatter_add_"), _scattered),
    **dict.fromkeys(("scatter_reduce", "scatter_reduce_"), lambda rng, shape: [*_scattered(rng, shape), "'amax'"]),
    **dict.fromkeys(("index_add", "index_copy", "index_add_", "index_copy_"), _along),
    **dict.fromkeys(("index_fill", "index_fill_"), lambda rng, shape: ["0", "torch.tensor([0])", "9"]),
    **dict.fromkeys(("masked_scatter", "masked_scatter_"), lambda rng, shape: ["x > 2", "x * 2"]),
    **dict.fromkeys(("masked_fill", "masked_fill_"), lambda rng, shape: [PARAMETERS["mask"](rng, shape), "9"]),
    "index_select": lambda rng, shape: [str(rng.randrange(-len(shape), len(shape))), _index(rng, shape)],
    "take": _cells,
    "take_along_dim": lambda rng, shape: [f"x.argsort({len(shape) - 1}), {len(shape) - 1}"],
    "bucketize": lambda rng, shape: ["torch.tensor([1.0, 3.0])"],
    "kthvalue": lambda rng, shape: ["1", _dim(rng, shape)],
    "renorm": lambda rng, shape: ["2", "0", "1"],
    "count_nonzero": lambda rng, shape: [_dims(rng, shape)],
    "heaviside": lambda rng, shape: [_alike(rng, shape)],
    "bincount": lambda rng, shape: [],
    "matmul": _square,
    "mm": _square,
    "mv": lambda rng, shape: [_tensor((shape[-1],), "float")],
    "bmm": lambda rng, shape: [_tensor((shape[0], shape[-1], 2), "float")],
    **dict.fromkeys(("dot", "vdot", "outer"), lambda rng, shape: [_tensor(shape, "float")]),
    **dict.fromkeys(("inner", "kron"), lambda rng, shape: [_tensor((2, shape[-1]), "float")]),
    "tensordot": lambda rng, shape: [_tensor((shape[-1], 2), "float"), "1"],
    **dict.fromkeys(
        ("addmm", "addmm_"), lambda rng, shape: [_tensor((shape[0], 3), "float"), _tensor((3, shape[-1]), "float")]
    ),
    "addbmm": lambda rng, shape: [_tensor((2, shape[0], 3), "float"), _tensor((2, 3, shape[-1]), "float")],
    "baddbmm": lambda rng, shape: [
        _tensor((shape[0], shape[1], 3), "float"),
        _tensor((shape[0], 3, shape[-1]), "float"),
    ],
    "addmv": lambda rng, shape: [_tensor((shape[0], 3), "float"), _tensor((3,), "float")],
    "addr": lambda rng, shape: [_tensor((shape[0],), "float"), _tensor((shape[-1],), "float")],
    "cross": lambda rng, shape: [_alike(rng, shape)],
    **dict.fromkeys(("complex", "polar", "dist", "copy_"), lambda rng, shape: [_alike(rng, shape)]),
    "prelu": lambda rng, shape: ["torch.ones(1)"],
    "linear": lambda rng, shape: [_tensor((rng.randint(1, 4), shape[-1]), "float")],
    "bilinear": lambda rng, shape: ["x", _tensor((2, shape[-1], shape[-1]), "float")],
    "group_norm": lambda rng, shape: [str(rng.choice([1, shape[1]]))],
    "rms_norm": lambda rng, shape: [str(shape[-1:])],
    "layer_norm": lambda rng, shape: [str(shape[-1:]), f"torch.ones({shape[-1]})"],
    "scaled_dot_product_attention": lambda rng, shape: ["x + 1", "x * 2"],
    "dropout": lambda rng, shape: ["0.5", "False"],
    "one_hot": lambda rng, shape: [rng.choice(["-1", "100"])],
    "embedding": lambda rng, shape: [_tensor((math.prod(shape), 2), "float")],
    **dict.fromkeys(
        ("cross_entropy", "nll_loss"), lambda rng, shape: [f"torch.zeros({(shape[0], *shape[2:])}).long()"]
    ),
    "threshold": lambda rng, shape: ["2", "0"],
    "full": lambda rng, shape: [_sizes(rng, shape), PARAMETERS["fill_value"](rng, shape)],
    "new_full": lambda rng, shape: [_sizes(rng, shape), PARAMETERS["fill_value"](rng, shape)],
    "empty_strided": lambda rng, shape: [str(shape), str(tuple(rng.randint(0, 9) for _ in shape))],
    "arange": lambda rng, shape: [rng.choice(["5", "1, 9", "0, 1, 0.25", "9, 0, -2"])],
    **dict.fromkeys(
        ("linspace", "logspace"), lambda rng, shape: ["0", str(rng.randint(-1, 3)), str(rng.randint(0, 9))]
    ),
    "randint": lambda rng, shape: [rng.choice([f"9, {shape}", f"2, 9, {shape}"])],
    **dict.fromkeys(("zeros", "ones", "empty", "randn", "rand"), lambda rng, shape: [_sizes(rng, shape)]),
    **dict.fromkeys(("new_zeros", "new_ones", "new_empty"), lambda rng, shape: [_sizes(rng, shape)]),
    **dict.fromkeys(
        ("logical_and", "logical_or", "logical_xor", "atan2", "arctan2", "type_as"),
        lambda rng, shape: [_alike(rng, shape)],
    ),
    **dict.fromkeys(
        ("addcmul", "addcdiv", "addcmul_", "addcdiv_"),
        lambda rng, shape: [_alike(rng, shape), _tensor(shape[-1:], "float")],
    ),
    **dict.fromkeys(("lerp", "lerp_"), lambda rng, shape: [_alike(rng, shape), "0.5"]),
    "einsum": lambda rng, shape: [rng.choice(["'...i->...'", "'...i->i...'"]), "x"],
    "fill_": lambda rng, shape: ["7"],
    "pad": lambda rng, shape: [PARAMETERS["pad"](rng, shape)],
    "new_tensor": lambda rng, shape: [rng.choice(["3", "[1, 2]", "[[1.5], [2]]", "True"])],
    "tensor": lambda rng, shape: [rng.choice(["3", "[1, 2]", "[[1.5], [2]]", "True"])],
}
"""Arguments that hang together, by the name of the operation."""


def _complex(shape: Shape) -> str:
    return f"torch.complex({_tensor(shape, 'float')}, {_tensor(shape, 'float')})"


WHOLE: dict[tuple[Written, str], Given] = {
    **{
        ("torch", name): lambda rng, shape, name=name: f"torch.{name}({_complex(shape)})"
        for name in ("view_as_real", "conj")
    },
    **{("torch", name): lambda rng, shape, name=name: f"torch.{name}({_complex(shape)})" for name in ("real", "imag")},
    **{
        ("property", name): lambda rng, shape, name=name: f"{_complex(shape)}.{name}" for name in ("real", "imag", "mH")
    },
    ("method", "conj"): lambda rng, shape: f"{_complex(shape)}.conj()",
    ("torch", "view_as_complex"): lambda rng, shape: f"torch.view_as_complex({_tensor((*shape, 2), 'float')})",
    ("torch", "searchsorted"): lambda rng, shape: f"torch.searchsorted({_tensor((*shape[:-1], 2), 'float')}, x)",
    ("method", "where"): lambda rng, shape: f"x.where(x > 2, {_operand(rng, shape)})",
    ("torch", "where"): lambda rng, shape: f"torch.where(x > 2, {_operand(rng, shape)}, {_operand(rng, shape)})",
    ("F", "glu"): lambda rng, shape: "F.glu(torch.cat([x, x]), 0)",
    ("F", "unfold"): lambda rng, shape: f"F.unfold({_tensor((1, 2, 4, 4), 'float')}, {rng.randint(1, 3)}, padding=1)",
    ("F", "pixel_shuffle"): lambda rng, shape: f"F.pixel_shuffle({_tensor((*shape, 4, 2, 3))}, 2)",
    ("F", "pixel_unshuffle"): lambda rng, shape: f"F.pixel_unshuffle({_tensor((*shape, 4, 6))}, {rng.randint(1, 2)})",
}
"""The whole call, where x alone is no tensor for it."""

RANKS = {
    **dict.fromkeys(("mm", "addmm", "addmm_", "t", "t_", "trace", "addbmm", "addr", "H", "cdist"), (2,)),
    **dict.fromkeys(("dot", "vdot", "outer", "bincount", "view_as_complex"), (1,)),
    **dict.fromkeys(("addmv",), (1,)),
    **dict.fromkeys(("bmm", "baddbmm", "dsplit"), (3,)),
    **dict.fromkeys(
        ("vsplit", "fliplr", "rot90", "diagonal", "triu", "tril", "triu_", "tril_", "mT", "mH", "adjoint"), (2, 3)
    ),
    **dict.fromkeys(("matmul", "inner", "mv", "diag_embed", "diagonal_scatter", "embedding", "renorm"), (2,)),
    **dict.fromkeys(("scaled_dot_product_attention", "group_norm", "cross_entropy", "nll_loss"), (2, 3)),
    "diag": (1, 2),
}
"""How many dimensions the tensor has, where it matters."""


def random_call(rng: random.Random, row: Operation, form: Written) -> tuple[str, Shape, str]:
    """A program that ends in a call of ``row``, and the shape and dtype of its x."""
    rank = rng.choice(RANKS.get(row.name, (1, 2, 2, 3, 4) if row.name not in ("meshgrid",) else (1,)))
    sizes = [3] if row.name == "cross" else [1, 2, 3, 4, 4]
    shape = tuple(rng.choice(sizes) for _ in range(rank))
    fractions = ".float()" in row.example or "randn" in row.example or "ones" in row.example
    whole = (
        row.name in ("bincount", "one_hot", "embedding") or row.name.startswith("bitwise") or row.name in ("gcd", "lcm")
    )
    dtype = "int64" if whole else "float32" if fractions else rng.choice(["int64", "float32"])
    call = _written(rng, row, form, shape)
    pick = ""
    if row.fields:
        pick = rng.choice([f".{row.fields[-1]}", f"[{rng.randint(0, 1)}]"])
    elif row.several or "as_tuple=True" in call:
        pick = f"[{rng.choice([0, -1])}]"
    start = "x = x.transpose(0, -1).contiguous().transpose(0, -1)\n" if rng.random() < 0.3 else ""
    return f"{start}r = {call}{pick}", shape, dtype


def _written(rng: random.Random, row: Operation, form: Written, shape: Shape) -> str:
    """The call alone."""
    if (form, row.name) in WHOLE:
        return WHOLE[form, row.name](rng, shape)
    if form == "property":
        return f"x.{row.name}"
    given = CALLS[row.name](rng, shape) if row.name in CALLS else _by_parameter(rng, row, shape)
    if form == "method":
        return f"x.{row.name}({', '.join(given)})"
    if row.subject:
        given.insert(0, "x")
    return f"{form}.{row.name}({', '.join(given)})"


def _least(row: Operation) -> int:
    """How many arguments the example gives after its tensor."""
    for node in ast.walk(ast.parse(row.example)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == row.name:
            of_torch = isinstance(node.func.value, ast.Name) and node.func.value.id in ("torch", "F")
            return len(node.args) - (of_torch and row.subject)
    return 0


def _by_parameter(rng: random.Random, row: Operation, shape: Shape) -> list[str]:
    """As many parameters as the example has, by their place, and some of the others by name."""
    least = _least(row)
    given = [PARAMETERS[name](rng, shape) for name in row.keywords[:least]]
    others = [name for name in row.keywords[least:] if rng.random() < 0.4]
    if row.several_with:
        others = [name for name in others if name != "other"]
        others = others if "dim" in others or "dim" not in row.keywords else []
    return given + [f"{name}={PARAMETERS[name](rng, shape)}" for name in others]


def unknown_parameters(row: Operation) -> list[str]:
    """Parameters of a row for which nothing says what they may be."""
    if row.name in CALLS or any((form, row.name) in WHOLE for form in row.forms):
        return []
    return [name for name in row.keywords if name not in PARAMETERS and name != "*"]


def in_torch(text: str, shape: Shape, dtype: str) -> Any:
    """What Python and torch make of the program: the value of r, and x; or the exception."""
    start = torch.arange(math.prod(shape), dtype=getattr(torch, dtype)).view(shape)
    names: dict[str, Any] = {"torch": torch, "F": torch.nn.functional, "x": start}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        try:
            exec(text, names)  # noqa: S102 (text of our own making)
        except Exception as problem:
            return problem, start
    return names["r"], start


def difference(step: TraceStep, result: torch.Tensor, *, values: bool = True) -> str:
    """What a step and torch's own result differ in, empty for nothing."""
    facts = (step.layout.shape, step.layout.stride, f"torch.{step.dtype}")
    theirs = (tuple(result.shape), result.stride(), str(result.dtype))
    if facts != theirs:
        return f"{facts} is {theirs} in torch"
    flat = result.flatten()[: len(step.values)].tolist()
    if values and any(a != b and not (a != a and b != b) for a, b in zip(step.values, flat, strict=True)):
        return f"values {step.values[:8]} are {flat[:8]} in torch"
    return ""


def agreement(row: Operation, text: str, shape: Shape, dtype: str) -> str:
    """``ran`` or ``refused`` where the trace does as torch does, ``capped`` where a guard forbids it.

    Fails with an assertion for any difference in shape, strides, dtype, values or sharing, and for a guard that is no
    upper bound of what was allocated.
    """
    result, start = in_torch(text, shape, dtype)
    try:
        run: Trace = trace(text, shape, dtype=dtype)
    except ExpressionError as problem:
        return f"capped: {problem}"
    last = run.last
    if isinstance(result, Exception):
        assert last.kind == "refused", (text, shape, dtype, str(result))
        return "refused"
    assert last.kind != "refused", (text, shape, dtype, last.error_message)
    differs = difference(last, result, values=not row.fill)
    assert not differs, (text, shape, dtype, differs)
    if "contiguous" not in text:
        shared = result.untyped_storage()._cdata == start.untyped_storage()._cdata
        assert (last.storage == 0 and run.starts_with_x) == shared, (text, shape, dtype)
    if last.kind == "copy":
        _check_guard(run, row, text, shape, dtype)
    return "ran"


def _check_guard(run: Trace, row: Operation, text: str, shape: tuple[int, ...], dtype: str) -> None:
    """What is larger than all it is made of must be refused under a cap just below it, before it is made."""
    number = next(n for n in range(len(run) - 1, 0, -1) if run.planned[n - 1].operation is row)
    step = run[number]
    given = [run[n] for n in run.planned[number - 1].inputs]
    if step.storage_elements <= max((s.layout.numel for s in given), default=0) or "data" in row.takes:
        return
    cap = {"tensor_elements": step.storage_elements - 1}
    with (
        patch.object(guards, "limit", lambda name: cap.get(name, limit(name))),
        patch.object(ProgramRun, "_check", lambda *_: None),  # what is refused once it is there
    ):
        try:
            again = trace(text, shape, dtype=dtype)
        except ExpressionError:
            return
    assert again.counted, f"nothing keeps {row.name} from allocating {step.storage_elements} elements: {text!r}"
