"""Sums and products by guard, round and sticky on every pair of fp8 codes and many of the wider formats: how many
differ from ml_dtypes, numpy and the C library (none should), and how long one takes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from core.floats.arithmetic.operations import Operator, operate
from core.floats.formats import FORMATS, FloatFormat
from tests.core.test_floats_arithmetic import EIGHT, VECTORS, c_fma, codes_of, same
from tests.perf.options import FULL, Options

Case = tuple[str, Operator, FloatFormat, list[tuple[int, ...]], list[int]]


def cases(count: int) -> Iterator[Case]:
    """Operands as codes, and the codes that others give. count: of each wider format."""
    every = np.arange(1 << 16, dtype=np.uint32)
    rows = [(name, dtype, np.uint8, np.float32) for name, dtype in EIGHT]
    rows += [(name, dtype, word, dtype) for name, dtype, word in VECTORS]
    rows.append(("bf16", ml_dtypes.bfloat16, np.uint16, np.float32))
    for name, dtype, word, wide in rows:
        fmt = FORMATS[name]
        narrow = fmt.bits == 8
        a = (every >> 8).astype(word) if narrow else codes_of(dtype, word, fmt.bits, count)
        b = (every & 255).astype(word) if narrow else codes_of(dtype, word, fmt.bits, 2 * count)[count:]
        with np.errstate(all="ignore"):
            left, right = a.view(dtype).astype(wide), b.view(dtype).astype(wide)
            results: dict[Operator, Any] = {"add": left + right, "multiply": left * right}
            for operator, result in results.items():
                got = result.astype(dtype).view(word)
                # bf16's smallest values are rounded twice on their way through float32.
                kept = np.abs(result) >= float(fmt.min_normal) if name == "bf16" else np.ones(got.size, bool)
                pairs = list(zip(a[kept].tolist(), b[kept].tolist(), strict=True))
                yield name, operator, fmt, pairs, got[kept].tolist()
        if name in ("fp64", "fp32"):
            c = codes_of(dtype, word, fmt.bits, 3 * count)[2 * count :]
            codes = list(zip(a.tolist(), b.tolist(), c.tolist(), strict=True))
            yield name, "fma", fmt, list(codes), [c_fma(name, dtype, word, three) for three in codes]


def main(options: Options = FULL) -> None:
    """Measure and print."""
    print(f"{'format':<14}{'operation':<10}{'cases':>9}{'differ':>8}{'µs each':>9}")
    for name, operator, fmt, operands, results in cases(options.pairs):
        start = time.process_time()
        made = [operate(operator, codes, fmt).code for codes in operands]
        taken = 1e6 * (time.process_time() - start) / len(made)
        differ = sum(not same(*pair, fmt) for pair in zip(made, results, strict=True))
        print(f"{name:<14}{operator:<10}{len(made):>9,}{differ:>8,}{taken:>9.1f}", flush=True)
