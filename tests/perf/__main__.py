"""``make perf``: what pages, crowds and computations cost. Nothing here gates on a time, because machines differ.

Names of suites, or of pages, as arguments limit it to those; ``families`` builds every family of models that
transformers knows, which takes half an hour, and runs only when it is named. ``--minutes`` is how long ``soak`` lasts.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from tempfile import TemporaryDirectory

from pages.parts.registry import PAGES
from tests.perf import (
    arithmetic,
    crowd,
    during,
    families,
    floats,
    hover,
    layouts,
    matmul,
    models,
    operators,
    pages,
    plans,
    search,
    soak,
    store,
    study,
    team,
    tensors,
    walk,
)

SUITES: dict[str, Callable[[], None]] = {
    "pages": pages.main,
    "codec": floats.main,
    "arithmetic": arithmetic.main,
    "traces": tensors.main,
    "operators": operators.main,
    "models": models.main,
    "layouts": layouts.main,
    "search": search.main,
    "matmul": matmul.main,
    "during": during.main,
    "plans": lambda: plans.main([]),
    "study": study.main,
    "store": store.main,
    "hover": hover.main,
    "walk": lambda: walk.main([]),
    "crowd": crowd.main,
    "team": team.main,
    "soak": soak.main,
}


def main() -> None:
    """Run the suites that were asked for, or all."""
    ids = {page.id for page in PAGES}
    parser = argparse.ArgumentParser(prog="python -m tests.perf", description=__doc__)
    parser.add_argument("what", nargs="*", help=f"suites ({', '.join(SUITES)}) or ids of pages; all if none is named")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long the soak lasts")
    parser.add_argument("--steps", type=int, default=20_000, help="how far the random walk goes")
    parser.add_argument("--plans", type=int, default=100_000, help="how many random plans the laws are tried on")
    parser.add_argument("--calls", type=int, default=tensors.CALLS, help="how many calls traces holds against torch")
    parser.add_argument("--programs", type=int, default=tensors.PROGRAMS, help="how many programs traces runs")
    asked = parser.parse_args()
    steps = ["--steps", str(asked.steps)]
    suites = SUITES | {"families": lambda: families.main([])} if "families" in asked.what else SUITES
    suites = suites | {"plans": lambda: plans.main(["--plans", str(asked.plans)])}
    suites = suites | {"soak": lambda: soak.main(asked.minutes), "walk": lambda: walk.main(steps)}
    suites = suites | {"traces": lambda: tensors.main(asked.calls, asked.programs)}
    named = frozenset(asked.what)
    if unknown := named - ids - set(SUITES) - {"families"}:
        parser.error(f"neither a suite nor a page: {', '.join(sorted(unknown))}")
    folder = TemporaryDirectory()  # for the plans that a measured visitor saves
    os.environ["NAPKIN_DATA"] = folder.name
    if named & ids:
        pages.main(named & ids)
    for name, suite in suites.items():
        if name in named or not named:
            suite()
            print(flush=True)


if __name__ == "__main__":
    main()
