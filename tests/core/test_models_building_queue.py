"""Models are built one at a time on a machine, however its servers end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.jobs.lock import try_lock
from core.jobs.process import TURN_S
from core.limits import limit
from core.models.building.events import ModelRefused
from core.models.building.jobs import BuildRunner, build_key
from tests.patience import until

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]

BUILD = """
import json, os, sys, time
while not os.path.exists(sys.argv[1]): time.sleep(0.01)
print(json.dumps({"refused": json.load(sys.stdin)["config"]["model"]}))
"""
"""A building process that goes on until there is the file that it is told."""

SERVER = f"""
import sys, time
from pathlib import Path
from core.models.building.jobs import BuildRunner

folder = Path(sys.argv[1])
runner = BuildRunner(folder / "lock", [sys.executable, "-S", "-c", '''{BUILD}''', str(folder / "go")], 600)
runner.submit('{{"model": "a"}}', 8)
while runner.poll(runner.submit('{{"model": "a"}}', 8).key).state != "building": time.sleep(0.01)
print("building", flush=True)
time.sleep(600)
"""


def says(text: str) -> list[str]:
    """A building process that answers at once."""
    return ["echo", json.dumps({"refused": text})]


def test_who_is_killed_keeps_the_turn_until_the_build_has_ended(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", SERVER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE) as server:
        assert server.stdout
        assert server.stdout.readline() == b"building\n"
        server.kill()
    runner = BuildRunner(tmp_path / "lock", says("x"))
    key = runner.submit("{}", 8).key
    time.sleep(3 * TURN_S)  # long enough to take a turn that is free
    waiting = runner.poll(key)
    assert waiting
    assert (waiting.state, waiting.ahead) == ("waiting", 0)
    (tmp_path / "go").touch()
    assert runner.build("{}", 8) == ModelRefused("x")


def test_as_many_wait_as_may_and_no_more(tmp_path: Path) -> None:
    lock = try_lock(tmp_path / "lock")
    assert lock
    runner = BuildRunner(tmp_path / "lock", says("x"))
    asked = [runner.submit(json.dumps({"model": i}), 8) for i in range(limit("build_queue") + 2)]
    assert [one.state for one in asked] == ["waiting"] * (limit("build_queue") + 1) + ["full"]
    assert [one.ahead for one in asked[:-1]] == list(range(limit("build_queue") + 1))
    assert runner.submit(json.dumps({"model": 1}), 8).ahead == 1, "who asks again keeps the place"
    os.close(lock)
    until(lambda: runner.submit("{}", 8).state != "full")
    assert runner.build("{}", 8) == ModelRefused("x")


def test_who_gives_up_the_first_place_lets_the_next_one_begin_once(tmp_path: Path) -> None:
    """The thread that waited for the turn of what was given up begins the next one, unless somebody has."""
    lock = try_lock(tmp_path / "lock")
    assert lock
    runner = BuildRunner(tmp_path / "lock", says("x"))
    for model in ("a", "b", "c"):
        assert runner.submit(json.dumps({"model": model}), 8, "ann").state == "waiting"
    bob = runner.submit("{}", 8, "bob")
    runner.submit(json.dumps({"model": "d"}), 8, "ann")
    os.close(lock)
    for key in (bob.key, build_key(json.dumps({"model": "d"}), 8)):
        until(lambda key=key: (seen := runner.poll(key)) is not None and seen.answer == ModelRefused("x"))
    until(lambda: (free := try_lock(tmp_path / "lock")) is not None and (os.close(free) or True))
