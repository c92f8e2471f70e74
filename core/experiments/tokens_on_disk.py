"""A file of tokens read by memmap: as uint16, as int32 and as a real .npy, and the memory that reading takes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from core.experiments.found import Found
from core.limits import limit

_BATCH = 64 * 1024


def resident() -> float:
    """Bytes of this process that are in memory; 0 where the system does not say."""
    try:
        pages = Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0.0
    return next((1024.0 * float(line.split()[1]) for line in pages.splitlines() if line.startswith("Rss:")), 0.0)


def work() -> Found:
    """Write the tokens into a folder that is gone afterwards, and read them in every way."""
    count = limit("experiment_tokens")
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        plain, saved = Path(folder, "tokens.bin"), Path(folder, "tokens.npy")
        tokens = rng.integers(0, 32_000, count, dtype=np.uint16)
        tokens.tofile(plain)
        np.save(saved, tokens)
        first = tokens[:4].tolist()
        del tokens
        before = resident()
        mapped = np.memmap(plain, dtype=np.uint16, mode="r")
        opened = resident()
        picked = mapped[count // 2 : count // 2 + _BATCH].copy()
        batch = resident()
        everything = int(mapped.sum(dtype=np.int64))
        after = resident()
        wide = np.memmap(plain, dtype=np.int32, mode="r")
        header = np.memmap(saved, dtype=np.uint16, mode="r")
        right = np.load(saved, mmap_mode="r")
        words = {
            "written": str(first),
            "memmap of uint16": str(mapped[:4].tolist()),
            "memmap of int32": str(wide[:4].tolist()),
            "memmap of the .npy": str(header[:4].tolist()),
            "np.load of the .npy": str(right[:4].tolist()),
        }
        return Found(
            words=words,
            numbers={
                "tokens": float(count),
                "bytes": float(plain.stat().st_size),
                "bytes of .npy": float(saved.stat().st_size),
                "tokens as int32": float(len(wide)),
                "tokens of .npy": float(len(header)),
                "batch bytes": float(picked.nbytes),
                "sum": float(everything),
                "before": before,
                "opened": opened,
                "batch read": batch,
                "all read": after,
            },
        )
