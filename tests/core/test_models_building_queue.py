"""Models are built one at a time on a machine, first come first served, however its servers end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.jobs.process import TURN_S
from core.jobs.queue import WaitingLine
from core.limits import limit
from core.models.building.events import ModelRefused
from core.models.building.jobs import BuildRunner, build_key
from tests.patience import PATIENCE_S, until

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]

SERVER = """
import json, sys
from pathlib import Path
from core.jobs.queue import WaitingLine
from core.models.building.jobs import BuildRunner, build_key

build = '''
import json, os, sys, time
folder, model = sys.argv[1], json.load(sys.stdin)["config"]["model"]
def note(what):
    with open(folder + "/log", "a") as log:
        log.write(what + " " + model + chr(10))
note("begins")
while not os.path.exists(folder + "/go-" + model): time.sleep(0.01)
note("ends")
print(json.dumps({"refused": model}))
'''
runner = BuildRunner(WaitingLine(Path(sys.argv[1]) / "line"), [sys.executable, "-S", "-c", build, sys.argv[1]], 600)
for line in sys.stdin:
    seen = runner.submit(json.dumps({"model": line.strip()}), 8)
    print(seen.state, seen.ahead, flush=True)
"""
"""Builds what it reads, each until there is a file go-<what>; says how it stands with what it reads, old or new."""


class Servers:
    """Processes that share a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: dict[str, subprocess.Popen[str]] = {}

    def ask(self, name: str, model: str) -> tuple[str, int]:
        """Ask a server, which is started where there is none, for a model: its state, and how many are before it."""
        if name not in self.running:
            command = [sys.executable, "-c", SERVER, str(self.folder)]
            pipe = subprocess.PIPE
            self.running[name] = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        process = self.running[name]
        assert process.stdin
        assert process.stdout
        process.stdin.write(f"{model}\n")
        process.stdin.flush()
        state, ahead = process.stdout.readline().split()
        return state, int(ahead)

    def kill(self, name: str) -> None:
        """As a machine does that has no memory left."""
        process = self.running.pop(name)
        process.kill()
        process.communicate(timeout=PATIENCE_S)

    def let(self, *models: str) -> None:
        """Let these be built to their end."""
        for model in models:
            (self.folder / f"go-{model}").touch()

    @property
    def log(self) -> list[str]:
        """What began and ended, in order."""
        path = self.folder / "log"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    some = Servers(tmp_path)
    yield some
    some.let("a1", "a2", "b1", "b2", "b3", "c1")  # no process outlives the test
    for name in list(some.running):
        some.kill(name)


def test_two_servers_build_one_model_at_a_time_in_the_order_of_asking(servers: Servers) -> None:
    assert servers.ask("a", "a1")[1] == 0
    until(lambda: servers.ask("a", "a1")[0] == "building")
    assert servers.ask("b", "b1") == ("waiting", 1)
    assert servers.ask("a", "a2") == ("waiting", 2)
    assert servers.ask("b", "b2") == ("waiting", 3)
    assert servers.ask("b", "b1") == ("waiting", 1), "who asks again keeps the place"
    until(lambda: servers.log == ["begins a1"])
    servers.let("a1")
    until(lambda: servers.ask("b", "b1")[0] == "building")
    assert [servers.ask(model[0], model)[1] for model in ("a2", "b2")] == [1, 2]
    servers.let("b1", "a2", "b2")
    until(lambda: servers.ask("b", "b2")[0] == "done")
    assert servers.log == [f"{what} {model}" for model in ("a1", "b1", "a2", "b2") for what in ("begins", "ends")]


def test_as_many_wait_on_the_machine_as_may_and_no_more(servers: Servers) -> None:
    for index in range(limit("build_queue") + 1):
        assert servers.ask("ab"[index % 2], f"{'ab'[index % 2]}{index}")[0] in ("waiting", "building")
    assert servers.ask("a", "c1") == ("full", 0)
    assert servers.ask("b", "c1") == ("full", 0)
    servers.let(*(f"{'ab'[index % 2]}{index}" for index in range(limit("build_queue") + 1)))
    until(lambda: servers.ask("b", "c1")[0] != "full")


