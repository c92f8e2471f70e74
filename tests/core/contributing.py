"""CONTRIBUTING's steps for a row, followed in a copy of the repository."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


def insert(path: Path, marker: str, text: str) -> None:
    """Put ``text`` before the one place where ``marker`` stands."""
    content = path.read_text(encoding="utf-8")
    assert content.count(marker) == 1, f"{path.name} has {marker!r} {content.count(marker)} times"
    path.write_text(content.replace(marker, text + marker), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Recipe:
    """The table row of CONTRIBUTING for one ``kind`` of row, and a copy of the repository to follow it in."""

    kind: str
    copy: Path

    @classmethod
    def of(cls, kind: str, directory: Path) -> Recipe:
        """The recipe for ``kind`` with a fresh copy of the repository in ``directory``."""
        ignored = shutil.ignore_patterns(".*", "__pycache__")
        return cls(kind, Path(shutil.copytree(ROOT, directory / "napkin", ignore=ignored)))

    @property
    def text(self) -> str:
        """What CONTRIBUTING says."""
        lines = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()
        (line,) = (line for line in lines if line.startswith(f"| **{self.kind}** |"))
        return line

    def write_tables(self) -> None:
        """Run the command of CONTRIBUTING that writes the reference tables."""
        (arguments,) = re.findall(r"`\.venv/bin/python (-m tests\.tools [^`]+)`", self.text)
        result = self._python(*arguments.split())
        assert result.returncode == 0, result.stdout + result.stderr

    def failures(self, *more: str, alone: str = "") -> str:
        """What pytest says of the files that CONTRIBUTING names and of ``more``; empty if all pass.

        alone: the test among them that is run, instead of all.
        """
        names = (*re.findall(r"`(test_\w+)`", self.text), *more)
        paths = sorted({self.copy / "tests/core" / f"{name}.py" for name in names})
        options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not long", *(["-k", alone] * bool(alone)))
        result = self._python("-m", "pytest", *options, *map(str, paths))
        return "" if result.returncode == 0 else result.stdout + result.stderr

    def _python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *arguments], cwd=self.copy, capture_output=True, text=True, check=False)
