"""How much memory something takes at most, in a process of its own."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]


def grown_mb(before: str, script: str) -> float:
    """By how many MiB the resident memory of a fresh Python at most grows while it runs ``script`` after ``before``."""
    code = "\n".join([textwrap.dedent(before), "from tests.core.peak import high, mark", "at = mark()"])
    command = [sys.executable, "-c", f"{code}\n{textwrap.dedent(script)}\nprint((high() - at) / 1024)"]
    given_back = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}  # what is freed is no longer resident at the mark
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=given_back, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def mark() -> int:
    """KiB that are resident now; the system's mark of the highest is set back to them."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    return high()


def high() -> int:
    """KiB that were resident at most since the mark, or since the process began; its parent's are not in it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
