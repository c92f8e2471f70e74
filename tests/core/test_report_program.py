"""The program of a report, run in a process of its own, finds the report's numbers."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from core.planning.comparison.entry import Entry, results_of
from core.views.report.program import as_python
from core.views.report.report import Report
from tests.core.report_cases import HOSTILE, ODD, PAGE_PRESETS, about_a_layout, report
from tests.every import every
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]


def run(made: Report, folder: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The program of these plans as it is, saved in ``folder`` and run in ``cwd``."""
    file = folder / "my plan.py"
    file.write_text(as_python(made), encoding="utf-8")
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    env |= {"PYTHONIOENCODING": "utf-8", "PYTHONWARNINGS": "error"}
    command = [sys.executable, str(file)]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, timeout=PATIENCE_S, encoding="utf-8")


def printed(made: Report, folder: Path) -> str:
    """What it prints, run in Napkin's folder."""
    done = run(made, folder, ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.process
def test_elsewhere_it_says_what_it_needs(tmp_path: Path) -> None:
    done = run(report(next(iter(PAGE_PRESETS.values()))), tmp_path, tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "There is no core here" in done.stderr
    assert "the folder of Napkin" in done.stderr
    assert str(tmp_path / "my plan.py") in done.stderr


@pytest.mark.process
def test_the_layout_in_force_is_found_again(tmp_path: Path) -> None:
    made = about_a_layout("13B on one node")
    at = made.layout
    assert at is not None
    said = printed(made, tmp_path)
    found = {name: (now, then) for name, now, then in re.findall(r"  (\w+) = (\S+) \(then (\S+)\)", said)}
    assert at.results.keys() <= found.keys()
    for name, value in at.results.items():
        assert found[name] == (repr(value), repr(value))
    for one in at.launches:
        assert one.text in said


@pytest.mark.process
def test_every_number_is_found_again(tmp_path: Path) -> None:
    made = report(*PAGE_PRESETS.values(), *ODD.values())
    said = printed(made, tmp_path)
    found = [(name, float(now), float(then)) for name, now, then in re.findall(r"  (\w+) = (\S+) \(then (\S+)\)", said)]
    wanted = [pair for one in made.plans if one.answer for pair in results_of(one.answer).items()]
    assert found == [(name, value, value) for name, value in wanted]
    assert said.count("no answer:") == sum(one.answer is None for one in made.plans) > 0


@pytest.mark.process
def test_names_are_text(tmp_path: Path) -> None:
    texts = next(iter(PAGE_PRESETS.values())).texts
    said = printed(report(*(Entry(name, texts) for name in HOSTILE)), tmp_path)
    assert all(name in said.replace("\r\n", "\n") for name in HOSTILE)


@every("name", HOSTILE)
def test_a_program_is_the_same_but_for_its_texts(name: str) -> None:
    def shape(entry: Entry) -> list[str]:
        return [type(node).__name__ for node in ast.walk(ast.parse(as_python(report(entry))))]

    texts = next(iter(PAGE_PRESETS.values())).texts
    assert shape(Entry(name, texts)) == shape(Entry("plain", texts))
