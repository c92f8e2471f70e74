# pyright: basic, reportPrivateUsage=false, reportPrivateImportUsage=false, reportOptionalMemberAccess=false
"""Runs a program on torch and reports what every call did: layouts, storages, bytes, FLOPs, gradients.

``TorchFunctionMode`` sees calls as they are written. torch's allocator of the CPU reports each block that it hands out
or takes back to the profiler of the thread, which runs during every call and at no other time, so that what the
recorder itself allocates is not counted. Storages are followed by weak references: they live exactly as long as Python
and autograd let them. A mode on what runs inside calls would be no observer: it changes torch's path through products.
"""

from __future__ import annotations

import gc
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

from core.tensors.sealed.allocator import Used
from core.tensors.sealed.calls import Calls
from core.tensors.sealed.devices import replaced
from core.tensors.sealed.large import is_fake
from core.tensors.sealed.loops import MOST_ROWS
from core.tensors.sealed.namespace import in_place_of, namespace
from core.tensors.sealed.program import ASIDE, BIND, CAUGHT, FILE, SAY, SHOW, SPLIT, TEST, TURN, CallText, Program
from core.tensors.sealed.rows import Event, Group, Tag
from core.tensors.sealed.tensors import encoded, tensors_in

_MOST_CHARS = 20_000
"""Characters that a program may print."""


