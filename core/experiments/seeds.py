"""Three generators and their seeds: what each repeats, and what no seed makes repeatable."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from core.experiments.found import Found

SEEDED = ("random", "numpy", "torch")


def _twice(seed: Callable[[int], object], draw: Callable[[], float]) -> tuple[float, float]:
    """A draw after each of two equal seeds."""
    drawn: list[float] = []
    for _ in range(2):
        seed(0)
        drawn.append(float(draw()))
    return drawn[0], drawn[1]


def work() -> Found:
    """Set each library's seed and draw from all three; then what seeds do not reach."""
    torch: Any = importlib.import_module("torch")
    seeds: dict[str, Callable[[int], object]] = {
        "random": random.seed,
        "numpy": np.random.seed,
        "torch": torch.manual_seed,
    }
    draws: dict[str, Callable[[], float]] = {
        "random": random.random,
        "numpy": lambda: float(np.random.rand()),
        "torch": lambda: float(torch.rand(1).item()),
    }
    numbers: dict[str, float] = {}
    for seeded, seed in seeds.items():
        for drawn, draw in draws.items():
            first, again = _twice(seed, draw)
            numbers[f"{seeded} → {drawn}"] = float(first == again)
    own = [np.random.default_rng(0).random() for _ in range(2)]
    numbers |= {"own generator": float(own[0] == own[1]), "own draw": float(own[0])}
    rng = np.random.default_rng(0)
    terms = rng.standard_normal(100_000).astype(np.float32)
    forward, backward = np.float32(0), np.float32(0)
    for term in terms[:20_000]:
        forward += term
    for term in terms[:20_000][::-1]:
        backward += term
    numbers |= {"sum forwards": float(forward), "sum backwards": float(backward)}
    words = {"torch": str(torch.__version__)}
    return Found(numbers=numbers, words=words)
