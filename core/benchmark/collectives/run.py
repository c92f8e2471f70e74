"""One rank of a measuring: it joins the others and tries every operation at every size; rank 0 writes what comes of it.

Every decision that shapes what is exchanged next is rank 0's, so that all ranks make the same exchanges.
"""

from __future__ import annotations

import importlib
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from core.benchmark import device
from core.benchmark.collectives.draft import Draft
from core.benchmark.collectives.guard import START_S
from core.benchmark.collectives.operations import Bench, Job
from core.benchmark.collectives.ranks import Ranks, over_ranks
from core.benchmark.collectives.result import shown
from core.benchmark.collectives.result_fields import PointFields, RefusalFields
from core.benchmark.collectives.spec import ITEM_BYTES, MIN_RUNS, MOST_RUNS, OPERATIONS, Name, Spec, size_text
from core.limits import limit
from core.units import format_duration

_WARM_UP = 0.2
"""Share of a size's seconds that goes to untimed runs: connections open, clocks rise."""

_BUFFERS = 3
"""Messages that a rank's memory must have room for: what it sends, what it gets, what a library copies."""


class CannotError(Exception):
    """Why these ranks cannot measure, in words."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where torchrun put this rank: its number among all, and on its node."""

    rank: int
    world: int
    local: int
    per_node: int
    nodes: int

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Place:
        """From torchrun's environment; raises `CannotError` where there is none, or one rank alone."""
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE")
        try:
            place = cls(*(int(environment[name]) for name in names))
        except (KeyError, ValueError):
            raise CannotError(
                "Start it with torchrun, which starts the ranks. For example: "
                "torchrun --nproc-per-node 8 -m core.benchmark.collectives --out result.json"
            ) from None
        if place.world < 2:
            raise CannotError("One rank alone exchanges nothing. For example: --nproc-per-node 2")
        return place


def join(place: Place, spec: Spec, backend: str) -> tuple[Ranks, Bench, dict[str, Any]]:
    """Meet the other ranks; what a result says of them. backend: empty for nccl where there is CUDA, else gloo."""
    torch: Any = importlib.import_module("torch")
    dist: Any = importlib.import_module("torch.distributed")
    cuda = bool(torch.cuda.is_available())
    backend = backend or ("nccl" if cuda and dist.is_nccl_available() else "gloo")
    here, options = "cpu", dict[str, Any]()
    if backend == "nccl":
        if place.local >= torch.cuda.device_count():
            raise CannotError(f"This node has {torch.cuda.device_count()} GPUs and {place.per_node} ranks: a GPU each.")
        here = f"cuda:{place.local}"
        torch.cuda.set_device(here)
        options["device_id"] = torch.device(here)
    # The guard is what ends a rank that waits too long, with words; the library's own patience must be longer.
    patience = timedelta(seconds=2 * max(spec.timeout_s, START_S))
    store, rank, world = next(iter(dist.rendezvous("env://", timeout=patience)))
    ranks = Ranks(dist.PrefixStore("napkin", store), rank, world)
    name = str(torch.cuda.get_device_name(here)) if backend == "nccl" else device.cpu().name or "CPU"
    values = [json.loads(text) for text in ranks.texts(json.dumps([shown(name), place.per_node]))]
    if len({per_node for _, per_node in values}) > 1:
        raise CannotError("The nodes have different numbers of ranks. Give all of them the same --nproc-per-node.")
    dist.init_process_group(
        backend, store=dist.PrefixStore("group", store), rank=rank, world_size=world, timeout=patience, **options
    )
    nccl = ".".join(map(str, torch.cuda.nccl.version())) if backend == "nccl" else ""
    most = limit("collective_name_chars")
    facts: dict[str, Any] = {
        "world_size": world,
        "nodes": place.nodes,
        "ranks_per_node": place.per_node,
        "devices": tuple(dict.fromkeys(item[:most] for item, _ in values))[: limit("collective_devices")],
        "backend": backend,
        "torch": str(torch.__version__),
        "cuda": str(torch.version.cuda or "") if backend == "nccl" else "",
        "nccl": nccl,
    }
    return ranks, Bench(torch, rank, world, here, spec.dtype), facts


