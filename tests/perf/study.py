"""A study of a hundred million plans on two Dask workers: how fast, how much memory, and with one killed midway.

Prints plans per second, the most that each worker held, and whether the killed worker changed anything.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from core.search.fastest import searched
from core.search.study.point import Row, search_chunk
from core.search.study.run import embedded, found
from core.search.study.study import Study, read_study
from tests.perf.options import FULL, Options

GRID: dict[str, Any] = {
    "models": ["Llama 3.1 405B", "DeepSeek-V3"],
    "clusters": [{"accelerator": "H100 SXM", "accelerators": [4096, 8192, 12288, 16384]}],
    "seq_len": [4096, 8192],
    "tokens": 15e12,
    "top": 5,
}


def peak_bytes() -> int:
    """The most memory that this process has held, itself and not its parent before it."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def study_of(batches: int) -> Study:
    """The grid with so many batch sizes."""
    return read_study(json.dumps(GRID | {"global_batch_sequences": [12288 * n for n in range(1, batches + 1)]}))


def run(study: Study, *, kill: bool) -> tuple[list[Row], int]:
    """Every point of a study on two workers, and the plans counted; kill: one of them once half the chunks are in."""
    results: list[Row] = []
    plans = 0
    with embedded(2) as client:
        bare = max(client.run(peak_bytes).values())
        start = time.perf_counter()
        for at, (_, rows) in enumerate(found(study, range(study.chunk_count), searched, client), 1):
            results += rows
            plans += sum(row["plans"] for row in rows)
            if kill and at == study.chunk_count // 2:
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        seconds = time.perf_counter() - start
        content = max(client.run(peak_bytes).values())
        busy = sum(client.run(time.process_time).values())
    text = "one worker killed midway" if kill else "two workers"
    print(
        f"  {text:<24} {plans:>13,} plans  {seconds:6.1f} s  {plans / seconds:>10,.0f} plans/s"
        f"  {busy:6.1f} s of processor  worker {content / 1e6:,.0f} MB at most, {bare / 1e6:,.0f} MB before"
    )
    return sorted(results, key=lambda row: row["point"]), plans


def main(options: Options = FULL) -> None:
    """Run it with two workers, again with one of them killed, and compare."""
    plans = options.study_plans
    one = study_of(1)
    each = sum(row["plans"] for at in range(one.chunk_count) for row in search_chunk(one, at, searched))
    study = study_of(-(-plans // each))
    print(f"study: {study.count:,} points in {study.chunk_count:,} chunks", flush=True)
    whole, count = run(study, kill=False)
    again, _ = run(study, kill=True)
    print(
        f"  {'enough' if count >= plans else 'TOO FEW'} plans; {'the same' if whole == again else 'DIFFERENT'} result"
    )


if __name__ == "__main__":
    main()
