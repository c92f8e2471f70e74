"""Fit the constants of step time to published steps and print how well they predict.

``python -m core.step_time.calibration`` prints; ``--write`` puts constants and left-out errors into assets/data.
"""

from __future__ import annotations

import sys

from core.step_time.calibration.fit import calibrated, lines_of, write


def main(arguments: list[str]) -> None:
    """Print the table; with ``--write`` keep what was fitted."""
    report = calibrated()
    sys.stdout.write("\n".join(lines_of(report)) + "\n")
    if "--write" in arguments:
        write(report)


if __name__ == "__main__":
    main(sys.argv[1:])
