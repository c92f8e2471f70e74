# pyright: basic, reportPrivateUsage=false, reportPrivateImportUsage=false, reportOptionalMemberAccess=false
"""Calls of torch as a program makes them: run, measured, and put together where a library makes several."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

from core.limits import limit
from core.tensors.sealed.allocator import Used, account, flops_of
from core.tensors.sealed.large import NoValuesError, is_fake
from core.tensors.sealed.program import FILE, CallText, Place
from core.tensors.sealed.rows import Event, Group, Rows, Tag, layout_of
from core.tensors.sealed.tensors import encoded, tensors_in, touched

_PROPERTIES = frozenset(("T", "mT", "H", "mH", "real", "imag", "data"))
"""Properties of a tensor that give one."""

_UNSEEN = frozenset(
    (
        *("size", "stride", "dim", "numel", "__len__", "is_complex", "is_floating_point", "storage_offset", "item"),
        *("tolist", "__bool__", "__repr__", "__format__", "__hash__", "untyped_storage", "data_ptr", "__float__"),
        *("element_size", "nelement", "is_contiguous", "__int__", "__index__", "allclose", "equal", "__contains__"),
        *("_set_grad_enabled", "set_grad_enabled", "_record_function_enter_new", "_record_function_exit", "__set__"),
        *("__array__", "retain_grad", "register_hook", "is_tensor", "get_device", "is_same_size", "__delete__"),
        "_record_function_exit._RecordFunction",
    )
)
"""Calls that are run without a look: they give no tensor, and write into none."""

_RESTRIDES = frozenset(
    (
        *("t_", "transpose_", "swapaxes_", "swapdims_", "squeeze_", "unsqueeze_", "resize_", "resize_as_"),
        *("as_strided_", "set_", "detach_", "requires_grad_", "rename_", "data"),
    )
)
"""Calls in place that write no cell: they give a tensor other sizes and strides, or another place in the graph."""

_VALUED = frozenset(
    ("item", "tolist", "__bool__", "__float__", "__int__", "__index__", "__array__", "allclose", "equal")
)
"""Calls that take values out of a tensor."""

_UNWRITTEN = frozenset(("empty", "empty_like", "new_empty", "empty_strided", "empty_permuted"))
"""What gives memory as it is: zeros here, so that every run shows the same."""


@dataclass(eq=False, slots=True)
class _Update:
    """``x[0] += 1`` between reading and writing back. part: what was read; base: ``x``; cells: those of the part."""

    part: Callable[[], Any]
    base: Callable[[], Any]
    cells: Any
    is_view: bool
    events: list[Any]


class Calls(Rows):
    """Watches the calls of one program."""

    def call(self, function: Any, args: Sequence[Any], named: Mapping[str, Any], frame: FrameType | None) -> Any:
        """Run a call that torch reports, and report what it did."""
        name = str(getattr(function, "__name__", ""))
        if name == "__get__":
            name = str(getattr(getattr(function, "__self__", None), "__name__", ""))
            if name in ("device", "is_cuda"):
                device = self.torch.device(self.devices.of(args[0]))
                return device if name == "device" else device.type == "cuda"
            if name not in _PROPERTIES:
                return function(*args, **named)
        elif name == "get_device":
            return -1 if self.devices.of(args[0]) == "cpu" else 0
        if name in _UNSEEN:
            return self._unseen(function, name, args, named, frame)
        found = self._where(function, frame)
        if found is None:
            return function(*args, **named)
        place = self.program.updated.get(found[0])
        if place is not None and name == "__getitem__":
            return self._read_to_update(place, function, args)
        group = self._group(*found, name)
        taken = list(tensors_in([args, dict(named)]))
        update = self.updates.pop(place or found[0], None)
        if update is not None and taken:
            group.events += update.events
            if place is not None and update.is_view:  # written already; Python puts it back
                return function(*args, **named)
            if place is None:
                taken[0] = update.base()
            else:
                taken = [item for item in taken if item is not update.part()]
        for item in taken:
            inner = any(seen.ref() is item for seen in group.made)
            if group.tag is not None and (inner or self.stores.index(item) >= group.stored):
                continue  # the library's own
            number = self._through(group.written.owner, item) if item is taken[0] else self._row_of(item)
            if group.tag is None or number not in group.inputs:
                group.inputs.append(number)
        before = [(item, self._version(item)) for item in taken]
        target = None
        with suppress(Exception):  # what is wrong with the arguments torch says of the operation itself
            if name.endswith("_"):
                target = touched(self.torch, name, args, named, self.stores.seen(args[0]).layout)
            if update is not None and place is None:
                target = update.cells
        graded = self._graded(args) if name == "backward" else []
        self.masks = [mask for item in tensors_in(args) for mask in self.stores.convolutions(item)] if graded else []
        run, device, moves = self.devices.rewritten(function, name, args, named, taken)
        self.torch.autograd._enable_profiler_legacy(self.profiler)
        try:
            if clash := self.devices.clash(name, taken):
                raise RuntimeError(clash)
            result = self.fakes.run(run, function, taken, args, named)
        except BaseException as problem:
            self._profiled(group)
            if group.args is None:
                self._arguments(group, args, named)
            self.refused = problem, self._refusal(group)
            raise
        self._profiled(group, result)
        for item in tensors_in(result):
            self.devices.mark(item, device)
        if moves:
            group.moved += result.numel() * result.element_size()
        if name in _UNWRITTEN and hasattr(result, "untyped_storage") and not is_fake(result):
            result.untyped_storage().fill_(0)
        if group.args is None:
            self._arguments(group, args, named)
        if update is not None and place is None:
            self.updates[found[0]] = replace(update, events=[] if update.is_view else group.events)
            if not update.is_view:
                return result
            args = (update.base(), *args[1:])
        self._done(group, name, args, result, before, target)
        if name == "backward":
            self._backward(group, args[0] if args else None, graded)
        elif group.tag is None:
            self._close(group, list(tensors_in(result)), isinstance(result, tuple | list))
        self.devices.grew()
        return result

    def fit(self, function: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Run a call that is not reported, without memory if its result would not fit."""
        self.torch.autograd._enable_profiler_legacy(self.profiler)
        try:
            taken = list(tensors_in([args, dict(named)]))
            return self.fakes.run(lambda: function(*args, **named), function, taken, args, named)
        finally:
            self.torch.autograd._disable_profiler_legacy()

    def _unseen(
        self, function: Any, name: str, args: Sequence[Any], named: Mapping[str, Any], frame: FrameType | None
    ) -> Any:
        """Run a call that is looked at only where torch rejects it."""
        try:
            if name in _VALUED and any(is_fake(item) for item in tensors_in([args])):
                raise NoValuesError
            return function(*args, **named)
        except Exception as problem:
            found = self._where(function, frame)
            if found is not None and found[1] is None and not isinstance(problem, NoValuesError):
                group = self._group(*found, name)
                group.inputs = [self._row_of(item) for item in tensors_in([args])]
                self._arguments(group, args, named)
                self.refused = problem, self._refusal(group)
            raise

    def _read_to_update(self, place: Place, function: Any, args: Sequence[Any]) -> Any:
        """Return square brackets on the left of ``+=``: a read that the update itself accounts for."""
        self.close()
        base = self.stores.seen(args[0])
        with suppress(Exception):
            self._row_of(args[0])
        cells = None
        with suppress(Exception):
            cells = touched(self.torch, "__setitem__", args, {}, base.layout)
        self.torch.autograd._enable_profiler_legacy(self.profiler)
        try:
            part = function(*args)
        finally:
            events = self._events()
        is_view = self.stores.index(part) == base.storage
        self.updates[place] = _Update(weakref.ref(part), base.ref, cells, is_view, events)
        return part

    def _events(self) -> list[Any]:
        """Return what the profiler saw."""
        return [event for thread in self.torch.autograd._disable_profiler_legacy() for event in thread]

    def _profiled(self, group: Group, result: Any = None) -> None:
        events = self._events()
        out = tuple(result.shape) if hasattr(result, "untyped_storage") else None
        group.events += events
        if group.tag is not None:
            alive = {seen.storage for seen in group.made if not self.stores.refs[seen.storage].expired()}
            group.add(account(events), sum(self.stores.bytes[number] for number in alive))
        with suppress(Exception):  # shapes that a formula of torch does not take
            group.flops += flops_of(self.torch, events, out, self.masks)

    def _where(self, function: Any, frame: FrameType | None) -> tuple[Place, Tag | None] | None:
        """Return the place in the program that a call comes from, and the tag of the library's call around it."""
        code = getattr(function, "__code__", None)
        library: FrameType | None = None
        while frame is not None and frame.f_code.co_filename != FILE:
            own = frame.f_code is code or frame.f_code.co_filename.endswith(_OWN)
            if not own or isinstance(frame.f_trace, Tag):
                library = frame
            frame = frame.f_back
        if frame is None:
            return None
        place = self.program.place(frame.f_code, frame.f_lasti)
        if place not in self.program.nodes:
            return None
        self.scope = frame.f_trace.names if isinstance(frame.f_trace, Tag) else self.tops
        if library is None:
            return place, None
        if not isinstance(library.f_trace, Tag):
            library.f_trace = Tag()
        return place, library.f_trace  # pyright: ignore[reportReturnType]

    def _group(self, place: Place, tag: Tag | None, name: str) -> Group:
        group = self.group
        if group is not None and tag is not None and group.tag is tag:
            return group
        self.close()
        self._freed()
        written = self.program.written(place, "=" if name == "__setitem__" else "")
        group = Group(written, tag, name, len(self.stores.refs))
        self.group = group if tag is not None else None
        return group

    def _arguments(self, group: Group, args: Sequence[Any], named: Mapping[str, Any]) -> None:
        def slot(item: Any) -> int:
            found = self._found(item)
            return group.inputs.index(found[0]) if found is not None and found[0] in group.inputs else 0

        group.args = [encoded(item, slot) for item in args]
        group.named = {str(key): encoded(value, slot) for key, value in named.items()}

    def _version(self, tensor: Any) -> int:
        try:
            return tensor._version
        except RuntimeError:  # made under inference_mode
            return -1

    def _done(
        self,
        group: Group,
        name: str,
        args: Sequence[Any],
        result: Any,
        before: Sequence[tuple[Any, int]],
        target: Any,
    ) -> None:
        writes = name not in _RESTRIDES
        written = [item for item, version in before if self._version(item) != version and writes]
        if not written and writes and name.endswith("_") and args and hasattr(args[0], "untyped_storage"):
            untracked = self._version(args[0]) < 0
            written = [args[0]] if untracked or name == "__setitem__" else []
        for item in written:
            seen = self.stores.seen(item)
            if group.tag is not None and seen.storage >= group.stored:
                continue
            group.wrote.setdefault(seen.same_as, (seen, target if args and item is args[0] else None))
        for item in tensors_in(result):
            given = any(item is other for other, _ in before)
            if not given or group.tag is None or self.stores.index(item) < group.stored:
                group.last = weakref.ref(item)
            if group.tag is not None and not given:
                group.made.append(self.stores.seen(item))
            group.keeps += self.stores.keeps(item)

    def close(self, bound: Sequence[Any] = ()) -> None:
        """End what a library's function did: its results are the tensors that still live."""
        group, self.group = self.group, None
        if group is not None:
            alive = {id(item): item for seen in group.made if (item := seen.ref()) is not None}
            last = group.last()
            results = [item for item in alive.values() if self._found(item) is None and item is not last]
            if last is not None and (self._found(last) is None or not (results or group.wrote)):
                results.insert(0, last)
                group.returned = True
            results = list({self.stores.index(item): item for item in reversed(results)}.values())[::-1]
            if results or group.wrote:
                self._close(group, results, False)
            elif group.made:
                self.waiting.append(group)
        for tensor in bound if self.waiting else ():
            self._row_of(tensor)
        self.waiting = [] if bound else self.waiting

    def _close(self, group: Group, results: Sequence[Any], several: bool) -> None:
        """Report the rows of a call: its result, other tensors that it made, and what it wrote."""
        used = group.used
        wrote = sorted(group.wrote.values(), key=lambda item: not item[0].asks)
        written = {seen.storage for seen, _ in wrote}
        fresh = [item for item in results if self.stores.index(item) not in written]
        if wrote and (not fresh or (group.tag is not None and not group.returned)):
            number = self._wrote(group, wrote, used)
            for item in fresh:
                self._piece(group, item, number)
            return
        if not results:
            return
        pick = self.program.picked(group.written) if several else group.written
        at = _place_of_pick(pick.pick, results)
        main = fresh[0] if fresh else results[0]
        if at is not None:
            main, group.written = results[at], pick
        seen = self.stores.seen(main)
        kind = self._kind(main, seen)
        pieces: list[Any] = []
        together = [item for item in map(self.stores.seen, results) if item.storage == seen.storage]
        if several and (len(together) > 1 or len(results) == 1):
            pieces = [
                [layout_of(item), item.contiguous, self._values(item)] for item in together[: limit("tensor_pieces")]
            ]
        made = {self.stores.index(item) for item in (results if at is None else [main])}
        kept = sum(self.stores.bytes[n] for n in made - self.on.keys())
        number = self._row(group, seen, kind, used=used, kept=kept, pieces=pieces, picked=at)
        for place, item in enumerate(results):
            if several and place != at:
                self.known.put(item, number, place)
            elif item is main:
                self.known.put(item, number)
            else:
                self._piece(group, item, number)
        for item, target in wrote:
            self._wrote(group, [(item, target)], Used(), number)

    def _graded(self, args: Sequence[Any]) -> list[tuple[Any, Any, int]]:
        """Return leaves, and tensors that retain a gradient, with the one that they have."""
        found = {id(leaf): leaf for tensor in tensors_in(args) for leaf in self.stores.leaves(tensor)}
        found |= {id(item): item for item, _ in self.known.living() if item.retains_grad}
        return [(leaf, leaf.grad, -1 if leaf.grad is None else leaf.grad._version) for leaf in found.values()]

    def _backward(self, group: Group, loss: Any, graded: Sequence[tuple[Any, Any, int]]) -> None:
        """Report a row of ``backward``, and one for each gradient that it left or added to."""
        if loss is None:
            return
        new = [leaf.grad for leaf, old, _ in graded if leaf.grad is not None and leaf.grad is not old]
        kept = sum(self.stores.bytes[number] for number in {self.stores.index(grad) for grad in new} - self.on.keys())
        group.inputs = group.inputs[:1]
        self._row(group, self.stores.seen(loss), "same", used=group.used, kept=kept, operation="backward")
        self._freed()
        names = {id(tensor): name for name, tensor, _ in self._standing(sys._getframe(3))}
        graded = sorted(graded, key=lambda item: self._row_of(item[0]))
        for leaf, _, _ in graded:
            if leaf.grad is not None:
                self.devices.mark(leaf.grad, self.devices.of(leaf))
        for leaf, old, version in graded[: 4 * limit("tensor_pieces")]:
            grad = leaf.grad
            if grad is None or (grad is old and grad._version == version):
                continue
            row = self._row_of(leaf)
            name = f"{names.get(id(leaf)) or self.rows[row].text.expression[:40]}.grad"
            text = CallText(name, group.written.expression, "grad", group.written.line, name)
            seen = self.stores.seen(grad)
            if grad is old:
                added = Group(text, name="gradient", inputs=[self._row_of(grad)])
                number = self._one_write(added, seen, None, Used(), None)
            else:
                kind = self._kind(None, seen)
                number = self._put_row(grad, Group(text), seen, kind, operation="gradient", inputs=[row])
            self._name(number, name)

    def _name(self, number: int, name: str) -> None:
        """Give a row its name."""
        self.rows[number].name = name
        self.emit({"e": "name", "n": number, "name": name})

    def _refusal(self, group: Group) -> Event:
        """Return what is known of a call that torch rejected, to be reported where its error ends the program."""
        return {"e": "refused", **self._told(group, group.written, group.used)}

    def _refuse(self) -> None:
        """Report the call that torch rejected."""
        if self.refused is not None:
            self.emit(self.refused[1])
            self.refused = None


_OWN = ("torch/overrides.py", "torch/_tensor.py", *(f"sealed/{name}.py" for name in ("recorder", "calls", "rows")))
"""Files whose frames lie between a call of torch and what it calls."""


def _place_of_pick(pick: int | str | None, results: Sequence[Any]) -> int | None:
    """Return which of several results is taken at once; ``None`` where all may be."""
    if isinstance(pick, str):
        pick = {"values": 0, "indices": 1}.get(pick)
    return pick % len(results) if pick is not None and -len(results) <= pick < len(results) else None