def test_who_is_killed_loses_the_turn_and_the_places_once_the_build_has_ended(servers: Servers) -> None:
    servers.ask("a", "a1")
    until(lambda: servers.log == ["begins a1"])  # the building process, which holds the turn as well
    assert servers.ask("a", "a2")[1] == 1
    assert servers.ask("b", "b1") == ("waiting", 2)
    servers.kill("a")
    assert servers.ask("b", "b1") == ("waiting", 1), "a2 is gone, and what a began still takes memory"
    time.sleep(3 * TURN_S)  # long enough to take a turn that is free
    assert servers.ask("b", "b1") == ("waiting", 1)
    assert servers.ask("c", "c1") == ("waiting", 2)
    servers.let("a1")
    until(lambda: servers.ask("b", "b1")[0] == "building")
    until(lambda: servers.log == ["begins a1", "ends a1", "begins b1"])
    servers.let("b1", "c1")
    until(lambda: servers.ask("c", "c1")[0] == "done")


STORM = """
import contextlib, os, random, signal, sys, time
from pathlib import Path
from core.jobs.queue import WaitingLine

folder = Path(sys.argv[1])
line, chance = WaitingLine(folder / "line"), random.Random(1)
turn = os.open(folder / "turn", os.O_RDWR | os.O_CREAT)

def works(process):
    # A killed one gives up its locks in no order while it is exiting, which is bit 4 of its flags.
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return not int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[6]) & 4
    return False

def child(seed):
    wait = random.Random(seed)
    while True:
        place = line.join(99)
        while line.ahead(place):
            time.sleep(0.001)
        other = int(os.pread(turn, 10, 0) or 0)
        if other and works(other):
            print("two at once", flush=True)
        os.pwrite(turn, b"%10d" % os.getpid(), 0)
        os.write(1, b".")
        time.sleep(wait.uniform(0, 0.01))
        os.pwrite(turn, b"%10d" % 0, 0)
        place.leave()

def start(seed):
    process = os.fork()
    if not process:
        child(seed)
    return process

children = [start(seed) for seed in range(5)]
for seed in range(5, 105):
    time.sleep(chance.uniform(0, 0.03))
    gone = chance.randrange(5)
    os.kill(children[gone], signal.SIGKILL)
    os.waitpid(children[gone], 0)
    children[gone] = start(seed)
for process in children:
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
"""


def test_a_hundred_kills_leave_one_at_a_time_and_then_nobody(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STORM, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.stderr == ""
    assert set(done.stdout) == {"."}
    line = WaitingLine(tmp_path / "line")
    place = line.join(1)
    assert place
    assert (place.number, line.ahead(place)) == (1, 0)
    assert os.listdir(line.folder) == ["1"]
    place.leave()
    assert os.listdir(line.folder) == []


def says(text: str) -> list[str]:
    """A building process that answers at once."""
    return ["echo", json.dumps({"refused": text})]


def test_a_folder_that_cannot_be_written_is_named_in_the_log_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "file"
    file.touch()
    runner = BuildRunner(WaitingLine(file / "line"), says("x"))
    seen = runner.submit("{}", 8)
    assert seen.state == "done"
    assert isinstance(seen.answer, ModelRefused)
    assert "(Not a directory)" in seen.answer.reason
    assert str(file) in caplog.text
    file.unlink()
    assert runner.build("{}", 8) == ModelRefused("x")


def test_who_gives_up_the_first_place_lets_the_next_one_begin_once(tmp_path: Path) -> None:
    """The thread that waited for the turn of what was given up begins the next one, unless somebody has."""
    line = WaitingLine(tmp_path)
    other = line.join(9)
    assert other
    runner = BuildRunner(line, says("x"))
    for model in ("a", "b", "c"):
        assert runner.submit(json.dumps({"model": model}), 8, "ann").state == "waiting"
    bob = runner.submit("{}", 8, "bob")
    runner.submit(json.dumps({"model": "d"}), 8, "ann")
    other.leave()
    for key in (bob.key, build_key(json.dumps({"model": "d"}), 8)):
        until(lambda key=key: (seen := runner.poll(key)) is not None and seen.answer == ModelRefused("x"))
    assert os.listdir(tmp_path) == []
