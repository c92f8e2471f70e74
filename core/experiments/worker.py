"""An experiment's process: ``python -m core.experiments.worker ID``. Prints what was found as one line of JSON."""

from __future__ import annotations

import sys
import threading

from core.experiments.catalogue import EXPERIMENTS
from core.experiments.events import encode
from core.jobs.process import end_with_parent


def main() -> None:
    """Read the command line and run."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    (name,) = sys.argv[1:]
    print(encode(EXPERIMENTS[name].work()), flush=True)


if __name__ == "__main__":
    main()
