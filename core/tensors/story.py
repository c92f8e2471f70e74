"""What a trace means, in sentences: the answer, the reason behind it, and the formulas with the trace's numbers."""

from __future__ import annotations

from collections.abc import Sequence

from core.formula import Explanation
from core.tensors.cost import matrix_cell, merging_stride, tensor_bytes
from core.tensors.layout import Layout
from core.tensors.trace import Kind, Step, Trace

KIND_WORDS: dict[Kind, str] = {
    "start": "start",
    "same": "same tensor",
    "view": "view",
    "copy": "copy",
    "write": "written in place",
    "refused": "refused",
}
"""What a kind of step is called on the page."""


COPYING = frozenset(
    [
        "reshape",
        "flatten",
        "ravel",
        "contiguous",
        "clone",
        "flip",
        "roll",
        "rearrange",
        "picking",
        "index_select",
        "repeat",
        "repeat_interleave",
        "tile",
        "cat",
        "stack",
        "diag",
        "to",
    ]
)
"""Operations whose new storage holds the old elements, rearranged; the others compute new values."""


def word(step: Step) -> str:
    """What happened in ``step`` in a word or two; a new tensor with new values is no copy."""
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


def bytes_text(count: int) -> str:
    """Bytes of storage, exact."""
    return f"{count:,} B"


def headline(trace: Trace) -> tuple[str, str]:
    """The answer as one sentence and a quieter line of detail, in the page's markup (``**bold**``, `` `code` ``)."""
    last = trace.last
    if last.kind == "refused":
        return _refused(trace, last)
    if last.kind == "write":
        return _written(trace, last)
    if last.kind == "start":
        return _start(last)
    writes = [step for step in trace.steps if step.kind == "write"]
    if writes and last.kind in ("same", "view"):
        return _written(trace, writes[-1])
    if trace.bytes_copied:
        return _copied(trace)
    return _viewed(trace, last)


def _refused(trace: Trace, step: Step) -> tuple[str, str]:
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
    reason = (
        f": {step.reason.rstrip('?')}" if step.reason else f" on a tensor of shape {shape_text(tried.layout.shape)}"
    )
    said = f"{step.error_type}: {step.error_message}".splitlines()[0]
    who = "einops" if step.error_type == "EinopsError" else "torch"
    return f"{who} **refuses** `{_short(step.source)}`{reason}.", _short(said, 200)


def _written(trace: Trace, step: Step) -> tuple[str, str]:
    cells = f"storage cell **{step.written[0]}**" if len(step.written) == 1 else f"**{len(step.written):,} cells**"
    through = trace.steps[step.inputs[0]].label
    seen = [trace.steps[number].label for number in step.changed]
    others = [label for label in dict.fromkeys(seen) if label != through]
    if step.storage != 0:
        copier = next(s for s in trace.steps if s.storage == step.storage)
        also = f" {_listed(others)} {_shows(others)} it too." if others else ""
        return (
            f"`{_short(step.expression)}` writes {cells} of a copy, so **x keeps its values**.",
            f"The copy was made by `{_short(copier.source)}` and has its own storage.{also}",
        )
    if not others:
        return f"`{_short(step.expression)}` writes {cells}.", "x is the only tensor here."
    bold = f"**{'x' if 'x' in others else _short(others[0])} shows it too**"
    more = f"`{_short(through)}` and {_listed(others)} are one storage, read through different shapes and strides."
    return f"`{_short(step.expression)}` writes {cells}, so {bold}.", more


def _listed(labels: Sequence[str], most: int = 4) -> str:
    shown = [f"`{_short(label, 32)}`" for label in labels[:most]]
    if len(labels) > most:
        return f"{', '.join(shown)} and {len(labels) - most} more"
    return " and ".join([part for part in (", ".join(shown[:-1]), shown[-1]) if part])


def _shows(labels: Sequence[str]) -> str:
    return "shows" if len(labels) == 1 else "show"


def _start(step: Step) -> tuple[str, str]:
    layout = step.layout
    cells = f"{layout.numel:,} cell" + ("" if layout.numel == 1 else "s")
    rule = " + ".join(["offset", *(f"i{_subscript(d)}·{s}" for d, s in enumerate(layout.stride))])
    element = ", ".join(f"i{_subscript(d)}" for d in range(layout.rank))
    return (
        f"x is a row of **{cells}** and a rule for reading them: shape {shape_text(layout.shape)}, "
        f"strides **{shape_text(layout.stride)}**.",
        f"Element ({element}) lies in cell {rule}." if layout.rank else "Without dimensions there is a single element.",
    )


