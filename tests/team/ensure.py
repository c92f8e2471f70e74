"""Find nginx, PostgreSQL and Node.js for the tests of a team's server, or install them, or stop with what to install.

Run as a script it makes sure that all are there and prints their paths.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SERVERS = {"nginx": "nginx-light", "postgres": "postgresql", "node": "nodejs", "npm": "npm"}
"""Program → Debian's package."""


class NoServerError(RuntimeError):
    """A program is missing and could not be installed."""


def found(program: str) -> str | None:
    """Path of a program on PATH or where Debian keeps servers, or None."""
    places = [os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"]
    newest_first = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: p.parent.name, reverse=True)
    return shutil.which(program, path=os.pathsep.join([*places, *map(str, newest_first)]))


def ensure(program: str) -> str:
    """Path of "nginx" or one of PostgreSQL's programs; raises `NoServerError` with what was tried."""
    path = found(program)
    if path:
        return path
    package = SERVERS.get(program, SERVERS["postgres"])
    missing = f"The tests of a team's server need {program} (Debian: apt install {package})."
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise NoServerError(missing)
    # Debian starts what it installs; a run level of 1 keeps it from that. Here only tests start servers.
    script = f"apt-get update -qq && apt-get install -y -qq --no-install-recommends {package}"
    quiet = {**os.environ, "RUNLEVEL": "1", "DEBIAN_FRONTEND": "noninteractive"}
    print(f"No {program} found; trying: {script}", file=sys.stderr, flush=True)
    done = subprocess.run(["sh", "-c", script], env=quiet, check=False, capture_output=True, text=True, timeout=900)
    path = found(program)
    if not path:
        raise NoServerError(f"{missing}\nTried: {script}: exit {done.returncode}, {done.stderr.strip()[-400:]}")
    return path


if __name__ == "__main__":
    try:
        print(*map(ensure, SERVERS), sep="\n")
    except NoServerError as problem:
        sys.exit(str(problem))
