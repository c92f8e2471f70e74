"""What a trace means, in sentences: the answer, the reason behind it, and the formulas with the trace's numbers."""

from __future__ import annotations

from collections.abc import Sequence

from core.formula import Explanation
from core.tensors.cost import matrix_cell, merging_stride, tensor_bytes
from core.tensors.layout import TensorLayout
from core.tensors.operations.table import SHORT_CASTS
from core.tensors.operations.values import MemoryFormat
from core.tensors.tracing.steps import Kind, Trace, TraceStep, is_old, names_of, origin
from core.views.tensors.inside import most_inside, notable_bytes
from core.views.tensors.sizes import bytes_text
from core.views.tensors.training import is_training, saved_bytes, training_headline
from core.wording import listed

KIND_WORDS: dict[Kind, str] = {
    "start": "start",
    "same": "same tensor",
    "view": "view",
    "copy": "copy",
    "write": "written in place",
    "refused": "refused",
}
"""What a kind of step is called on screen."""


COPYING = frozenset(
    (
        *("reshape", "flatten", "ravel", "contiguous", "clone", "flip", "roll", "rearrange", "picking", "index_select"),
        *("repeat", "repeat_interleave", "tile", "cat", "stack", "diag", "to", *SHORT_CASTS),
    )
)
"""Operations whose new storage holds the old elements, rearranged; the others compute new values."""


def word(step: TraceStep) -> str:
    """What happened in ``step`` in a word or two; a new tensor with new values is no copy."""
    if step.moved:
        return f"moved to {step.device}"
    return "new tensor" if step.kind == "copy" and step.operation not in COPYING else KIND_WORDS[step.kind]


def shape_text(sizes: Sequence[int]) -> str:
    """Sizes or strides as torch prints them: ``(2, 3)``, ``(6,)``, ``()``."""
    return str(tuple(sizes))


def letter(storage: int) -> str:
    """The name of a storage, by its number: A, B, …, Z, AA."""
    name = ""
    while storage >= 0:
        name = chr(ord("A") + storage % 26) + name
        storage = storage // 26 - 1
    return name


def passed_over(trace: Trace) -> str:
    """What was left out or assumed, in sentences; empty where everything was run as it stands."""
    sentences = list(trace.notes)
    if trace.counted:
        sentences.append(
            "Tensors of this size are counted, not made: shapes, strides and bytes are torch’s, without values."
        )
    return " ".join(sentences)


def facts(trace: Trace) -> list[tuple[int, str, str, str]]:
    """What lines said that are no tensors: the line, what was asked, the answer, and ✓ or ✗ of an assertion."""
    marks = {True: "✓", False: "✗", None: ""}
    return [
        (fact.line, fact.text, fact.value, "?" if fact.value.startswith("not worked out") else marks[fact.holds])
        for fact in trace.facts
    ]


def unread(trace: Trace) -> str:
    """What is said of the line that is not run, empty for none."""
    if trace.unread is None:
        return ""
    before = "The lines before it are shown." if len(trace.steps) > 1 or trace.facts else "No line ran before it."
    return f"Line {trace.unread.line} is not run: {trace.unread.why} {before}"


def headline(trace: Trace) -> tuple[str, str]:
    """The answer as one sentence and a quieter line of detail, in small markup (``**bold**``, `` `code` ``)."""
    sentence, detail = _outcome(trace)
    wrong = next((fact for fact in trace.facts if fact.holds is False), None)
    if wrong is None or len(trace.steps) < 2:
        return sentence, detail
    return f"`{_short(wrong.text)}` **fails** on line {wrong.line}: {wrong.value}.", f"{sentence} {detail}".strip()


def _outcome(trace: Trace) -> tuple[str, str]:
    """What the steps come to."""
    last = trace.last
    if last.kind == "refused":
        return _refused(trace, last)
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
    if trace.bytes_copied:
        return _copied(trace)
    return _viewed(trace, last)


