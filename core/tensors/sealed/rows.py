# pyright: basic, reportPrivateUsage=false, reportPrivateImportUsage=false, reportOptionalMemberAccess=false
"""The rows of a report: a tensor that a call gave, with its layout, storage, values, and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from types import FrameType
from typing import Any

import numpy as np

from core.limits import limit
from core.tensors.layout import TensorLayout
from core.tensors.sealed.allocator import Used, account, profiler_config
from core.tensors.sealed.devices import Devices
from core.tensors.sealed.large import Fakes
from core.tensors.sealed.loops import Event, Loops
from core.tensors.sealed.program import FILE, NOWHERE, CallText, Place, Program
from core.tensors.sealed.tensors import Known, Seen, Stores

_MOST_NUMBERS = 200_000
"""Values of tensors in one report; after that each shows a few."""

_FEW = 16

_LARGE_WRITE = 1 << 22
"""Bytes of a storage up to which the cells that a write reaches are listed."""

_OPERATIONS = {
    **dict.fromkeys(("matmul", "__matmul__", "__rmatmul__"), "matmul"),
    "__getitem__": "indexing",
    "__setitem__": "write",
    "__iter__": "unbind",
}
"""Names of torch's functions → what they are called here."""


class Tag:
    """What a frame is recognized by: it is set as ``f_trace``, which Python ignores while nothing traces.

    names: of a frame of the program, what its local names stand for.
    """

    def __init__(self) -> None:
        self.names: dict[str, tuple[Callable[[], Any], int]] = {}

    def __call__(self, *_: object) -> None:
        return None


@dataclass(eq=False, slots=True)
class Group:
    """What one call of the program makes torch do: a single call of torch, or all those of a library's function.

    tag: of the library's. name: of the first function of torch. stored: as many storages were seen when it began.
    """

    written: CallText
    tag: Tag | None = None
    name: str = ""
    stored: int = 0
    inputs: list[int] = field(default_factory=list[int])
    made: list[Seen] = field(default_factory=list[Seen])
    wrote: dict[tuple[int, TensorLayout, str], tuple[Seen, Any]] = field(
        default_factory=dict[tuple[int, TensorLayout, str], tuple[Seen, Any]]
    )
    events: list[Any] = field(default_factory=list[Any])
    keeps: list[tuple[int, int, str, str]] = field(default_factory=list[tuple[int, int, str, str]])
    flops: int = 0
    moved: int = 0
    main: int | None = None
    last: Callable[[], Any] = lambda: None
    returned: bool = False
    args: Any = None
    named: Any = None
    inside: Used | None = None

    @property
    def used(self) -> Used:
        """What its calls allocated; between those of a library Python frees what the library dropped."""
        return self.inside or account(self.events)

    def add(self, used: Used, alive: int) -> None:
        """Add a call of a library. alive: bytes of what it made before that lives."""
        before = self.inside or Used()
        peak = max(before.peak, alive + used.peak)
        self.inside = Used(before.total + used.total, peak, before.kept + used.kept, before.freed + used.freed)


