"""What work costs that is too small to count: launches of kernels, operations on one element, tiny products.

Each is repeated back to back, and a time is that of one. On a CPU it is the whole call. On CUDA there are three: how
long the host takes to issue it, which is what a step of small operations waits for; how long the device takes when it
always has the next one queued; and the same out of a CUDA graph, which the host launches as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from core.benchmark.points import Item
from core.benchmark.programme import Programme
from core.benchmark.timing.bench import Bench, Run, WrongError
from core.benchmark.timing.timers import HostTimer, QueuedTimer
from core.products import matmul_flop

ADD = "addition of one element"
PRODUCT = "matmul 16 × 16"
VIEW = "view, no kernel"

CALL = "one call"
HOST = "issued by the host"
DEVICE = "on the device"
GRAPH = "in a CUDA graph"

REPEATS: Final = 200
"""In one call: a clock's own cost is shared by so many. CUDA queues up to about a thousand launches, then waits."""

_SIDE: Final = 16


def items(programme: Programme) -> tuple[Item, ...]:
    """Each small operation by each way of timing it. A view starts nothing on the device."""
    cuda = programme.device == "cuda"
    ways = {
        ADD: (HOST, DEVICE, GRAPH) if cuda else (CALL,),
        PRODUCT: (HOST, DEVICE, GRAPH) if cuda else (CALL,),
        VIEW: (HOST,) if cuda else (CALL,),
    }
    return tuple(
        Item(kind="overhead", name=name, label=label, shape=_shape(name), seconds=programme.seconds / 2)
        for name, labels in ways.items()
        for label in labels
    )


def _shape(name: str) -> tuple[int, ...]:
    return (_SIDE, _SIDE, _SIDE) if name == PRODUCT else (1,)


def prepare(bench: Bench, programme: Programme, item: Item) -> Run:
    """The operation `REPEATS` times over, as the item's label says. Raises `WrongError` where it does not add up."""
    torch = bench.torch
    small = _small(torch, bench.place, item.name)

    def call() -> None:
        for _ in range(REPEATS):
            small.run()

    run = _in_graph(torch, call) if item.label == GRAPH else call
    small.clear()
    run()
    if not small.right():
        raise WrongError(f"{item.name}, {REPEATS} times over, did not give what it should")
    timer = {HOST: HostTimer, DEVICE: QueuedTimer, GRAPH: QueuedTimer}.get(item.label)
    flop = {ADD: 1.0, PRODUCT: float(matmul_flop(_SIDE, _SIDE, _SIDE))}.get(item.name, 0.0)
    return Run(
        run, item.shape, flop, bytes=0.0, flush=False, repeats=REPEATS, timer=timer(torch) if timer else None
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Small:
    """A small operation, what clears its result, and whether that is right after `REPEATS` runs."""

    run: Callable[[], object]
    clear: Callable[[], object]
    right: Callable[[], bool]


def _small(torch: Any, place: str, name: str) -> _Small:
    if name == PRODUCT:
        a, b, out = (torch.randn(_SIDE, _SIDE, device=place) for _ in range(3))
        exact = a.cpu().double() @ b.cpu().double()

        def near() -> bool:
            # TF32 keeps 11 bits, and this is no measurement of precision.
            return bool(((out.cpu().double() - exact).abs() < 0.05).all())

        return _Small(lambda: torch.mm(a, b, out=out), out.zero_, near)
    x = torch.zeros(1, device=place)
    if name == VIEW:
        return _Small(lambda: x.view(1, 1), x.zero_, lambda: x.view(1, 1).shape == (1, 1))
    return _Small(lambda: x.add_(1), x.zero_, lambda: float(x) == REPEATS)


def _in_graph(torch: Any, call: Callable[[], object]) -> Callable[[], object]:
    """``call`` captured as a CUDA graph, after a warm-up on a stream of its own, as capturing wants it."""
    cuda = torch.cuda
    graph, side = cuda.CUDAGraph(), cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        call()
    cuda.current_stream().wait_stream(side)
    with cuda.graph(graph):
        call()
    return graph.replay
