"""What an operation allocates while it runs: torch's own account of the CPU's memory, event by event.

torch reports every block that its allocator of the CPU hands out or takes back to the profiler of the thread. The
same events are behind ``torch.profiler.profile(profile_memory=True)``; here they are read around single operations,
some 50 µs each. The meta device allocates nothing, so there the storages that the parts of an operation make are
added up instead.
"""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

_PLAIN = ("aten::empty", "aten::empty_strided", "aten::empty_like", "aten::resize_", "aten::new_empty")
"""Operations that only ask for memory: what it is for the one around them says."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of memory that an operation allocated and freed again. by: torch's name of the part that asked for it."""

    by: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Allocated:
    """What one operation allocated, in bytes.

    total: all that it asked for. peak: the most of it that was there at once. kept: what was there in the end. freed:
    the blocks that it gave back before it returned.
    """

    total: int = 0
    peak: int = 0
    kept: int = 0
    freed: tuple[Block, ...] = ()


class Shared:
    """A state of the whole process, entered by the first thread that asks for it and left by the last."""

    def __init__(self, make: Callable[[], AbstractContextManager[Any]]) -> None:
        self.make = make
        self.lock = threading.Lock()
        self.asking = 0
        self.state: AbstractContextManager[Any] = nullcontext()

    @contextmanager
    def held(self) -> Generator[None]:
        """The state, as long as this is open."""
        with self.lock:
            if not self.asking:
                self.state = self.make()
                self.state.__enter__()
            self.asking += 1
        try:
            yield
        finally:
            with self.lock:
                self.asking -= 1
                if not self.asking:
                    self.state.__exit__(None, None, None)


@contextmanager
def _uncollected() -> Generator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


COLLECTOR = Shared(_uncollected)
"""No cycle is freed meanwhile: the tensors in it would be taken off what runs just then."""

QUIET = Shared(lambda: warnings.catch_warnings(action="ignore"))
"""What torch warns of goes unheard meanwhile: it runs all the same, and nobody reads the console of a server."""


class AllocationMeter:
    """Watches the calls of one operation; ``allocated`` is what they allocated together, ``last`` the last of them."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.last = Allocated()
        self.events: list[Any] = []

    def start(self) -> None:
        """Forget what was seen: another operation begins."""
        self.events = []

    def watch(self, call: Callable[[], Any]) -> Any:
        """What ``call`` returns, with the memory it asked for put down."""
        autograd = self.torch.autograd
        config = autograd.ProfilerConfig(
            autograd.ProfilerState.CPU, False, True, False, False, False, self.torch._C._profiler._ExperimentalConfig()
        )
        with COLLECTOR.held():
            autograd._enable_profiler_legacy(config)
            try:
                return call()
            finally:
                events = [event for thread in autograd._disable_profiler_legacy() for event in thread]
                self.events += events
                self.last = account(events)

    def allocated(self) -> Allocated:
        """What the calls since `start` allocated."""
        return account(self.events)


def account(events: Iterable[Any]) -> Allocated:
    """The events of one thread as sums.

    They tell sizes, not addresses. So a block that is given back is one of its size that a part inside asked for, if
    there is one, and of several the oldest: what an operation returns it makes last.
    """
    parts: list[str] = []
    blocks: list[tuple[int, Block]] = []
    """Those that are still there, each with how deep inside it was asked for."""
    freed: list[Block] = []
    now = peak = total = 0
    for event in events:
        match event.kind():
            case "push":
                parts.append(event.name())
            case "pop" if parts:
                parts.pop()
            case "memory_alloc":
                size = event.cpu_memory_usage()
                now += size
                peak = max(peak, now)
                if size > 0:
                    total += size
                    asking = [part for part in parts if part not in _PLAIN]
                    blocks.append((len(asking), Block("".join(asking[-1:]).removeprefix("aten::"), size)))
                else:
                    same = [item for item in blocks if item[1].bytes == -size]
                    inner = [item for item in same if item[0] > len(parts)]
                    for item in (inner or same)[:1]:
                        blocks.remove(item)
                        freed.append(item[1])
            case _:
                pass
    return Allocated(total, peak, now, tuple(freed))


class PartsMeter(AllocationMeter):
    """The same on the meta device: the storages that the parts of an operation make, as long as they use them.

    What a kernel itself takes for working is not seen there, such as operands converted to one element type.
    """

    def __init__(self, torch: Any) -> None:
        super().__init__(torch)
        self.parts = Allocated()

    def start(self) -> None:
        self.parts = Allocated()

    def watch(self, call: Callable[[], Any]) -> Any:
        from torch.multiprocessing.reductions import StorageWeakRef
        from torch.utils._python_dispatch import TorchDispatchMode
        from torch.utils._pytree import tree_leaves

        tensor = self.torch.Tensor
        known: set[int] = set()
        blocks: list[tuple[Any, Block]] = []
        freed: list[Block] = []
        total = peak = 0

        def settle() -> None:
            """Put down what is gone."""
            gone = [(seen.cdata, block) for seen, block in blocks if seen.expired()]
            freed.extend(block for _, block in gone)
            known.difference_update(identity for identity, _ in gone)
            blocks[:] = [(seen, block) for seen, block in blocks if not seen.expired()]

        class Parts(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                nonlocal total, peak
                given = [item for item in tree_leaves((args, kwargs)) if isinstance(item, tensor)]
                known.update(item.untyped_storage()._cdata for item in given)
                settle()
                result = func(*args, **(kwargs or {}))
                there = known | {seen.cdata for seen, _ in blocks}
                for item in tree_leaves(result):
                    if isinstance(item, tensor) and item.untyped_storage()._cdata not in there:
                        storage = item.untyped_storage()
                        there.add(storage._cdata)
                        blocks.append((StorageWeakRef(storage), Block(func.name().split("::")[-1], storage.nbytes())))
                        total += storage.nbytes()
                peak = max(peak, sum(block.bytes for _, block in blocks))
                return result

        with Parts():
            result = call()
        settle()
        kept = sum(block.bytes for _, block in blocks)
        self.last = Allocated(total, peak, kept, tuple(freed))
        before = self.parts
        self.parts = Allocated(
            before.total + total, max(before.peak, before.kept + peak), before.kept + kept, (*before.freed, *freed)
        )
        return result

    def allocated(self) -> Allocated:
        return self.parts
