"""What a trace means: the answer, the reason behind it, and the formulas with the trace's numbers."""

from __future__ import annotations

from core.formula import Explanation
from core.messages import Message, message
from core.tensors.cost import matrix_cell, merging_stride, tensor_bytes
from core.tensors.layout import TensorLayout
from core.tensors.operations.table import SHORT_CASTS
from core.tensors.tracing.steps import Kind, Trace, TraceStep, names_of
from core.views.tensors.training import is_training, saved_bytes, training_headline

_KINDS: dict[Kind, str] = {
    "start": "tensors.kind.start",
    "same": "tensors.kind.same",
    "view": "tensors.kind.view",
    "copy": "tensors.kind.copy",
    "write": "tensors.kind.write",
    "refused": "tensors.kind.refused",
}

COPYING = frozenset(
    (
        *("reshape", "flatten", "ravel", "contiguous", "clone", "flip", "roll", "rearrange", "picking", "index_select"),
        *("repeat", "repeat_interleave", "tile", "cat", "stack", "diag", "to", *SHORT_CASTS),
    )
)
"""Operations whose new storage has the old elements, rearranged; the others compute new values."""


def kind_label(step: TraceStep) -> Message:
    """Return what happened in ``step`` in a word or two; a new tensor with new values is no copy."""
    if step.moved:
        return message("tensors.kind.moved", device=step.device)
    is_new = step.kind == "copy" and step.operation not in COPYING
    return message("tensors.kind.new") if is_new else message(_KINDS[step.kind])


def storage_letter(storage: int) -> str:
    """Return the name of a storage by its number: A, B, …, Z, AA."""
    name = ""
    while storage >= 0:
        name = chr(ord("A") + storage % 26) + name
        storage = storage // 26 - 1
    return name


def fact_rows(trace: Trace) -> list[tuple[int, str, str, str]]:
    """Return the results that are not tensors: line, expression, value, and ✓ or ✗ for an assertion."""
    marks = {True: "✓", False: "✗", None: ""}
    return [(fact.line, fact.text, fact.value, marks[fact.holds]) for fact in trace.facts]


def unread_line_note(trace: Trace) -> list[Message]:
    """Return the note on the line that did not run; empty if all lines ran."""
    if trace.unread is None:
        return []
    before = len(trace.steps) > 1 or bool(trace.facts)
    which = "tensors.note.lines" if before else "tensors.note.line"
    return [message(which, line=float(trace.unread.line), why=trace.unread.why)]


def headline(trace: Trace) -> list[Message]:
    """Return the answer, and behind it what explains it."""
    said = _outcome(trace)
    wrong = next((fact for fact in trace.facts if fact.holds is False), None)
    if wrong is None or len(trace.steps) < 2:
        return said
    line = float(wrong.line)
    if not wrong.value:
        return [message("tensors.fails.untrue", text=wrong.text, line=line), *said]
    return [message("tensors.fails.assertion", text=wrong.text, line=line, value=wrong.value), *said]


def _outcome(trace: Trace) -> list[Message]:
    last = trace.last
    if last.kind == "refused":
        return _fails(trace, last)
    if is_training(trace):
        return training_headline(trace)
    if last.kind == "write" and last.operation != "gradient":
        return _written(trace, last)
    if last.kind == "start":
        return _start(last) if trace.starts_with_x else _asked_alone(trace)
    if any(step.operation == "backward" for step in trace.steps):
        return _gradients(trace)
    writes = [step for step in trace.steps if step.kind == "write"]
    if writes and last.kind in ("same", "view"):
        return _written(trace, writes[-1])
    return _copied(trace) if trace.bytes_copied else _viewed(trace, last)


def _asked_alone(trace: Trace) -> list[Message]:
    """Return the answer for a program that makes no tensor."""
    if not trace.facts:
        return [message("tensors.fact.none")]
    fact = trace.facts[-1]
    if fact.holds is None:
        return [message("tensors.fact.is", text=fact.text, value=fact.value[:60].strip())]
    if fact.holds:
        return [message("tensors.fact.holds", text=fact.text)]
    return [message("tensors.fails.assertion", text=fact.text, line=float(fact.line), value=fact.value)]


def _gradients(trace: Trace) -> list[Message]:
    """Return which tensors have a gradient, and what is saved to compute it."""
    started = next(step for step in reversed(trace.steps) if step.operation == "backward")
    left = [step for step in trace.steps if step.operation == "gradient" and step.number > started.number]
    made, names = float(sum(step.bytes_allocated for step in left)), list(dict.fromkeys(step.name for step in left))
    call = started.expression
    if not names:
        answer = message("tensors.backward.none", call=call)
    elif made:
        answer = message("tensors.backward.leaves", call=call, bytes=made, names=names)
    else:
        answer = message("tensors.backward.updates", call=call, names=names)
    return [answer, message("tensors.backward.saved", bytes=float(saved_bytes(trace)))]


