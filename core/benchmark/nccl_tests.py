"""The output of NVIDIA's nccl-tests: which command to run, and what its text says, pasted or in a file.

The text is a stranger's. Of it are read: the line ``# nThread``, with which each test begins, the ranks with their
hosts and devices, the headings of the columns, and the rows under them; all other lines may be anything. Format:
src/util.cu of https://github.com/NVIDIA/nccl-tests (2.17); before 2.17 the output did not name its test.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from pydantic import ValidationError

from core.benchmark.collectives import (
    LINK_PASSES,
    Collectives,
    CollectiveTiming,
    Operation,
    algorithm_bandwidth,
    bus_bandwidth,
)
from core.benchmark.points import clip
from core.fields import quoted
from core.limits import limit
from core.wording import cleaned, listed

_OPERATIONS: Mapping[str, Operation] = {
    "all_reduce_perf": "all-reduce",
    "all_gather_perf": "all-gather",
    "reduce_scatter_perf": "reduce-scatter",
    "alltoall_perf": "all-to-all",
    "sendrecv_perf": "send-recv",
}
_TAG = re.compile(r"^\s*\[\d+,\d+\](?:<stdout>)?:\s?")
"""What ``mpirun --tag-output`` writes before each line."""
_PROGRAM = re.compile(r"\b([a-z_]{1,40}?_perf)(?:_mpi)?\b")
_RANK = re.compile(
    r"#\s+Rank\s+(\d{1,6})\s+(?:Group\s+(\d{1,6})\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s+(.+)"
)
_VERSIONS = re.compile(r"# nccl-tests version (\S+) nccl-headers=\d+ nccl-library=(\d+)")
_US = 1e-6
_TOLERANCE = 0.02
"""How far a printed bandwidth may be from that of the printed time, both rounded."""


def command(nodes: int, gpus: int) -> str:
    """What to run on ``nodes`` with ``gpus`` each. Raises ``ValueError`` for fewer than two ranks, or too many."""
    ranks, most = nodes * gpus, limit("collective_ranks")
    if nodes < 1 or gpus < 1 or not 2 <= ranks <= most:
        raise ValueError(f"{nodes:,} × {gpus:,} ranks cannot be measured; there are from 2 to {most:,}.")
    start, each = ("", gpus) if nodes == 1 else (f"mpirun -np {ranks} -N {gpus} ", 1)
    tests = " ".join(name.removesuffix("_perf") for name in _OPERATIONS)
    return f"""for test in {tests}; do
  echo "# ${{test}}_perf"
  {start}./build/${{test}}_perf -b 1K -e 1G -f 4 -g {each}
