"""The program of a report, run in a process of its own, finds the report's numbers."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from core.planning.compare.entry import Entry, results_of
from core.report.program import as_python
from core.report.told import Report
from tests.core.report_cases import CHIPS, HOSTILE, ODD, report

ROOT = Path(__file__).parents[2]


def printed(made: Report, folder: Path) -> str:
    """What the program of these plans prints."""
    file = folder / "plan.py"
    file.write_text(as_python(made), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "PYTHONWARNINGS": "error"}
    done = subprocess.run([sys.executable, str(file)], cwd=folder, env=env, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_every_number_is_found_again(tmp_path: Path) -> None:
    made = report(*CHIPS.values(), *ODD.values())
    said = printed(made, tmp_path)
    found = [(name, float(now), float(then)) for name, now, then in re.findall(r"  (\w+) = (\S+) \(then (\S+)\)", said)]
    wanted = [pair for one in made.plans if one.answer for pair in results_of(one.answer).items()]
    assert found == [(name, value, value) for name, value in wanted]
    assert said.count("no answer:") == sum(one.answer is None for one in made.plans) > 0


def test_names_are_text(tmp_path: Path) -> None:
    texts = next(iter(CHIPS.values())).texts
    said = printed(report(*(Entry(name, texts) for name in HOSTILE)), tmp_path)
    assert all(name in said.replace("\r\n", "\n") for name in HOSTILE)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_program_is_the_same_but_for_its_texts(name: str) -> None:
    def shape(entry: Entry) -> list[str]:
        return [type(node).__name__ for node in ast.walk(ast.parse(as_python(report(entry))))]

    texts = next(iter(CHIPS.values())).texts
    assert shape(Entry(name, texts)) == shape(Entry("plain", texts))
