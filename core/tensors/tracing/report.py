"""What a sealed process reported, as a `Trace`: every value is checked, for a program can forge its own report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from core.limits import limit
from core.messages import Message, message
from core.tensors.layout import TensorLayout, bounds
from core.tensors.operations.table import find
from core.tensors.operations.values import DType, MemoryFormat, Slot
from core.tensors.parsing.asked import Asked
from core.tensors.tracing.annotations import annotated
from core.tensors.tracing.call import Call
from core.tensors.tracing.reasons import fixes, reason, view_verdict
from core.tensors.tracing.refusals import gradient_reason, refusal_reason
from core.tensors.tracing.steps import Block, Fact, Kind, Parameter, Piece, Saved, Scalar, Trace, TraceStep, Unread

Event: TypeAlias = Mapping[str, Any]


_NOTES = {
    "device": "tensors.note.device",
    "size": "tensors.note.counted",
}
"""What is said of a run, by what it is about."""


class ForgedError(ValueError):
    """A report that no recorder writes."""


def trace_of(
    events: Sequence[Event], text: str, asked: Sequence[Asked] = (), notes: Sequence[str] = (), stopped: str = ""
) -> Trace:
    """The trace of a program from the events that its process reported, in their order.

    stopped: why it did not end by itself, a sentence. Raises `ForgedError` for events that are none of the recorder's.
    """
    reader = _Report(text)
    for event in events:
        reader.read(event)
    return reader.trace(tuple(asked), tuple(notes), stopped)


class _Report:
    """Events read so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.steps: list[TraceStep] = []
        self.calls: list[Call] = []
        self.number: dict[int, int] = {}
        """Rows of the report → steps."""
        self.storages: dict[int, int] = {}
        """Storages of the report → by first appearance in a step."""
        self.live: dict[int, int] = {}
        self.held: list[dict[int, int]] = []
        self.most: list[int] = []
        self.facts: list[Fact] = []
        self.unread: Unread | None = None
        self.sizes: dict[Any, dict[str, int]] = {}
        """Of each call of a function, the sizes that annotations named."""
        self.version = ""
        self.notes: dict[str, None] = {}
        self.models: dict[str, dict[tuple[int, int], Parameter]] = {}
        """Of each module, its parameters by storage and offset."""
        self.times: dict[int, int] = {}
        """Steps of an iteration that further ones are like → how many there are of them in all."""
        self.dropped = 0
        """Bytes that such iterations allocated since the last step."""

    def read(self, event: Event) -> None:
        match event.get("e"):
            case "row":
                self._row(event)
            case "name":
                at = self._step(event.get("n"))
                self.steps[at] = replace(self.steps[at], name=_text(event, "name", 80))
                if at:
                    self.calls[at - 1] = replace(self.calls[at - 1], name=self.steps[at].name)
            case "names" if self.steps:
                names = {_short(name): self._step(row) for name, row in _pairs(event, "names")}
                self.steps[-1] = replace(self.steps[-1], names=names)
            case "again":
                self._again(event)
            case "freed":
                self._freed(event)
            case "fact" | "print":
                holds = event.get("holds")
                line, value = _integer(event, "line"), _text(event, "value", 20_000)
                value += "…" if event.get("cut") is True else ""
                self.facts.append(Fact(line, _text(event, "text", 400), value, holds if holds is not None else None))
            case "typed":
                self._typed(event)
            case "refused":
                self._refused(event)
            case "error":
                self._error(event)
            case "note":
                if (about := event.get("about")) in _NOTES:
                    self.notes[about] = None
            case "caught":
                kind, error = _text(event, "type", 80), _text(event, "message", 4_000)
                if self.steps and self.steps[-1].kind == "refused" and not self.steps[-1].error_type:
                    self.steps[-1] = replace(self.steps[-1], error_type=kind, error_message=error)
                said = next(iter(error.strip().splitlines()), "")[:200]
                text = message("tensors.annotation.caught", name=_text(event, "name", 80) or kind)
                self.facts.append(Fact(_integer(event, "line"), text, f"{kind}: {said}"))
            case "model":
                self._model(event)
            case "end":
                self.version = _text(event, "torch", 40) if "torch" in event else ""
            case _:
                pass

    # -------------------------------------------------------------------------------------------------- steps

    def _step(self, row: Any) -> int:
        if not isinstance(row, int) or row not in self.number:
            raise ForgedError(f"row {str(row)[:20]} is none of those before")
        return self.number[row]

    def _row(self, event: Event) -> None:
        kind = cast(Kind, event.get("kind"))
        if kind not in ("start", "same", "view", "copy", "write"):
            raise ForgedError("kind")
        if not self.steps and kind != "start":
            self._nothing()
        call = self._call(event)
        layout, item = _layout(event), _integer(event, "item")
        nbytes = _integer(event, "bytes")
        if item not in (1, 2, 4, 8, 16) or not bounds(layout, nbytes // item).inside:
            raise ForgedError("a tensor outside of its storage")
        storage = _integer(event, "storage")
        new = storage not in self.storages
        at = self.storages.setdefault(storage, len(self.storages))
        self.live.pop(-1 - storage, None)
        total, kept = _integer(event, "total"), _integer(event, "kept")
        if new and kind == "copy" and not total and call.operation.name in ("new", "given"):
            total = kept = nbytes
        inside = max(total - kept, 0)
        before = (self.steps[-1].bytes_total if self.steps else 0) + self.dropped
        self.dropped = 0
        self._hold(nbytes if kind == "start" else _integer(event, "peak"))
        self.number[_integer(event, "n")] = len(self.steps)
        dtype = _text(event, "dtype", 24)
        taken = [self.steps[number] for number in call.inputs]
        verdict = view_verdict(call.operation.name, taken, layout.shape, dtype) if taken and kind != "write" else None
        keeps: list[Saved] = []
        for entry in _list(event, "keeps"):
            number, size, operation, name = entry
            self.live[self.storages.get(int(number), -1 - int(number))] = int(size)
            keeps.append(Saved(int(number), int(size), _short(operation), _short(name)))
        self.steps.append(
            TraceStep(
                number=len(self.steps),
                kind=kind,
                source=call.source,
                expression=call.expression,
                operation=call.operation.name,
                inputs=call.inputs,
                layout=layout,
                dtype=dtype,
                element_size=item,
                is_contiguous=event.get("contiguous") is True,
                storage=at,
                storage_elements=nbytes // item,
                bytes_allocated=nbytes if new else 0,
                bytes_total=before + (total if kind != "start" else 0) + max(kept - total, 0),
                values=_numbers(event, "values"),
                storage_values=_numbers(event, "cells"),
                bytes_inside=inside if kind != "start" else 0,
                bytes_peak=_integer(event, "peak"),
                freed=tuple(Block(_short(name), int(size)) for name, size in _list(event, "freed")),
                line=call.line,
                pieces=tuple(
                    Piece(_layout(piece), piece.get("contiguous") is True, _numbers(piece, "values"))
                    for piece in _list(event, "pieces")
                ),
                picked=event["picked"] if isinstance(event.get("picked"), int) else None,
                names=self.steps[-1].names if self.steps else {},
                verdict=verdict,
                reason=reason(call, kind, taken, layout, dtype, verdict) if kind != "start" else "",
                device=_text(event, "device", 24),
                moved=_integer(event, "moved"),
                asks_gradient=event.get("asks") is True,
                keeps=tuple(keeps),
                flops=_integer(event, "flops"),
                **(self._write(event) if kind == "write" else {}),
            )
        )
        if len(self.steps) > 1:
            self.calls.append(call)
        self.live[at] = nbytes

    def _again(self, event: Event) -> None:
        """A further iteration of a loop was like the one that is known."""
        first, rows = _integer(event, "n"), _integer(event, "rows")
        for row in range(first, first + min(rows, len(self.steps))):
            at = self._step(row)
            self.times[at] = self.times.get(at, 1) + 1
        self.dropped += _integer(event, "total")
        self._freed(event)

    def _freed(self, event: Event) -> None:
        for number in _integers(event, "storages"):
            self.live.pop(self.storages.get(number, -1 - number), None)

    def _nothing(self) -> None:
        """Step 0 of a program that is given no tensor: a place without a storage."""
        layout = TensorLayout((), ())
        self._hold(0)
        self.steps.append(TraceStep(0, "start", "", "", "x", (), layout, "float32", 4, True, -1, 1, 0, 0, (), ()))

    def _write(self, event: Event) -> dict[str, Any]:
        changed = tuple(self._step(row) for row in _list(event, "changed"))
        after = tuple(_scalars(values) for values in _list(event, "after"))
        cell, times = _integers(event, "fullest")
        return {
            "written": tuple(_integers(event, "written")),
            "touched": _integer(event, "touched"),
            "changed": changed,
            "after": after,
            "updates": _integer(event, "updates"),
            "fullest": (cell, times),
        }

    def _hold(self, peak: int) -> None:
        """Put down what lives once the last step is done, and the most that is there during the next one."""
        if self.steps:
            self.held.append(dict(self.live))
        self.most.append((sum(self.held[-1].values()) if self.held else 0) + peak)

    def _call(self, event: Event) -> Call:
        name, form = _text(event, "op", 80), _text(event, "form", 16)
        args = [_value(item) for item in _list(event, "args")]
        index: Any = None
        if form in ("index", "write") and len(args) > 1 and name in ("indexing", "picking", "write"):
            index = args[1] if isinstance(event["args"][1], list) else (args[1],)
            args = args[2:]
        elif form in ("method", "property", "unary") or (form == "write" and name == "update"):
            args = args[1:]
        start, end = _integers(event, "at")
        return Call(
            find(form, name),
            form,
            tuple(self._step(row) for row in _list(event, "inputs")),
            _text(event, "source", 4_000),
            _text(event, "expression", 4_000),
            _integer(event, "line"),
            tuple(args),
            tuple((_short(key), _value(value)) for key, value in _pairs(event, "named")),
            index=index,
            pick=event["picked"] if isinstance(event.get("picked"), int) else None,
            symbol=_text(event, "symbol", 4),
            at=(start, end),
        )

    # ------------------------------------------------------------------------------------------------ the end

    def _typed(self, event: Event) -> None:
        """An annotation such as ``Float[Tensor, "batch seq"]``, held against the shape of what it is for."""
        written = _text(event, "annotation", 200)
        kind, _, rest = written.partition("[")
        quoted = rest.split("'")
        for name, shape in _pairs(event, "shapes"):
            step = next((step for step in reversed(self.steps) if step.name == name), None)
            if len(quoted) == 3 and step is not None:
                sizes, found = self.sizes.setdefault(str(event.get("scope")), {}), tuple(map(int, shape))
                wrong = annotated(kind.rpartition(".")[2], quoted[1], found, step.dtype, sizes)
                text = f"{name}: {kind}[{quoted[1].strip()}]"
                value = wrong or message("tensors.annotation.shape", shape=found)
                self.facts.append(Fact(_integer(event, "line"), text, value, not wrong))

    def _refused(self, event: Event) -> None:
        if not self.steps:
            self._nothing()
        call = self._call(event)
        self._hold(_integer(event, "peak"))
        tried = self.steps[call.inputs[0] if call.inputs else 0]
        taken = [self.steps[number] for number in call.inputs]
        target = event.get("target")
        verdict, why = refusal_reason(call, taken, None if target is None else _layout(target))
        total = _integer(event, "total")
        self.steps.append(
            replace(
                tried,
                number=len(self.steps),
                kind="refused",
                source=call.source,
                expression=call.expression,
                operation=call.operation.name,
                inputs=call.inputs,
                line=call.line,
                name="",
                names=self.steps[-1].names,
                bytes_allocated=0,
                bytes_total=self.steps[-1].bytes_total + total,
                bytes_inside=total,
                freed=tuple(Block(_short(name), int(size)) for name, size in _list(event, "freed")),
                verdict=verdict,
                reason=why,
                fixes=fixes(self.text, call, tried, verdict),
                pieces=(),
                picked=None,
                written=(),
                changed=(),
                after=(),
                keeps=(),
                flops=0,
            )
        )
        self.calls.append(call)

    def _error(self, event: Event) -> None:
        kind, error = _text(event, "type", 80), _text(event, "message", 4_000)
        line = min(max(_integer(event, "line"), 1), self.text.count("\n") + 1)
        if self.steps and self.steps[-1].kind == "refused":
            self.steps[-1] = replace(self.steps[-1], error_type=kind, error_message=error)
        elif kind != "AssertionError" or not any(fact.holds is False for fact in self.facts[-1:]):
            text = self.text.split("\n")[line - 1].strip()[:200]
            why = message("tensors.problem.values") if kind == "TooLarge" else f"{kind}: {error}" if error else kind
            self.unread = Unread(line, text, why)

    def _model(self, event: Event) -> None:
        module = _text(event, "name", 80)
        rows = self.models.setdefault(module, {})
        for row in _list(event, "parameters")[:1_000]:
            storage, offset = _integers(row, "at")
            rows[storage, offset] = Parameter(
                module,
                _text(row, "name", 200),
                tuple(_integers(row, "shape")),
                _text(row, "dtype", 24),
                _integer(row, "bytes"),
                row.get("trained") is True,
                _integer(row, "grad"),
                tuple((_short(key), _integer(row["state"], key)) for key, _ in _pairs(row, "state")),
            )

    def trace(self, asked: tuple[Asked, ...], notes: tuple[str, ...], stopped: str) -> Trace:
        if not self.steps:
            self._nothing()
        self.held.append({**self.live, **_own(self.steps[-1])})
        if stopped and self.unread is None:
            line = self.steps[-1].line
            self.unread = Unread(max(line, 1), self.text.split("\n")[max(line, 1) - 1].strip()[:200], stopped)
        steps = [
            replace(step, keeps=tuple(map(self._located, step.keeps)), times=self.times.get(step.number, 1))
            for step in self.steps
        ]
        if steps[-1].kind == "refused" and not steps[-1].reason:
            steps[-1] = replace(steps[-1], reason=gradient_reason(steps))
        parameters: dict[tuple[int, int], Parameter] = {}
        for _, rows in sorted(self.models.items(), key=lambda item: (not item[0], -len(item[1]))):
            parameters |= {key: rows[key] for key in rows if key not in parameters}  # a part of another module is there
        return Trace(
            self.text,
            tuple(steps),
            self.version,
            tuple(self.calls),
            (*notes, *_note_texts(self.notes)),
            "size" in self.notes,
            held=tuple(self.held),
            at_once=tuple(  # torch’s allocator has no events of tensors that are only counted
                max(peak, sum(held.values())) for peak, held in zip(self.most, self.held, strict=True)
            ),
            facts=tuple(self.facts),
            unread=self.unread,
            asked=asked,
            parameters=tuple(parameters.values()),
        )

    def _located(self, saved: Saved) -> Saved:
        """``saved`` with the storage by its first appearance in a step, also in a later one."""
        return replace(saved, storage=self.storages.get(saved.storage, -1 - saved.storage))


def _note_texts(about: Iterable[str]) -> list[Message]:
    return [message(_NOTES[key]) for key in about]


def _own(step: TraceStep) -> dict[int, int]:
    """The storage of the result, which is shown."""
    return {step.storage: step.storage_elements * step.element_size} if step.storage >= 0 else {}


# ---------------------------------------------------------------------------------------------- checked values


def _integer(event: Event, name: str) -> int:
    value = event.get(name, 0)
    if not isinstance(value, int) or not -1 <= value < 1 << 60:
        raise ForgedError(name)
    return int(value)


def _text(event: Event, name: str, most: int) -> str:
    value = event.get(name)
    if not isinstance(value, str):
        raise ForgedError(name)
    return value[:most]


def _short(value: Any) -> str:
    return str(value)[:80]


def _list(event: Event, name: str) -> list[Any]:
    value = event.get(name, [])
    if not isinstance(value, list):
        raise ForgedError(name)
    return cast("list[Any]", value)


def _pairs(event: Event, name: str) -> Iterable[tuple[str, Any]]:
    value = event.get(name, {})
    if not isinstance(value, dict):
        raise ForgedError(name)
    return cast("dict[str, Any]", value).items()


def _integers(event: Event, name: str) -> list[int]:
    values = _list(event, name)
    if not all(isinstance(value, int) and -1 <= value < 1 << 60 for value in values):
        raise ForgedError(name)
    return values


def _numbers(event: Event, name: str) -> tuple[Scalar, ...]:
    return _scalars(_list(event, name))


def _scalars(values: Any) -> tuple[Scalar, ...]:
    if not isinstance(values, list) or len(cast("list[Any]", values)) > limit("storage_cells_drawn"):
        raise ForgedError("values")
    return tuple(map(_scalar, cast("list[Any]", values)))


def _scalar(value: Any) -> Scalar:
    match value:
        case int() | float():
            return value
        case [int() | float() as real, int() | float() as imaginary]:
            return complex(real, imaginary)
        case _:
            raise ForgedError("value")


def _layout(event: Any) -> TensorLayout:
    if not isinstance(event, dict):
        raise ForgedError("layout")
    whole = cast("dict[str, Any]", event)
    shape, stride = _integers(whole, "shape"), _integers(whole, "stride")
    if len(shape) != len(stride) or min((*shape, *stride), default=0) < 0 or len(shape) > 64:
        raise ForgedError("layout")
    if math.prod(max(size, 1) for size in shape) >= 1 << 60:
        raise ForgedError("layout")
    return TensorLayout(tuple(shape), tuple(stride), _integer(whole, "offset"))


def _value(value: Any) -> Any:
    """An argument as the explanations take it."""
    match value:
        case bool() | int() | float() | str() | None:
            return value
        case list():
            return tuple(map(_value, cast("list[Any]", value)))
        case {"list": list()}:
            return tuple(map(_value, cast("list[Any]", value["list"])))
        case {"slot": int() as number}:
            return Slot(number)
        case {"dtype": str() as name}:
            return DType(name.removeprefix("torch.")[:24])
        case {"memory_format": str() as name}:
            return MemoryFormat(name.removeprefix("torch.")[:24])
        case {"slice": [start, stop, step]}:
            return slice(*(part if isinstance(part, int) else None for part in (start, stop, step)))
        case {"dots": _}:
            return ...
        case _:
            return None