class Rows(Loops):
    """What is reported of one run of one program."""

    def __init__(self, emit: Callable[[Event], None], program: Program) -> None:
        import torch

        self.torch: Any = torch
        self.emit_now = emit
        self.program = program
        self.stores = Stores(torch)
        self.rows: list[Seen] = []
        """The tensor that each row gave."""
        self.on: dict[int, list[int]] = {}
        """Storages, and the rows on each."""
        self.reported = 0
        self.tops: dict[str, tuple[Callable[[], Any], int]] = {}
        """The program's names, each with its tensor and the row that it stands for."""
        self.scope = self.tops
        """The names of the function of the program that runs."""
        self.known = Known()
        self.group: Group | None = None
        self.waiting: list[Group] = []
        """What libraries made and nothing stands for yet, such as the layers of a model that is being built."""
        self.said: dict[str, int] = {}
        """Names and their rows as they were reported last."""
        self.optimizers: dict[str, Callable[[], Any]] = {}
        self.asides: list[tuple[int, list[Event]]] = []
        self.loops = []
        self.updates: dict[Place, Any] = {}
        self.refused: tuple[BaseException, Event] | None = None
        self.left = _MOST_NUMBERS
        self.printed = 0
        self.masks: list[list[bool]] = []
        """Of the convolutions that backward is about to pass: which gradients each is asked for."""
        self.since = 0
        """The first row of the statement that runs."""
        self.profiler: Any = profiler_config(self.torch)
        self.devices = Devices(torch, self.stores)
        self.fakes = Fakes(torch, self.stores, self.profiler)

    def emit(self, event: Event) -> None:
        if self.asides:
            self.asides[-1][1].append(event)
        else:
            self._put(event)

    def _row_of(self, tensor: Any, name: str = "") -> int:
        """Return the row that gave ``tensor``, a new one where none did, or for one of several. name: what it is bound
        to."""
        found = self._found(tensor)
        if found is None:
            return self._adopt(tensor)
        number, pick = found
        if pick is None:
            return number
        seen, whole = self.stores.seen(tensor), self.rows[number]
        kind = "same" if seen.storage == whole.storage else self._kind(None, seen)
        text = CallText(name or f"[{pick}]", f"{whole.text.expression}[{pick}]", "piece", whole.text.line)
        return self._put_row(tensor, Group(text), seen, kind, operation="piece", inputs=[number], picked=pick)

    def _through(self, owner: str, tensor: Any) -> int:
        """Return the row of a tensor by the name that a call is written with, where that stands for it."""
        number = self._row_of(tensor)
        ref, row = self.scope.get(owner, (None, 0))
        return row if ref is not None and ref() is tensor and self.known.find(tensor) == (number, None) else number

    def _adopt(self, tensor: Any, written: CallText | None = None, alone: bool = False) -> int:
        """Return a row for a tensor that no call gave, such as a parameter: that of the same cells, or a new one."""
        seen = self.stores.seen(tensor)
        for group in self.waiting:
            if any(made.storage == seen.storage for made in group.made):
                return self._waited(group, tensor, seen)
        on = self.on.get(seen.storage, [])
        same = [number for number in on if self.rows[number].same_as == seen.same_as]
        if same:
            if alone and written and type(tensor).__name__ == "Parameter" and "Parameter(" in written.source:
                return self._put_row(tensor, Group(written), seen, "view", operation="Parameter", inputs=same[-1:])
            self.known.put(tensor, same[-1])
            return same[-1]
        group, size = Group(written or NOWHERE), self.stores.bytes[seen.storage]
        used = None if on else Used(size, 0, size)
        return self._put_row(tensor, group, seen, "view" if on else "copy", used=used, operation="new", inputs=on[-1:])

    def _waited(self, group: Group, tensor: Any, seen: Seen) -> int:
        """Return a row of what a library made before anything stood for it."""
        if group.main is not None:
            return self._piece(group, tensor, group.main)
        group.main = self._put_row(tensor, group, seen, "copy", used=group.used)
        return group.main

    def _found(self, tensor: Any) -> tuple[int, int | None] | None:
        """Return the row of a tensor and its place among several; ``None`` where its data was put elsewhere since."""
        found = self.known.find(tensor)
        if found is None or (found[1] is None and self.rows[found[0]].storage != self.stores.index(tensor)):
            return None
        return found

    def _kind(self, tensor: Any, seen: Seen) -> str:
        if tensor is not None and self._found(tensor) is not None:
            return "same"
        return "view" if seen.storage in self.on else "copy"

    def _freed(self) -> None:
        gone = self.stores.gone()
        if gone:
            self._put({"e": "freed", "storages": gone})

    def _values(self, seen: Seen, layout: TensorLayout | None = None) -> list[Any]:
        most = limit("storage_cells_drawn") if self.left > 0 else _FEW
        values = self.stores.values(seen, min((layout or seen.layout).numel, most), layout)
        self.left -= len(values)
        return values

    def _put_row(self, tensor: Any, group: Group, seen: Seen, kind: str, **rest: Any) -> int:
        """Report the row that gave ``tensor``; its number."""
        number = self._row(group, seen, kind, **rest)
        self.known.put(tensor, number)
        return number

    def _row(
        self,
        group: Group,
        seen: Seen,
        kind: str,
        used: Used | None = None,
        kept: int | None = None,
        inputs: Sequence[int] | None = None,
        **rest: Any,
    ) -> int:
        """Report a row; its number."""
        number, used, text = len(self.rows), used or Used(), group.written
        if text.form == "binary" and group.inputs:
            before = self.rows[group.inputs[-1]].text.place
            if len(set(group.inputs)) == 1 and self.program.reflected(text.place, before):
                text = self.program.written(text.place, "right")
        seen.text, seen.kind = text, kind
        self.rows.append(seen)
        self.on.setdefault(seen.storage, []).append(number)
        cells = self.stores.cells(seen, limit("storage_cells_drawn") if self.left > 0 else _FEW)
        self.left -= len(cells)
        own = rest.get("operation") != "piece"
        self.emit(
            {
                "e": "row",
                "n": number,
                "kind": kind,
                **self._told(group, text, used),
                **({} if inputs is None else {"inputs": list(inputs)}),
                "layout": layout_of(seen),
                "storage": seen.storage,
                "storage_bytes": self.stores.bytes[seen.storage],
                "dtype": seen.dtype,
                "element_size": seen.item,
                "is_contiguous": seen.contiguous,
                "device": self.devices.marks.get(seen.storage, "cpu"),
                "asks_gradient": seen.asks,
                "values": self._values(seen),
                "storage_values": cells,
                "bytes_kept": used.kept if kept is None else kept,
                "moved": group.moved,
                "flops": group.flops if own else 0,
                "keeps": group.keeps[:64] if own else [],
                **rest,
            }
        )
        return number

    def _told(self, group: Group, text: CallText, used: Used) -> Event:
        """Return what is said of a call, torch's or one that it rejected."""
        return {
            "source": text.source[:4_000],
            "expression": text.expression[:4_000],
            "operation": self._operation(group),
            "form": text.form,
            "symbol": text.symbol,
            "line": text.line,
            "inputs": list(group.inputs),
            "args": group.args or [],
            "named": group.named or {},
            "bytes_asked": used.total,
            "bytes_peak": used.peak,
            "freed": used.freed[:64],
        }

    def _operation(self, group: Group) -> str:
        """Return what a group is called: by torch's function, or by the call of the program."""
        name = group.name
        if group.tag is not None and group.written.form != "binary":
            return group.written.name or name
        if group.written.symbol and name not in ("matmul", "__matmul__", "__setitem__"):
            return "update" if group.written.form == "write" else "elementwise"
        if name == "__getitem__" and _picks(group.args):
            return "picking"
        return _OPERATIONS.get(name, name)

    def _wrote(self, group: Group, wrote: Sequence[tuple[Seen, Any]], used: Used, main: int | None = None) -> int:
        """Return the rows of tensors that were written, each with the earlier ones that see it; the first of them."""
        for seen, target in wrote[: limit("tensor_pieces")]:
            number = self._one_write(group, seen, target, used, main)
            main, used = number if main is None else main, Used()
        return main or 0

    def _one_write(self, group: Group, seen: Seen, target: Any, used: Used, main: int | None) -> int:
        piece: Event = {} if main is None else {"operation": "piece", "inputs": [main]}
        what = self._reached(seen, target)
        return self._row(group, seen, "write", used=used, kept=0, **piece, **what)

    def _reached(self, seen: Seen, target: Any) -> Event:
        """Return the cells that a write reached, and the rows whose tensors see it. target: the cells, None for all."""
        nbytes, item, layout = self.stores.bytes[seen.storage], seen.item, seen.layout
        rows = [n for n in self.on.get(seen.storage, ()) if self.rows[n].kind not in ("write", "refused")]
        if nbytes > _LARGE_WRITE:  # cells are only counted
            taken = [size if step or not size else 1 for size, step in zip(layout.shape, layout.stride, strict=True)]
            counted = {"touched": prod(taken), "updates": layout.numel, "fullest": [layout.offset, 1]}
            return {"changed": rows, "after": [[] for _ in rows], **counted}
        counts = np.bincount(layout.cells() if target is None else target, minlength=nbytes // item)
        mark = counts > 0
        by_byte = np.zeros(nbytes, dtype=np.bool_)
        by_byte[: mark.size * item] = mark.repeat(item)
        changed: list[int] = []
        tensors: set[int] = set()
        for number in rows:
            row = self.rows[number]
            tensor, at = row.ref(), row.layout
            if tensor is not None and id(tensor) in tensors:
                continue
            by_item = by_byte[: nbytes // row.item * row.item].reshape(-1, row.item).any(axis=1)
            if at.numel and np.ndarray(at.shape, np.bool_, by_item, at.offset, at.stride).any():
                changed.append(number)
                tensors.add(id(tensor))
        alike = all(self.rows[number].dtype == seen.dtype for number in changed)
        return {
            "written": np.flatnonzero(mark)[: limit("storage_cells_drawn")].tolist(),
            "touched": int(mark.sum()),
            "changed": changed,
            "after": [
                self._values(seen, row.layout) if alike else self._values(replace(row, bits=(False, False)))
                for row in map(self.rows.__getitem__, changed)
            ],
            "updates": int(counts.sum()),
            "fullest": [int(counts.argmax()), int(counts.max())] if len(counts) else [0, 0],
        }

    def _piece(self, group: Group, tensor: Any, main: int) -> int:
        seen = self.stores.seen(tensor)
        return self._put_row(tensor, group, seen, self._kind(None, seen), operation="piece", inputs=[main])

    def _scopes(self, frame: FrameType | None) -> Iterator[dict[str, tuple[Callable[[], Any], int]]]:
        """Yield the names of the program and of its functions that run in ``frame``."""
        yield self.tops
        while frame is not None:
            if frame.f_code.co_filename == FILE and isinstance(frame.f_trace, Tag):
                yield frame.f_trace.names
            frame = frame.f_back

    def _standing(self, frame: FrameType | None) -> Iterator[tuple[str, Any, int]]:
        """Yield the names of the program and of its functions that run in ``frame``, each with its tensor and row."""
        for scope in self._scopes(frame):
            for name, (ref, row) in list(scope.items()):
                tensor = ref()
                known = None if tensor is None else self._found(tensor)
                if known is not None:
                    same = self.rows[row].same_as == self.stores.seen(tensor).same_as
                    yield name, tensor, row if same else known[0]

    def _names(self, frame: FrameType | None = None) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, tensor, row in self._standing(frame):
            found[name] = row
            if tensor.requires_grad and (tensor.is_leaf or tensor.retains_grad) and tensor.grad is not None:
                grad = self._found(tensor.grad)
                if grad is not None:
                    found[f"{name}.grad"] = grad[0]
        return found

    def _tell(self, frame: FrameType | None) -> None:
        names = self._names(frame)
        if names != self.said:
            self.said = names
            self.emit({"e": "names", "names": names})

    def _settle(self, frame: FrameType | None) -> None:
        """Report which names stand for which rows, and end the statement."""
        self._freed()
        self._tell(frame)
        self.since = len(self.rows)


def _picks(args: Any) -> bool:
    """Return whether square brackets hold a list, a mask or a tensor of places."""
    index = args[1] if args and len(args) > 1 else None
    items = index if isinstance(index, list) else [index]
    return any(
        isinstance(item, bool) or (isinstance(item, dict) and ("slot" in item or "list" in item)) for item in items
    )


def layout_of(seen: Seen) -> Event:
    return {"shape": list(seen.layout.shape), "stride": list(seen.layout.stride), "offset": seen.layout.offset}
