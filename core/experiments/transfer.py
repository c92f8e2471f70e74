"""Time to create a tensor on the device and to send it from the CPU, or without a GPU to copy it in memory."""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any

from core.experiments.found import Found
from core.limits import limit

SIDES = (32, 1024, 4096)
"""Sides of the square fp32 tensors: that of the lecture, and two that take longer than a call."""

_TIMES = 7


def size_of(side: int) -> float:
    """Return the bytes of a square fp32 tensor."""
    return 4.0 * side * side


def _seconds(do: Callable[[], object], wait: Callable[[], object]) -> float:
    """Return the median seconds of several runs, after a warm-up."""
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
    """Time creation and transfer of a tensor at each size."""
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
