"""Throughput of the float codec beside ml_dtypes and gfloat, single thread, in one run.

The libraries' own codes are one or two bytes wide, and so are ours by default; the last column of each row is for
codes asked for as uint64. gfloat is timed on a part and scaled up: it needs half a second for ten million.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import gfloat
import ml_dtypes
import numpy as np
from gfloat import formats as gfloat_formats

from core.floats.codec import decode, encode
from core.floats.formats import FORMATS
from tests.perf.options import FULL, Options

GFLOAT_SHARE = 20
ROUNDS = 7

ROWS = (
    ("bf16", ml_dtypes.bfloat16, gfloat_formats.format_info_bfloat16),
    ("fp8_e4m3fn", ml_dtypes.float8_e4m3fn, gfloat_formats.format_info_ocp_e4m3),
    ("fp4_e2m1fn", ml_dtypes.float4_e2m1fn, gfloat_formats.format_info_ocp_e2m1),
)


def medians(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median seconds of each call; the calls take turns, so that a slow moment hits them alike."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(ROUNDS + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if turn:  # the first turn builds tables and warms caches
                taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in taken.items()}


def line(name: str, direction: str, seconds: dict[str, float]) -> str:
    """One printed row: milliseconds for all values, and how many times faster than each library we are."""
    ours, wide = seconds["ours"], seconds["uint64"]
    libraries = {"ml_dtypes": seconds["ml_dtypes"], "gfloat": GFLOAT_SHARE * seconds["gfloat"]}
    cells = f"{1000 * ours:>9.1f}" + "".join(f"{1000 * value:>11.1f}" for value in libraries.values())
    ratios = "".join(f"{value / ours:>9.2f}×" for value in libraries.values())
    return f"{name:<11} {direction:<7}{cells}{ratios}{1000 * wide:>13.1f}"


def main(options: Options = FULL) -> None:
    """Measure and print."""
    values = np.random.default_rng(0).standard_normal(options.floats)
    part = values[: values.size // GFLOAT_SHARE]
    print(f"{values.size:,} normal float64 values, one thread, median of {ROUNDS}, ms")
    heads = f"{'ours':>9}{'ml_dtypes':>11}{'gfloat':>11}{'× ml_dt.':>10}{'× gfloat':>10}{'ours, uint64':>13}"
    print(f"{'format':<11} {'':<7}{heads}")
    for name, dtype, info in ROWS:
        fmt = FORMATS[name]
        saturate = not fmt.has_nan
        theirs, narrow, wide = values.astype(dtype), encode(values, fmt), encode(values, fmt, dtype=np.uint64)
        few = wide[: part.size].astype(np.int64)

        def by_gfloat(info: gfloat.FormatInfo = info, saturate: bool = saturate) -> object:
            return gfloat.encode_ndarray(info, gfloat.round_ndarray(info, part, sat=saturate))

        encoding: dict[str, Callable[[], object]] = {
            "ours": lambda fmt=fmt: encode(values, fmt),
            "uint64": lambda fmt=fmt: encode(values, fmt, dtype=np.uint64),
            "ml_dtypes": lambda dtype=dtype: values.astype(dtype),
            "gfloat": by_gfloat,
        }
        decoding: dict[str, Callable[[], object]] = {
            "ours": lambda fmt=fmt, narrow=narrow: decode(narrow, fmt),
            "uint64": lambda fmt=fmt, wide=wide: decode(wide, fmt),
            "ml_dtypes": lambda theirs=theirs: theirs.astype(np.float64),
            "gfloat": lambda info=info, few=few: gfloat.decode_ndarray(info, few),
        }
        print(line(name, "encode", medians(encoding)), flush=True)
        print(line(name, "decode", medians(decoding)), flush=True)


if __name__ == "__main__":
    main()
