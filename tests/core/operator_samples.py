"""Sample calls of torch's own operator tests, written as programs on tensors and held against torch."""

from __future__ import annotations

import contextlib
import math
import sys
import types
import unittest
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from core.tensors.operations.lookup import OPERATIONS
from core.tensors.operations.table import Operation, Written
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.steps import Step
from core.tensors.tracing.trace import trace
from tests.core.tensors_calls import difference

_LITERALS = 40
"""Whole numbers that are written one by one; more of them count."""


@dataclass(frozen=True)
class Outcome:
    """What became of a sample: ``agrees``, ``refused`` or ``wrong``, and why."""

    name: str
    kind: str
    text: str = ""
    why: str = ""


class UnwrittenError(Exception):
    """Something that the language has no words for."""


def known_operators() -> list[Any]:
    """The operators of torch's tests that are in the table, ."""
    # Those tests import a package for expected outputs, of which samples need nothing.
    absent = types.ModuleType("expecttest")
    absent.TestCase = unittest.TestCase  # type: ignore[attr-defined]
    with contextlib.suppress(KeyError):
        sys.modules.setdefault("expecttest", absent)
        from torch.testing._internal.common_methods_invocations import op_db
    return [operator for operator in op_db if _row(operator.name) is not None]


def _row(name: str) -> tuple[Written, Operation] | None:
    """How torch's tests write the operation of this name, and its row."""
    forms: tuple[Written, ...] = ("torch", "method", "property")
    if name.startswith("nn.functional."):
        name, forms = name.removeprefix("nn.functional."), ("F",)
    if name == "where":
        forms = ("method",)  # samples have the tensor first, then the condition
    return next(((form, OPERATIONS[form, name]) for form in forms if (form, name) in OPERATIONS), None)


def samples_of(operator: Any) -> Iterator[Any]:
    """The samples in float32, or in whatever the operator takes."""
    dtypes = operator.dtypes
    order = (torch.float32, torch.int64, torch.bool, torch.complex64)
    dtype = next((dtype for dtype in order if dtype in dtypes), None)
    if dtype is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield from operator.sample_inputs("cpu", dtype, requires_grad=False)


@dataclass
class _Program:
    """Lines of a program, and the tensors they make as torch has them."""

    lines: list[str] = field(default_factory=list)
    shape: tuple[int, ...] = (1,)
    stride: tuple[int, ...] = (1,)
    dtype: str = "int64"
    tensors: list[torch.Tensor] = field(default_factory=list)

    def value(self, given: Any) -> tuple[str, Any]:
        """The text of an argument, and the argument."""
        if isinstance(given, torch.Tensor):
            return self._tensor(given)
        if isinstance(given, tuple | list):
            parts = [self.value(item) for item in given]
            inner = ", ".join(text for text, _ in parts)
            values = type(given)([value for _, value in parts]) if type(given) in (tuple, list) else given
            if isinstance(given, list):
                return f"[{inner}]", values
            return f"({inner}{',' * (len(parts) == 1)})", values
        if isinstance(given, float) and not math.isfinite(given):
            return f"float('{given}')", given
        if given is None or isinstance(given, bool | int | float | str):
            return repr(given), given
        if isinstance(given, torch.dtype | torch.memory_format):
            return str(given), given
        if isinstance(given, torch.device):
            return repr(str(given)), given
        raise UnwrittenError(f"{type(given).__name__} has no literal")

    def _tensor(self, tensor: torch.Tensor) -> tuple[str, torch.Tensor]:
        if tensor.layout != torch.strided or tensor.is_conj() or tensor.is_neg():
            raise UnwrittenError("a sparse or conjugate tensor as input")
        name = f"t{len(self.tensors)}"
        if tensor.dtype == torch.complex64 and tensor.is_contiguous():
            size, half = tuple(tensor.shape), torch.arange(float(tensor.numel())).view(tensor.shape)
            self.tensors.append(torch.complex(half, half))
            self.lines.append(f"{name} = torch.complex(torch.randn({size}), torch.randn({size}))")
            return name, self.tensors[-1]
        dtype = str(tensor.dtype)
        shape, stride, offset = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        if tensor.is_floating_point() or tensor.numel() > _LITERALS or tensor.dtype == torch.bool:
            cells = 1 + offset + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
            plain = tensor.is_contiguous() and not offset and tensor.numel()
            size = shape if plain else (0 if not tensor.numel() else cells,)
            if tensor.dtype == torch.bool:
                text, made = f"(torch.randint(0, 2, {size}) > 0)", (torch.arange(math.prod(size)) % 2 > 0).view(size)
            elif tensor.is_floating_point():
                text = f"torch.randn({size}, dtype={dtype})"
                made = torch.arange(math.prod(size)).to(tensor.dtype).view(size)
            else:
                low, high = int(tensor.min()), int(tensor.max()) + 1
                text = f"torch.randint({low}, {high}, {size}, dtype={dtype})"
                made = (torch.arange(math.prod(size)) % (high - low) + low).to(tensor.dtype).view(size)
            if not plain:
                text, made = f"{text}.as_strided({shape}, {stride}, {offset})", made.as_strided(shape, stride, offset)
        else:
            text = f"torch.tensor({tensor.tolist()}, dtype={dtype})"
            made = torch.tensor(tensor.tolist(), dtype=tensor.dtype)
            if made.shape != tensor.shape:  # a list of nothing
                text, made = f"{text}.view({shape})", made.view(shape)
        self.tensors.append(made)
        self.lines.append(f"{name} = {text}")
        return name, made

    def start(self, tensor: torch.Tensor) -> tuple[str, torch.Tensor]:
        """The tensor as x, which counts over its storage."""
        dtype = str(tensor.dtype).removeprefix("torch.")
        if dtype not in ("float32", "int64") or tensor.storage_offset():
            return self._tensor(tensor)
        self.shape, self.stride, self.dtype = tuple(tensor.shape), tensor.stride(), dtype
        cells = 1 + sum((size - 1) * step for size, step in zip(self.shape, self.stride, strict=True))
        made = torch.arange(cells if tensor.numel() else 0, dtype=tensor.dtype).as_strided(self.shape, self.stride)
        self.tensors.append(made)
        return "x", made


