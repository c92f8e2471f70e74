"""Random calls of every operation of the table, made from its example.

Each call is a program that runs in Python as it stands, so that torch itself is the reference.
"""

from __future__ import annotations

import ast
import math
import random
import warnings
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
from tests.core.tensors_random import random_argument

Shape = tuple[int, ...]
_SHAPES: tuple[Shape, ...] = ((2, 3), (2, 3), (2, 3), (2, 3), (3, 2), (2, 2), (4, 4), (1, 6), (2, 3, 4), (6,))
_SIZES = ("broadcast_to", "permute", "reshape", "tile", "flip")
"""What takes sizes one by one as a method, and together as a function."""


def _example(row: Operation) -> tuple[str, list[str]]:
    """The tensor that the example works on, empty for none, and its arguments."""
    for node in ast.walk(ast.parse(row.example, mode="eval")):
        if isinstance(node, ast.BinOp) and row.name == "matmul":
            return ast.unparse(node.left), [ast.unparse(node.right)]
        if isinstance(node, ast.Attribute) and node.attr == row.name and row.forms[0] == "property":
            return ast.unparse(node.value), []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == row.name:
            given = [ast.unparse(argument) for argument in (*node.args, *node.keywords)]
            owner = ast.unparse(node.func.value)
            if owner not in ("torch", "F"):
                return owner, given
            return (given[0], given[1:]) if row.subject else ("", given)
    raise AssertionError(f"the example of {row.name} calls something else")


def random_call(rng: random.Random, row: Operation, form: Written) -> tuple[str, Shape, str]:
    """A program that ends in a call of ``row``, and the shape and dtype of its x."""

    def argument() -> str:
        return random_argument(rng, ["x"], rng.choice(row.takes)).replace("1000000000", "5")  # which torch would make

    subject, given = _example(row)
    if given and rng.random() < 0.3:
        given[rng.randrange(len(given))] = argument()
    if row.takes and row.keywords not in ((), ("*",)) and rng.random() < 0.2:
        name = rng.choice([one for one in row.keywords if f"{one}=" not in " ".join(given)] or ["no_such"])
        given.append(f"{name}={argument()}")
    if form == "torch" and row.name in _SIZES:
        sizes = [one for one in given if "=" not in one]
        given = [f"({', '.join(sizes)},)", *given[len(sizes) :]]
    if (form, row.name) == ("torch", "dropout"):
        given.append("False")
    if form == "property":
        call = f"{subject}.{row.name}"
    elif form == "method":
        call = f"{subject}.{row.name}({', '.join(given)})"
    else:
        call = f"{form}.{row.name}({', '.join([subject, *given] if subject else given)})"
    pick = f"[{rng.choice([0, -1])}]" if row.fields or row.several or "as_tuple=True" in call else ""
    start = "x = x.transpose(0, -1).contiguous().transpose(0, -1)\n" if rng.random() < 0.3 else ""
    return f"n = 2\n{start}r = {call}{pick}", rng.choice(_SHAPES), rng.choice(["int64", "float32"])


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
