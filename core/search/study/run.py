"""Running a study: in this process, or on the workers of a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from core.limits import limit
from core.search.study.distributed import connected, over_workers
from core.search.study.result import ChunkResult, Search, search_point
from core.search.study.study import Study, StudyError

SCHEDULER = "DASK_SCHEDULER"
"""The environment variable that names the scheduler of a Dask cluster, such as tcp://10.0.0.1:8786."""


@dataclass(frozen=True, slots=True)
class StudyProgress:
    """How far a study is: points searched, now or before, of how many; plans: those counted now."""

    points: int
    of: int
    plans: int


def run_study(
    study: Study,
    *,
    search: Search,
    progress: Callable[[StudyProgress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    done: Container[int] = (),
    client: Any = None,
) -> Iterator[ChunkResult]:
    """Every chunk of a study as soon as it is found; over a cluster in no certain order.

    done: chunks to leave out.  cancelled: asked again and again; a chunk that it cuts short is not returned.
    client: of a Dask cluster; without one, that of the scheduler which the environment names; else all runs here.
    Raises `StudyError` for more plans than the caps allow, for a cluster that is away, and, after all others, for
    chunks whose workers were lost again and again.
    """
    left = [at for at in range(study.chunk_count) if at not in done]
    points = study.count - sum(len(study.chunk(at)) for at in left)
    plans = 0
    is_cancelled = cancelled or (lambda: False)

    def tell(now: StudyProgress) -> None:
        if progress:
            progress(now)

    tell(StudyProgress(points, study.count, plans))
    with ExitStack() as closing:
        address = os.environ.get(SCHEDULER, "")
        if client is None and address and left:
            client = closing.enter_context(connected(address))
        for result in (
            over_workers(study, left, search, client, is_cancelled)
            if client
            else _here(study, left, search, is_cancelled)
        ):
            yield result
            points += len(result.points)
            plans += result.plans
            tell(StudyProgress(points, study.count, plans))
            if plans > limit("study_plans"):
                raise StudyError(
                    f"The study has more than {limit('study_plans'):,} plans, the most that one may have; what is done "
                    "is kept. Ask for fewer points, or constrain their layouts."
                )


def _here(study: Study, left: Sequence[int], search: Search, cancelled: Callable[[], bool]) -> Iterator[ChunkResult]:
    for at in left:
        values: list[Any] = []
        for point in study.chunk(at):
            if cancelled():
                return
            values.append(search_point(study, point, search))
        yield ChunkResult(at, tuple(values))