def _fails(trace: Trace, step: TraceStep) -> list[Message]:
    """Return why torch raises, and what to write instead."""
    tried = trace.steps[step.inputs[0] if step.inputs else 0]
    edge = None if step.verdict is None else step.verdict.boundary
    if step.verdict is not None and edge is not None:
        answer = message(
            "tensors.fails.view",
            call=step.source,
            tensor=trace.label(tried, step.number - 1),
            strides=tried.layout.stride,
            left=float(edge.left),
            right=float(edge.right),
            rule=edge.arithmetic,
        )
        if step.fixes:
            fix = step.fixes[0]
            return [answer, message("tensors.fails.instead", instead=fix.instead, bytes=float(fix.bytes))]
        copied = float(step.verdict.reshape_copies * step.element_size)
        return [answer, message("tensors.fails.copy", bytes=copied)]
    if step.reason:
        answer = message("tensors.fails.reason", call=step.source, reason=step.reason)
    elif tried.storage >= 0:
        answer = message("tensors.fails.shape", call=step.source, shape=tried.layout.shape)
    else:
        answer = message("tensors.fails.alone", call=step.source)
    if step.verdict is not None:
        return [answer]
    lines = step.error_message.strip().splitlines() or [""]
    error = lines[-1 if step.error_type == "EinopsError" else 0].strip()[:200]  # which names it last
    return [answer, message("tensors.error", kind=step.error_type, error=error)]


PARTLY = ("tril", "triu", "masked_", "scatter", "index_")
"""Operations in place that write only a part of their tensor; which cells is unknown of one that is only counted."""


def _written(trace: Trace, step: TraceStep) -> list[Message]:
    """Return which cells a write reaches, and who else sees it."""
    call, cells = step.expression, float(step.touched)
    if not step.touched:
        return [message("tensors.write.nothing", call=call)]
    if trace.counted and step.operation.startswith(PARTLY):
        return [message("tensors.write.some", call=call, cells=cells)]
    cell = float(step.written[0]) if step.written else 0.0
    through = trace.steps[step.inputs[0]]
    writer, names = trace.label(through, step.number), names_seeing(trace, step)
    start = "x" if "x" in trace.steps[step.number].names and writer != "x" else trace.label(trace.steps[0], step.number)
    said: list[Message] = []
    if step.storage != 0 and trace.starts_with_x and start not in names:
        maker = next(other for other in trace.steps if other.storage == step.storage)
        made = maker.source if maker.source.startswith(".") else maker.expression
        said.append(message("tensors.write.copy", call=call, cells=cells, cell=cell, start=start))
        said.append(message("tensors.write.maker", maker=made))
    elif names:
        said.append(message("tensors.write.shown", call=call, cells=cells, cell=cell, names=names))
    else:
        said.append(message("tensors.write.hidden", call=call, cells=cells, cell=cell))
    if names:
        said.append(message("tensors.write.shared", names=[writer, *names]))
    if step.updates != step.touched:
        (at, times), updates = step.fullest, float(step.updates)
        said.append(
            message("tensors.write.repeated", updates=updates, touched=cells, cell=float(at), times=float(times))
        )
    return said


def names_seeing(trace: Trace, step: TraceStep) -> list[str]:
    """Return the names of all tensors that show a write, besides the one that it is written through; x first."""
    if not step.changed:  # written to an empty part
        return []
    through = trace.steps[step.inputs[0]]
    writer = trace.label(through, step.number)
    found = [
        label
        for item in (through, *(trace.steps[number] for number in step.changed))
        for label in names_of(trace.steps, item, step.number) or [trace.label(item, step.number)]
        if label != writer
    ]
    return sorted(dict.fromkeys(found), key=lambda label: label != "x")


def _start(step: TraceStep) -> list[Message]:
    layout = step.layout
    said = [
        message(
            "tensors.start",
            elements=float(layout.numel),
            cells=float(step.storage_elements),
            shape=layout.shape,
            strides=layout.stride,
        )
    ]
    if layout.rank:
        rule = " + ".join([str(layout.offset), *(f"i{_subscript(d)}·{s}" for d, s in enumerate(layout.stride))])
        indices = ", ".join(f"i{_subscript(d)}" for d in range(layout.rank))
        said.append(message("tensors.start.rule", indices=indices, sum=rule))
    return said


_LARGEST = 3
"""Steps whose bytes a sentence names; all are in the list of steps."""


