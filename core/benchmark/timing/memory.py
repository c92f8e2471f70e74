"""Copies of n bytes to n other bytes, from a few kilobytes to gigabytes: the bandwidth of caches and of memory.

Bytes are those read plus those written. Caches are not emptied between copies, so copies that fit into a cache show
it; the largest, which fits into none, is the bandwidth of memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.benchmark.device import DeviceKind
from core.benchmark.points import Item
from core.benchmark.programme import Programme
from core.benchmark.timing.bench import Bench, PreparedItem, RefusedError
from core.messages import message
from core.units import format_bytes

SMALLEST = 4 * 2**10

LARGEST: Mapping[DeviceKind, int] = {"cpu": 2**30, "cuda": 4 * 2**30}

_STEP = 4
_ONE_CALL = 64 * 2**20
_MOST_IN_CALL = 64
"""Copies are repeated until so many bytes went through one call, or so often: a clock is too coarse for one."""

_BLOCK = 2**20
_COMPARED = 2**28


def items(programme: Programme) -> tuple[Item, ...]:
    """Return copies, each four times as large as the one before."""
    sizes = [LARGEST[programme.device]]
    while sizes[-1] > SMALLEST:
        sizes.append(sizes[-1] // _STEP)
    return tuple(
        Item(
            kind="memory",
            name="copy",
            label=format_bytes(size, system="binary"),
            shape=(size,),
            seconds=programme.seconds / 2,
        )
        for size in reversed(sizes)
    )


def prepare(bench: Bench, programme: Programme, item: Item) -> PreparedItem:
    """Return two buffers of the item's bytes, and a copy from one to the other.

    The source is random: zeros would draw less power, and may share one page. Raises `SkippedError` without room for
    both, `RefusedError` if what arrives is not what was sent.
    """
    torch, (size,) = bench.torch, item.shape
    bench.need(2 * size + min(size, _COMPARED))
    source, target = (torch.empty(size // 8, dtype=torch.int64, device=bench.place) for _ in range(2))
    block = min(size, _BLOCK) // 8
    whole = torch.randint(-(2**62), 2**62, (block,), dtype=torch.int64, device=bench.place)
    source.view(-1, block).copy_(whole.expand(size // 8 // block, block))
    target.fill_(0)

    repeats = max(1, min(_MOST_IN_CALL, _ONE_CALL // size))

    def call() -> None:
        for _ in range(repeats):
            target.copy_(source)

    call()
    if not all(map(torch.equal, target.split(_COMPARED // 8), source.split(_COMPARED // 8))):
        raise RefusedError(message("measure.refused.copy"))
    return PreparedItem(call, (size,), flop=0.0, bytes=2.0 * size, flush=False, repeats=repeats, timer=bench.queued)
