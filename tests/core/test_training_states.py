"""State bytes of every optimizer against what libraries allocate, tensor by tensor; and the rules' own algebra."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.optimization import Adafactor

from core.models.catalog import catalog
from core.training.memory import states_per_parameter
from core.training.optimizers import find_optimizer, optimizer_state, optimizers, parse_states
from core.training.precision import find_policy
from core.training.trained import ParameterTensor
from tests.every import every

FP32 = find_policy("fp32")
KINDS = ("matrix", "vector", "embedding", "head", "expert matrix")
MODULE = (
    ParameterTensor("table", 50, 16, 1, "embedding"),
    ParameterTensor("weight", 24, 16, 1, "matrix"),
    ParameterTensor("bias", 24, 1, 1, "vector"),
    ParameterTensor("gain", 16, 1, 1, "vector"),
)
Make = Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]
TORCH: dict[str, Make] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "SGD Nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "AdaGrad": torch.optim.Adagrad,
    "RMSProp": torch.optim.RMSprop,
    "RMSProp centered": lambda p: torch.optim.RMSprop(p, centered=True),
    "RMSProp momentum": lambda p: torch.optim.RMSprop(p, momentum=0.9),
    "RMSProp centered+momentum": lambda p: torch.optim.RMSprop(p, momentum=0.9, centered=True),
    "Adadelta": torch.optim.Adadelta,
    "Adam": torch.optim.Adam,
    "AdamW": torch.optim.AdamW,
    "AMSGrad": lambda p: torch.optim.Adam(p, amsgrad=True),
    "NAdam": torch.optim.NAdam,
    "RAdam": torch.optim.RAdam,
    "Adamax": torch.optim.Adamax,
    "ASGD": torch.optim.ASGD,
    "Rprop": torch.optim.Rprop,
    "Adafactor": torch.optim.Adafactor,
    "Adafactor with momentum": lambda p: Adafactor(p, beta1=0.9),  # type: ignore[arg-type]
}


def nbytes(tensors: Iterable[torch.Tensor | None]) -> int:
    return sum(tensor.untyped_storage().nbytes() for tensor in tensors if tensor is not None)


def parameter(tensor: ParameterTensor, dtype: torch.dtype) -> torch.nn.Parameter:
    shape = (tensor.rows,) if tensor.kind == "vector" else (tensor.rows, tensor.columns)
    return torch.nn.Parameter(torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype))


def stepped(make: Make, weights: list[torch.nn.Parameter], steps: int = 1) -> torch.optim.Optimizer:
    optimizer = make(weights)
    for _ in range(steps):
        optimizer.zero_grad()
        sum((weight.float() ** 2).sum() for weight in weights).backward()  # type: ignore[union-attr]
        optimizer.step()
    return optimizer


def kept(value: object) -> Iterator[torch.Tensor]:
    """Every tensor in an optimizer's state."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from kept(part)


@every("precision", ["fp32", "bf16 throughout"])
@every("name", [name for name in TORCH if name != "Adafactor with momentum"])
def test_torch_keeps_the_bytes_counted_with_its_counters(name: str, precision: str) -> None:
    weights = [parameter(t, torch.float32 if precision == "fp32" else torch.bfloat16) for t in MODULE]
    optimizer = stepped(TORCH[name], weights)
    counted = optimizer_state(MODULE, find_optimizer(name), find_policy(precision))
    assert nbytes(kept(dict(optimizer.state))) == counted.total + counted.counters
    if name != "Adafactor":
        states = states_per_parameter(find_optimizer(name), find_policy(precision))
        count = sum(weight.numel() for weight in weights)
        assert nbytes(weights) == states.parameters * count
        assert nbytes(weight.grad for weight in weights) == states.gradients * count
        grown = [(key, list(kept(value))) for state in optimizer.state.values() for key, value in state.items()]
        names = {key for key, tensors in grown if any(tensor.numel() > 1 for tensor in tensors)}
        assert names == set(find_optimizer(name).states)


@pytest.mark.parametrize(
    ("precision", "gradient_type"),
    [
        ("mixed bf16, fp32 master", torch.bfloat16),
        ("mixed bf16, fp32 master, fp32 gradients", torch.float32),
    ],
)
def test_a_master_copy_in_torch(precision: str, gradient_type: torch.dtype) -> None:
    """bf16 weights, AdamW on their fp32 copy: what lasts between two steps, all of it, in bytes."""
    weights = [parameter(t, torch.bfloat16) for t in MODULE]
    master = [weight.detach().float() for weight in weights]
    sum((weight.float() ** 2).sum() for weight in weights).backward()  # type: ignore[union-attr]
    gradients = [weight.grad.to(gradient_type) for weight in weights if weight.grad is not None]
    optimizer = torch.optim.AdamW(master)
    for copy, gradient in zip(master, gradients, strict=True):
        copy.grad = gradient.float()
    optimizer.step()
    for copy in master:
        copy.grad = None  # lives only inside the step
    counted = states_per_parameter(find_optimizer("AdamW"), find_policy(precision))
    states = [t for t in kept(dict(optimizer.state)) if t.numel() > 1]
    lasting = nbytes(weights) + nbytes(gradients) + nbytes(master) + nbytes(states)
    assert lasting == counted.total * sum(weight.numel() for weight in weights)


