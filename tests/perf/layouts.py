"""A million layouts of each of three models, and published memory readings beside the account."""

from __future__ import annotations

import time

import numpy as np

from core.models import CATALOG
from core.training import POLICIES, Layout, Step, find_optimizer, memory_over, states_of
from core.training.measured import measured_memory

COUNT = 1_000_000
ROUNDS = 5


def layouts() -> Layout:
    """Random degrees, micro-batches, ZeRO stages and recomputation."""
    rng = np.random.default_rng(0)

    def power(most: int) -> np.ndarray:
        return 2 ** rng.integers(0, most, COUNT, endpoint=True)

    return Layout(
        tensor=power(3),
        pipeline=power(4),
        context=power(3),
        data=power(8),
        micro_batch=power(3),
        micro_batches=power(7),
        zero=rng.integers(0, 4, COUNT),
        sequence_parallel=rng.integers(0, 2, COUNT),
        recompute=rng.integers(0, 4, COUNT),
    )


def main() -> None:
    """Measure and print."""
    given, optimizer, policy = layouts(), find_optimizer("AdamW"), POLICIES["mixed bf16, fp32 master, fp32 gradients"]
    print(f"{COUNT:,} layouts, memory of the fullest stage, one thread, best of {ROUNDS} by processor time")
    for name in ("Llama 3.1 405B", "Mixtral 8x7B", "DeepSeek-V3"):
        took: list[float] = []
        for _ in range(ROUNDS):
            spec = CATALOG[name].spec
            states = states_of(optimizer, policy, spec)
            start = time.thread_time()
            memory_over(spec, given, states, Step(8192))
            took.append(time.thread_time() - start)
        print(f"  {name:18} {min(took):5.2f} s, {COUNT / min(took) / 1e6:.2f} M layouts per second")
    print("published memory: predicted, measured, ratio")
    for row in measured_memory():
        print(f"  {row.name[:70]:70} {row.predicted.total / 1e9:6.1f} {row.measured / 1e9:6.1f} GB {row.ratio:5.2f}")
    for reading in ("process", "reserved", "tensors"):
        errors = [abs(row.ratio - 1) for row in measured_memory() if row.reading == reading]
        print(f"  {reading:9} {len(errors):2} rows, median error {np.median(errors):.1%}, worst {max(errors):.0%}")
    read = [abs(row.ratio - 1) for row in measured_memory() if row.reading != "tensors"]
    print(
        f"  measured  {len(read):2} rows, median error {np.median(read):.1%}, 90 % within {np.quantile(read, 0.9):.0%}"
    )


if __name__ == "__main__":
    main()
