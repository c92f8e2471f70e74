"""``make perf``: what pages, crowds and computations cost. Nothing here gates on a time, because machines differ.

Names of suites, or of pages, as arguments limit it to those. ``--quick`` runs everything once and small, to see that
it runs. Every size and duration is an option: ``--minutes`` is how long ``soak`` lasts.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from tempfile import TemporaryDirectory
from unittest.mock import patch

from core.planning.comparison.comparison import with_saved_results
from core.planning.comparison.entry import entry_of
from core.planning.presets import PRESETS
from core.store.locations import plan_store
from pages.common.registry import PAGES
from tests.perf import attack, crowd, pages, patches, plans, soak, team, walk
from tests.perf.options import FULL, QUICK, Options

SUITES: dict[str, Callable[[Options], None]] = {
    "pages": pages.main,
    "patches": patches.main,
    "plans": plans.main,
    "walk": walk.main,
    "crowd": crowd.main,
    "attack": attack.main,
    "team": team.main,
    "soak": soak.main,
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the suites that were asked for, or all."""
    ids = {page.id for page in PAGES}
    parser = argparse.ArgumentParser(prog="python -m tests.perf", description=__doc__)
    parser.add_argument("what", nargs="*", help=f"suites ({', '.join(SUITES)}) or ids of pages; all if none is named")
    parser.add_argument("--quick", action="store_true", help="everything once and small")
    for field in fields(Options):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), help=f"{field.default:,}")
    by_name = vars(parser.parse_args(argv))
    named, quick = frozenset[str](by_name.pop("what")), by_name.pop("quick")
    options = replace(QUICK if quick else FULL, **{name: value for name, value in by_name.items() if value is not None})
    if unknown := named - ids - set(SUITES):
        parser.error(f"neither a suite nor a page: {', '.join(sorted(unknown))}")
    with TemporaryDirectory() as folder, patch.dict(os.environ, {"NAPKIN_DATA": folder}):
        for preset, texts in PRESETS.items():  # for Saved plans to have something to list
            plan_store().save(with_saved_results(entry_of(preset, texts)))
        if named & ids:
            pages.main(options, named & ids)
        failed: list[str] = []
        for name in (name for name in SUITES if name in named or not named):
            try:
                SUITES[name](options)
            except SystemExit as problem:  # the others run all the same
                print(problem)
                failed.append(name)
            print(flush=True)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
