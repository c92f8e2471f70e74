"""Running a study on the workers of a Dask cluster, and the folder that keeps what they find.

The folder has a file for each chunk, so that the study can go on where it stopped. Each is written under another name
and then renamed, so that none is ever half written. A worker that is lost costs the chunks it was working on: the
scheduler gives them to others.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from core.limits import limit
from core.messages import message
from core.search.study.point import SCHEMA, Row, Search, search_chunk
from core.search.study.study import Study, StudyError

dask: Any = importlib.import_module("dask")
distributed: Any = importlib.import_module("distributed")
pa: Any = importlib.import_module("pyarrow")
pq: Any = importlib.import_module("pyarrow.parquet")
"""These have no types."""

SCHEDULER = "DASK_SCHEDULER"
"""The environment variable that names the scheduler of a Dask cluster, such as tcp://10.0.0.1:8786."""

MARK = b"napkin.study"
"""Under this name a file carries the digest of its study."""

_CONNECT_S = 5
_AHEAD = 2
"""Chunks that each thread of a worker has in hand or waiting, so that none idles and little is under way."""


@contextmanager
def connected(address: str) -> Generator[Any]:
    """Yield a client of the scheduler at ``address``. Raises `StudyError` if none answers, or none has workers."""
    try:
        with distributed.Client(address, timeout=_CONNECT_S, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=_CONNECT_S)
            yield client
    except (OSError, ValueError, TypeError, OverflowError) as problem:  # a timeout is an OSError
        if isinstance(problem, StudyError):
            raise
        said = _first_line(problem)
        raise StudyError(
            message("study.error.scheduler", address=address[:200], seconds=float(_CONNECT_S), problem=said)
        ) from None


@contextmanager
def embedded(workers: int) -> Generator[Any]:
    """Yield a client of ``workers`` processes on this machine, which end with it."""
    with ExitStack() as closing:
        # A process that ends is started anew; without this, one that is missing at the wrong moment is not.
        closing.enter_context(dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"}))
        with _ignore_interrupts():
            cluster = distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
            )
        closing.enter_context(cluster)
        yield closing.enter_context(distributed.Client(cluster, set_as_default=False))


@contextmanager
def _ignore_interrupts() -> Generator[None]:
    """Keep Ctrl-C from the threads and processes that start inside, because this process ends them itself."""
    resource_tracker.ensure_running()  # which hears it again as it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def found(study: Study, left: Sequence[int], search: Search, client: Any) -> Iterator[tuple[int, list[Row]]]:
    """Yield the chunks ``left`` with their rows, in the order in which workers finish them.

    Raises `StudyError` for a cluster that goes away and, after all others, for chunks that Dask gave up because every
    worker that had one was lost.
    """
    waiting, running, lost = iter(left), dict[Any, int](), list[int]()
    finished = distributed.as_completed(loop=client.loop)

    def submit(count: int) -> None:
        for at in islice(waiting, count):
            future = client.submit(search_chunk, study, at, search, pure=False)
            running[future] = at
            finished.add(future)

    try:
        submit(max(1, _AHEAD * sum(client.nthreads().values())))
        for future in finished:
            at = running.pop(future)
            try:
                rows = future.result(timeout=_CONNECT_S)
            except TimeoutError:  # it was lost with its worker before it came here, and is worked out anew
                running[future] = at
                finished.add(future)
                continue
            except distributed.KilledWorker:
                lost.append(at)
            else:
                yield at, rows
            submit(1)
    except (distributed.client.FutureCancelledError, OSError) as problem:
        raise StudyError(message("study.error.cluster", problem=_first_line(problem))) from None
    finally:
        with suppress(OSError):
            client.cancel(list(running), force=True)
    if lost:
        raise StudyError(message("study.error.chunks", lost=float(len(lost)), chunks=float(study.chunk_count)))


def _first_line(problem: BaseException) -> str:
    return str(problem).strip().partition("\n")[0][:200].rstrip(".") or type(problem).__name__


class Folder:
    """Where one study keeps its chunks and, in ``study.parquet``, all of them.

    Raises `StudyError` for a folder that cannot be made, or that holds results of another study.
    """

    def __init__(self, path: Path, study: Study) -> None:
        self.study, self.whole, self._chunks = study, path / "study.parquet", path / "chunks"
        self.schema = SCHEMA.with_metadata({MARK: study.digest.encode()})
        try:
            self._chunks.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise StudyError(message("study.error.folder", folder=path, problem=problem.strerror)) from None
        self.done = [at for at in range(study.chunk_count) if self._rows(self._file(at)) == len(study.chunk(at))]
        self._rows(self.whole)

    def _file(self, index: int) -> Path:
        return self._chunks / f"{index:05d}.parquet"

    def _rows(self, path: Path) -> int:
        """Return the rows of a file of this study; 0 for a file that is not there or torn, which will be written
        again."""
        try:
            file = pq.ParquetFile(path)
        except (OSError, pa.ArrowException):
            return 0
        if file.schema_arrow.metadata.get(MARK) != self.schema.metadata[MARK]:
            raise StudyError(message("study.error.other_study", file=path))
        return file.metadata.num_rows

    def keep(self, index: int, rows: Sequence[Row]) -> None:
        """Write a chunk."""
        self._write(self._file(index), pa.Table.from_pylist(list(rows), self.schema))

    def gather(self) -> int:
        """Write every chunk that there is into one file, in order; the rows that it has."""
        files = [self._file(at) for at in range(self.study.chunk_count) if self._rows(self._file(at))]
        table = pa.concat_tables([self.schema.empty_table(), *map(pq.read_table, files)])
        self._write(self.whole, table)
        return table.num_rows

    def _write(self, path: Path, table: Any) -> None:
        torn = path.with_suffix(".part")
        try:
            pq.write_table(table, torn, compression="zstd")
            os.replace(torn, path)
        except OSError as problem:
            raise StudyError(message("study.error.write", file=path, problem=problem.strerror or problem)) from None


def run_study(study: Study, folder: Folder, search: Search, client: Any) -> None:
    """Search the points that the folder lacks, save each chunk, and report progress on standard error.

    Raises `StudyError` for more layouts than a study may have, and as `found` does.
    """
    left = sorted(set(range(study.chunk_count)) - set(folder.done))
    plans, start = 0, time.monotonic()
    for searched, (index, rows) in enumerate(found(study, left, search, client), 1):
        folder.keep(index, rows)
        plans += sum(row["plans"] for row in rows)
        seconds = time.monotonic() - start
        rest = seconds / searched * (len(left) - searched)
        text = f"{searched:,} of {len(left):,} chunks, {plans:,} plans in {seconds:,.0f} s, about {rest:,.0f} s left"
        print(f"\r\033[K{text}" if sys.stderr.isatty() else text, end="", file=sys.stderr, flush=True)
        print(end="" if sys.stderr.isatty() and searched < len(left) else "\n", file=sys.stderr)
        if plans > limit("study_plans"):
            raise StudyError(message("study.error.layouts", most=float(limit("study_plans"))))
