# pyright: basic, reportPrivateUsage=false, reportPrivateImportUsage=false, reportOptionalMemberAccess=false
"""Tensors and storages as the recorder knows them: by weak references, numbered in the order of their appearance."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from core.tensors.layout import TensorLayout
from core.tensors.sealed.program import NOWHERE, CallText

_MOST_NODES = 20_000
"""Nodes of a graph that are looked at after one call."""


@dataclass(eq=False, slots=True)
class Seen:
    """A tensor as it was when a call gave it.

    ref: the tensor, as long as it lives. text, kind, name: of the row that reports it.
    """

    storage: int
    layout: TensorLayout
    dtype: str
    item: int
    contiguous: bool
    asks: bool
    ref: Callable[[], Any]
    bits: tuple[bool, bool] = (False, False)
    text: CallText = NOWHERE
    kind: str = ""
    name: str = ""

    @property
    def same_as(self) -> tuple[int, TensorLayout, str]:
        return self.storage, self.layout, self.dtype


class Known:
    """The row that gave each living tensor, and which of several results it was."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[Callable[[], Any], int, int | None]] = {}

    def put(self, tensor: Any, row: int, pick: int | None = None) -> None:
        self.found[id(tensor)] = (weakref.ref(tensor), row, pick)

    def find(self, tensor: Any) -> tuple[int, int | None] | None:
        entry = self.found.get(id(tensor))
        return entry[1:] if entry is not None and entry[0]() is tensor else None

    def forget(self, row: int) -> None:
        """Take back what was put down since ``row``."""
        self.found = {key: entry for key, entry in self.found.items() if entry[1] < row}

    def living(self) -> Iterator[tuple[Any, int]]:
        """Yield every living tensor with its row."""
        for ref, row, _ in list(self.found.values()):
            tensor = ref()
            if tensor is not None:
                yield tensor, row


class Stores:
    """The storages that were seen. A weak reference keeps the identity of a storage from being used again."""

    def __init__(self, torch: Any) -> None:
        from torch.multiprocessing.reductions import StorageWeakRef

        self.torch = torch
        self.weak = StorageWeakRef
        self.number: dict[int, int] = {}
        self.refs: list[Any] = []
        self.bytes: list[int] = []
        self.living: set[int] = set()
        self.fake: set[int] = set()
        """Those without memory."""
        self.freed: list[int] = []

    def index(self, tensor: Any) -> int:
        """Return the number of the storage of ``tensor``, a new one where it was not seen."""
        storage = tensor.untyped_storage()
        found = self.number.get(storage._cdata)
        if found is None:
            found = self.number[storage._cdata] = len(self.refs)
            self.refs.append(self.weak(storage))
            self.bytes.append(0)
            self.living.add(found)
            if storage.device.type == "meta":
                self.fake.add(found)
        self.bytes[found] = storage.nbytes()
        return found

    def gone(self) -> list[int]:
        """Return the storages that were freed since this was asked last."""
        self.gone_later()
        freed, self.freed = self.freed, []
        return freed

    def gone_later(self) -> None:
        """Look what was freed, to be told when it is asked for."""
        gone = sorted(number for number in self.living if self.refs[number].expired())
        self.living.difference_update(gone)
        self.freed += gone

    def seen(self, tensor: Any) -> Seen:
        layout = TensorLayout(tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset())
        return Seen(
            self.index(tensor),
            layout,
            str(tensor.dtype).removeprefix("torch."),
            tensor.element_size(),
            tensor.is_contiguous(),
            bool(tensor.requires_grad),
            weakref.ref(tensor),
            (tensor.is_conj(), tensor.is_neg()),
        )

    # ------------------------------------------------------------------------------------------------ values

    def values(self, seen: Seen, count: int, layout: TensorLayout | None = None) -> list[Any]:
        """Return the first ``count`` elements in logical order; none once the storage is freed. layout: of a part of
        it."""
        flat = self._flat(seen)
        if flat is None or count < 1:
            return []
        cells = (layout or seen.layout).cells(count)
        picked = flat[self.torch.from_numpy(np.ascontiguousarray(cells))]
        picked = picked.conj() if seen.bits[0] else picked
        return numbers((-picked if seen.bits[1] else picked).tolist())

    def cells(self, seen: Seen, count: int) -> list[Any]:
        """Return the first ``count`` cells of the storage, as elements of this type."""
        flat = self._flat(seen)
        return [] if flat is None else numbers(flat[:count].tolist())

    def _flat(self, seen: Seen) -> Any:
        """Return the storage as one row of elements."""
        torch = self.torch
        storage = torch.UntypedStorage._new_with_weak_ptr(self.refs[seen.storage].cdata)
        if storage is None or storage.device.type == "meta":
            return None
        with torch.no_grad():
            cells = storage.nbytes() // seen.item
            flat = torch.empty(0, dtype=getattr(torch, seen.dtype))
            return flat.set_(storage, 0, (cells,), (1,))

    # ------------------------------------------------------------------------------------------------- graph

    def keeps(self, tensor: Any) -> list[tuple[int, int, str, str]]:
        """Return what the new operations behind ``tensor`` keep for backward: storage, bytes, operation, and its name
        there.

        Read from the nodes of the graph. Hooks on saved tensors would change what programs do.
        """
        found: list[tuple[int, int, str, str]] = []
        for node in self._nodes(tensor):
            if type(node).__name__ == "AccumulateGrad" or node.metadata.get("seen"):
                continue
            node.metadata["seen"] = True
            for name in dir(node):
                if not name.startswith("_saved_"):
                    continue
                with suppress(RuntimeError):  # freed, or written since: backward will say so
                    for item in tensors_in(getattr(node, name)):
                        if item.dim() or item.element_size() != 8:  # else a number of Python, which torch wraps
                            number = self.index(item)
                            operation = type(node).__name__.rstrip("0123456789").removesuffix("Backward")
                            found.append((number, self.bytes[number], operation, name.removeprefix("_saved_")))
        return found

    def _nodes(self, tensor: Any, every: bool = False) -> Iterator[Any]:
        """Yield the nodes behind ``tensor``, up to those that were visited, or all."""
        try:
            waiting = [tensor.grad_fn]
        except RuntimeError:  # a view whose base was written has no way back
            return
        passed: set[Any] = set()
        while waiting and len(passed) < _MOST_NODES:
            node = waiting.pop()
            if node is None or node in passed or (not every and node.metadata.get("seen")):
                continue
            passed.add(node)
            waiting += [parent for parent, _ in node.next_functions]
            yield node

    def leaves(self, tensor: Any) -> list[Any]:
        """Return the leaves that backward from ``tensor`` leaves a gradient at."""
        if tensor.requires_grad and tensor.is_leaf:
            return [tensor]
        nodes = self._nodes(tensor, every=True)
        return [node.variable for node in nodes if type(node).__name__ == "AccumulateGrad"]

    def convolutions(self, tensor: Any) -> list[list[bool]]:
        """Return which gradients each convolution behind ``tensor`` is asked for, in the order of backward."""
        found = [node for node in self._nodes(tensor, every=True) if type(node).__name__ == "ConvolutionBackward0"]
        found.sort(key=lambda node: -node._sequence_nr())
        return [[parent is not None for parent, _ in node.next_functions] for node in found]


