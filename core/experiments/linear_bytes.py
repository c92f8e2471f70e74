"""Bytes of the lecture's deep linear model, predicted and allocated by torch after one step of three optimizers."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from core.experiments.found import Found
from core.tensors.cost import tensor_bytes
from core.training.memory import states_per_parameter
from core.training.optimizers import find_optimizer
from core.training.precision import find_policy

WIDTH, LAYERS, ROWS = 4, 2, 2
"""D, L and B of the lecture's own example."""

PARAMETERS = WIDTH * WIDTH * LAYERS + WIDTH
ACTIVATIONS = ROWS * WIDTH * LAYERS
"""Outputs of the layers, which backward needs."""

OPTIMIZERS = {"SGD": "SGD", "AdaGrad": "Adagrad", "Adam": "Adam"}
"""Name → class of torch.optim."""
PARTS = ("parameters", "activations", "gradients", "optimizer state")


def predicted(optimizer: str) -> Mapping[str, float]:
    """Return the predicted bytes of each part in fp32."""
    each = states_per_parameter(find_optimizer(optimizer), find_policy("fp32"))
    return {
        "parameters": PARAMETERS * each.parameters,
        "activations": tensor_bytes(elements=ACTIVATIONS, element_bytes=4),
        "gradients": PARAMETERS * each.gradients,
        "optimizer state": PARAMETERS * each.optimizer,
    }


def _as_it_is(tensor: Any) -> Any:
    return tensor


def _bytes(tensors: list[Any]) -> float:
    return float(sum(tensor.nbytes for tensor in tensors))


def work() -> Found:
    """Run one step under each optimizer and sum the bytes of torch's tensors, without scalars such as step numbers."""
    torch: Any = importlib.import_module("torch")
    numbers: dict[str, float] = {}
    for name, kind in OPTIMIZERS.items():
        torch.manual_seed(0)
        shapes = [(WIDTH, WIDTH)] * LAYERS + [(WIDTH, 1)]
        weights = [torch.nn.Parameter(torch.randn(shape) / WIDTH**0.5) for shape in shapes]
        optimizer = getattr(torch.optim, kind)(weights, lr=0.01)
        x = torch.randn(ROWS, WIDTH)
        known = {tensor.data_ptr() for tensor in (x, *weights)}
        saved: dict[int, Any] = {}

        def pack(tensor: Any, saved: dict[int, Any] = saved, known: set[int] = known) -> Any:
            if tensor.data_ptr() not in known:
                saved[tensor.data_ptr()] = tensor
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, _as_it_is):
            result = x
            for weight in weights:
                result = result @ weight
        result.mean().backward()
        optimizer.step()
        states = [value for state in optimizer.state.values() for value in state.values()]
        found = {
            "parameters": _bytes(weights),
            "activations": _bytes(list(saved.values())),
            "gradients": _bytes([weight.grad for weight in weights]),
            "optimizer state": _bytes([value for value in states if torch.is_tensor(value) and value.dim()]),
        }
        numbers |= {f"{name}, {part}": size for part, size in found.items()}
    return Found(numbers=numbers, words={"torch": str(torch.__version__)})
