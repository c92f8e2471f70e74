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
from core.tensors.sealed.program import FILE, CallText, Place, Program
from core.tensors.sealed.tensors import Known, Seen, Stores

_MOST_ROWS = 1_000
"""Calls that are reported in full."""

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
    """What a frame is recognised by: it is set as ``f_trace``, which Python ignores while nothing traces.

    names: of a frame of the program, what its local names stand for.
    """

    def __init__(self) -> None:
        self.names: dict[str, tuple[Callable[[], Any], int]] = {}

    def __call__(self, *_: object) -> None:
        return None


@dataclass(eq=False, slots=True)
class Group:
    """What one call of the program makes torch do: a single call of torch, or all those of a library's function.

    first: the row that is next when it begins; stored: as many storages were seen by then.
    """

    tag: Tag | None
    written: CallText
    callers: list[int]
    first: int
    stored: int = 0
    inputs: list[int] = field(default_factory=list[int])
    made: list[Seen] = field(default_factory=list[Seen])
    wrote: dict[tuple[int, TensorLayout, str], tuple[Seen, Any]] = field(
        default_factory=dict[tuple[int, TensorLayout, str], tuple[Seen, Any]]
    )
    inner: list[str] = field(default_factory=list[str])
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
        self.written: list[tuple[CallText, str]] = []
        """How each row is written, and its kind."""
        self.named: list[str] = []
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
        self.args: Any = None
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
        """The row that gave ``tensor``, a new one where none did, or for one of several. name: what it is bound to."""
        found = self._found(tensor)
        if found is None:
            return self._adopt(tensor)
        number, pick = found
        if pick is None:
            return number
        seen = self.stores.seen(tensor)
        same = seen.storage == self.rows[number].storage
        kind = "same" if same else "view" if seen.storage in self._earlier() else "copy"
        whole = self.written[number][0]
        text = CallText(name or f"[{pick}]", f"{whole.expression}[{pick}]", "piece", whole.line)
        given = Group(None, text, [], len(self.rows))
        number = self._row(given, seen, kind, operation="piece", inputs=[number], picked=pick)
        self.known.put(tensor, number)
        return number

    def _through(self, owner: str, tensor: Any) -> int:
        """The row of a tensor by the name that a call is written with, where that stands for it."""
        number = self._row_of(tensor)
        ref, row = self.scope.get(owner, (None, 0))
        return row if ref is not None and ref() is tensor and self.known.find(tensor) == (number, None) else number

    def _adopt(self, tensor: Any, written: CallText | None = None, alone: bool = False) -> int:
        """A row for a tensor that no call gave, such as a parameter: that of the same cells, or a new one."""
        seen = self.stores.seen(tensor)
        for group in self.waiting:
            if any(made.storage == seen.storage for made in group.made):
                return self._waited(group, tensor, seen)
        same = [number for number, row in enumerate(self.rows) if row.same_as == seen.same_as]
        is_parameter = alone and written is not None and type(tensor).__name__ == "Parameter"
        if same and is_parameter and written is not None and "Parameter(" in written.source:
            given = Group(None, written, [], len(self.rows))
            number = self._row(given, seen, "view", operation="Parameter", inputs=same[-1:])
            self.known.put(tensor, number)
            return number
        if same:
            self.known.put(tensor, same[-1])
            return same[-1]
        on = [number for number, row in enumerate(self.rows) if row.storage == seen.storage]
        given = Group(None, written or CallText("", "", "name", 0), [], len(self.rows))
        number = self._row(given, seen, "view" if on else "copy", operation="new", inputs=on[-1:])
        self.known.put(tensor, number)
        return number

    def _waited(self, group: Group, tensor: Any, seen: Seen) -> int:
        """A row of what a library made before anything stood for it."""
        if group.main is not None:
            return self._piece(group, tensor, group.main)
        used = group.used
        group.main = self._row(group, seen, "copy", used=used, kept=used.kept)
        self.known.put(tensor, group.main)
        return group.main

    def _found(self, tensor: Any) -> tuple[int, int | None] | None:
        """The row of a tensor and its place among several; ``None`` where its data was put elsewhere since."""
        found = self.known.find(tensor)
        if found is None or (found[1] is None and self.rows[found[0]].storage != self.stores.index(tensor)):
            return None
        return found

    def _is_known(self, tensor: Any) -> bool:
        return self._found(tensor) is not None

    def _earlier(self) -> set[int]:
        return {row.storage for row in self.rows}

    def _kind(self, group: Group, tensor: Any, seen: Seen) -> str:
        if self._is_known(tensor):
            return "same"
        return "view" if seen.storage in self._earlier() else "copy"

    def _freed(self) -> None:
        gone = self.stores.gone()
        if gone:
            self._put({"e": "freed", "storages": gone})

    def _values(self, seen: Seen, layout: TensorLayout | None = None) -> list[Any]:
        most = limit("storage_cells_drawn") if self.left > 0 else _FEW
        values = self.stores.values(seen, min((layout or seen.layout).numel, most), layout)
        self.left -= len(values)
        return values

    def _row(
        self,
        group: Group,
        seen: Seen,
        kind: str,
        used: Any = None,
        kept: int | None = None,
        operation: str = "",
        inputs: Sequence[int] | None = None,
        picked: int | None = None,
        **rest: Any,
    ) -> int:
        """Report a row; its number."""
        number = len(self.rows)
        used = used or Used()
        written = group.written
        cells = self.stores.cells(seen, limit("storage_cells_drawn") if self.left > 0 else _FEW)
        self.left -= len(cells)
        self.rows.append(seen)
        self.named.append("")
        if written.form == "binary" and group.inputs:
            before = self.written[group.inputs[-1]][0].place
            reflected = len(set(group.inputs)) == 1 and self.program.reflected(written.place, before)
            written = self.program.written(written.place, "right") if reflected else written
        self.written.append((written, kind))
        if number >= _MOST_ROWS:
            return number
        self.emit(
            {
                "e": "row",
                "n": number,
                "kind": kind,
                "source": written.source,
                "expression": written.expression,
                "op": operation or self._operation(group),
                "form": written.form,
                "symbol": written.symbol,
                "line": written.line,
                "callers": group.callers[:8],
                "at": list(written.at),
                "inputs": list(group.inputs if inputs is None else inputs),
                "picked": picked,
                **layout_of(seen),
                "storage": seen.storage,
                "dtype": seen.dtype,
                "item": seen.item,
                "contiguous": seen.contiguous,
                "bytes": self.stores.bytes[seen.storage],
                "device": self.devices.marks.get(seen.storage, "cpu"),
                "moved": group.moved,
                "asks": seen.asks,
                "values": self._values(seen),
                "cells": cells,
                "total": used.total,
                "peak": used.peak,
                "kept": used.kept if kept is None else kept,
                "freed": [list(block) for block in used.freed[:64]],
                "flops": 0 if inputs else group.flops,
                "keeps": [] if inputs else [list(item) for item in group.keeps[:64]],
                "args": group.args or [],
                "named": group.named or {},
                "inner": group.inner[:64],
                **rest,
            }
        )
        return number

    def _operation(self, group: Group) -> str:
        """What a group is called: by torch's function, or by the call of the program."""
        name = group.inner[0] if group.inner else ""
        if group.tag is not None and group.written.form != "binary":
            return group.written.name or name
        if group.written.symbol and name not in ("matmul", "__matmul__", "__setitem__"):
            return "update" if group.written.form == "write" else "elementwise"
        if name == "__getitem__" and _picks(group.args):
            return "picking"
        return _OPERATIONS.get(name, name)

    def _wrote(self, group: Group, wrote: Sequence[tuple[Seen, Any]], used: Any, main: int | None = None) -> int:
        """Rows of tensors that were written, each with the earlier ones that see it; the first of them."""
        for seen, target in wrote[: limit("tensor_pieces")]:
            number = self._one_write(group, seen, target, used, main)
            main = number if main is None else main
            used = Used()
        return main or 0

    def _one_write(self, group: Group, seen: Seen, target: Any, used: Any, main: int | None) -> int:
        nbytes, item = self.stores.bytes[seen.storage], seen.item
        if nbytes > _LARGE_WRITE:
            return self._write_row(group, seen, used, main, **self._large_write(seen))
        counts = np.bincount(seen.layout.cells() if target is None else target, minlength=nbytes // item)
        mark = counts > 0
        by_byte = np.zeros(nbytes, dtype=np.bool_)
        by_byte[: mark.size * item] = mark.repeat(item)
        changed: list[int] = []
        tensors: set[int] = set()
        for number, row in enumerate(self.rows):
            if row.storage != seen.storage or self.written[number][1] in ("write", "refused"):
                continue
            tensor = row.ref()
            if tensor is not None and id(tensor) in tensors:
                continue
            by_item = by_byte[: nbytes // row.item * row.item].reshape(-1, row.item).any(axis=1)
            if (
                row.layout.numel
                and np.ndarray(row.layout.shape, np.bool_, by_item, row.layout.offset, row.layout.stride).any()
            ):
                changed.append(number)
                tensors.add(id(tensor))
        fullest = (int(counts.argmax()), int(counts.max())) if len(counts) else (0, 0)
        return self._write_row(
            group,
            seen,
            used,
            main,
            written=np.flatnonzero(mark)[: limit("storage_cells_drawn")].tolist(),
            touched=int(mark.sum()),
            changed=changed,
            after=[self._values(seen, self.rows[number].layout) for number in changed]
            if all(self.rows[number].dtype == seen.dtype for number in changed)
            else [self._values(replace(self.rows[number], bits=(False, False))) for number in changed],
            updates=int(counts.sum()),
            fullest=list(fullest),
        )

    def _write_row(self, group: Group, seen: Seen, used: Any, main: int | None, **what: Any) -> int:
        operation, inputs = ("", None) if main is None else ("piece", [main])
        return self._row(group, seen, "write", used=used, kept=0, operation=operation, inputs=inputs, **what)

    def _large_write(self, seen: Seen) -> Event:
        """Of a write whose cells are only counted."""
        rows = [number for number, row in enumerate(self.rows) if row.storage == seen.storage]
        changed = [number for number in rows if self.written[number][1] not in ("write", "refused")]
        taken = [
            size if step or not size else 1 for size, step in zip(seen.layout.shape, seen.layout.stride, strict=True)
        ]
        counts = {"touched": prod(taken), "updates": seen.layout.numel, "fullest": [seen.layout.offset, 1]}
        return {"changed": changed, "after": [[] for _ in changed], **counts}

    def _piece(self, group: Group, tensor: Any, main: int) -> int:
        seen = self.stores.seen(tensor)
        kind = "view" if seen.storage in self._earlier() else "copy"
        number = self._row(group, seen, kind, operation="piece", inputs=[main])
        self.known.put(tensor, number)
        return number

    def _scopes(self, frame: FrameType | None) -> Iterator[dict[str, tuple[Callable[[], Any], int]]]:
        """The names of the program and of its functions that run in ``frame``."""
        yield self.tops
        while frame is not None:
            if frame.f_code.co_filename == FILE and isinstance(frame.f_trace, Tag):
                yield frame.f_trace.names
            frame = frame.f_back

    def _standing(self, frame: FrameType | None) -> Iterator[tuple[str, Any, int]]:
        """Names of the program and of its functions that run in ``frame``, each with its tensor and row."""
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
    """Whether square brackets hold a list, a mask or a tensor of places."""
    index = args[1] if args and len(args) > 1 else None
    items = index if isinstance(index, list) else [index]
    return any(
        isinstance(item, bool) or (isinstance(item, dict) and ("slot" in item or "list" in item)) for item in items
    )


def layout_of(seen: Seen) -> Event:
    return {"shape": list(seen.layout.shape), "stride": list(seen.layout.stride), "offset": seen.layout.offset}