def test_adafactor_of_transformers() -> None:
    weights = [parameter(t, torch.float32) for t in MODULE]
    optimizer = stepped(TORCH["Adafactor with momentum"], weights)
    counted = optimizer_state(MODULE, find_optimizer("Adafactor with momentum"), FP32)
    scalars = [t for t in kept(dict(optimizer.state)) if t.numel() == 1]  # root mean squares, of no lasting use
    assert nbytes(kept(dict(optimizer.state))) - nbytes(scalars) == counted.total
    assert len(scalars) <= len(MODULE)


def test_muon_trains_matrices_and_adamw_the_rest() -> None:
    weights = {tensor: parameter(tensor, torch.float32) for tensor in MODULE}
    ones = stepped(torch.optim.Muon, [w for t, w in weights.items() if t.kind == "matrix"])
    rest = stepped(torch.optim.AdamW, [w for t, w in weights.items() if t.kind != "matrix"])
    found = [t for optimizer in (ones, rest) for t in kept(dict(optimizer.state)) if t.numel() > 1]
    assert nbytes(found) == optimizer_state(MODULE, find_optimizer("Muon"), FP32).total


def test_lbfgs_with_its_history_full() -> None:
    (weight,) = [parameter(t, torch.float32) for t in MODULE if t.kind == "matrix"]
    optimizer = torch.optim.LBFGS(
        [weight], lr=0.01, history_size=100, max_iter=130, tolerance_grad=0, tolerance_change=0
    )

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (torch.arange(1, weight.numel() + 1).view_as(weight) * (weight - 1) ** 4).sum().sqrt()
        loss.backward()
        return loss

    optimizer.step(closure)  # type: ignore[arg-type]
    found = [t for t in kept(dict(optimizer.state)) if t.numel() > 1]
    assert nbytes(found) == optimizer_state(MODULE[1:2], find_optimizer("LBFGS"), FP32).total


def test_sparse_adam_keeps_dense_moments() -> None:
    table = torch.nn.Embedding(50, 16, sparse=True)
    optimizer = torch.optim.SparseAdam(table.parameters())
    table(torch.tensor([1, 7])).sum().backward()
    optimizer.step()
    counted = optimizer_state(MODULE[:1], find_optimizer("SparseAdam"), FP32)
    assert nbytes(kept(dict(optimizer.state))) == counted.total + counted.counters


TABLE = Path(__file__).parents[1] / "data" / "optimizer_states.csv"
MEASURED = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))


@every("row", MEASURED, ids=lambda row: f"{row['optimizer']}, {row['kind']} {row['rows']}")
def test_other_libraries_keep_the_bytes_counted(row: dict[str, str]) -> None:
    tensor: Any = ParameterTensor("one", int(row["rows"]), int(row["columns"]), 1, row["kind"])  # type: ignore[arg-type]
    counted = optimizer_state((tensor,), find_optimizer(row["optimizer"]), FP32)
    assert counted.total + counted.counters == pytest.approx(float(row["bytes"]), rel=0.01, abs=8)


def test_every_optimizer_is_compared_with_torch() -> None:
    seen = {*TORCH, *(row["optimizer"] for row in MEASURED), "Muon", "LBFGS", "SparseAdam"}
    assert set(optimizers()) - seen == {"Sophia", "APOLLO, rank 128"}


# ------------------------------------------------------------------------------------------- algebra

SIZES = st.integers(1, 20_000)


@given(st.sampled_from(list(optimizers())), st.sampled_from(KINDS), st.lists(st.tuples(SIZES, SIZES), min_size=1))
def test_tensors_are_counted_together_as_one_by_one(name: str, kind: Any, shapes: list[tuple[int, int]]) -> None:
    optimizer = find_optimizer(name)
    tensors = tuple(ParameterTensor(str(i), m, n, 1, kind) for i, (m, n) in enumerate(shapes))
    singly = sum(optimizer_state((tensor,), optimizer, FP32).total for tensor in tensors)
    assert optimizer_state(tensors, optimizer, FP32).total == pytest.approx(singly, rel=1e-12)


def test_an_optimizer_of_full_size_states_keeps_the_same_for_every_model() -> None:
    constant = [optimizer for optimizer in optimizers().values() if optimizer.uniform]
    assert {"Adam", "AdamW", "SGD", "Lion", "Prodigy"} <= {optimizer.name for optimizer in constant}
    for optimizer in constant:
        for model in catalog()[::7]:
            found = optimizer_state(model.spec, optimizer, FP32)
            assert found.total == states_per_parameter(optimizer, FP32).optimizer * found.parameters


@pytest.mark.parametrize("text", ["", "exp_avg", "a = ", "a = mn as fp7", "a = mn;b = m", "a = m/x", "a = nm", "=mn"])
def test_what_is_no_state_tensor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no state tensor"):
        parse_states(text)


def test_a_block_that_is_not_full_has_its_number_too() -> None:
    (scales,) = parse_states("absmax = mn/256 as fp32")
    assert scales.elements([3, 16, 0], [100, 16, 16]).tolist() == [2, 1, 0]
