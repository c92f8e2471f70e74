"""Find or fetch a Chromium for the browser tests, or stop with a sentence that says what to install.

In this order: ``$CHROMIUM``; a Chromium or Chrome on PATH; Playwright's own download; apt, as root on Debian.
Run as a script it makes sure that there is one and prints its path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")


class NoBrowserError(RuntimeError):
    """No Chromium, and none could be installed."""


def installed() -> str | None:
    """Path of a Chromium that is already here, or None. Raises `NoBrowserError` if $CHROMIUM points nowhere."""
    named = os.environ.get("CHROMIUM")
    if named:
        if not os.access(named, os.X_OK):
            raise NoBrowserError(f"$CHROMIUM is {named!r}, which is not an executable file.")
        return named
    for name in NAMES:
        found = shutil.which(name)
        if found:
            return found
    return _playwrights_own()


def _playwrights_own() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).is_file() else None


def ensure() -> str:
    """Path of a Chromium, fetching one if need be. Raises `NoBrowserError` with what was tried."""
    found = installed()
    if found:
        return found
    tried = []
    for command in _ways():
        print("No Chromium found; trying:", " ".join(command), file=sys.stderr, flush=True)
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=900)
        found = installed() if done.returncode == 0 else None
        if found:
            return found
        tried.append(f"{' '.join(command)}: exit {done.returncode}, {done.stderr.strip()[-200:]}")
    raise NoBrowserError(
        "The browser tests need Chromium or Chrome. Install one (Debian: apt install chromium-headless-shell)\n"
        "or set $CHROMIUM.\n"
        "Tried:\n  " + "\n  ".join(tried)
    )


def _ways() -> list[list[str]]:
    ways = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        script = "apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium-headless-shell"
        ways.append(["sh", "-c", script])
    return ways


if __name__ == "__main__":
    try:
        print(ensure())
    except NoBrowserError as problem:
        sys.exit(str(problem))
