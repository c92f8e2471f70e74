"""A million layouts of each of three models, and published memory readings beside the account."""

from __future__ import annotations

import time

import numpy as np

from core.models.catalog import CATALOG
from core.step_time.calibration.memory import memory_ratios
from core.training.device.inputs import StepSettings, states_of
from core.training.device.memory import memory_over
from core.training.layout import Layout
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES
from tests.perf.options import FULL, Options

ROUNDS = 5


def layouts(count: int) -> Layout:
    """As many random degrees, micro-batches, ZeRO stages and recomputation."""
    rng = np.random.default_rng(0)

    def power(most: int) -> np.ndarray:
        return 2 ** rng.integers(0, most, count, endpoint=True)

    return Layout(
        tensor=power(3),
        pipeline=power(4),
        context=power(3),
        data=power(8),
        micro_batch=power(3),
        micro_batches=power(7),
        zero=rng.integers(0, 4, count),
        sequence_parallel=rng.integers(0, 2, count),
        recompute=rng.integers(0, 4, count),
    )


def main(options: Options = FULL) -> None:
    """Measure and print."""
    count = options.shapes
    given, optimizer = layouts(count), find_optimizer("AdamW")
    policy = POLICIES["mixed bf16, fp32 master, fp32 gradients"]
    print(f"{count:,} layouts, memory of the fullest stage, one thread, best of {ROUNDS} by processor time")
    for name in ("Llama 3.1 405B", "Mixtral 8x7B", "DeepSeek-V3"):
        took: list[float] = []
        for _ in range(ROUNDS):
            spec = CATALOG[name].spec
            states = states_of(optimizer, policy, spec)
            start = time.thread_time()
            memory_over(spec, given, states, StepSettings(8192))
            took.append(time.thread_time() - start)
        print(f"  {name:18} {min(took):5.2f} s, {count / min(took) / 1e6:.2f} M layouts per second")
    print("published memory: predicted, measured, ratio")
    ratios = memory_ratios()
    for run, ratio in ratios.items():
        read = run.memory_bytes / 1e9
        print(f"  {run.name[:70]:70} {ratio * read:6.1f} {read:6.1f} GB {ratio:5.2f}")
    for reading in ("process", "reserved", "tensors"):
        errors = [abs(ratio - 1) for run, ratio in ratios.items() if run.reading == reading]
        print(f"  {reading:9} {len(errors):2} rows, median error {np.median(errors):.1%}, worst {max(errors):.0%}")
    errors = [abs(ratio - 1) for run, ratio in ratios.items() if run.reading != "tensors"]
    middle, most = np.quantile(errors, [0.5, 0.9])
    print(f"  measured  {len(errors):2} rows, median error {middle:.1%}, 90 % within {most:.0%}")


if __name__ == "__main__":
    main()
