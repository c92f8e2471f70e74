"""Time collectives: ``torchrun --nproc-per-node 8 -m core.benchmark.collectives --out result.json``.

Each process that torchrun starts is a rank. Rank 0 writes the file after every size; if a rank fails, the others end
too, and the file says that it is incomplete, and why.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.benchmark.collectives.draft import Draft
from core.benchmark.collectives.guard import Guard
from core.benchmark.collectives.result import shown
from core.benchmark.collectives.run import CannotError, Measuring, Place, join
from core.benchmark.collectives.spec import ITEM_BYTES, Spec


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _writable(path: Path) -> None:
    """Raise ``OSError`` where ``path`` could not be written, before an hour is spent for it."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder")
    with tempfile.TemporaryFile(dir=path.parent):
        pass


class Kept:
    """What is written when the rank ends early: the draft once there is one, on rank 0 alone."""

    def __init__(self) -> None:
        self.draft: Draft | None = None

    def keep(self, why: str) -> None:
        """Write what there is."""
        if self.draft is not None and self.draft.keep(why):
            _say(f"What was measured is in {self.draft.path}, which says that it is incomplete.")


def run(path: Path, spec: Spec, backend: str) -> None:
    """Measure as one of torchrun's ranks."""
    place = Place.of(os.environ)
    selected = Kept()
    guard = Guard(f"Rank {place.rank} of {place.world}", spec.timeout_s, selected.keep)
    try:
        if place.rank == 0:
            _writable(path)
        if not spec.ladder(place.world):
            raise CannotError("The largest size has not one element for every rank. For example: --largest 1048576")
        ranks, bench, facts = join(place, spec, backend)
        if place.rank == 0:
            selected.draft = Draft(path, facts)
            _say(f"{place.world} ranks, {facts['backend']}: about {spec.seconds:g} s.")
        Measuring(place, spec, ranks, bench, guard.step, selected.draft, _say).run()
        if selected.draft is not None:
            result = selected.draft.finish()
            _say(f"{len(result.points)} points are in {path}.")
        guard.step("leaving")
        dist: Any = importlib.import_module("torch.distributed")
        dist.destroy_process_group()
    except CannotError as problem:
        guard.end(str(problem))
    except Exception as problem:
        guard.end(shown(f"{type(problem).__name__}: {problem}"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and measure; the exit status."""
    usual = Spec()
    parser = argparse.ArgumentParser(prog="torchrun … -m core.benchmark.collectives", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="file for the result, written by rank 0")
    parser.add_argument("--seconds", type=float, default=usual.seconds, help="about how long in all")
    parser.add_argument("--smallest", type=int, default=usual.smallest, help="smallest message in bytes")
    parser.add_argument("--largest", type=int, default=usual.largest, help="largest message in bytes")
    parser.add_argument("--dtype", choices=list(ITEM_BYTES), default=usual.dtype, help="what messages are made of")
    parser.add_argument("--backend", choices=["nccl", "gloo"], default="", help="nccl where there is CUDA, else gloo")
    parser.add_argument("--timeout", type=float, default=usual.timeout_s, help="seconds that one run may take at most")
    args = parser.parse_args(arguments)
    try:
        spec = Spec(args.seconds, args.smallest, args.largest, args.dtype, args.timeout)
        run(args.out, spec, args.backend)
    except (ValueError, CannotError) as wrong:
        _say(str(wrong))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
