# pyright: basic, reportPrivateUsage=false, reportPrivateImportUsage=false, reportOptionalMemberAccess=false
"""A GPU as a mark: every tensor lies in the memory of the CPU, and its storage says which device it counts for.

torch without CUDA cannot even pretend: autograd ends the process at a fake tensor on ``cuda``. So calls are rewritten:
devices are taken out of their arguments and kept as marks, and tensors of two devices do not meet.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from core.tensors.sealed.program import FILE
from core.tensors.sealed.tensors import Stores

BLOCK = 512
"""Bytes that torch's allocator of a GPU hands out at least, and rounds up to."""

_MEETING = frozenset(
    (
        *("to", "copy_", "cuda", "cpu", "type_as", "__setitem__", "__getitem__", "data", "set_", "backward"),
        "_has_compatible_shallow_copy_type",
    )
)
"""Calls in which tensors of two devices may meet."""


class Devices:
    """Which device each storage counts for. named: whether a program spoke of a GPU."""

    def __init__(self, torch: Any, stores: Stores) -> None:
        self.torch = torch
        self.stores = stores
        self.marks: dict[int, str] = {}
        self.most = 0
        self.named = False
        self.default: Any = None

    def set_default(self, device: Any) -> None:
        """Set the device of tensors that are created without one, as ``with torch.device`` does."""
        if self.default is not None:
            self.default.__exit__(None, None, None)
        self.default = None if device is None else self.torch.device(device)
        if self.default is not None:
            self.default.__enter__()

    def of(self, tensor: Any) -> str:
        return self.marks.get(self.stores.index(tensor), "cpu")

    def mark(self, tensor: Any, device: str) -> None:
        if device != "cpu":
            self.named = True
            self.marks.setdefault(self.stores.index(tensor), device)

    # ------------------------------------------------------------------------------------------------ memory

    def allocated(self, *_: object, **__: object) -> int:
        """Return the bytes of all that lives on the GPU, in blocks of its allocator."""
        self.named |= bool(self.marks)
        self.stores.gone_later()
        living = (number for number in self.marks if number in self.stores.living)
        return sum(-(-self.stores.bytes[number] // BLOCK) * BLOCK for number in living)

    def peak(self, *_: object, **__: object) -> int:
        self.grew()
        return self.most

    def reset(self, *_: object, **__: object) -> None:
        self.most = self.allocated()

    def grew(self) -> None:
        """Put down the most that was there at once."""
        if self.named:
            self.most = max(self.most, self.allocated())

    # ------------------------------------------------------------------------------------------------- calls

    def plain(self, device: Any) -> str:
        """Return a device by its whole name."""
        found = self.torch.device("cuda", device) if isinstance(device, int) else self.torch.device(device)
        if found.type in ("cpu", "meta"):
            return str(found.type)
        return f"{found.type}:{found.index or 0}"

    def clash(self, name: str, taken: Sequence[Any]) -> str:
        """Return what torch says of tensors on two devices that meet in a call; empty if they may."""
        if name in _MEETING or not self.marks:
            return ""
        found = {self.of(item): None for item in taken if item.dim() or self.of(item) != "cpu"}
        if len(found) < 2:
            return ""
        names = " and ".join(sorted(found, key=lambda device: not device.startswith("cuda")))
        return f"Expected all tensors to be on the same device, but found at least two devices, {names}!"

    def rewritten(
        self, function: Any, name: str, args: Sequence[Any], named: Mapping[str, Any], taken: Sequence[Any]
    ) -> tuple[Callable[[], Any], str, bool]:
        """Return the call without devices, the device of what it gives, and whether that moves there."""
        here = next((self.of(item) for item in taken if item.dim()), self.of(taken[0]) if taken else "cpu")
        if name in ("to", "cuda", "cpu", "type_as") and args:
            return self._moved(args, named, name)
        rest = dict(named)
        rest.pop("pin_memory", None)
        device = rest.pop("device", None)
        if name == "pin_memory":
            return (lambda: args[0]), here, False
        target = here if device is None else self.plain(device)
        if target == "meta" or (device is None and len(rest) == len(named)):
            return (lambda: function(*args, **named)), target, False
        if name == "as_tensor" and taken and target != here:
            return (lambda: args[0].to(copy=True, **rest)), target, True
        return (lambda: function(*args, **rest)), target, False

    def _moved(self, args: Sequence[Any], named: Mapping[str, Any], name: str) -> tuple[Callable[[], Any], str, bool]:
        tensor, here = args[0], self.of(args[0])
        rest = dict(named)
        copy = bool(rest.pop("copy", False))
        other = next((item for item in (*args[1:], *rest.values()) if hasattr(item, "untyped_storage")), None)
        if other is not None:
            target, keep = here if name == "type_as" else self.of(other), {"dtype": other.dtype}
            target = self.of(other) if name == "type_as" else target
        elif name == "to":
            try:
                device, dtype, _, memory_format = self.torch._C._nn._parse_to(*args[1:], **rest)
            except (TypeError, RuntimeError):  # which torch words itself
                return (lambda: tensor.to(*args[1:], **named)), here, False
            target = here if device is None else self.plain(device)
            keep = {"dtype": dtype, "memory_format": memory_format}
        else:
            device = (*args[1:2], rest.get("device"), None)[0]
            target = "cpu" if name == "cpu" else self.plain("cuda" if device is None else device)
            keep = {}
        keep = {key: value for key, value in keep.items() if value is not None}
        if target == "meta":
            return (lambda: tensor.to(*args[1:], **named)), here, False
        moves = target != here
        if not keep and not moves and not copy:
            return (lambda: tensor), target, False
        return (lambda: tensor.to(copy=moves or copy, **keep)), target, moves


def replaced(torch: Any, devices: Devices) -> Iterator[tuple[Any, str, Any]]:
    """Yield the functions that ask for a GPU: owner, name, and a replacement that answers as with one GPU."""
    cpu = torch.autocast

    class Autocast(cpu):
        """Autocast of a GPU casts on the CPU what that casts; its default type is the GPU's."""

        def __init__(self, device_type: str = "cuda", dtype: Any = None, enabled: bool = True, **rest: Any) -> None:
            given = torch.float16 if dtype is None and device_type == "cuda" else dtype
            super().__init__("cpu" if device_type == "cuda" else device_type, given, enabled, **rest)

    def yes(*_: object, **__: object) -> bool:
        devices.named = True
        return True

    answers: dict[str, Any] = {
        "is_available": yes,
        "is_bf16_supported": yes,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "synchronize": lambda *_: None,
        "empty_cache": lambda: None,
        "set_device": lambda _: None,
        "memory_allocated": devices.allocated,
        "max_memory_allocated": devices.peak,
        "reset_peak_memory_stats": devices.reset,
    }
    for name, answer in answers.items():
        yield torch.cuda, name, _for_programs(getattr(torch.cuda, name), answer)
    answers["current_accelerator"] = lambda *_, **__: torch.device("cuda")
    for name in ("is_available", "device_count", "synchronize", "current_accelerator"):
        yield torch.accelerator, name, _for_programs(getattr(torch.accelerator, name), answers[name])
    yield torch, "set_default_device", devices.set_default
    yield torch, "autocast", Autocast
    yield torch.amp, "autocast", Autocast
    yield torch.cuda.amp, "autocast", Autocast


def _for_programs(function: Callable[..., Any], answer: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``answer`` where a program asks, or what scales its losses; ``function`` for libraries, which have no
    GPU."""

    def asked(*args: Any, **named: Any) -> Any:
        file = sys._getframe(1).f_code.co_filename
        return (answer if file == FILE or file.endswith(_FOR_PROGRAMS) else function)(*args, **named)

    return asked


_FOR_PROGRAMS = ("amp/common.py", "amp/grad_scaler.py")