done | tee nccl-tests.txt
"""


@dataclass(slots=True)
class _Test:
    """One test in the text. name: of its programme, empty where nothing says. rows: with the numbers of their lines."""

    name: str
    ranks: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    columns: Sequence[str] = ()
    rows: list[tuple[int, Sequence[str]]] = field(default_factory=list[tuple[int, Sequence[str]]])


def read_output(text: str, day: date) -> Collectives:
    """The collectives in the output of one or several tests on the same ranks.

    Raises ``ValueError``, and nothing else, for a text that has none, or whose numbers contradict each other.
    """
    most = limit("upload_bytes")
    if len(text) > most:
        raise ValueError(f"The text has {len(text):,} characters; at most {most:,} are read. Leave NCCL_DEBUG unset.")
    tests = [test for test in _tests(text) if test.rows]
    if not tests:
        raise ValueError("The text has no row of results of nccl-tests: neither its headings nor a line under them.")
    nodes, per_node, devices = _ranks(tests[0])
    if any(_ranks(test) != (nodes, per_node, devices) for test in tests):
        raise ValueError("The tests ran on different ranks. Bring in those of each set of devices by itself.")
    timings = [_timing(test, line, row, nodes * per_node) for test in tests for line, row in test.rows]
    known = [timing for timing in timings if timing is not None]
    count = Counter((timing.operation, timing.bytes) for timing in known)
    if twice := [f"{operation} of {size:,} bytes" for (operation, size), times in count.items() if times > 1]:
        raise ValueError(f"More than once in the text: {quoted(twice)}. Bring in one run of each test.")
    version = _VERSIONS.search(text)
    try:
        return Collectives(
            day=day,
            nodes=nodes,
            ranks_per_node=per_node,
            devices=devices,
            versions=clip(_versions(*version.groups()), limit("measure_name_chars")) if version else "",
            timings=tuple(known),
        )
    except ValidationError as problem:
        raise ValueError(_misfit(problem)) from None


def _tests(text: str) -> list[_Test]:
    """The tests of the text. A test is named by the last line before it that has the name of a programme."""
    tests: list[_Test] = []
    name = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = _TAG.sub("", raw).strip()
        if line.startswith("# nThread "):
            tests.append(_Test(name))
            name = ""
        elif tests and (rank := _RANK.fullmatch(line)):
            tests[-1].ranks.append(rank.groups(""))
        elif tests and line.startswith("#") and "algbw" in line.split():
            tests[-1].columns = line[1:].split()
        elif tests and tests[-1].columns and line[:1].isdigit():
            tests[-1].rows.append((number, line.split()))
        elif (program := _PROGRAM.search(line)) and "concluded" not in line:
            name = program[1]
    return tests


def _ranks(test: _Test) -> tuple[int, int, tuple[str, ...]]:
    """Nodes, ranks of each, and the devices of a test."""
    numbers = [int(number) for number, _, _, _ in test.ranks]
    if len(set(numbers)) < len(numbers):
        raise ValueError(
            "The text has a rank twice: each process measured for itself, as they do where nccl-tests was built "
            "without MPI. Build it with “make MPI=1”."
        )
    if len(numbers) < 2 or sorted(numbers) != list(range(len(numbers))):
        raise ValueError(
            f"The text names {len(numbers):,} of the ranks (“# Rank 0 …”); all are needed, and two at least. A test "
            "with one process and more than about 20 GPUs does not print all of them: start a process for each."
        )
    if len({group for _, group, _, _ in test.ranks}) > 1:
        raise ValueError("The ranks exchanged in several groups at once. Run it without NCCL_TESTS_SPLIT.")
    hosts = Counter(host for _, _, host, _ in test.ranks)
    if len(set(hosts.values())) > 1:
        raise ValueError("The nodes have different numbers of ranks. Start as many on each.")
    most = limit("measure_name_chars")
    names = dict.fromkeys(cleaned(device, most) or "unknown device" for *_, device in test.ranks)
    return len(hosts), len(numbers) // len(hosts), tuple(names)


def _timing(test: _Test, line: int, row: Sequence[str], ranks: int) -> CollectiveTiming | None:
    """One row; None for an empty message. Raises ``ValueError`` where it is no row, or is of another operation."""
    first = test.columns.index("algbw")
    try:
        second = test.columns.index("algbw", first + 1)
        size, seconds, in_place = int(row[0]), _US * float(row[first - 1]), _US * float(row[second - 1])
        redop, root, algorithm, bus = row[3], row[4], float(row[first]), float(row[first + 1])
        checked = test.columns[first + 2] == "#wrong" and row[first + 2] != "N/A"
        wrong = round(float(row[first + 2])) if checked else 0
        if len(row) < len(test.columns):
            raise IndexError
    except (ValueError, IndexError, OverflowError):
        raise ValueError(f"Line {line:,} is no row under its headings; it may have been cut.") from None
    if size == 0:
        return None
    operation = _operation(test, redop, root, bus, algorithm, line)
    try:
        timing = CollectiveTiming(
            operation=operation, bytes=size, seconds=seconds, in_place_seconds=in_place, wrong=wrong
        )
    except ValidationError as problem:
        raise ValueError(f"Line {line:,}: {_misfit(problem)}") from None
    rate = algorithm_bandwidth(size, seconds) / 1e9
    passes = LINK_PASSES[operation]
    expected = bus_bandwidth(passes, ranks, rate) if passes else rate
    if not abs(bus - expected) <= _TOLERANCE * (expected + 1):
        raise ValueError(
            f"Line {line:,} has {bus:g} GB/s of bus bandwidth; {operation} of {size:,} bytes among {ranks:,} ranks in "
            f"{seconds / _US:g} µs is {expected:.2f} GB/s."
        )
    return timing


def _operation(test: _Test, redop: str, root: str, bus: float, algorithm: float, line: int) -> Operation:
    """What the test did: by its name, else, of sums that every rank has a part of, by the bus bandwidth."""
    if test.name in _OPERATIONS:
        return _OPERATIONS[test.name]
    if not test.name and redop != "none" and root == "-1":
        return "all-reduce" if bus >= algorithm else "reduce-scatter"
    names = listed(list(_OPERATIONS))
    if test.name:
        raise ValueError(f"Line {line:,} is of {test.name}; read are {names}.")
    raise ValueError(f"Line {line:,}: nothing says which test it is of. Write its name, one of {names}, before it.")


def _versions(programme: str, library: str) -> str:
    """Both versions; that of NCCL is printed as one number."""
    code = int(library[:9])
    return f"nccl-tests {cleaned(programme, 20)}, NCCL {code // 10_000}.{code // 100 % 100}.{code % 100}"


def _misfit(problem: ValidationError) -> str:
    """The first thing that does not fit, in words."""
    first = problem.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{f'“{place}”: ' if place else ''}{first['msg'].removeprefix('Value error, ')}."
