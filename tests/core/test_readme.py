"""The README's example runs, and names commands and pages that exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pages.common.registry import PAGES
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.process
def test_the_notebook_example_runs() -> None:
    [code] = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    check = "\nassert train_flop_6nd(params=70e9, tokens=15e12) == 6.3e24"
    check += "\nassert abs(decode(encode(np.array([1e-8]), FORMATS['bf16']), FORMATS['bf16'])[0] - 1.00117e-08) < 1e-13"
    check += "\nassert found.best.seconds <= step_time(dense, h100s, layout, seq_len=8192).total"
    check += "\nassert estimate(plan).middle.accelerators == 2048"
    done = subprocess.run(
        [sys.executable, "-c", code + check], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr


def test_every_command_is_a_make_target() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = set(re.findall(r"`?make ([\w-]+)", README))
    assert {"run", "test", "test-all", "lint", "perf", "screenshots"} <= named <= targets


def test_every_page_has_its_line() -> None:
    for page in PAGES:
        assert f"**{page.title}**" in README


def test_files_it_shows_exist() -> None:
    for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README):
        assert (ROOT / path).is_file(), path
