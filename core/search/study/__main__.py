"""A study from the command line: ``python -m core.search.study study.json --out results/``.

It runs on the Dask cluster that DASK_SCHEDULER names, or on processes of its own. Ctrl-C keeps what is done; the same
command goes on from there.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from core.messages import message
from core.search.fastest import searched
from core.search.study.point import Search
from core.search.study.run import SCHEDULER, Folder, connected, embedded, run_study
from core.search.study.study import StudyError, load_study


def run(path: Path, out: Path, workers: int, search: Search) -> int:
    """Run the study, save what it finds, and report the result. Return the exit status."""
    study = load_study(path)
    folder = Folder(out, study)
    left = study.chunk_count - len(folder.done)
    address, problem, status = os.environ.get(SCHEDULER, ""), "", 0
    try:
        if left:
            with connected(address) if address else embedded(min(workers, left)) as client:
                run_study(study, folder, search, client)
    except StudyError as wrong:
        problem, status = str(wrong), 1
    except KeyboardInterrupt:
        problem, status = message("study.stopped"), 130
    done = float(folder.gather())
    print(message("study.done", done=done, points=float(study.count), file=folder.whole))
    print(problem, end="\n" if problem else "", file=sys.stderr)
    return status


def main(arguments: Sequence[str] | None = None, search: Search = searched) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m core.search.study", description=__doc__)
    parser.add_argument("study", type=Path, help="the study, as JSON")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes, where no cluster is named")
    args = parser.parse_args(arguments)
    if args.workers < 1:
        parser.error(message("study.error.workers"))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run(args.study, args.out, args.workers, search)
    except StudyError as wrong:
        print(wrong, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
