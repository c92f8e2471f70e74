"""Collectives are timed among ranks that torchrun starts, and no rank waits for one that is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
import torch

from core.benchmark import device
from core.benchmark.collectives.__main__ import main
from core.benchmark.collectives.draft import Draft
from core.benchmark.collectives.operations import Bench, Job
from core.benchmark.collectives.ranks import Ranks, over_ranks
from core.benchmark.collectives.result import bus_rate, read_result
from core.benchmark.collectives.result_fields import ResultFields
from core.benchmark.collectives.run import Measuring, Place, quantiles
from core.benchmark.collectives.spec import ITEM_BYTES, OPERATIONS, Dtype, Spec

ROOT = Path(__file__).parents[2]
FACTS = {
    "world_size": 2,
    "nodes": 1,
    "ranks_per_node": 2,
    "devices": ("CPU",),
    "backend": "gloo",
    "torch": "2",
    "cuda": "",
    "nccl": "",
}


def started(ranks: int, out: Path, *options: str) -> subprocess.Popen[str]:
    """torchrun with so many ranks."""
    torchrun = [sys.executable, "-W", "error", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    return subprocess.Popen(
        [*torchrun, str(ranks), "-m", "core.benchmark.collectives", "--out", str(out), *options],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def found_in(path: Path) -> ResultFields:
    return read_result(path.read_bytes())


@pytest.mark.long
def test_two_ranks_measure_every_operation(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    job = started(2, out, "--seconds", "1", "--smallest", "1000", "--largest", "4000", "--dtype", "bf16")
    said, _ = job.communicate(timeout=250)
    assert job.returncode == 0, said
    result = found_in(out)
    assert result.complete
    assert (result.world_size, result.nodes, result.backend) == (2, 1, "gloo")
    assert result.torch == torch.__version__
    for name in OPERATIONS:
        sizes = [one.bytes for one in result.points if one.operation == name]
        left = [one.bytes for one in result.refusals if one.operation == name and one.kind == "skipped"]
        assert sizes + left == [1000, 4000][: len(sizes + left)]
        assert len(sizes) == 2 or left, said  # a machine too busy for it skips a size, and refuses none
    for one in result.points:
        assert one.dtype == "bf16"
        assert one.runs >= 5
        assert one.duration_s >= one.best_s * one.runs * 0.99
    top = max((one for one in result.points if one.operation == "all-reduce"), key=lambda one: one.bytes)
    assert bus_rate(result, top) == pytest.approx(top.bytes / top.median_s)  # 2 · (2 − 1) / 2 is 1


def rank_process(torchrun: int, rank: int) -> int:
    """The process of a rank among torchrun's children."""
    for child in Path(f"/proc/{torchrun}/task/{torchrun}/children").read_text().split():
        if f"\0RANK={rank}\0".encode() in b"\0" + Path(f"/proc/{child}/environ").read_bytes():
            return int(child)
    raise AssertionError(f"no rank {rank} under torchrun")