def _copied(trace: Trace) -> tuple[str, str]:
    made = [step for step in trace.steps[1:] if step.bytes_allocated]
    total = bytes_text(trace.bytes_copied)
    steps = len(trace.steps) - 1
    if len(made) > 1:
        names = ", ".join(f"`{_short(step.source)}` {bytes_text(step.bytes_allocated)}" for step in made)
        who = "Every step allocates" if len(made) == steps else f"**{len(made)} of {steps} steps** allocate"
        return f"{who} new storage: **{total}** in all.", f"{names}."
    (step,) = made
    rest = {1: "", 2: "; the other step is a view"}.get(steps, f"; the other {steps - 1} steps allocate nothing")
    did = "copies" if step.operation in COPYING else "computes"
    detail = ""
    if step.verdict is not None and step.verdict.boundary is not None:
        detail = f"It could not be a view: {step.verdict.reason}."
    elif step.operation == "ravel" and step.verdict is not None and step.verdict.works:
        detail = "`.reshape(-1)` would have been a view here: ravel copies whatever is not contiguous."
    elif step.operation == "contiguous":
        tried = trace.steps[step.inputs[0]].layout
        detail = (
            f"Strides {shape_text(tried.stride)} are not row-major for shape {shape_text(tried.shape)}; "
            f"in the copy they are {shape_text(step.layout.stride)}."
        )
    if not detail and step.reason:
        detail = f"{_sentence(step.reason)}."
    return f"`{_short(step.source)}` {did} **{total}** into new storage{rest}.", detail


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _viewed(trace: Trace, last: Step) -> tuple[str, str]:
    tried = trace.steps[last.inputs[0] if last.inputs else 0]
    layout = tried.layout
    if last.operation == "indexing" and last.layout.rank == 0 and tried.kind == "start":
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
    why = f"{_sentence(last.reason)}. " if steps == 1 and last.reason else ""
    return (
        f"{who}: **0 bytes** copied.",
        f"{why}x and its views read the same {storage} of storage, each through its own shape, strides and offset.",
    )


TABLE_HEADINGS: tuple[str, ...] = (
    "Step",
    "Shape",
    "Strides",
    "Offset",
    "Contiguous",
    "Dtype",
    "Storage",
    "View or copy",
    "New storage",
    "Why",
)


def table(trace: Trace) -> list[tuple[str, ...]]:
    """One row per step under `TABLE_HEADINGS`; a refused step has no layout of its own."""
    rows: list[tuple[str, ...]] = []
    for step in trace.steps:
        layout = step.layout
        if step.kind == "refused":
            rows.append((f"`{step.source}`", "", "", "", "", "", "", word(step), "", step.reason))
            continue
        rows.append(
            (
                f"`{step.source}`",
                shape_text(layout.shape),
                shape_text(layout.stride),
                str(layout.offset),
                "yes" if step.is_contiguous else "no",
                step.dtype,
                letter(step.storage),
                word(step),
                bytes_text(step.bytes_allocated),
                step.reason,
            )
        )
    return rows


def explanations(trace: Trace) -> tuple[Explanation, ...]:
    """The formulas of this page with the numbers of ``trace``: a cell, a merge, the bytes of the result."""
    last = trace.last
    made: list[Explanation] = []
    matrix = next((s for s in reversed(trace.steps) if s.layout.rank == 2 and s.layout.numel), None)
    if matrix is not None:
        row, column = matrix.layout.shape[0] - 1, matrix.layout.shape[1] - 1
        if last.operation == "indexing" and last.layout.rank == 0 and last.inputs == (matrix.number,):
            row, column = _indices(matrix.layout, last.layout.offset)
        row_stride, column_stride = matrix.layout.stride
        made.append(
            matrix_cell.explain(
                offset=matrix.layout.offset, row=row, row_stride=row_stride, column=column, column_stride=column_stride
            )
        )
    edge = None if last.verdict is None else last.verdict.boundary
    if edge is not None:
        made.append(merging_stride.explain(stride=edge.right_stride, size=edge.right_size))
    allocating = next((s for s in reversed(trace.steps) if s.bytes_allocated), trace.steps[0])
    made.append(tensor_bytes.explain(elements=allocating.storage_elements, element_bytes=allocating.element_size))
    return tuple(made)


def _indices(layout: Layout, cell: int) -> tuple[int, ...]:
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