def _asked_alone(trace: Trace) -> tuple[str, str]:
    """Of a program that makes no tensor."""
    if not trace.facts:
        return "No tensor is made by these lines.", ""
    fact = trace.facts[-1]
    if fact.holds is not None:
        return f"`{_short(fact.text)}` **{'holds' if fact.holds else 'fails'}**.", fact.value
    return f"`{_short(fact.text)}` is **{_short(fact.value)}**.", "No tensor is made by these lines."


def kept_bytes(trace: Trace) -> int:
    """Bytes of all storages that operations keep for backward, each counted once."""
    return sum({saved.storage: saved.bytes for step in trace.steps for saved in step.keeps}.values())


def _gradients(trace: Trace) -> tuple[str, str]:
    """Which tensors have a gradient, and what is saved to find it."""
    started = next(step for step in reversed(trace.steps) if step.operation == "backward")
    left = [step for step in trace.steps if step.operation == "gradient" and step.number > started.number]
    made = sum(step.bytes_allocated for step in left)
    names = list(dict.fromkeys(step.name for step in left))
    added = f", **{bytes_text(made)}**" if made else ", added to those that were there"
    who = f"a gradient at {_listed(names)}{added}" if names else "no gradient anywhere"
    return f"`{_short(started.expression)}` leaves {who}.", f"Saved for it: {bytes_text(saved_bytes(trace))}."


def _refused(trace: Trace, step: TraceStep) -> tuple[str, str]:
    tried = trace.steps[step.inputs[0] if step.inputs else 0]
    verdict = step.verdict
    if verdict is not None and verdict.boundary is not None:
        where = "for x" if tried.kind == "start" else f"after `{_short(tried.source)}`"
        edge = verdict.boundary
        detail = ""
        if verdict.hops is not None:
            cells = ", ".join(f"{cell}" for cell in verdict.hops.cells)
            steps = ", ".join(f"{step:+d}".replace("-", "−") for step in verdict.hops.steps)
            detail = (
                f"New dimension {verdict.hops.new_dim} would visit cells {cells}: steps of {steps}. "
                "One dimension has one stride. "
            )
        copied = bytes_text(verdict.copied_bytes(step.element_size) or 0)
        detail += f"A copy costs **{copied}**."
        return (
            f"`{_short(step.source)}` **fails**: {where} the strides are {shape_text(tried.layout.stride)}, so "
            f"dimensions {edge.left} and {edge.right} cannot merge: **{edge.arithmetic}**.",
            detail,
        )
    if verdict is not None:
        return f"`{_short(step.source)}` **fails**: {step.reason}.", ""
    of = f" on a tensor of shape {shape_text(tried.layout.shape)}" if tried.storage >= 0 else ""
    why = step.reason.rstrip("?")
    reason = f": {why}" if why else of
    lines = step.error_message.strip().splitlines() or [""]
    text = f"{step.error_type}: {lines[-1 if step.error_type == 'EinopsError' else 0].strip()}"  # which names it last
    if trace.suits:
        reason = f" on x of {trace[0].dtype}: choose **{trace.suits} as Element type**, and it runs"
    return f"`{_short(step.source)}` **fails**{reason}.", _short(text, 200)


PARTLY = ("tril", "triu", "masked_", "scatter", "index_")
"""Operations in place that write only a part of their tensor; which cells is not known of one that is only counted."""