def numbers(values: list[Any]) -> list[Any]:
    """Return numbers as JSON takes them."""
    return [str(value) if isinstance(value, complex) else value for value in values]


def tensors_in(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the tensors in arguments or results, in order."""
    if hasattr(value, "untyped_storage"):
        yield value
    elif isinstance(value, dict):
        yield from tensors_in(tuple(cast("dict[Any, Any]", value).values()), depth + 1)
    elif isinstance(value, tuple | list) and depth < 6:
        for item in cast("Sequence[Any]", value):
            yield from tensors_in(item, depth + 1)


def encoded(value: Any, slot: Callable[[Any], int]) -> Any:
    """Return an argument as JSON. slot: the place of a tensor among the inputs."""
    match value:
        case bool() | int() | float() | None:
            return value
        case str():
            return value[:2_000]
        case slice():
            cut = cast("slice[Any, Any, Any]", value)
            return {"slice": [part if isinstance(part, int) else None for part in (cut.start, cut.stop, cut.step)]}
        case tuple():
            return [encoded(item, slot) for item in cast("Sequence[Any]", value)[:256]]
        case list():
            return {"list": [encoded(item, slot) for item in cast("Sequence[Any]", value)[:256]]}
        case _ if hasattr(value, "untyped_storage"):
            return {"slot": slot(value)}
        case _:
            return {type(value).__name__: str(value)[:60]}


def touched(
    torch: Any, name: str, args: Sequence[Any], named: Mapping[str, Any], layout: TensorLayout
) -> npt.NDArray[np.int64] | None:
    """Return the cells that a call in place is about to write, one for each element written; ``None`` for the whole
    tensor."""
    tensor = args[0]
    if name == "__setitem__":
        cells = torch.from_numpy(layout.cells()).view(layout.shape)
        return cells[args[1]].flatten().numpy()
    stem, given = name.rstrip("_"), list(args[1:])
    mask = torch.zeros(tensor.shape, dtype=torch.bool)
    if stem in ("tril", "triu"):
        mask = ~getattr(torch.ones_like(mask), stem)(*given, **named)
    elif stem in ("masked_fill", "masked_scatter"):
        mask = (given[0] if given else named["mask"]).expand(tensor.shape)
    elif stem.startswith("scatter") or stem in ("index_fill", "index_add", "index_copy"):
        dim = given[0] if given else named["dim"]
        index = given[1] if len(given) > 1 else named["index"]
        mask = mask.scatter_(dim, index, True) if stem.startswith("scatter") else mask.index_fill_(dim, index, True)
    else:
        return None
    return layout.cells()[mask.flatten().numpy()]
