"""The exchanges themselves, on torch.distributed; torch comes in as an argument. Runs in the ranks only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from core.benchmark.collectives.spec import Dtype, Name

CHECKED = 64
"""Elements for every rank in the message whose result is checked."""

_SUMMED, _MOVED = 61, 251
"""Known numbers run from 1 to the one where they are summed, from 0 below the other where they are only moved.

bf16 has all of them, and each sum has one rank's number and zeros of the others: right in any order of adding.
"""

_TORCH_NAMES: Mapping[Dtype, str] = {"fp32": "float32", "bf16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class Job:
    """One exchange, ready to be repeated. between: what a repetition needs done before it, untimed.

    out: what it fills.
    """

    run: Callable[[], object]
    out: Any
    between: Callable[[], object] = lambda: None


@dataclass(frozen=True, slots=True)
class Bench:
    """One rank's library and device."""

    torch: Any
    rank: int
    world: int
    device: str
    dtype: Dtype

    @property
    def dist(self) -> Any:
        return self.torch.distributed

    def sync(self) -> None:
        """Wait until the device has finished what it was given."""
        if self.device != "cpu":
            self.torch.cuda.synchronize()

    def barrier(self) -> None:
        """Wait until every rank is here."""
        self.dist.barrier()
        self.sync()

    def reduce(self, values: Sequence[float], how: Literal["max", "min"]) -> list[float]:
        """The largest or smallest of all ranks' values, place by place."""
        content = self.torch.tensor(values, dtype=self.torch.float64, device=self.device)
        self.dist.all_reduce(content, op=self.dist.ReduceOp.MAX if how == "max" else self.dist.ReduceOp.MIN)
        return [float(item) for item in content.tolist()]

    def random(self, elements: int) -> Any:
        """Random normal numbers: zeros draw less power than real data does."""
        return self.torch.randn(elements, dtype=getattr(self.torch, _TORCH_NAMES[self.dtype]), device=self.device)

    def _numbers(self, values: Any) -> Any:
        return values.to(getattr(self.torch, _TORCH_NAMES[self.dtype])).to(self.device)

    def known_sum(self, elements: int) -> Any:
        """The sum of all ranks' `known_addend`."""
        return self._numbers(self.torch.arange(elements) % _SUMMED + 1)

    def known_addend(self, elements: int) -> Any:
        """What this rank adds: every so many-th of the known numbers, and zeros."""
        own = self.torch.arange(elements) % self.world == self.rank
        return self.known_sum(elements) * self._numbers(own)

    def known(self, rank: int, elements: int) -> Any:
        """What ``rank`` sends where nothing is added."""
        return self._numbers((self.torch.arange(elements) + 31 * rank) % _MOVED)

    def _sent(self, pairs: Sequence[tuple[Literal["isend", "irecv"], Any, int]]) -> None:
        """Sends and receives, started together and waited for."""
        if pairs:
            dist = self.dist
            for work in dist.batch_isend_irecv([dist.P2POp(getattr(dist, how), data, to) for how, data, to in pairs]):
                work.wait()

    def _single(self, name: str, older: str) -> Any:
        """A collective by its name, or by the one that it has in older versions of torch."""
        return getattr(self.dist, name, None) or getattr(self.dist, older)

    def job(self, name: Name, data: Any) -> Job:
        """The exchange ``name`` of a message ``data``, a multiple of the ranks long."""
        torch, dist, part = self.torch, self.dist, len(data) // self.world
        if name == "all-reduce":
            # In place, as gradients are; divided, or they would grow without end.
            return Job(lambda: dist.all_reduce(data), data, lambda: data.mul_(1 / self.world))
        if name == "all-gather":
            gather, own, out = self._single("all_gather_single", "all_gather_into_tensor"), data[:part].clone(), data
            return Job(lambda: gather(out, own), out)
        if name == "reduce-scatter":
            scatter, out = self._single("reduce_scatter_single", "reduce_scatter_tensor"), data[:part].clone()
            return Job(lambda: scatter(out, data), out)
        out = torch.empty_like(data)
        if name == "all-to-all":
            return Job(lambda: dist.all_to_all_single(out, data), out)
        if name == "ring":
            after, before = (self.rank + 1) % self.world, (self.rank - 1) % self.world
            return Job(lambda: self._sent([("isend", data, after), ("irecv", out, before)]), out)
        half = self.world // 2
        if self.rank < half:
            return Job(lambda: self._sent([("isend", data, self.rank + half)]), data)
        if self.rank < 2 * half:
            return Job(lambda: self._sent([("irecv", out, self.rank - half)]), out)
        return Job(lambda: None, data)

    def expected(self, name: Name, elements: int) -> Any:
        """What an exchange of the known numbers leaves in this rank's ``out``."""
        torch, world, rank, part = self.torch, self.world, self.rank, elements // self.world
        if name == "all-reduce":
            return self.known_sum(elements)
        if name == "reduce-scatter":
            return self.known_sum(elements)[rank * part : (rank + 1) * part]
        if name == "all-gather":
            return torch.cat([self.known(number, part) for number in range(world)])
        if name == "all-to-all":
            return torch.cat([self.known(number, elements)[rank * part : (rank + 1) * part] for number in range(world)])
        if name == "ring":
            return self.known((rank - 1) % world, elements)
        half = world // 2
        return self.known(rank - half if half <= rank < 2 * half else rank, elements)

    def wrong(self, name: Name) -> str:
        """Try ``name`` on a small message of known numbers: what is wrong with it, empty when it is right."""
        elements = CHECKED * self.world
        adds = name in ("all-reduce", "reduce-scatter")
        job = self.job(name, self.known_addend(elements) if adds else self.known(self.rank, elements))
        job.run()
        self.sync()
        off = int((job.out != self.expected(name, elements)).sum())
        return f"wrong result: {off:,} of {len(job.out):,} numbers are not those sent" if off else ""