def _written(trace: Trace, step: TraceStep) -> tuple[str, str]:
    cells = f"storage cell **{step.written[0]}**" if len(step.written) == 1 else f"**{step.touched:,} cells**"
    if trace.counted and step.operation.startswith(PARTLY):
        cells = f"some of {cells}"
    if not step.touched:
        return f"`{_short(step.expression)}` writes {cells}.", ""
    through = trace.steps[step.inputs[0]]
    writer, number = trace.label(through, step.number), origin(trace.steps, through)
    seen = [trace.steps[number] for number in step.changed]
    itself: dict[str, bool] = {}
    others: dict[str, bool] = {}
    for item in (through, *seen):
        old = is_old(trace.steps, item, step.number)
        for label in names_of(trace.steps, item, step.number) or [trace.label(item, step.number)]:
            if label != writer:
                (itself if origin(trace.steps, item) == number else others).setdefault(label, old)
    again = _repeated(trace, step) + _moved_on(trace, step, seen)
    seers = {**itself, **others}
    obvious = "x" if writer.startswith("x[") else ""  # of a write to x[0]
    bold = sorted(seers, key=lambda label: (label == obvious, label != "x", seers[label]))
    if step.storage != 0 and trace.starts_with_x:
        maker = next(s for s in trace.steps if s.storage == step.storage)
        what = f"a {word(maker)}" if word(maker) in ("copy", "new tensor") else "another storage"
        result = maker.source if maker.source.startswith(".") else maker.expression
        rest = [label for label in bold if label != "x"]
        also = f" {_listed(rest)} {_shows(rest)} it too." if rest else ""
        named = trace.steps[step.number].names
        other = "x" if "x" in named and writer != "x" else trace.label(trace.steps[0], step.number)
        outcome = "x shows it too" if "x" in bold else f"{other} keeps its values"
        return (
            f"`{_short(step.expression)}` writes {cells} of {what}, so **{outcome}**.",
            f"`{_short(result)}` made it, with a storage of its own.{also}{again}",
        )
    text = f"`{_short(step.expression)}` writes {cells}" + (
        f", so **{_short(bold[0])} shows it too**." if bold else "."
    )
    more: list[str] = []
    if others:
        more.append(f"{_listed([writer, *others])} are one storage, read through {_reading(through, *seen)}.")
    if itself:
        more.append(f"{_listed([writer, *itself])} are one and the same tensor.")
    return text, f"{' '.join(more) or _alone(trace, step)}{again}"


def _reading(*tensors: TraceStep) -> str:
    """What tensors on one storage differ in, as the end of a sentence."""
    layouts = [layout for step in tensors for layout in [piece.layout for piece in step.pieces] or [step.layout]]
    told = {
        "shapes": {layout.shape for layout in layouts},
        "strides": {layout.stride for layout in layouts},
        "offsets": {layout.offset for layout in layouts},
        "element types": {step.dtype for step in tensors},
    }
    different = [name for name, values in told.items() if len(values) > 1]
    return f"different {listed(different)}" if different else "the same shape, strides and offset"


def _moved_on(trace: Trace, step: TraceStep, seen: Sequence[TraceStep]) -> str:
    """Which names of tensors that see a write stand for something else by then."""
    now = trace.steps[step.number].names
    names = list(dict.fromkeys(s.name for s in seen if s.name in now and is_old(trace.steps, s, step.number)))
    return f" By then {_listed(names)} {'names' if len(names) == 1 else 'name'} something else." if names else ""


def _alone(trace: Trace, step: TraceStep) -> str:
    """What is not touched when nobody else sees a write."""
    writer = trace.steps[step.inputs[0]]
    made = [s for s in trace.steps[: step.number] if s.kind in ("start", "view", "copy", "same") and s.storage >= 0]
    others = [s for s in made if origin(trace.steps, s) != origin(trace.steps, writer)]
    if not others:
        name = trace.label(writer, step.number)
        only = "x" if name == "x" else f"`{_short(name)}`"
        last = step.number == len(trace.steps) - 1
        return f"{only} is the only tensor here." if last else f"{only} was the only tensor then."
    beside = list(dict.fromkeys(trace.label(s, step.number) for s in others if s.storage == step.storage))
    if not beside:
        return "No other tensor reads these cells."
    verb = "shares" if len(beside) == 1 else "share"
    return f"No other tensor reads these cells: {_listed(beside)} {verb} the storage but none of them."


