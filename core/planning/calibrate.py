"""Fit the constants of step time to published steps and print how well they predict: python -m core.planning.calibrate.

``--write`` puts constants and left-out errors into assets/data, and the steps of whole runs that follow from them.
"""

from __future__ import annotations

import sys

from core.planning.evidence.anchored import keep
from core.planning.search.whole_runs import steps_of_whole_runs
from core.planning.step.report import calibrated, lines_of, write


def main(arguments: list[str]) -> None:
    """Print the table; with ``--write`` keep what was fitted."""
    found = calibrated()
    sys.stdout.write("\n".join(lines_of(found)) + "\n")
    if "--write" in arguments:
        write(found)
        keep(steps_of_whole_runs())


if __name__ == "__main__":
    main(sys.argv[1:])