def _copied(trace: Trace) -> list[Message]:
    """Return which steps allocate new storage."""
    done = [step for step in trace.steps[1:] if step.operation != "piece" and step.kind != "refused"]
    table = {step.number: sum(trace.made_by(step).values()) for step in done}
    result, total = [step for step in done if table[step.number]], float(trace.bytes_copied)
    if len(result) > 1:
        count, steps = float(len(result)), float(len(done))
        largest = sorted(result, key=lambda step: -table[step.number])[:_LARGEST]
        items = [message("tensors.copy.item", call=step.source, bytes=float(table[step.number])) for step in largest]
        return [
            message("tensors.copy.several", count=count, steps=steps, total=total),
            message("tensors.copy.largest", items=items),
        ]
    (step,) = result
    copies = step.operation in COPYING
    said = [message("tensors.copy.copies" if copies else "tensors.copy.computes", call=step.source, bytes=total)]
    return [*said, message("tensors.because", reason=step.reason)] if step.reason else said


def _viewed(trace: Trace, last: TraceStep) -> list[Message]:
    tried = trace.steps[last.inputs[0] if last.inputs else 0]
    layout, call = tried.layout, last.source
    if last.operation == "indexing" and last.layout.rank == 0 and tried.kind == "start" and not trace.counted:
        index = _indices(layout, last.layout.offset)
        products = [f"{i}·{s}" for i, s in zip(index, layout.stride, strict=True)]
        rule = " + ".join([str(layout.offset), *products])
        cell = float(last.layout.offset)
        return [
            message("tensors.view.element", call=last.expression, cell=cell, sum=rule),
            message("tensors.view.rule"),
        ]
    verdict = last.verdict if last.operation == "view" and not tried.is_contiguous else None
    if verdict is not None and verdict.reason.id == "tensors.rule.merge":
        tensor = trace.label(tried, last.number - 1)
        return [
            message("tensors.view.strided", call=call, tensor=tensor, reason=verdict.reason),
            message("tensors.view.merging"),
        ]
    if all(step.kind == "same" for step in trace.steps[1:]):
        return [message("tensors.view.same")]
    if any(step.kind == "copy" for step in trace.steps):  # of a tensor without elements
        return [message("tensors.view.none")]
    shared = message("tensors.view.storage", bytes=float(trace.steps[0].bytes_allocated))
    if len(trace.steps) == 2 and last.kind == "view":
        why = [message("tensors.because", reason=last.reason)] if last.reason else []
        return [message("tensors.view.one", call=call), *why, shared]
    return [message("tensors.view.every"), shared]


def layout_texts(step: TraceStep) -> tuple[str, str]:
    """Return shape and strides for a line of the list of steps: several tensors' together, the cells of a write."""
    if step.kind == "refused":
        return "", ""
    if step.kind == "write":
        return message("tensors.picture.written", cells=float(len(step.written))), ""
    if step.pieces and step.picked is None:
        shapes, strides = ({getattr(piece.layout, name) for piece in step.pieces} for name in ("shape", "stride"))
        count = len(step.pieces)
        several = message("tensors.picture.several", count=float(count))
        return f"{count} × {min(shapes)}" if len(shapes) == 1 else several, str(min(strides)) * (len(strides) == 1)
    return str(step.layout.shape), str(step.layout.stride)


def explanations(trace: Trace) -> tuple[Explanation, ...]:
    """Return the formulas of Tensor views with the numbers of ``trace``: a cell, a merge, the bytes of the result."""
    last = trace.last
    result: list[Explanation] = []
    matrix = next((s for s in reversed(trace.steps) if s.layout.rank == 2 and s.layout.numel), None)
    if matrix is not None:
        row, column = matrix.layout.shape[0] - 1, matrix.layout.shape[1] - 1
        single = last.operation == "indexing" and last.layout.rank == 0 and last.inputs == (matrix.number,)
        if single and not trace.counted:
            row, column = _indices(matrix.layout, last.layout.offset)
        row_stride, column_stride = matrix.layout.stride
        result.append(
            matrix_cell.explain(
                offset=matrix.layout.offset, row=row, row_stride=row_stride, column=column, column_stride=column_stride
            )
        )
    edge = None if last.verdict is None else last.verdict.boundary
    if edge is not None:
        result.append(merging_stride.explain(stride=edge.right_stride, size=edge.right_size))
    allocating = next((s for s in reversed(trace.steps) if s.bytes_allocated), trace.steps[0])
    result.append(tensor_bytes.explain(elements=allocating.storage_elements, element_bytes=allocating.element_size))
    return tuple(result)


def _indices(layout: TensorLayout, cell: int) -> tuple[int, ...]:
    """Return the indices of the first element in ``cell``."""
    number = layout.cells().tolist().index(cell)
    indices: list[int] = []
    for size in reversed(layout.shape):
        number, index = divmod(number, size)
        indices.append(index)
    return tuple(reversed(indices))


def _subscript(number: int) -> str:
    return str(number).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