def _repeated(trace: Trace, step: TraceStep) -> str:
    """The hazard of elements that share a cell: it is written once for each."""
    if step.updates == step.touched:
        return ""
    cell, times = step.fullest
    earlier = [s for s in trace.steps[: step.number] if (s.storage, s.dtype) == (step.storage, step.dtype)]
    values = ""
    if earlier and cell < min(len(earlier[-1].storage_values), len(step.storage_values)):
        values = f", from {earlier[-1].storage_values[cell]} to {step.storage_values[cell]}"
    fall = f"**{step.updates:,} updates fall on {step.touched:,} cells**"
    return f" {fall}: cell {cell} is written {times} times{values}."


def _listed(labels: Sequence[str], most: int = 4) -> str:
    parts = [f"`{_short(label, 32)}`" for label in labels[:most]]
    if len(labels) > most:
        return f"{', '.join(parts)} and {len(labels) - most} more"
    return listed(parts)


def _shows(labels: Sequence[str]) -> str:
    return "shows" if len(labels) == 1 else "show"


def _start(step: TraceStep) -> tuple[str, str]:
    layout = step.layout
    cells = f"{step.storage_elements:,} cell" + ("" if step.storage_elements == 1 else "s")
    elements = f"{layout.numel:,} element" + ("" if layout.numel == 1 else "s")
    reading = "reading them" if layout.numel == step.storage_elements else f"reading **{elements}** from it"
    rule = " + ".join([str(layout.offset), *(f"i{_subscript(d)}·{s}" for d, s in enumerate(layout.stride))])
    element = ", ".join(f"i{_subscript(d)}" for d in range(layout.rank))
    return (
        f"x is a row of **{cells}** and a rule for {reading}: shape {shape_text(layout.shape)}, "
        f"strides **{shape_text(layout.stride)}**.",
        f"Element ({element}) lies in cell {rule}." if layout.rank else "Without dimensions there is a single element.",
    )


_NAMED = 8
"""Steps that a sentence names; more are in the list of steps."""


