"""A study from the command line: ``python -m core.search.study study.json --out results/``.

It runs on the Dask cluster that DASK_SCHEDULER names, or on processes of its own. Ctrl-C keeps what is done; the same
command goes on from there.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from core.search.search import search_plans
from core.search.study.distributed import embedded
from core.search.study.result import Search
from core.search.study.results_folder import Folder
from core.search.study.run import SCHEDULER, StudyProgress, run_study
from core.search.study.study import StudyError
from core.search.study.study_file import load_study

_EVERY_S = 0.25


class ProgressLine:
    """The progress line on standard error: rewritten on a terminal, else one line for each twentieth of the way."""

    def __init__(self) -> None:
        self._start = math.nan
        self._first = 0
        self._last = float("-inf")
        self._shares = -1

    def show(self, now: StudyProgress) -> None:
        """Show it, unless the last time was just now."""
        if math.isnan(self._start):
            self._start, self._first = time.monotonic(), now.points
        seconds = time.monotonic() - self._start
        ended, terminal = now.points == now.of, sys.stderr.isatty()
        share = 20 * now.points // now.of
        if (seconds - self._last < _EVERY_S and not ended) if terminal else share == self._shares:
            return
        self._last, self._shares = seconds, share
        searched = now.points - self._first
        left = f", about {seconds / searched * (now.of - now.points):,.0f} s left" if searched and not ended else ""
        text = f"{now.points:,} of {now.of:,} points, {now.plans:,} plans in {seconds:,.0f} s{left}"
        print(f"\r\033[K{text}" if terminal else text, end="\n" if ended or not terminal else "", file=sys.stderr)
        sys.stderr.flush()


def run(path: Path, out: Path, workers: int, search: Search) -> int:
    """Run the study, keep what it finds, and say what came of it; the exit status."""
    study = load_study(path)
    folder = Folder(out, study)
    stopped = threading.Event()

    def stop(_signal: int, _frame: object) -> None:
        stopped.set()

    for item in (signal.SIGINT, signal.SIGTERM):
        signal.signal(item, stop)
    problem = ""
    left = study.chunk_count - len(folder.done)
    try:
        with ExitStack() as closing:
            own = left and not os.environ.get(SCHEDULER)
            chunks = run_study(
                study,
                search=search,
                progress=ProgressLine().show,
                cancelled=stopped.is_set,
                done=folder.done,
                client=closing.enter_context(embedded(min(workers, left))) if own else None,
            )
            for chunk in chunks:
                folder.keep(chunk)
    except StudyError as wrong:
        problem = str(wrong)
    number = folder.gather()
    print(f"{number:,} of {study.count:,} points are in {folder.whole}.")
    if number == study.count and not problem:
        return 0
    print(problem or "Stopped. The same command goes on from here.", file=sys.stderr)
    return 1 if problem else 130


def main(arguments: Sequence[str] | None = None, search: Search | None = None) -> int:
    """Read the command line and run; search: `search_plans` unless another is given."""
    parser = argparse.ArgumentParser(prog="python -m core.search.study", description=__doc__)
    parser.add_argument("study", type=Path, help="the study, as JSON")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes, where no cluster is named")
    args = parser.parse_args(arguments)
    if args.workers < 1:
        parser.error(f"--workers is {args.workers}; it is at least 1. For example: --workers 2")
    try:
        return run(args.study, args.out, args.workers, search or search_plans)
    except StudyError as wrong:
        print(wrong, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