class Recorder(Calls):
    """One run of one program, with its marks."""

    def watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of einops, with its arguments noted."""

        def noted(*args: Any, **named: Any) -> Any:
            frame = sys._getframe(1)
            if frame.f_code.co_filename != FILE or self.torch._C._len_torch_function_stack() == 0:
                return function(*args, **named)
            with self.torch._C.DisableTorchFunction():
                self.close()
                self._freed()
                place = self.program.place(frame.f_code, frame.f_lasti)
                tensors = [self._row_of(item) for item in tensors_in([args])]
                rest = [encoded(item, lambda _: 0) for item in args]
                given = {str(key): encoded(value, lambda _: 0) for key, value in named.items()}
                tag = Tag()
                sys._getframe(0).f_trace = tag
                written = replace(self.program.written(place), form="bare", name=function.__name__)
                self.group = Group(written, tag, inputs=tensors, args=rest, named=given)
            try:
                return function(*args, **named)
            except Exception as problem:
                group = self.group
                if group is not None and (self.refused is None or self.refused[0] is not problem):
                    self.refused = problem, self._refusal(group)
                raise

        return noted

    def _tag(self, frame: FrameType) -> dict[str, Any]:
        """Where the names of a frame of the program are kept."""
        if frame.f_code.co_name == "<module>":
            return self.tops
        if not isinstance(frame.f_trace, Tag):
            frame.f_trace = Tag()
        return frame.f_trace.names  # pyright: ignore[reportReturnType, reportOptionalMemberAccess]

    def bind(
        self,
        line: int,
        names: Mapping[str, Any],
        value: str = "",
        role: str = "",
        gone: Sequence[str] = (),
    ) -> None:
        """Mark the end of a statement that binds names."""
        frame = sys._getframe(1)
        with self.torch._C.DisableTorchFunction():
            self.asides.clear()
            inside = {name: list(_named_tensors(item, name)) for name, item in names.items()}
            self.close([tensor for found in inside.values() for _, tensor in found])
            kept = self._tag(frame)
            for name in (*names, *gone):
                for old in [key for key in kept if key == name or key.startswith((f"{name}.", f"{name}["))]:
                    del kept[old]
            for name, item in names.items():
                plain = isinstance(item, int | float | str | tuple | list | _kinds(self.torch)) and not inside[name]
                if plain and value and role == "" and kept is self.tops and item != []:
                    self.emit({"e": "fact", "line": line, "text": name, "value": self._text(item), "holds": None})
                if isinstance(item, self.torch.optim.Optimizer):
                    self.optimizers[name] = weakref.ref(item)
                for full, tensor in inside[name]:
                    number = self._bound(line, full, tensor, value, role)
                    kept[full] = weakref.ref(tensor), number
                if len(names) > 1:
                    self._tell(frame)
            self._settle(frame)

    def _bound(self, line: int, name: str, tensor: Any, value: str, role: str) -> int:
        """Name the row of a tensor, or make one of a second name; the row that the name stands for."""
        found = self._found(tensor)
        if found is None:
            number = self._adopt(tensor, CallText(value, value, "name", line) if value else None, role == "")
        else:
            number = self._row_of(tensor, name)
        if number >= self.since and not self.rows[number].name and role != "parameter":
            self._name(number, name)
        elif value and role == "name" and "." not in name:
            return self._alias(line, name, tensor, f"{name} = {value}")
        return number

    def _alias(self, line: int, name: str, tensor: Any, text: str) -> int:
        """Return a row of a name for a tensor that is there, or of a line that only shows it."""
        given, inputs = Group(CallText(text, text, "name", line)), [self._row_of(tensor)]
        number = self._row(given, self.stores.seen(tensor), "same", operation="name", inputs=inputs)
        if name:
            self._name(number, name)
        return number

    def turn(self, line: int, ends: bool) -> None:
        """Mark the start of a loop iteration, or the end of the loop."""
        frame = sys._getframe(1)
        with self.torch._C.DisableTorchFunction():
            self.asides.clear()
            self.close()
            self._settle(frame)
            self._turn((id(frame), line), ends)
            self.since = len(self.rows)

    def show(self, line: int, text: str, value: Any) -> None:
        """Mark a line that is an expression."""
        frame = sys._getframe(1)
        with self.torch._C.DisableTorchFunction():
            self.asides.clear()
            self.close(list(tensors_in(value)))
            if hasattr(value, "untyped_storage"):
                number = self._row_of(value)
                last = number == len(self.rows) - 1
                shown = self.since < len(self.rows) and self.rows[-1].same_as == self.stores.seen(value).same_as
                if number < self.since and not shown and not (last and text.isidentifier()):
                    self._alias(line, "", value, text)
            elif isinstance(value, tuple | list) and any(True for _ in tensors_in(value)):
                for tensor in tensors_in(value):
                    if self._row_of(tensor) < self.since:
                        self._alias(line, "", tensor, text)
            elif isinstance(value, int | float | str | complex | tuple | list | dict | _kinds(self.torch)):
                self.emit({"e": "fact", "line": line, "text": text, "value": self._text(value), "holds": None})
            self._settle(frame)

    def caught(self, name: str) -> None:
        """Mark the start of an ``except`` block."""
        with self.torch._C.DisableTorchFunction():
            self.asides.clear()
            problem = sys.exc_info()[1]
            if problem is None:
                return
            self.close()
            if self.refused is not None and self.refused[0] is problem:
                self._refuse()
            told = _told(problem, self.program)
            self.emit({"e": "caught", "name": name, **told})
            self._settle(sys._getframe(1))

    def aside(self) -> int:
        """Begin a question: its calls are no part of the program, unless one writes or fails."""
        with self.torch._C.DisableTorchFunction():
            self.close()
            self._freed()
        self.asides.append((len(self.rows), []))
        return len(self.rows)

    def _answered(self) -> None:
        self.close()
        if not self.asides:
            return
        start, events = self.asides.pop()
        if any(event["e"] == "row" and event["kind"] == "write" for event in events):
            for event in events:
                self.emit(event)
            return
        del self.rows[start:]
        self.on = {at: kept for at, rows in self.on.items() if (kept := [row for row in rows if row < start])}
        self.known.forget(start)

    def test(self, line: int, text: str, _: int, compare: Callable[..., Any], *values: Any) -> Any:
        """Return a mark around the test of an assertion. compare: of one value, or of two."""
        holds = compare(*values)
        with self.torch._C.DisableTorchFunction():
            truth = bool(holds)
            self._answered()
            why = self._text(values[0]) if len(values) > 1 and not truth else ""
            self.emit({"e": "fact", "line": line, "text": f"assert {text}", "value": why, "holds": truth})
        return holds

    def say(self, line: int, text: str, _: int, *values: Any, sep: str = " ", end: str = "\n", **__: Any) -> None:
        """Mark a call of ``print``."""
        with self.torch._C.DisableTorchFunction():
            said = (sep or " ").join(map(self._said, values)) + (end or "")
            self._answered()
            self.print(line, text, said)

    def print(self, line: int, text: str, said: str) -> None:
        if self.printed < _MOST_CHARS:
            cut = said[: _MOST_CHARS - self.printed]
            self.emit({"e": "print", "line": line, "text": text[:400], "value": cut, "cut": len(cut) < len(said)})
        self.printed += len(said)

    def _said(self, value: Any) -> str:
        """Return a value as torch prints it, with the device that it counts for."""
        if not hasattr(value, "untyped_storage"):
            return str(value)
        if is_fake(value):
            return f"tensor(…, size={tuple(value.shape)}, dtype={value.dtype})"
        device, text = self.devices.of(value), str(value)
        if device == "cpu" or not text.endswith(")"):
            return text
        at = min(found for mark in _SUFFIXES if (found := text.rfind(mark)) > 0)
        return f"{text[:at]}, device='{device}'{text[at:]}"

    def _text(self, value: Any) -> str:
        try:
            return repr(value)[:2_000]
        except Exception as problem:  # of a class of the program
            return f"({type(problem).__name__})"

    def marks(self) -> dict[str, Any]:
        def printed(*values: Any, sep: str = " ", end: str = "\n", **_: Any) -> None:
            with self.torch._C.DisableTorchFunction():
                said = (sep or " ").join(map(self._said, values)) + (end or "")
                self.print(sys._getframe(1).f_lineno, "print", said)

        return {
            BIND: self.bind,
            SHOW: self.show,
            SAY: self.say,
            TEST: self.test,
            ASIDE: self.aside,
            CAUGHT: self.caught,
            TURN: self.turn,
            **dict.fromkeys(("print", "display", "text"), printed),
        }

    def given(self, names: Mapping[str, Any]) -> None:
        """Report the tensors that a program is given, starting with ``x``."""
        for name, value in sorted(names.items(), key=lambda item: item[0] != "x"):
            for full, tensor in _named_tensors(value, name):
                kind = "start" if name == "x" and not self.rows else "copy"
                seen, about = self.stores.seen(tensor), Group(CallText(full, full, "name", 0, full))
                size = 0 if kind == "start" or seen.storage in self.on else self.stores.bytes[seen.storage]
                operation = "x" if kind == "start" else "given"
                number = self._put_row(tensor, about, seen, kind, used=Used(size, 0, size), operation=operation)
                self.tops[full] = weakref.ref(tensor), number
                self._name(number, full)
        self._settle(None)

    def ended(self, problem: BaseException | None, names: Mapping[str, Any]) -> None:
        """Report the error that ended the program, if one did, and what models and optimizers hold."""
        self.asides.clear()
        self.close()
        self._settle(None)
        if problem is not None:
            if self.refused is not None and self.refused[0] is problem:
                self._refuse()
            self.emit({"e": "error", **_told(problem, self.program)})
        self._models(names)
        if self.devices.named:
            self.emit({"e": "note", "about": "device"})
        if self.fakes.used:
            self.emit({"e": "note", "about": "size"})
        if self.reported > MOST_ROWS:
            self.emit({"e": "note", "about": "rows"})

    def _models(self, names: Mapping[str, Any]) -> None:
        """Parameters of modules, and leaves outside of them, with the bytes of gradients and of optimizers' states."""
        states: dict[int, dict[str, int]] = {}
        for name, ref in self.optimizers.items():
            for tensor, state in getattr(ref(), "state", {}).items():
                tensors = {key: item for key, item in state.items() if hasattr(item, "untyped_storage")}
                states[id(tensor)] = {
                    f"{name}: {key}": item.untyped_storage().nbytes() for key, item in tensors.items()
                }
        modules = {name: item for name, item in names.items() if isinstance(item, self.torch.nn.Module)}
        found = {name: list(module.named_parameters()) for name, module in modules.items()}
        tensors = [(name, item) for name, item in names.items() if isinstance(item, self.torch.Tensor)]
        found[""] = [(name, item) for name, item in tensors if item.requires_grad and item.is_leaf]
        for name, parameters in found.items():
            rows = [
                {
                    "module": name[:80],
                    "name": full[:200],
                    "at": [self.stores.index(item), item.storage_offset()],
                    "shape": list(item.shape),
                    "dtype": str(item.dtype).removeprefix("torch."),
                    "bytes": item.numel() * item.element_size(),
                    "is_trained": bool(item.requires_grad),
                    "gradient_bytes": 0 if item.grad is None else item.grad.untyped_storage().nbytes(),
                    "states": list(states.get(id(item), {}).items()),
                }
                for full, item in parameters[:1_000]
            ]
            if rows:
                self.emit({"e": "model", "parameters": rows})


