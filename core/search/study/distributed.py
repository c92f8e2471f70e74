"""Chunks of a study on the workers of a Dask cluster. Dask is imported where it is used: it takes half a second.

A worker that is lost costs the chunks it was working on: the scheduler gives them to others.
"""

from __future__ import annotations

import importlib
import signal
import socket
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from multiprocessing import resource_tracker
from typing import Any

from core.search.study.result import ChunkResult, Search, search_chunk
from core.search.study.study import Study, StudyError

_CONNECT_S = 5
_POLL_S = 0.5
_NONE_S = 60
_AHEAD = 2
"""Chunks that each thread of a worker has in hand or waiting, so that none idles and little is under way."""


@contextmanager
def connected(address: str) -> Generator[Any]:
    """A client of the scheduler at ``address``. Raises `StudyError` where none answers, or where it has no workers."""
    distributed: Any = importlib.import_module("distributed")
    addressing: Any = importlib.import_module("distributed.comm.addressing")
    try:
        # A client that fails to connect leaves threads that may wait for each other: make one only where one answers.
        socket.create_connection(addressing.get_address_host_port(address), _CONNECT_S).close()
        client = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
    # An assertion fails on a machine too busy for the client's loop.
    except (OSError, ValueError, TypeError, OverflowError, AssertionError) as problem:
        raise StudyError(
            f"No Dask scheduler answers at “{address[:200]}” within {_CONNECT_S} seconds "
            f"({_first_line(problem)}). Start one with “dask scheduler”, correct DASK_SCHEDULER, or unset it to search "
            "on this machine. For example: DASK_SCHEDULER=tcp://10.0.0.1:8786"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_CONNECT_S)
        except TimeoutError:
            raise StudyError(
                f"The Dask scheduler at “{address[:200]}” has no workers. Start some on machines that have Napkin, "
                f"with “dask worker {address[:200]}”."
            ) from None
        yield client


@contextmanager
def embedded(workers: int) -> Generator[Any]:
    """A client of so many processes on this machine, which end with it."""
    distributed: Any = importlib.import_module("distributed")
    dask: Any = importlib.import_module("dask")
    with ExitStack() as closing:
        # A process that ends is started anew; without this, one that is missing at the wrong moment is not.
        closing.enter_context(dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"}))
        with _ignore_interrupts():
            cluster = distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
            )
        closing.enter_context(cluster)
        yield closing.enter_context(distributed.Client(cluster, set_as_default=False))


@contextmanager
def _ignore_interrupts() -> Generator[None]:
    """Threads and processes that begin in here never hear Ctrl-C: it is for the one that started them to end them."""
    resource_tracker.ensure_running()  # which hears it again as it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def over_workers(
    study: Study, left: Sequence[int], search: Search, client: Any, cancelled: Callable[[], bool]
) -> Iterator[ChunkResult]:
    """The chunks ``left``, in the order in which workers finish them.

    Dask gives a chunk up after some workers were lost that had it, though it may only have been waiting on them. What
    is given up is therefore tried once more, with nothing beside it.
    """
    distributed: Any = importlib.import_module("distributed")
    running: dict[Any, int] = {}
    lost: list[int] = []

    def work(indices: Sequence[int], alone: bool) -> Iterator[ChunkResult]:
        waiting = iter(indices)
        seen = time.monotonic()
        while not cancelled():
            threads = sum(client.nthreads().values())
            seen = time.monotonic() if threads else seen
            if time.monotonic() - seen > _NONE_S:
                raise OSError(f"it has had no workers for {_NONE_S} seconds")
            ahead = 1 if alone else max(1, _AHEAD * threads)
            for at in islice(waiting, max(0, ahead - len(running))):
                running[client.submit(search_chunk, study, at, search, pure=False)] = at
            if not running:
                return
            for future in _finished(distributed, client, running):
                try:
                    result = _result(distributed, future)
                except TimeoutError:  # it was lost with its worker before it came here, and is worked out anew
                    continue
                at = running.pop(future)
                if result is None:
                    lost.append(at)
                else:
                    yield result

    try:
        yield from work(left, alone=False)
        again, lost = lost, []
        yield from work(again, alone=True)
    except (distributed.client.FutureCancelledError, OSError) as problem:
        raise StudyError(
            f"The Dask cluster has gone away: {_first_line(problem)}. What is done is kept; run the study again to go "
            "on."
        ) from None
    finally:
        with suppress(OSError):
            client.cancel(list(running), force=True)
    if lost:
        raise StudyError(
            f"Chunks of the study were given up, {len(lost)} of {study.chunk_count}: every worker that had one was "
            "lost. They may need more memory than a worker has. The rest is kept; run the study again to try them anew."
        )


def _finished(distributed: Any, client: Any, running: Mapping[Any, int]) -> list[Any]:
    """Those that are finished, once there is one or it is time to look round."""
    try:
        with client.as_current():
            distributed.wait(list(running), timeout=_POLL_S, return_when="FIRST_COMPLETED")
    except TimeoutError:
        return []
    return [future for future in running if future.done()]


def _result(distributed: Any, future: Any) -> ChunkResult | None:
    """What a worker sent back; None where Dask gave the chunk up. Raises `StudyError` where it could not start."""
    try:
        return future.result(timeout=_CONNECT_S)
    except distributed.KilledWorker:
        return None
    except (distributed.client.FutureCancelledError, TimeoutError):
        raise
    except Exception as problem:
        raise StudyError(
            f"A worker could not search: {type(problem).__name__}: {_first_line(problem)}. Workers need the same "
            "Napkin and Python as this machine."
        ) from None


def _first_line(problem: BaseException) -> str:
    return str(problem).strip().partition("\n")[0][:200].rstrip(".") or type(problem).__name__
