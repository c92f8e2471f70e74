"""Parameters and FLOPs per token of a million shapes under every convention, single thread, through the array path."""

from __future__ import annotations

import statistics
import time

import numpy as np

from core.models.batch import FlopArrays, SpecBatch, batch, flops_over, parameters_over
from core.models.flop_formulas import train_flop_6nd
from core.models.flops import Attention
from tests.perf.options import FULL, Options

ROUNDS = 5
CONVENTIONS: tuple[Attention, ...] = ("full", "causal", "exact", "eager")


def shapes(number: int, mixtures: bool) -> SpecBatch:
    """As many random shapes, every size its own; with ``mixtures``, all of them have experts and windows besides."""
    rng = np.random.default_rng(0)

    def whole(low: int, high: int) -> np.ndarray:
        return rng.integers(low, high, number, endpoint=True).astype(np.float64)

    kv_heads = whole(1, 16)
    sizes = {
        "layers": whole(2, 160),
        "hidden": 64 * whole(4, 320),
        "heads": kv_heads * whole(1, 16),
        "kv_heads": kv_heads,
        "head_dim": 8 * whole(4, 32),
        "ffn": 64 * whole(8, 1024),
        "vocab": whole(30_000, 260_000),
        "glu": whole(0, 1),
        "tied_head": whole(0, 1),
    }
    if mixtures:
        count = whole(2, 256)
        sizes |= {
            "experts": count,
            "per_token": np.minimum(count, whole(1, 8)),
            "expert_width": 64 * whole(8, 256),
            "shared": whole(0, 2),
            "window": whole(128, 4096),
            "windowed_layers": np.floor(sizes["layers"] / 2),
        }
    return batch(**sizes)


def count_all(given: SpecBatch) -> tuple[np.ndarray, FlopArrays]:
    """6N and the count by layer under each convention."""
    active = parameters_over(given).active
    return train_flop_6nd.over(params=active, tokens=1), flops_over(given, 8192, CONVENTIONS)


def main(options: Options = FULL) -> None:
    """Measure and print."""
    names = ", ".join(("6N", *CONVENTIONS))
    print(f"{options.shapes:,} shapes, parameters and FLOPs per token ({names}), one thread, median of {ROUNDS}")
    for label, mixtures in (("dense", False), ("mixtures of experts with windows", True)):
        given = shapes(options.shapes, mixtures)
        taken: list[float] = []
        for turn in range(ROUNDS + 1):
            start = time.perf_counter()
            count_all(given)
            if turn:  # the first turn warms caches
                taken.append(time.perf_counter() - start)
        print(f"{label:<34}{statistics.median(taken):>8.3f} s", flush=True)


if __name__ == "__main__":
    main()
