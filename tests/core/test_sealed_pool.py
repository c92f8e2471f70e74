"""The pool: many programs at once, helpers that cannot seal, and systems without a seal."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import pytest

from core.limits import limit
from core.messages import Message
from core.tensors.sealed import client
from core.tensors.sealed.client import ProgramPool
from core.tensors.sealed.seal import ALLOW, KILL, REFUSE, SealError, filter_of
from tests.core import sealed_recorder
from tests.every import every

linux = pytest.mark.skipif(sys.platform != "linux", reason="has no seal")
process = pytest.mark.process

MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

CALLS = {  # numbers on x86-64 and arm64, arguments, what the kernel does
    "read of the request": ((0, 63), (0,), ALLOW),
    "read of the report": ((0, 63), (1,), REFUSE),
    "write of the report": ((1, 64), (1,), ALLOW),
    "write of another": ((1, 64), (2,), REFUSE),
    "memory": ((9, 222), (), ALLOW),
    "own limits": ((302, 261), (0, 7, 0, 1), ALLOW),
    "new limits": ((302, 261), (0, 7, 1, 0), REFUSE),
    "new limits, high": ((302, 261), (0, 7, 1 << 32, 0), REFUSE),
    "limits of another": ((302, 261), (5, 7, 0, 1), REFUSE),
    "open": ((257, 56), (), REFUSE),
    "control of a descriptor": ((16, 29), (1,), REFUSE),
    "fork": ((56, 220), (), KILL),
    "exec": ((59, 221), (), KILL),
    "socket": ((41, 198), (), KILL),
    "kill": ((62, 129), (), KILL),
    "ptrace": ((101, 117), (), KILL),
    "unknown": ((999, 999), (), REFUSE),
    "the other interface": ((0x40000000, 0x40000001), (), KILL),
}


def verdict(code: Sequence[tuple[int, int, int, int]], data: bytes) -> int:
    """What a filter says of a call, as the kernel runs it."""
    value = at = 0
    while True:
        operation, yes, no, operand = code[at]
        at += 1
        if operation == 0x06:
            return operand
        if operation == 0x20:
            value = int.from_bytes(data[operand : operand + 4], "little")
        else:
            at += yes if (value == operand if operation == 0x15 else value >= operand) else no


@every("machine", MACHINES)
def test_the_filter_is_right_on_both_processors(machine: str) -> None:
    architecture, column = MACHINES[machine]
    code = filter_of(machine)
    assert len(code) < 4_096
    for name, (numbers, arguments, expected) in CALLS.items():
        words = [*arguments, *[0] * (6 - len(arguments))]
        data = numbers[column].to_bytes(4, "little") + architecture.to_bytes(4, "little") + bytes(8)
        data += b"".join(word.to_bytes(8, "little") for word in words)
        assert verdict(code, data) == expected, name
        other = data[:4] + (0x40000003).to_bytes(4, "little") + data[8:]
        assert verdict(code, other) == KILL, name


def test_other_processors_have_no_seal() -> None:
    with pytest.raises(SealError):
        filter_of("riscv64")


@pytest.fixture(scope="module")
def pool() -> Iterator[ProgramPool]:
    started = ProgramPool(sealed_recorder.__name__)
    yield started
    started.close()


@process
@linux
def test_fifty_programs_at_once_all_run(pool: ProgramPool) -> None:
    pool.warm()
    waits: list[float] = []

    def run(number: int) -> str:
        begun = time.monotonic()
        report = pool.run(f"import torch\nx = torch.arange({number})\ny = x * 2\nprint(int(y.sum()))")
        waits.append(time.monotonic() - begun)
        return report.events[0]["text"]

    with ThreadPoolExecutor(50) as threads:
        assert list(threads.map(run, range(50))) == [str(n * (n - 1)) for n in range(50)]


@process
@linux
def test_a_short_program_does_not_wait_for_endless_ones(pool: ProgramPool) -> None:
    pool.warm()
    endless = [threading.Thread(target=pool.run, args=("while True: pass",)) for _ in range(4)]
    for thread in endless:
        thread.start()
    time.sleep(0.3)
    report = pool.run("print(1)")
    assert report.ended.how == "done"
    assert any(thread.is_alive() for thread in endless)
    for thread in endless:
        thread.join()


@process
@linux
def test_refusals_of_the_wall_come_with_their_place(pool: ProgramPool) -> None:
    ended = pool.run("x = 1\nimport pandas").ended
    assert (ended.how, ended.line, ended.column) == ("wall", 2, 1)
    assert isinstance(ended.message, Message)
    assert ended.message.values["name"] == "pandas"
    assert pool.run("x" * (limit("program_bytes") + 1)).ended.how == "wall"


@process
@linux
def test_a_program_finds_nothing_of_the_server_in_its_process() -> None:
    with patch.dict(os.environ, {"NAPKIN_SECRET": "s", "DATABASE_URL": "s"}):
        pool = ProgramPool(sealed_recorder.__name__)
        report = pool.run("import os; print(sorted(os.environ))")
        pool.close()
    assert "NAPKIN" not in str(report.events)
    assert "DATABASE" not in str(report.events)


@process
@linux
def test_a_program_finds_no_descriptor_and_no_text_of_another(pool: ProgramPool) -> None:
    """Children are copies of the helper, so the helper must never have seen a program."""
    marker = "other user's secret " * 20
    for _ in range(3):
        assert pool.run(f"x = {marker!r}").ended.how == "done"
    heap = "libc = ctypes.CDLL(None); libc.sbrk.restype = ctypes.c_void_p; end = libc.sbrk(0)"
    scan = f"print(ctypes.string_at(end - (16 << 20), 16 << 20).count(bytes.fromhex({marker[:40].encode().hex()!r})))"
    opened = "import os\nfor n in range(2, 999):\n    try: os.close(n)\n    except OSError: continue\n    print(n)"
    report = pool.run(f"import ctypes; {heap}; {scan}\n{opened}\n{sealed_recorder.SPLIT}\n")
    assert [event["text"] for event in report.events] == ["0"]


@process
@linux
def test_runs_are_alike(pool: ProgramPool) -> None:
    source = "import random, torch; print(random.random(), float(torch.rand(1)), {'a', 'b', 'c'})"
    assert pool.run(source).events == pool.run(source).events


@process
@linux
def test_too_many_who_wait_are_told_so(pool: ProgramPool) -> None:
    none = threading.BoundedSemaphore(1)
    none.acquire()
    with patch.object(pool, "_slots", none), patch.object(client, "limit", lambda name: 1):
        assert pool.run("x").ended.how == "unavailable"


@process
@linux
@every(
    "broken",
    [
        "seal.filter_of = lambda machine: (_ for _ in ()).throw(seal.SealError('no processor'))",
        "seal._control = lambda *_: (_ for _ in ()).throw(OSError(22, 'Invalid argument'))",
        "seal._control = lambda *_: None",
        "seal.filter_of = lambda machine: [(6, 0, 0, seal.ALLOW)]",
        "helper.seal = lambda: None",
        "import sys; sys.exit(3)",
    ],
)
def test_without_a_seal_nothing_runs(broken: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    reached = tmp_path_factory.mktemp("unsealed") / "reached"
    no_torch = "helper.work_of = lambda name: lambda source, emit: exec(source)"
    start = f"from core.tensors.sealed import helper, seal\n{no_torch}\n{broken}\nhelper.main()"
    pool = ProgramPool(sealed_recorder.__name__, sealed=True, command=(sys.executable, "-c", start))
    report = pool.run(f"open({str(reached)!r}, 'w')\n{sealed_recorder.SPLIT}\n")
    why = pool.warm()
    pool.close()
    assert (report.events, report.ended.how) == ((), "unavailable")
    assert why.endswith(".")
    assert report.ended.message == why
    assert not reached.exists()


@process
def test_typed_code_runs_without_a_seal_in_a_process_with_limits() -> None:
    pool = ProgramPool(sealed_recorder.__name__, sealed=False)
    assert pool.run("print(1)").events == ({"event": "print", "text": "1"},)
    endless = pool.run("print(1)\nwhile True: pass")
    assert (endless.ended.how, len(endless.events)) == ("time", 1)
    assert pool.run("import pandas").ended.how == "wall"
    pool.close()


def test_reports_are_read_without_trust() -> None:
    most = limit("program_report_values")
    lines = [b'{"a": 1}', b"[1]", b"null", b"{", b"\xff", b'{"n": ' + b"9" * 9_000 + b"}", b"[" * 100_000, b'{"b": 2}']
    assert client._events(b"\n".join(lines)) == [{"a": 1}, {"b": 2}]
    assert client._events(b'{"a": 1}\n{"n": [' + b"[]," * most + b'[]]}\n{"b": 2}') == [{"a": 1}]
    assert len(client._events(b"{}\n" * 50_000)) == limit("program_events")


@process
@linux
def test_time_that_a_program_only_waits_does_not_count(pool: ProgramPool) -> None:
    seconds = limit("program_cpu_seconds") + 1
    assert pool.run(f"import time; time.sleep({seconds})").ended.how == "done"
