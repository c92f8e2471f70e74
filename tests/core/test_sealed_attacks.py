"""The seal, with the wall off: no program reaches a file, the network, or a process, and the helper survives all."""

from __future__ import annotations

import os
import platform
import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from core.limits import limit
from core.tensors.sealed.client import ProgramPool, ProgramReport
from tests.core import sealed_recorder
from tests.core.sealed_cases import HOSTILE, KILLED, REFUSED
from tests.every import every

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="numbers of calls"),
]

NO_WALL = f"\n{sealed_recorder.SPLIT}\n"
AS_USER = (
    "import os, sys\nfrom core.tensors.sealed import helper\nwork = helper.work_of(sys.argv[2])\n"
    "control = helper.take_descriptor(int(sys.argv[1]))\n"
    "os.setgroups([])\nos.setgid(10001)\nos.setuid(10001)\nhelper.serve(control, work)"
)
"""A helper that is not root: by the user of the tests, or by the number that the image has."""


def pools() -> Iterator[tuple[str, ...]]:
    yield ()
    if not os.getuid():
        yield sys.executable, "-c", AS_USER


@pytest.fixture(scope="module", params=pools(), ids=lambda command: "as user" if command else "as is")
def pool(request: pytest.FixtureRequest) -> Iterator[ProgramPool]:
    started = ProgramPool(sealed_recorder.__name__, sealed=True, command=request.param)
    assert started.warm() == ""
    yield started
    started.close()


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    yield process
    assert process.poll() is None
    process.kill()
    process.wait()


def attack(pool: ProgramPool, source: str, file: Path, victim: subprocess.Popen[bytes]) -> ProgramReport:
    """Run an attack, and see that it reached nothing."""
    helper = pool.pid
    report = pool.run(source.replace("@F", str(file)).replace("@P", str(victim.pid)) + NO_WALL)
    assert not file.exists()
    assert victim.poll() is None
    assert pool.pid == helper
    return report


@pytest.fixture
def file(tmp_path: Path) -> Path:
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o777)
    return tmp_path / "reached"


@every("name", REFUSED)
def test_files_and_rights_are_refused(
    pool: ProgramPool, name: str, file: Path, victim: subprocess.Popen[bytes]
) -> None:
    report = attack(pool, REFUSED[name], file, victim)
    assert report.ended.how == "done", report
    assert [event["event"] for event in report.events] == ["error"]
    assert report.events[0]["type"] not in ("NameError", "AttributeError", "SyntaxError", "TypeError"), report


@every("name", KILLED)
def test_connections_processes_and_threads_end_the_program(
    pool: ProgramPool, name: str, file: Path, victim: subprocess.Popen[bytes]
) -> None:
    report = attack(pool, KILLED[name], file, victim)
    assert (report.ended.how, report.events) == ("killed", ())


def test_hostile_programs_end(pool: ProgramPool, file: Path, victim: subprocess.Popen[bytes]) -> None:
    """All at once, as many as the pool runs: none of them ends another, and none runs on."""

    def end(name: str) -> ProgramReport:
        return attack(pool, "print('begun')\n" + HOSTILE[name], file, victim)

    with ThreadPoolExecutor(limit("programs_at_once")) as threads:
        ends = dict(zip(HOSTILE, threads.map(end, HOSTILE), strict=True))
    for name, report in ends.items():
        assert report.events[:1] == ({"event": "print", "text": "begun"},), name
    late = {name for name, report in ends.items() if report.ended.how == "time"}
    assert {"endless", "endless, catching all", "asleep", "a pattern", "endless in C"} <= late


def test_what_was_done_before_the_end_is_kept(pool: ProgramPool) -> None:
    report = pool.run("for i in range(5): print(i)\nwhile True: pass")
    assert [event["text"] for event in report.events] == list("01234")
    assert report.ended.how == "time"


def test_a_killed_helper_is_started_again(pool: ProgramPool) -> None:
    before = pool.pid
    os.kill(before, 9)
    report = pool.run("print(1)")
    assert report.events == ({"event": "print", "text": "1"},)
    assert pool.pid != before


FRAGMENTS = [
    *(source for table in (REFUSED, KILLED) for source in table.values()),
    *(HOSTILE[name] for name in ("memory", "a crash", "an exit code", "forged lines", "forged depth", "no text")),
    *("print(1)", "import os; os.close(random.randrange(4))", "import gc; gc.collect()", "raise SystemExit(3)"),
    "import ctypes; ctypes.CDLL(None).syscall(random.randrange(500), *(random.randrange(9) for _ in '123'))",
    "import ctypes; ctypes.CDLL(None).prctl(random.randrange(70), random.randrange(9), 0, 0, 0)",
    "import os; getattr(os, random.choice([n for n in dir(os) if n[0] != '_' and n != 'abort']))()",
    "import os; getattr(os, random.choice([n for n in dir(os) if n[0] != '_']))('@F')",
    "import os; getattr(os, random.choice([n for n in dir(os) if n[0] != '_']))('@F', 66)",
]


def hostile_program(seed: int) -> str:
    """A few attacks one after another, each of which survives the exceptions of those before."""
    rng = random.Random(seed)
    lines = [f"import random; random.seed({seed})"]
    for _ in range(rng.randrange(1, 6)):
        body = rng.choice(FRAGMENTS).replace("\n", "\n    ")
        lines.append(f"try:\n    {body}\nexcept BaseException: pass")
    return "\n".join(lines)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("first", range(0, 10_000, 200))
def test_random_walk_of_hostile_programs_reaches_nothing(
    pool: ProgramPool, first: int, file: Path, victim: subprocess.Popen[bytes]
) -> None:
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda seed: attack(pool, hostile_program(seed), file, victim), range(first, first + 200)))
    assert pool.run("print(1)").events == ({"event": "print", "text": "1"},)
    assert processes_of(pool) <= 2  # the helper and its spare child


def processes_of(pool: ProgramPool) -> int:
    """How many processes there are in the group that the helper leads."""
    stats = [path / "stat" for path in Path("/proc").iterdir() if path.name.isdecimal()]
    texts: list[str] = []
    for stat in stats:
        with suppress(OSError):
            texts.append(stat.read_text(encoding="utf-8", errors="replace"))
    return sum(text.rpartition(")")[2].split()[2] == str(pool.pid) for text in texts)
