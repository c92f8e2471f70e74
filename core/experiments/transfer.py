"""A tensor made on the device against one made on the CPU and sent there; without a GPU, against a copy in memory."""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any

from core.experiments.found import Found
from core.limits import limit

SIDES = (32, 1024, 4096)
"""Sides of the square fp32 tensors: the lecture's, and two that take longer than a call does."""

_TIMES = 7


def size_of(side: int) -> float:
    """Bytes of a square fp32 tensor."""
    return 4.0 * side * side


def _seconds(do: Callable[[], object], wait: Callable[[], object]) -> float:
    """The middle of several times, after one that is not counted."""
    do()
    wait()
    taken: list[float] = []
    for _ in range(_TIMES):
        start = time.perf_counter()
        do()
        wait()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def work() -> Found:
    """Time both ways at each size."""
    torch: Any = importlib.import_module("torch")
    cuda = bool(torch.cuda.is_available())
    wait: Callable[[], object] = torch.cuda.synchronize if cuda else lambda: None
    device = "cuda" if cuda else "cpu"
    numbers: dict[str, float] = {"cuda": float(cuda)}
    for side in SIDES:
        if size_of(side) > limit("experiment_bytes"):
            raise ValueError(f"{size_of(side):,.0f} B is beyond experiment_bytes")
        made = torch.ones(side, side)

        def create(side: int = side) -> object:
            return torch.zeros(side, side, device=device).fill_(1.0)

        def send(made: Any = made) -> object:
            return made.to(device) if cuda else made.clone()

        numbers[f"{side} made"] = _seconds(create, wait)
        numbers[f"{side} sent"] = _seconds(send, wait)
    name = str(torch.cuda.get_device_name()) if cuda else "CPU"
    return Found(numbers=numbers, words={"device": name, "torch": str(torch.__version__)})