_SUFFIXES = (", dtype=", ", grad_fn=", ", requires_grad=", ")")
"""What stands behind the values of a printed tensor."""


def _kinds(torch: Any) -> Any:
    return torch.dtype | torch.device | torch.Size


def _named_tensors(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the tensors that a value contains, with the names that lead to them."""
    if hasattr(value, "untyped_storage"):
        yield name, value
    elif hasattr(value, "named_parameters") and hasattr(value, "named_buffers"):
        for inner in (value.named_parameters, value.named_buffers):
            for key, tensor in inner():
                yield f"{name}.{key}", tensor
    elif isinstance(value, dict) and depth < 3:
        for key, item in list(value.items())[:64]:
            yield from _named_tensors(item, f"{name}[{key!r}]", depth + 1)
    elif isinstance(value, tuple | list) and depth < 3:
        for number, item in enumerate(value[:64]):
            yield from _named_tensors(item, f"{name}[{number}]", depth + 1)
    elif type(value).__module__ == "__main__" and hasattr(value, "__dict__") and depth < 3:
        for key, item in list(vars(value).items())[:64]:
            yield from _named_tensors(item, f"{name}.{key}", depth + 1)


def _told(problem: BaseException, program: Program | None) -> Event:
    """Return an error as Python words it, with the place in the program."""
    kind, message = type(problem).__name__, str(problem)
    if isinstance(problem, SyntaxError):
        line, column, message = problem.lineno or 1, problem.offset or 1, problem.msg
    else:
        line, column = (1, 1) if program is None else _position(problem, program)
    if kind in ("NoValuesError", "DataDependentOutputException", "DynamicOutputShapeException"):
        kind, message = "TooLarge", ""
    return {"type": kind, "message": message[:4_000], "line": line, "column": column}


def _position(problem: BaseException, program: Program) -> tuple[int, int]:
    """Return the line and column of the program's innermost expression that raised."""
    trace, found = problem.__traceback__, (1, 1)
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE:
            place = program.place(trace.tb_frame.f_code, trace.tb_lasti)
            found = trace.tb_lineno, place[1] + 1
        trace = trace.tb_next
    return found


def warm_up() -> None:
    """Import all that torch imports late, and run what makes it start threads and fill its caches."""
    program = """
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Conv1d(4, 4, 1), nn.LayerNorm(4))
opt = torch.optim.AdamW(model.parameters(), lr=0.1)
y = model[0](torch.ones(2, 4)).to("cuda").cpu()
F.scaled_dot_product_attention(y[None], y[None], y[None]).sum().backward()
opt.step()
print(rearrange(y, "a b -> b a"), torch.ones(10**7, 10**7).sum())
with torch.autocast("cpu"):
    torch.utils.checkpoint.checkpoint(model[0], y, use_reentrant=False)
np.zeros(3)
"""
    from torch.multiprocessing import reductions as _  # noqa: F401

    record(program, lambda event: None)
    import torch

    repr(torch.ones(2, 2).sum())


def record(source: str, emit: Callable[[Event], None]) -> None:
    """Run ``source`` and report what it does, event by event, as dictionaries that JSON can hold.

    What stands before the line `SPLIT` is what the program is given. Nothing that the program raises leaves this.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    given, split, text = source.partition(f"{SPLIT}\n")
    given, text = (given, text) if split else ("", source)
    try:
        program = Program(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        emit({"e": "error", **_told(problem, None)})
        emit({"e": "end"})
        return
    recorder = Recorder(emit, program)

    class Watch(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return recorder.call(func, args, kwargs or {}, sys._getframe(1))

    class Fit(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return recorder.fit(func, args, kwargs or {})

    problem: BaseException | None = None
    torch.manual_seed(0)
    collects = gc.isenabled()
    gc.disable()  # a cycle that is freed in the middle of a call would be taken for the call's own
    with warnings.catch_warnings(), in_place_of(recorder.watched, replaced(torch, recorder.devices)):
        warnings.simplefilter("ignore")
        names = namespace()
        if given:
            before = set(names)
            with Fit():
                exec(compile(given, "<given>", "exec"), names)  # noqa: S102 (inside the seal)
            recorder.given({name: value for name, value in names.items() if name not in before})
        names |= recorder.marks()
        try:
            with Watch():
                try:
                    exec(program.code, names)  # noqa: S102 (inside the seal)
                finally:
                    recorder.devices.set_default(None)
                    torch.set_default_dtype(torch.float32)
                    torch.set_grad_enabled(True)
        except BaseException as raised:
            problem = raised
        recorder.ended(problem, names)
    if collects:
        gc.enable()
    emit({"e": "end", "torch": str(torch.__version__)})
