"""Experiments: what each measures is what was expected of it, and what a process says is believed only checked."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from core.experiments import initialization, linear_bytes, transfer
from core.experiments.catalogue import EXPERIMENTS
from core.experiments.events import decode, encode
from core.experiments.found import Found
from core.experiments.runner import ExperimentRunner
from core.limits import limit
from core.views.common.palette import LIGHT
from core.views.experiments import charts, text
from pages.common.registry import PAGES
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]


@cache
def found_by(name: str) -> Found:
    """What an experiment measures, once for all tests."""
    return EXPERIMENTS[name].work()


def test_every_experiment_stands_on_a_page_and_has_words() -> None:
    assert set(EXPERIMENTS) == set(text.EXPERIMENT_TEXTS)
    assert {one.where for one in EXPERIMENTS.values()} <= {page.id for page in PAGES}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_was_found_is_told(name: str) -> None:
    """Sentence, table before and after, picture with its alt text, and the way over the pipe."""
    said, found = text.EXPERIMENT_TEXTS[name], found_by(name)
    before, after = said.rows(None), said.rows(found)
    assert [len(row) for row in before] == [len(row) for row in after] == [len(said.headings)] * len(after)
    assert before != after
    assert text.PENDING not in str(after)
    assert said.found(found)
    assert "**" not in text.alt_text(EXPERIMENTS[name].title, said, found)
    assert charts.picture(name, found, LIGHT)["data"]
    assert decode(encode(found).encode()) == found


@pytest.mark.parametrize("line", [b"", b"{}", b'{"event":"found","numbers":{"a":1e999}}', b'{"event":"lost"}'])
def test_anything_else_is_not_believed(line: bytes) -> None:
    found = decode(line)
    assert found is None or found == Found()


def test_too_much_is_not_believed() -> None:
    long = [0.0] * (limit("experiment_points") + 1)
    assert decode(b'{"event":"found","series":{"x":%s}}' % str(long).encode()) is None


def test_outputs_are_as_large_as_the_formula_says() -> None:
    for way in initialization.DEVIATIONS:
        for width, size in zip(initialization.WIDTHS, found_by("init").series[way], strict=True):
            assert size == pytest.approx(initialization.predicted(way, width), rel=0.06), (way, width)


def test_torch_holds_the_bytes_that_are_counted() -> None:
    for name in linear_bytes.OPTIMIZERS:
        for part, size in linear_bytes.predicted(name).items():
            assert found_by("deep").numbers[f"{name}, {part}"] == size, (name, part)


def test_both_ways_onto_a_device_are_timed() -> None:
    numbers = found_by("send").numbers
    assert all(numbers[f"{side} {way}"] > 0 for side in transfer.SIDES for way in ("made", "sent"))
    for cuda, said in ((0.0, "experiments.send.found_cpu"), (1.0, "experiments.send.found")):
        found = replace(found_by("send"), numbers={**numbers, "cuda": cuda})
        assert text.EXPERIMENT_TEXTS["send"].found(found).id == said


@pytest.mark.process
def test_a_runner_runs_and_remembers() -> None:
    runner = ExperimentRunner()
    runner._timeout_s = PATIENCE_S
    assert runner.last("init") is None
    first = runner.run("init")
    assert runner.run("init").id == first.id, "one that runs is found, not started again"
    runner._jobs[first.id].ended.wait(PATIENCE_S)
    last = runner.last("init")
    assert last is not None
    assert last.found == found_by("init")


@pytest.mark.process
def test_the_pages_have_the_panels_and_open_them_without_torch() -> None:
    """Panels come from the table; a process of its own runs what is in them, so that a page never loads torch."""
    code = (
        "import sys\nfrom core.lecture.catalogue import findings\nfindings()\n"
        "from pages.common.experiments.panel import switches\nfrom core.experiments.catalogue import EXPERIMENTS\n"
        "names = {field.id for page in ('lecture', 'memory', 'measure') for field in switches(page)}\n"
        "assert names == set(EXPERIMENTS), names\nprint('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, cwd=ROOT)
    assert done.stdout.strip().splitlines()[-1:] == ["False"], done.stderr
