"""What a page ran, as a Python script that runs on its own: every step printed with its layout and storage."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, cast

from core.tensors.layout import TensorLayout
from core.tensors.operations.values import DType, MemoryFormat, Slot
from core.tensors.parsing.facts import Fact
from core.tensors.parsing.plan import PlanStep
from core.tensors.tracing.steps import Trace
from core.tensors.tracing.trace import start_layout, trace

_EINOPS = ("rearrange", "reduce", "repeat", "einsum")

_SHOW = '''

_storages = {}
_kept = []  # a storage keeps its identity as long as a tensor uses it


def _show(name, tensor):
    """Print what a tensor is, and in whose storage it lies: A is that of x."""
    if not isinstance(tensor, torch.Tensor):  # the several tensors of a split
        for number, piece in enumerate(tensor):
            _show(f"{name}[{number}]", piece)
        return
    _kept.append(tensor)
    storage = tensor.untyped_storage()
    letter = _storages.setdefault(storage._cdata, chr(ord("A") + len(_storages)))
    print(name)
    print(f"    shape {tuple(tensor.shape)}, strides {tensor.stride()}, offset {tensor.storage_offset()}, ", end="")
    print(f"{'contiguous' if tensor.is_contiguous() else 'not contiguous'}, {tensor.dtype}, ", end="")
    print(f"storage {letter} ({storage.nbytes()} B)")
    if not tensor.is_meta:
        print("   ", tensor.flatten()[:24].tolist())


'''


def script(
    source: str,
    shape: Sequence[int],
    dtype: str = "int64",
    stride: Sequence[int] | None = None,
    given: Mapping[str, str] | None = None,
) -> str:
    """A stand-alone script that makes x, runs ``source`` operation by operation and prints each result.

    Numbers stand in it as they were worked out. Tensors too large to be made are on torch's meta device. Errors are
    caught and printed. Raises `ExpressionError` when the reader would not take ``source``.
    """
    layout = start_layout(shape, stride, "counted_elements")
    run = trace(source, shape, stride, dtype, given)
    lines = _lines(run)
    code = "\n".join(lines)
    names = [name for name in _EINOPS if re.search(rf"(?<![.\w]){name}\(", code)]
    imports = ["import torch"]
    imports += ["from torch import nn"] if "nn." in code else []
    imports += ["import torch.nn.functional as F"] if re.search(r"\bF\.", code) else []
    imports += [f"from einops import {', '.join(sorted(names))}"] if names else []
    if run.counted:
        imports += ["", 'torch.set_default_device("meta")  # shapes, strides and bytes; nothing is allocated']
    seed = re.search(r"manual_seed\((\d+)\)", run.text)
    imports += ["", f"torch.manual_seed({seed[1] if seed else 0})"]
    head = "\n".join(imports) + _SHOW
    if run.starts_with_x:
        head += _start(layout, dtype) + '_show("x", s0)\n'
    if not lines:
        return head
    body = textwrap.indent(code, "    ")
    return f"{head}\ntry:\n{body}\nexcept Exception as error:\n    print(f'{{type(error).__name__}}: {{error}}')\n"


def _start(layout: TensorLayout, dtype: str) -> str:
    span = layout.span
    cells = layout.offset if span is None else span[1] + 1
    if layout == TensorLayout.contiguous(layout.shape):
        return f"s0 = torch.arange({layout.numel}, dtype=torch.{dtype}).view({layout.shape})\n"
    return f"s0 = torch.arange({cells}, dtype=torch.{dtype}).as_strided({layout.shape}, {layout.stride})\n"


def _lines(run: Trace) -> list[str]:
    """One line for each operation and one that shows its result, in the order in which they ran.

    What is asked of tensors stands as a comment with its answer.
    """
    lines: list[str] = []
    facts = list(run.facts)
    for step, planned in zip(run.steps[1:], run.planned, strict=True):
        while facts and facts[0].line < step.line:
            lines.append(_comment(facts.pop(0)))
        name = f"s{step.number}"
        refused = step.kind == "refused"
        made = _operation(planned, run.planned)
        if planned.form == "write" or planned.operation.name == "backward":
            code = [made, f"{name} = s{planned.inputs[0]}"]
        else:
            code = [f"{name} = {made}"]
        if planned.operation.restrides:  # earlier steps keep the layout that they had
            code.insert(0, f"{name} = s{planned.inputs[0]}")
            old = f"s{planned.inputs[0]}"
            code[1:] = [f"{old} = {old}.as_strided({old}.shape, {old}.stride(), {old}.storage_offset())"]
            code.append(made.replace(f"{old}.", f"{name}.", 1))
        if not planned.tracked:
            code = ["with torch.no_grad():", *(f"    {line}" for line in code)]
        if planned.cast:
            cast = f"with torch.autocast('cpu', dtype=torch.{planned.cast}):"
            code = [cast, *(f"    {line}" for line in code)]
        code += [] if refused else [f"_show({step.name or step.expression!r}, {name})"]
        if refused and step is not run.last:  # the program caught it
            code = ["try:", *(f"    {line}" for line in code), "except Exception as error:"]
            code.append("    print(f'{type(error).__name__}: {error}')")
        lines += code
    return [*lines, *map(_comment, facts)] if run.planned else []


def _comment(fact: Fact) -> str:
    return f"# {fact.text}: {fact.value or fact.holds}".replace("\n", " ")


def _operation(step: PlanStep, planned: Sequence[PlanStep]) -> str:
    """One operation as Python."""
    inputs = [f"s{number}" for number in step.inputs]
    args = [_text(value, inputs) for value in step.args]
    named = [f"{name}={_text(value, inputs)}" for name, value in step.keywords]
    name = step.operation.name
    pick = "" if step.pick is None else f"[{step.pick}]"
    match step.form:
        case "method":
            return f"{inputs[0]}.{name}({', '.join([*args, *named])}){pick}"
        case "property":
            return f"{inputs[0]}.{name}"
        case "torch" | "F" | "nn" | "init" | "bare":
            owner = {"torch": "torch.", "F": "F.", "nn": "nn.", "init": "nn.init.", "bare": ""}[step.form]
            subject = inputs[:1] if step.operation.subject else []
            return f"{owner}{name}({', '.join([*subject, *args, *named])}){pick}"
        case "index":
            return f"{inputs[0]}[{_index(step, inputs)}]"
        case "unary":
            return f"{step.symbol}{inputs[0]}"
        case "binary":
            return f"{args[0]} {step.symbol} {args[1]}"
        case "write":
            target = inputs[0] if step.index is None else f"{inputs[0]}[{_index(step, inputs)}]"
            return f"{target} {step.symbol} {args[0]}"
        case "piece":
            return f"{inputs[0]}[{_index(step, inputs)}]" if step.index is not None else f"{inputs[0]}{pick}"
        case "grad":
            made = planned[step.inputs[0] - 1].form == "grad" if step.inputs[0] else False
            return inputs[0] if made else f"{inputs[0]}.grad"
        case "name":
            return inputs[0]


def _index(step: PlanStep, inputs: Sequence[str]) -> str:
    items = [_text(item, inputs, "[]") for item in step.index or ()]
    return ", ".join(items) + ("," if len(items) == 1 and items[0].startswith("[[") else "")


def _text(value: Any, inputs: Sequence[str], ends: str = "()") -> str:
    """An argument as Python. ends: of what is a tuple here."""
    match value:
        case Slot(number=number):
            return inputs[number]
        case DType(name=name) | MemoryFormat(name=name):
            return f"torch.{name}"
        case slice():
            cut = cast("slice[Any, Any, Any]", value)
            parts = ["" if part is None else str(part) for part in (cut.start, cut.stop, cut.step)]
            return ":".join(parts[: 2 if cut.step is None else 3])
        case tuple():
            items = cast("tuple[Any, ...]", value)
            ends = "[]" if any(isinstance(item, Slot) for item in items) else ends
            inner = ", ".join(_text(item, inputs, ends) for item in items)
            return f"{ends[0]}{inner}{',' if len(items) == 1 and ends == '()' else ''}{ends[1]}"
        case float() if value != value or value in (float("inf"), float("-inf")):
            return f"float('{value}')"
        case _ if value is ...:
            return "..."
        case _:
            return repr(value)