def verdict(operator: Any, sample: Any) -> Outcome:
    """Write one sample, run it both ways, and compare layouts, dtypes, values and whose storage the results use."""
    found = _row(operator.name)
    assert found is not None
    form, row = found
    program = _Program()
    try:
        call, expected = _called(program, form, row, sample)
    except UnwrittenError as problem:
        return Outcome(operator.name, "refused", why=str(problem))
    several = isinstance(expected, tuple | list)
    names = [f"r{number}" for number in range(len(expected))] if several else ["r"]
    if not names:
        return Outcome(operator.name, "refused", call, "no tensor comes out")
    text = "\n".join([*program.lines, f"{', '.join(names)}{',' * (len(names) == 1 and several)} = {call}"])
    try:
        made = trace(text, program.shape, program.stride, program.dtype)
    except ExpressionError as problem:
        return Outcome(operator.name, "refused", text, str(problem))
    if isinstance(expected, Exception):
        return Outcome(operator.name, "agrees" if made.refusal is not None else "wrong", text, "torch refuses")
    if made.refusal is not None:
        return Outcome(operator.name, "wrong", text, f"refused: {made.refusal.error_message}")
    results = list(expected) if several else [expected]
    named = {step.name: step for step in made if step.name}
    given = {step.storage for name, step in named.items() if name[0] in "xt"}
    for name, result in zip(names, results, strict=True):
        step = named[name]
        problem = _difference(step, result, program.tensors, given, values=not row.fill and "dropout" not in text)
        if problem:
            return Outcome(operator.name, "wrong", text, problem)
    return Outcome(operator.name, "agrees", text)


def _called(program: _Program, form: Written, row: Operation, sample: Any) -> tuple[str, Any]:
    """The text of a sample's call, and what torch makes of it."""
    first, args, named = sample.input, list(sample.args), dict(sample.kwargs)
    if row.name == "einsum":
        first, args = args[0], list(first)
    if row.name in ("meshgrid", "block_diag", "cartesian_prod") and not args and isinstance(first, tuple):
        first, *args = first
    if isinstance(first, torch.Tensor):
        shown, subject = program.start(first)
    else:
        shown, subject = program.value(first)
    texts, values = [], []
    for value in args:
        text, made = program.value(value)
        texts.append(text)
        values.append(made)
    keywords: dict[str, Any] = {}
    for name, value in named.items():
        text, keywords[name] = program.value(value)
        texts.append(f"{name}={text}")
    owner = {"torch": torch, "F": torch.nn.functional}.get(form)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if form == "property":
                return f"{shown}.{row.name}", getattr(subject, row.name)
            if owner is None:
                return f"{shown}.{row.name}({', '.join(texts)})", getattr(subject, row.name)(*values, **keywords)
            call = f"{form}.{row.name}({', '.join([shown, *texts])})"
            try:
                return call, getattr(owner, row.name)(subject, *values, **keywords)
            except TypeError:
                if not isinstance(subject, torch.Tensor):
                    raise
                method = f"{shown}.{row.name}({', '.join(texts)})"
                return method, getattr(subject, row.name)(*values, **keywords)
        except Exception as problem:  # whatever torch raises, the trace must end with
            return f"{shown}.{row.name}({', '.join(texts)})" if owner is None else call, problem


def _difference(
    step: Step, result: torch.Tensor, inputs: Sequence[torch.Tensor], storages: set[int], *, values: bool
) -> str:
    """What differs between a step and what torch makes; empty for nothing. storages: those of the inputs."""
    differs = difference(step, result, values=values)
    if differs:
        return differs
    pointers = {tensor.untyped_storage()._cdata for tensor in inputs}
    if (step.storage in storages) != (result.untyped_storage()._cdata in pointers):
        return f"a {step.kind}, other than in torch"
    return ""
