"""What a sealed process reported, as a `Trace`: every value is checked, for a program can forge its own report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from core.limits import cached, limit
from core.messages import message
from core.tensors.layout import TensorLayout, bounds
from core.tensors.parsing.asked import Asked
from core.tensors.tracing.reasons import fixes, reason, view_verdict
from core.tensors.tracing.refusals import error_reason, refused_view
from core.tensors.tracing.steps import CallRow, Fact, Parameter, Trace, TraceStep, Unread

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Event: TypeAlias = Mapping[str, Any]

_NOTES = {"device": "tensors.note.device", "size": "tensors.note.counted", "rows": "tensors.note.rows"}
"""What is said of a run, by what it is about."""

_NOTHING = TraceStep("start", TensorLayout((), ()), operation="x")
"""Step 0 of a program that is given no tensor: a place without a storage."""

_TENSOR = (
    "layout",
    "dtype",
    "element_size",
    "is_contiguous",
    "storage",
    "storage_bytes",
    "values",
    "storage_values",
    "device",
)


def trace_of(
    events: Sequence[Event], text: str, asked: Sequence[Asked] = (), notes: Sequence[str] = (), stopped: str = ""
) -> Trace:
    """Return the trace of a program from the events that its process reported, in their order.

    stopped: why it did not end by itself, a sentence. Raises ``ValueError`` for events that are none of the recorder's.
    """
    reader = _Report(text)
    for event in events:
        reader.read(event)
    return reader.trace(tuple(asked), tuple(notes), stopped)


@cached("results_kept")
def _checked(kind: type[Any]) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


class _Report:
    """Events read so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.steps: list[TraceStep] = []
        self.number: dict[int, int] = {}
        """Rows of the report → steps."""
        self.storages: dict[int, int] = {}
        """Storages of the report → by first appearance in a step."""
        self.live: dict[int, int] = {}
        self.held: list[dict[int, int]] = []
        self.most: list[int] = []
        self.facts: list[Fact] = []
        self.unread: Unread | None = None
        self.version = ""
        self.notes: dict[str, None] = {}
        self.models: dict[str, dict[tuple[int, int], Parameter]] = {}
        """Of each module, its parameters by storage and offset."""
        self.counted = 0
        """Rows that are like others."""
        self.dropped = 0
        """Bytes that iterations which are only counted allocated since the last step."""

    def read(self, event: Event) -> None:
        match event:
            case {"e": "row", "n": int() as row}:
                if not self.steps and event["kind"] != "start":
                    self._nothing()
                self._row(event)
                self.number[row] = len(self.steps) - 1
            case {"e": "refused"}:
                if not self.steps:
                    self._nothing()
                inputs = self._steps(event["inputs"])
                tried = _fields(self.steps[(*inputs, 0)[0]], _TENSOR)
                self._row({"kind": "refused", **tried, **event})
            case {"e": "name", "n": row, "name": str() as name}:
                (at,) = self._steps([row])
                self.steps[at] = replace(self.steps[at], name=name[:80])
            case {"e": "names"} if self.steps:
                names: dict[str, int] = event["names"]
                steps = {name[:80]: at for name, at in zip(names, self._steps(names.values()), strict=True)}
                self.steps[-1] = replace(self.steps[-1], names=steps)
            case {"e": "again", "n": int() as first, "from": int() as start, "rows": int() as rows}:
                self.counted += rows
                if not 0 < rows <= self.counted <= limit("program_report_values"):
                    raise ValueError("rows")
                for row, at in enumerate(self._steps(range(first, first + rows)), start):
                    self.number[row] = at
                    self.steps[at] = replace(self.steps[at], times=self.steps[at].times + 1)
                self.dropped += int(event["total"])
                self._freed(event)
            case {"e": "freed"}:
                self._freed(event)
            case {"e": "fact" | "print", **rest}:
                line, text, value, holds = _checked(Fact).validate_python(
                    (rest["line"], rest["text"], rest["value"], rest.get("holds"))
                )
                self.facts.append(Fact(line, text[:400], value[:20_000] + "…" * (rest.get("cut") is True), holds))
            case {"e": "error", "type": str() as kind, "message": str() as error, "line": int() as line}:
                self._error(kind[:80], error[:4_000], line)
            case {"e": "note", "about": about} if about in _NOTES:
                self.notes[about] = None
            case {"e": "caught", "type": str() as kind, "message": str() as error, "line": int() as line}:
                if self.steps and self.steps[-1].kind == "refused" and not self.steps[-1].error_type:
                    self.steps[-1] = replace(self.steps[-1], error_type=kind[:80], error_message=error[:4_000])
                said = next(iter(error.strip().splitlines()), "")[:200]
                asked = message("tensors.fact.caught", name=str(event.get("name") or kind)[:80])
                self.facts.append(Fact(line, asked, f"{kind[:80]}: {said}"))
            case {"e": "model", "parameters": parameters}:
                for one in _checked(tuple[Parameter, ...]).validate_python(parameters)[:1_000]:
                    self.models.setdefault(one.module, {})[one.at] = one
            case {"e": "end"}:
                self.version = str(event.get("torch", ""))[:40]
            case {"e": "row" | "refused" | "name" | "again" | "error" | "model" | "fact" | "print" | "caught"}:
                raise ValueError(str(event)[:80])
            case _:
                pass

    # -------------------------------------------------------------------------------------------------- steps

    def _steps(self, rows: Any) -> tuple[int, ...]:
        """Return the steps of rows. Raises ``KeyError`` for one that was not reported."""
        return tuple(self.number[row] for row in rows)

    def _row(self, event: Event) -> None:
        """Add a step: of a tensor that a call gave or wrote, or of a call that torch rejected."""
        row: CallRow = _checked(CallRow).validate_python(event)
        for layout in (row.layout, *(piece.layout for piece in row.pieces)):
            sizes = (*layout.shape, *layout.stride, layout.offset)
            if min(sizes) < 0 or len(sizes) > 129 or math.prod(max(size, 1) for size in layout.shape) >= 1 << 60:
                raise ValueError("layout")
        refused, start = row.kind == "refused", row.kind == "start"
        if not refused and not bounds(row.layout, row.storage_elements).inside:
            raise ValueError("a tensor outside of its storage")
        new = row.storage not in self.storages and not refused
        at = row.storage if refused else self.storages.setdefault(row.storage, len(self.storages))
        if not refused:
            self.live.pop(-1 - row.storage, None)
        if self.steps:
            self.held.append(dict(self.live))
        peak = row.storage_bytes if start else row.bytes_peak
        self.most.append(sum(self.live.values()) + peak)
        before = self.steps[-1] if self.steps else _NOTHING
        total = 0 if start else max(row.bytes_asked, row.bytes_kept)
        inputs = self._steps(row.inputs)
        step = TraceStep(
            **_fields(row, [one.name for one in fields(CallRow) if one.name not in ("inputs", "changed", "storage")]),
            number=len(self.steps),
            inputs=inputs,
            changed=self._steps(row.changed),
            storage=at,
            bytes_allocated=row.storage_bytes if new else 0,
            bytes_total=before.bytes_total + self.dropped + total,
            names=before.names,
        )
        self.dropped = 0
        taken = [self.steps[number] for number in inputs]
        if refused:
            verdict = refused_view(step, taken)
            step = replace(step, verdict=verdict, reason="" if verdict is None else verdict.reason)
            self.steps.append(replace(step, fixes=fixes(self.text, step, taken[0] if taken else self.steps[0])))
            return
        step = replace(step, verdict=view_verdict(step, taken))
        self.steps.append(replace(step, reason="" if start else reason(step, taken)))
        for saved in row.keeps:
            self.live[self.storages.get(saved.storage, -1 - saved.storage)] = saved.bytes
        self.live[at] = row.storage_bytes

    def _freed(self, event: Event) -> None:
        for number in event.get("storages", ()):
            self.live.pop(self.storages.get(number, -1 - int(number)), None)

    def _nothing(self) -> None:
        self.most.append(0)
        self.steps.append(_NOTHING)

    # ------------------------------------------------------------------------------------------------ the end

    def _error(self, kind: str, error: str, line: int) -> None:
        line = min(max(line, 1), self.text.count("\n") + 1)
        if self.steps and self.steps[-1].kind == "refused":
            self.steps[-1] = replace(self.steps[-1], error_type=kind, error_message=error)
        elif kind != "AssertionError" or not any(fact.holds is False for fact in self.facts[-1:]):
            why = message("tensors.problem.values") if kind == "TooLarge" else f"{kind}: {error}" if error else kind
            self.unread = self._line(line, why)

    def _line(self, line: int, why: str) -> Unread:
        return Unread(line, self.text.split("\n")[line - 1].strip()[:200], why)

    def trace(self, asked: tuple[Asked, ...], notes: tuple[str, ...], stopped: str) -> Trace:
        if not self.steps:
            self._nothing()
        last = self.steps[-1]
        # The storage of the result is shown, so it counts.
        self.held.append({**self.live, **({last.storage: last.storage_bytes} if last.storage >= 0 else {})})
        if stopped and self.unread is None:
            self.unread = self._line(min(max(last.line, 1), self.text.count("\n") + 1), stopped)
        steps = [
            replace(
                step,
                keeps=tuple(
                    saved._replace(storage=self.storages.get(saved.storage, -1 - saved.storage)) for saved in step.keeps
                ),
            )
            if step.keeps
            else step
            for step in self.steps
        ]
        if steps[-1].kind == "refused" and not steps[-1].reason:
            steps[-1] = replace(steps[-1], reason=error_reason(steps))
        parameters: dict[tuple[int, int], Parameter] = {}
        for _, rows in sorted(self.models.items(), key=lambda item: (not item[0], -len(item[1]))):
            parameters |= {key: rows[key] for key in rows if key not in parameters}  # a part of another module is there
        return Trace(
            self.text,
            tuple(steps),
            self.version,
            (*notes, *(message(_NOTES[about]) for about in self.notes)),
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


def _fields(row: CallRow, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}