def _copied(trace: Trace) -> tuple[str, str]:
    done = [step for step in trace.steps[1:] if step.operation != "piece" and step.kind != "refused"]
    table = {step.number: sum(trace.made_by(step).values()) for step in done}
    result = [step for step in done if table[step.number]]
    total, steps = bytes_text(trace.bytes_copied), len(done)
    noted = any(map(notable_bytes, trace.steps))
    inside = f" and **{bytes_text(trace.bytes_inside)}** inside, freed again" if noted else ""
    if len(result) > 1:
        names = ", ".join(f"`{_short(step.source)}` {bytes_text(table[step.number])}" for step in result[:_NAMED])
        names += f", and {len(result) - _NAMED:,} more" if len(result) > _NAMED else ""
        who = "Every step allocates" if len(result) == steps else f"**{len(result)} of {steps} steps** allocate"
        once = f"; at most **{bytes_text(max(trace.at_once))}** at once" if inside else ""
        return f"{who} new storage: **{total}** in all{inside}{once}.", most_inside(trace) or f"{names}."
    other = [step for step in done if step is not result[0]]
    rest = "" if not other else f"; the other {steps - 1} steps allocate nothing"
    if len(other) == 1:
        does = "is only a name" if other[0].operation == "name" else "allocates nothing"
        rest = f"; the other step {'is a view' if other[0].kind == 'view' else does}"
    (step,) = result
    did = "copies" if step.operation in COPYING else "computes"
    detail = ""
    if step.verdict is not None and step.verdict.boundary is not None:
        detail = f"It could not be a view: {step.verdict.reason}."
    elif step.operation == "ravel" and step.verdict is not None and step.verdict.works:
        detail = "`.reshape(-1)` would have been a view here: ravel copies whatever is not contiguous."
    elif step.operation == "contiguous":
        tried = trace.steps[step.inputs[0]].layout
        planned = trace.calls[step.number - 1]
        given = [v.name for v in (*planned.args, *dict(planned.keywords).values()) if isinstance(v, MemoryFormat)]
        order = next((name for name in given if name != "contiguous_format"), "row-major")
        detail = (
            f"Strides {shape_text(tried.stride)} are not {order} for shape {shape_text(tried.shape)}; "
            f"in the copy they are {shape_text(step.layout.stride)}."
        )
    if not detail and step.reason:
        detail = f"{_sentence(step.reason)}."
    return f"`{_short(step.source)}` {did} **{total}** into new storage{inside}{rest}.", detail


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _viewed(trace: Trace, last: TraceStep) -> tuple[str, str]:
    tried = trace.steps[last.inputs[0] if last.inputs else 0]
    layout = tried.layout
    if last.operation == "indexing" and last.layout.rank == 0 and tried.kind == "start" and not trace.counted:
        index = _indices(layout, last.layout.offset)
        products = " + ".join(f"{i}·{s}" for i, s in zip(index, layout.stride, strict=True))
        return (
            f"`{_short(last.expression)}` is storage cell **{last.layout.offset}** = {layout.offset} + {products}.",
            "Offset plus, for each dimension, index times stride. The element stays where it is: 0 bytes copied.",
        )
    if last.operation == "view" and last.verdict is not None and not tried.is_contiguous:
        merged = any(run.last > run.first for run in last.verdict.runs)
        if merged and " merge" in last.verdict.reason:
            return (
                f"`{_short(last.source)}` works although `{_short(tried.expression)}` is **not contiguous**: "
                f"{last.verdict.reason}.",
                "A view needs strides that merge, not contiguity. Every step is a view: **0 bytes** copied.",
            )
    steps = len(trace.steps) - 1
    storage = bytes_text(trace.steps[0].bytes_allocated)
    who = f"`{_short(last.source)}` is a view" if steps == 1 and last.kind == "view" else "Every step is a view"
    if all(step.kind == "same" for step in trace.steps[1:]):
        return (
            "Nothing happens: the result is **x itself**.",
            "torch returns the same tensor when there is nothing to do.",
        )
    why = f"{_sentence(last.reason)}." if steps == 1 and last.reason else ""
    if any(step.kind == "copy" for step in trace.steps):  # of a tensor without elements
        return "No step allocates memory: **0 bytes** copied.", why
    return (
        f"{who}: **0 bytes** copied.",
        f"{why} x and its views read the same {storage} of storage, each through its own shape, strides and offset.",
    )


def layout_texts(step: TraceStep) -> tuple[str, str]:
    """Shape and strides that a line of the timeline has room for: several tensors' together, the cells of a write."""
    if step.kind == "refused":
        return "", ""
    if step.kind == "write":
        return ("1 cell" if len(step.written) == 1 else f"{len(step.written):,} cells"), ""
    if step.pieces and step.picked is None:
        shapes, strides = ({getattr(piece.layout, name) for piece in step.pieces} for name in ("shape", "stride"))
        count = len(step.pieces)
        shape = f"{count} × {shape_text(min(shapes))}" if len(shapes) == 1 else f"{count} tensors"
        return shape, shape_text(min(strides)) if len(strides) == 1 else ""
    return shape_text(step.layout.shape), shape_text(step.layout.stride)


def explanations(trace: Trace) -> tuple[Explanation, ...]:
    """The formulas of Tensor views with the numbers of ``trace``: a cell, a merge, the bytes of the result."""
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
    """Indices of the first element that lies in ``cell``."""
    number = layout.cells().tolist().index(cell)
    indices: list[int] = []
    for size in reversed(layout.shape):
        number, index = divmod(number, size)
        indices.append(index)
    return tuple(reversed(indices))


def _short(text: str, most: int = 48) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _subscript(number: int) -> str:
    return str(number).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