@pytest.mark.long
def test_a_killed_rank_ends_the_others_and_keeps_what_was_measured(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    job = started(3, out, "--seconds", "30", "--smallest", "1000", "--largest", "1000000")
    while not out.exists():
        assert job.poll() is None, job.communicate()[0]
        time.sleep(0.02)
    os.kill(rank_process(job.pid, 1), signal.SIGKILL)
    said, _ = job.communicate(timeout=250)
    assert job.returncode != 0
    result = found_in(out)
    assert not result.complete
    assert result.problem.startswith("Rank 0 of 3 ended during")
    assert result.problem.split("“")[0] in said
    assert result.points[0].operation == "all-reduce"
    assert result.points[0].bytes == 996  # as many elements of 4 bytes for each of three ranks
    assert not list(tmp_path.glob("*.part"))


GUARDED = """
import threading
from core.benchmark.collectives.guard import Guard
guard = Guard("Rank 0 of 2", {timeout}, lambda why: print("kept", why, flush=True))
guard.step("ring of 1 KiB")
print("ready", flush=True)
threading.Event().wait()
"""


@pytest.mark.long
@pytest.mark.parametrize(("timeout", "told", "why"), [(0.01, False, "within 10 ms"), (600.0, True, "SIGTERM")])
def test_a_rank_that_waits_for_ever_is_ended(timeout: float, told: bool, why: str) -> None:
    code = GUARDED.format(timeout=timeout)
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "ready\n"
        if told:
            waiting.send_signal(signal.SIGTERM)
        kept, said = waiting.communicate(timeout=100)
    assert waiting.returncode == 1
    assert kept == f"kept {said}"
    assert "Rank 0 of 2" in said
    assert "ring of 1 KiB" in said
    assert why in said


def test_outside_torchrun_it_says_how_to_start(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("RANK", raising=False)
    assert main(["--out", str(tmp_path / "r.json")]) == 2
    assert "torchrun --nproc-per-node" in capsys.readouterr().err
    for name in ("RANK", "LOCAL_RANK"):
        monkeypatch.setenv(name, "0")
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE"):
        monkeypatch.setenv(name, "1")
    assert main(["--out", str(tmp_path / "r.json")]) == 2
    assert "One rank alone" in capsys.readouterr().err
    assert main(["--out", str(tmp_path / "r.json"), "--largest", "1"]) == 2
    assert list(tmp_path.iterdir()) == []


class Store:
    """torch's store of texts, among threads."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.more = threading.Condition()

    def set(self, key: str, value: str) -> None:
        with self.more:
            self.held[key] = value.encode()
            self.more.notify_all()

    def get(self, key: str) -> bytes:
        with self.more:
            self.more.wait_for(lambda: key in self.held)
            return self.held[key]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return [self.get(key) for key in keys]


def among(world: int, act: Callable[[int], Any]) -> list[Any]:
    """What ``act`` gives each rank, all of them at once."""
    found: list[Any] = [None] * world

    def one(rank: int) -> None:
        found[rank] = act(rank)

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_ranks_hear_each_other_and_do_what_the_first_decides() -> None:
    store = Store()

    def act(rank: int) -> Any:
        ranks = Ranks(store, rank, 3)
        bad = "" if rank == 0 else f"no room on {rank}"
        return ranks.texts(f"rank {rank}"), ranks.decide(10 + rank), ranks.problem(bad), ranks.problem("")

    assert among(3, act) == [(["rank 0", "rank 1", "rank 2"], 10, "no room on 1", "")] * 3


@pytest.mark.parametrize(
    ("times", "slowest"),
    [
        ([[1, 9, 1, 1], [2, 2, 2, 2], [3, 3, 3, 1]], 2),
        ([[5, 5], [5, 5]], 0),
        ([[1, 5], [5, 1]], 0),
        ([[1, 1, 1], [1, 1, 2], [1, 3, 1]], 0),
    ],
    ids=["most often", "as slow as each other", "as often", "three ways"],
)
def test_a_run_takes_as_long_as_its_slowest_rank(times: list[list[float]], slowest: int) -> None:
    world = len(times)
    meeting, said = threading.Barrier(world), [[0.0]] * world

    def act(rank: int) -> Any:
        def reduce(values: Sequence[float], how: Literal["max", "min"]) -> list[float]:
            said[rank] = list(values)
            meeting.wait()
            found = [(max if how == "max" else min)(column) for column in zip(*said, strict=True)]
            meeting.wait()
            return found

        return over_ranks(times[rank], rank, world, reduce)

    assert among(world, act) == [([max(column) for column in zip(*times, strict=True)], slowest)] * world


def test_percentiles_are_times_that_were_taken() -> None:
    assert quantiles([float(one) for one in range(101)]) == (10, 50, 90)
    assert quantiles([3.0, 1.0, 2.0]) == (1, 2, 3)


class OneRank:
    """What a bench does, without a library: exchanges that do nothing, or what ``wrong`` and ``job`` are given."""

    world, device = 2, "cpu"

    def __init__(self, wrong: Callable[[str], str], run: Callable[[], object]) -> None:
        self.wrong, self._run = wrong, run

    def random(self, elements: int) -> int:
        return elements

    def job(self, name: str, data: int) -> Job:
        return Job(self._run, data)

    def sync(self) -> None:
        pass

    def barrier(self) -> None:
        pass

    def reduce(self, values: Sequence[float], how: str) -> list[float]:
        return list(values)


def right(name: str) -> str:
    return ""


def measured(out: Path, spec: Spec, wrong: Callable[[str], str] = right, run: Callable[[], object] = int) -> Any:
    """What one rank alone finds."""
    bench: Any = OneRank(wrong, run)
    draft = Draft(out, FACTS)
    Measuring(
        Place(0, 2, 0, 2, 1), spec, Ranks(Store(), 0, 1), bench, lambda what: None, draft, lambda text: None
    ).run()
    draft.finish()
    draft.keep("too late to matter")
    return found_in(out)


SMALL = Spec(seconds=0.05, smallest=64, largest=256)


def test_what_is_refused_stands_there_in_its_own_words(tmp_path: Path) -> None:
    def wrong(name: str) -> str:
        if name == "reduce-scatter":
            raise RuntimeError("no reduce_scatter\nhere")
        return "wrong result: 3" if name == "ring" else ""

    result = measured(tmp_path / "r.json", SMALL, wrong)
    assert [(one.operation, one.bytes, one.kind, one.text) for one in result.refusals] == [
        ("reduce-scatter", 0, "refused", "RuntimeError: no reduce_scatter here"),
        ("ring", 0, "refused", "wrong result: 3"),
    ]
    assert {one.operation for one in result.points} == OPERATIONS.keys() - {"reduce-scatter", "ring"}
    assert result.complete


def test_sizes_without_time_or_room_are_skipped_with_all_larger_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "r.json"
    result = measured(out, Spec(seconds=1e-9, smallest=64, largest=256))
    assert result.points == ()
    assert [(one.bytes, one.kind) for one in result.refusals] == [(64, "skipped")] * 6
    monkeypatch.setattr(device, "available_bytes", lambda: 3 * 2 * 64.0)
    result = measured(out, SMALL)
    assert {one.bytes for one in result.points} == {64}
    assert [(one.bytes, one.kind) for one in result.refusals] == [(256, "skipped")] * 6
    assert "1.5 KiB, and 384 B is free" in result.refusals[0].text


def test_what_goes_wrong_in_a_run_is_no_refusal(tmp_path: Path) -> None:
    def lost() -> object:
        raise RuntimeError("Connection closed by peer")

    with pytest.raises(RuntimeError, match="closed by peer"):
        measured(tmp_path / "r.json", SMALL, run=lost)


def test_an_unfinished_file_says_so_at_every_moment(tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    draft = Draft(out, FACTS)
    assert not draft.keep("nothing yet")
    assert not out.exists()
    draft.add(measured(tmp_path / "other.json", SMALL).points[0])
    assert not found_in(out).complete
    assert "under way" in found_in(out).problem
    assert draft.keep("Rank 0\nended")
    assert found_in(out).problem == "Rank 0 ended"
    assert len(found_in(out).points) == 1


@pytest.mark.parametrize("world", [2, 3, 5])
@pytest.mark.parametrize("dtype", ITEM_BYTES)
def test_known_numbers_add_up_and_a_wrong_sum_is_found(world: int, dtype: Dtype) -> None:
    benches = [Bench(torch, rank, world, "cpu", dtype) for rank in range(world)]
    total = sum(bench.known_addend(64 * world) for bench in benches)
    assert torch.equal(total, benches[0].known_sum(64 * world))  # pyright: ignore[reportArgumentType]
    parts = {tuple(bench.expected("reduce-scatter", 64 * world).tolist()) for bench in benches}
    assert len(parts) == world
    idle = SimpleNamespace(**{name: getattr(torch, name) for name in ("arange", "float32", "bfloat16")})
    idle.distributed = SimpleNamespace(all_reduce=lambda held: None)
    lazy = Bench(idle, 0, world, "cpu", dtype)
    assert f"of {64 * world:,} numbers" in lazy.wrong("all-reduce")
