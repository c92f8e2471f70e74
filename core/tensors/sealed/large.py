# pyright: basic, reportPrivateUsage=false, reportPrivateImportUsage=false, reportOptionalMemberAccess=false
"""Tensors that would not fit: torch's fake tensors have their shapes, strides and types, and no memory.

A call is run on fake tensors first where its sizes are large, which tells what its result would take. Small tensors
stay real beside large ones, so that masks, numbers and prints have their values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, cast

from core.limits import limit
from core.tensors.sealed.allocator import flops_of
from core.tensors.sealed.tensors import Stores, tensors_in

_LARGE = 1 << 24
"""Product of all sizes of a call below which nothing is looked at."""

_MOST_FLOPS = 20_000_000_000
"""FLOPs of a call that is run on real numbers; half a second on one core."""


class NoValuesError(RuntimeError):
    """What a program asks depends on values that were not made."""


class Fakes:
    """Decides which calls run on fake tensors. used: whether one did."""

    def __init__(self, torch: Any, stores: Stores, profiler: Any) -> None:
        self.torch = torch
        self.stores = stores
        self.profiler = profiler
        self.used = False
        self._mode: Any = None

    @property
    def mode(self) -> Any:
        if self._mode is None:
            from torch._subclasses.fake_tensor import FakeTensorMode

            self._mode = FakeTensorMode(allow_non_fake_inputs=True)
        return self._mode

    def run(
        self,
        call: Callable[[], Any],
        function: Callable[..., Any],
        taken: Sequence[Any],
        args: Sequence[Any],
        named: Mapping[str, Any],
    ) -> Any:
        """Return what ``call`` of ``function`` gives: on real numbers where they fit, else without memory."""
        if any(is_fake(item) for item in taken):
            try:
                return self._faked(call)
            except Exception as problem:
                raise self._worded(problem, function, args, named) from None
        if self._is_large(taken, args, named) and not self._fits(call):
            return self._faked(call)
        return call()

    def _is_large(self, taken: Sequence[Any], args: Sequence[Any], named: Mapping[str, Any]) -> bool:
        sizes = [max(item.numel(), 1) for item in taken]
        return prod([*sizes, *(n for n in _whole((args, tuple(named.values()))) if n > 1)]) > _LARGE

    def _fits(self, call: Callable[[], Any]) -> bool:
        torch = self.torch
        before = self._living()
        torch.autograd._disable_profiler_legacy()
        try:
            torch.autograd._enable_profiler_legacy(self.profiler)
            state = torch.random.get_rng_state()
            try:
                with torch.no_grad(), self.mode:
                    result = call()
                made = {item.untyped_storage()._cdata: item.untyped_storage().nbytes() for item in tensors_in(result)}
            except Exception:  # what is wrong with it, or depends on values, the call itself says
                made = {}
            torch.random.set_rng_state(state)
            events = [event for thread in torch.autograd._disable_profiler_legacy() for event in thread]
        finally:
            torch.autograd._enable_profiler_legacy(self.profiler)
        flops = flops_of(torch, events)
        return before + 2 * sum(made.values()) < limit("program_tensor_bytes") and flops < _MOST_FLOPS

    def _living(self) -> int:
        return sum(self.stores.bytes[number] for number in self.stores.living if number not in self.stores.fake)

    def _faked(self, call: Callable[[], Any]) -> Any:
        self.used = True
        with self.mode:
            return call()

    def _worded(
        self, problem: Exception, function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]
    ) -> Exception:
        """Return what torch says of the same call on real tensors: each a single number, expanded to the sizes."""

        strided = getattr(function, "__name__", "") in ("view", "view_as", "squeeze", "unflatten")

        def real(value: Any) -> Any:
            if is_fake(value) and strided:
                return self.torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
            if is_fake(value):
                return self.torch.zeros((), dtype=value.dtype).expand(value.shape)
            if isinstance(value, tuple | list):
                return type(value)(real(item) for item in cast("Sequence[Any]", value))  # pyright: ignore
            return value

        try:
            with self.torch.no_grad():
                function(*map(real, args), **{key: real(value) for key, value in named.items()})
        except Exception as worded:
            return worded
        return problem


def is_fake(tensor: Any) -> bool:
    return getattr(tensor, "fake_mode", None) is not None


def _whole(values: Any, depth: int = 0) -> list[int]:
    """Return the whole numbers in arguments."""
    found: list[int] = []
    for value in cast("Sequence[Any]", values):
        if isinstance(value, int) and not isinstance(value, bool):
            found.append(value)
        elif isinstance(value, tuple | list) and depth < 2:
            found += _whole(value[:16], depth + 1)
    return found
