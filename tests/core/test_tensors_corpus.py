"""Real code: attention, rotary, routing and normalisation as public repositories write them, and einops' examples.

``tests/data/README.md`` says where they come from. Every line is read, and every tensor it makes is held against
torch running the same lines.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import einops
import numpy as np
import torch
from torch import nn

from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.steps import Trace
from core.tensors.tracing.trace import trace
from tests.every import every

DATA = Path(__file__).parents[1] / "data" / "snippets"
SNIPPETS: list[dict[str, Any]] = json.loads((DATA / "tensors.json").read_text(encoding="utf-8"))
EINOPS = list(csv.DictReader((DATA / "einops.csv").read_text(encoding="utf-8").splitlines()))
LICENCES = {"MIT", "Apache-2.0", "BSD-3-Clause"}


def statements(lines: list[str]) -> list[str]:
    """The lines as statements, each with the lines indented under it."""
    facts: list[str] = []
    for line in lines:
        if line.startswith(" ") and facts:
            facts[-1] += f"\n{line}"
        else:
            facts.append(line)
    return facts


def accepted(snippet: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The lines that the reader takes one after the other, and those that it refuses, with its message."""
    taken: list[str] = []
    refused: list[str] = []
    for line in statements(snippet["lines"]):
        try:
            run = trace("\n".join([*snippet["given"], *taken, line]), snippet["shape"], dtype=snippet["dtype"])
            if run.refusal is not None:
                raise ExpressionError(f"torch: {run.last.error_message}")  # which torch itself would not
        except ExpressionError as problem:
            refused.append(f"{snippet['source']}: {line}: {problem}")
        else:
            taken.append(line)
    return taken, refused


def in_torch(program: str, shape: list[int], dtype: str) -> dict[str, Any]:
    """Every name that torch itself has after the same lines."""
    x = torch.arange(int(np.prod(shape)), dtype=getattr(torch, dtype)).view(shape)
    names: dict[str, Any] = {"x": x, "torch": torch, "F": nn.functional, "nn": nn, "np": np, "einops": einops}
    names |= {name: getattr(einops, name) for name in ("rearrange", "reduce", "repeat", "einsum")}
    exec(program, names)  # noqa: S102 (text of our own making)
    return names


def hold_against_torch(run: Trace, names: dict[str, Any], what: str) -> int:
    """Shape, strides and dtype of every tensor that a name stands for in the end; how many there are."""
    compared = 0
    for name, value in names.items():
        if not isinstance(value, torch.Tensor):
            continue
        step = next((s for s in reversed(run.steps) if s.name == name), run[0] if name == "x" else None)
        if step is None:
            continue
        facts = (step.layout.shape, step.layout.stride, step.dtype)
        assert facts == (tuple(value.shape), value.stride(), str(value.dtype).removeprefix("torch.")), (what, name)
        compared += 1
    return compared


def test_snippets_are_of_many_sources_that_may_be_quoted() -> None:
    assert len(SNIPPETS) >= 40
    assert {snippet["licence"] for snippet in SNIPPETS} <= LICENCES
    assert len({snippet["source"].split()[0] for snippet in SNIPPETS}) >= 12
    assert all("/" in snippet["source"] and snippet["lines"] for snippet in SNIPPETS)


def test_nearly_all_lines_of_real_code_are_read_and_do_what_torch_does() -> None:
    taken = compared = 0
    refused: list[str] = []
    for snippet in SNIPPETS:
        lines, missing = accepted(snippet)
        taken += len(lines)
        refused += missing
        program = "\n".join([*snippet["given"], *lines])
        run = trace(program, snippet["shape"], dtype=snippet["dtype"])
        compared += hold_against_torch(run, in_torch(program, snippet["shape"], snippet["dtype"]), snippet["name"])
    share = taken / (taken + len(refused))
    print(f"{taken} of {taken + len(refused)} lines read ({share:.1%}), {compared} tensors as in torch")
    print("\n".join(refused))
    assert share >= 0.99, refused
    assert compared > 200


@every("row", EINOPS, ids=lambda row: row["code"][:60])
def test_examples_of_einops_documentation(row: dict[str, str]) -> None:
    shape = [int(size) for size in row["shape"].split()]
    run = trace(f"y = {row['code']}", shape, dtype="float32")
    assert run.refusal is None
    names = in_torch(f"y = {row['code']}", shape, "float32")
    assert hold_against_torch(run, {"y": names["y"]}, row["code"]) == 1
    assert np.allclose(run.last.values, names["y"].flatten().tolist())