@dataclass(frozen=True, slots=True)
class Measuring:
    """One rank at work. step: told what is done before each run of it, so that somebody can see that it goes on."""

    place: Place
    spec: Spec
    ranks: Ranks
    bench: Bench
    step: Callable[[str], None]
    draft: Draft | None
    say: Callable[[str], None]

    def run(self) -> None:
        """Every operation at every size that memory and seconds allow."""
        for name in OPERATIONS:
            self._operation(name)

    def _tried(self, attempt: Callable[[], str]) -> str:
        """What came of trying: empty, our words, or the library's own."""
        try:
            return attempt()
        except Exception as problem:
            return shown(f"{type(problem).__name__}: {problem}")

    def _out(self, name: Name, size: int, kind: Literal["refused", "skipped"], text: str) -> None:
        if self.draft is not None:
            self.draft.add(RefusalFields(operation=name, bytes=size, kind=kind, text=text))
            self.say(f"{name} {kind}: {text}")

    def _operation(self, name: Name) -> None:
        self.step(f"checking {name}")
        # Support cannot be inferred from a name, so all ranks try; any error is the library's answer.
        if wrong := self.ranks.problem(self._tried(lambda: self.bench.wrong(name))):
            self._out(name, 0, "refused", wrong)
            return
        for size in self.spec.ladder(self.bench.world):
            what = f"{name} of {size_text(size)}"
            self.step(what)
            jobs: list[Job] = []
            lacks = self.ranks.problem(self._no_room(size)) or self.ranks.problem(
                self._tried(lambda at=size, to=jobs: self._make(name, at, to))
            )
            if lacks := lacks or self._point(name, size, jobs.pop(), what):
                self._out(name, size, "skipped", f"from {size_text(size)} on: {lacks}")
                return

    def _no_room(self, size: int) -> str:
        """Why no buffers are made; a GPU refuses what is too large, on a CPU the system would kill the process."""
        need, free = _BUFFERS * size * self.place.per_node, device.available_bytes()
        if self.bench.device != "cpu" or need <= free:
            return ""
        return f"the ranks of a node would need {size_text(need)}, and {size_text(round(free))} is free"

    def _make(self, name: Name, size: int, jobs: list[Job]) -> str:
        elements = size // ITEM_BYTES[self.spec.dtype]
        jobs.append(self.bench.job(name, self.bench.random(elements)))
        self.bench.sync()
        return ""

    def _times(self, job: Job, runs: int, what: str) -> list[float]:
        """Seconds of each of so many runs on this rank, all ranks having met before each."""
        times: list[float] = []
        for _ in range(runs):
            self.step(what)
            job.between()
            self.bench.barrier()
            start = time.perf_counter()
            job.run()
            self.bench.sync()
            times.append(max(time.perf_counter() - start, 1e-9))
        return times

    def _rounds(self, job: Job, seconds: float, least: int, what: str) -> tuple[list[float], float]:
        """Seconds of each of as many runs as fit into ``seconds``, at least ``least``; and what one takes in all.

        Rank 0's clock decides, between rounds that grow.
        """
        begun, best, runs = time.perf_counter(), math.inf, 1
        times: list[float] = []
        while runs := self.ranks.decide(runs):
            start = time.perf_counter()
            times += self._times(job, runs, what)
            now = time.perf_counter()
            best = min(best, (now - start) / runs)  # a hiccup of a busy machine must not decide what fits
            fit = int((seconds - (now - begun)) * len(times) / (now - begun))
            runs = min(len(times), max(fit, least - len(times), 0), MOST_RUNS - len(times))
        return times, best

    def _point(self, name: Name, size: int, job: Job, what: str) -> str:
        """Warm up, time, and keep it; or why not."""
        share = self.spec.share_s(self.bench.world)
        _, run_s = self._rounds(job, _WARM_UP * share, 2, what)
        if self.ranks.decide(int(run_s * MIN_RUNS > share)):
            took = format_duration(self.ranks.decide(round(run_s * 1e9)) / 1e9, 2)
            return f"a run takes {took}, and {MIN_RUNS} do not fit into the {format_duration(share, 2)} of each size"
        begun = time.perf_counter()
        values, _ = self._rounds(job, (1 - _WARM_UP) * share, MIN_RUNS, what)
        duration = time.perf_counter() - begun
        times, slowest = over_ranks(values, self.ranks.rank, self.ranks.world, self.bench.reduce)
        if self.draft is not None:
            p10, median, p90 = quantiles(times)
            point = PointFields(
                operation=name,
                bytes=size,
                dtype=self.spec.dtype,
                median_s=median,
                best_s=min(times),
                p10_s=p10,
                p90_s=p90,
                runs=len(times),
                duration_s=duration,
                slowest_rank=slowest,
            )
            self.draft.add(point)
            self.say(f"{what}: {format_duration(median, 3)}, median of {len(times):,} runs")
        return ""


def quantiles(times: list[float]) -> tuple[float, float, float]:
    """p10, median and p90, each one of the times."""
    ordered = sorted(times)
    last = len(ordered) - 1
    low, middle, high = (ordered[round(share * last)] for share in (0.1, 0.5, 0.9))
    return low, middle, high
