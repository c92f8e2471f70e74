"""What torch really allocates: parameters, gradients and optimizer state after one step, byte by byte."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch

from core.training.memory import states_per_parameter
from core.training.optimizers import find_optimizer
from core.training.precision import find_policy
from tests.every import every

SHAPES = ((512, 256), (512,))
NUMEL = sum(torch.Size(shape).numel() for shape in SHAPES)
EXTRA = 12  # bytes per tensor of step counters, which are not counted per parameter

MAKERS: dict[str, Callable[[Iterable[torch.Tensor]], torch.optim.Optimizer]] = {
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
}


def parameters(dtype: torch.dtype) -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator).to(dtype)) for shape in SHAPES]


def nbytes(tensors: Iterable[torch.Tensor | None]) -> int:
    return sum(tensor.untyped_storage().nbytes() for tensor in tensors if tensor is not None)


def state_of(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    return [dict(state) for state in optimizer.state.values()]


def big(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """State tensors that grow with the parameters, without the counters."""
    return [
        value
        for state in state_of(optimizer)
        for value in state.values()
        if isinstance(value, torch.Tensor) and value.numel() > 1
    ]


def one_step(weights: list[torch.nn.Parameter], optimizer: torch.optim.Optimizer) -> None:
    sum((weight.float() ** 2).sum() for weight in weights).backward()  # type: ignore[union-attr]
    optimizer.step()


@every("precision", ["fp32", "bf16 throughout"])
@every("name", MAKERS)
def test_one_step_allocates_what_is_counted(name: str, precision: str) -> None:
    weights = parameters(torch.float32 if precision == "fp32" else torch.bfloat16)
    optimizer = MAKERS[name](weights)
    one_step(weights, optimizer)
    counted = states_per_parameter(find_optimizer(name), find_policy(precision))
    assert nbytes(weights) == counted.parameters * NUMEL
    assert nbytes(weight.grad for weight in weights) == counted.gradients * NUMEL
    assert nbytes(big(optimizer)) == counted.optimizer * NUMEL
    everything = [v for state in state_of(optimizer) for v in state.values() if isinstance(v, torch.Tensor)]
    assert 0 <= nbytes(everything) - counted.optimizer * NUMEL <= EXTRA * len(SHAPES)


@every("name", MAKERS)
def test_states_have_the_names_of_the_data(name: str) -> None:
    weights = parameters(torch.float32)
    optimizer = MAKERS[name](weights)
    one_step(weights, optimizer)
    kept = {
        key
        for state in state_of(optimizer)
        for key, value in state.items()
        if isinstance(value, torch.Tensor) and value.numel() > 1
    }
    assert kept == set(find_optimizer(name).states)


@pytest.mark.parametrize(
    ("precision", "gradient_type"),
    [
        ("mixed bf16, fp32 master", torch.bfloat16),
        ("mixed bf16, fp32 master, fp32 gradients", torch.float32),
    ],
)
def test_a_master_copy_in_torch(precision: str, gradient_type: torch.dtype) -> None:
    """bf16 weights, AdamW on their fp32 copy: what lasts between two steps, all of it, in bytes."""
    weights = parameters(torch.bfloat16)
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
    lasting = nbytes(weights) + nbytes(gradients) + nbytes(master) + nbytes(big(optimizer))
    assert lasting == counted.total * NUMEL


def test_autocast_keeps_fp32_states() -> None:
    model = torch.nn.Linear(256, 512)
    optimizer = torch.optim.AdamW(model.parameters())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = model(torch.randn(4, 256))
    assert output.dtype is torch.bfloat16
    output.float().square().sum().backward()
    optimizer.step()
    counted = states_per_parameter(find_optimizer("AdamW"), find_policy("fp32, bf16 autocast"))
    numel = sum(p.numel() for p in model.parameters())
    lasting = nbytes(model.parameters()) + nbytes(p.grad for p in model.parameters()) + nbytes(big(optimizer))
    assert lasting == counted.total * numel
