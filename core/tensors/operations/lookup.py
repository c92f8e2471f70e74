"""Looking operations up: by the way they are written, as a catalogue of examples, and what is left out and why."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from core.tensors.operations.operation import Group, Operation, Written
from core.tensors.operations.table import ELEMENTWISE, INDEXING, PICKING, ROWS, TOPICS, UPDATING, WRITING
from core.tensors.operations.values import ExpressionError

OPERATIONS: Mapping[tuple[Written, str], Operation] = {(form, row.name): row for row in ROWS for form in row.forms}
"""Every operation by the way it is written and its name."""

REFUSED: Mapping[str, str] = {
    "__setitem__": "an assignment hidden in an expression; write it as a line of its own, x[0, 0] = 100",
    "resize_": "it grows a storage by memory that was never written, which may hold other visitors’ data",
    "set_": "it points a tensor at another storage behind torch’s back, past the checks of bounds",
    "numpy": "it hands the memory to numpy, and who shares it can no longer be followed",
    "from_numpy": "it takes memory that numpy owns, and who shares it can no longer be followed",
    "untyped_storage": "it gives the raw bytes of a tensor, which can be resized and written past every check",
}
"""Operations that are left out by design, and why."""


ANSWERS: Mapping[str, str] = dict.fromkeys(
    ("is_set_to", "_base", "_is_view", "id"),
    "which tensors share memory is shown by the letter of their storage and by their offsets",
)
"""What people ask a tensor for, and what is said of it where it is not understood."""


def topics() -> dict[str, dict[Group, tuple[str, ...]]]:
    """Examples of what one wants to do, by what each does to memory."""
    return {
        topic: _by_group([*rows, *(row for name, row in _WITHOUT_NAMES if topic.startswith(name))])
        for topic, rows in sorted(TOPICS.items(), key=lambda item: not item[0].startswith("Start"))
    }


_WITHOUT_NAMES = (
    ("View", INDEXING),
    ("Pick", PICKING),
    ("Compute", ELEMENTWISE),
    ("Write", WRITING),
    ("Write", UPDATING),
)
"""Operations that have no name, and where they stand."""


def catalogue() -> dict[Group, tuple[str, ...]]:
    """An example of every operation, by what it does to memory, in the order of the table."""
    return _by_group((INDEXING, *ROWS, PICKING, ELEMENTWISE, WRITING, UPDATING))


def _by_group(rows: Sequence[Operation]) -> dict[Group, tuple[str, ...]]:
    groups: dict[Group, list[str]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row.example)
    return {group: tuple(examples) for group, examples in groups.items()}


def find(form: Written, name: str) -> Operation:
    """The operation written ``name`` in this form. Raises `ExpressionError` naming the nearest one, or the answer."""
    operation = OPERATIONS.get((form, name))
    if operation is not None:
        return operation
    before = {"method": ".", "property": ".", "bare": "", "init": "nn.init."}.get(form, f"{form}.")
    text = f"{before}{name[:50]}{'' if form == 'property' else '(…)'}"
    if name in ANSWERS:
        raise ExpressionError(f"`{text}` is not run here: {ANSWERS[name]}.")
    for other in ("method", "property", "torch", "bare", "F", "init"):
        if (other, name) in OPERATIONS:
            raise ExpressionError(f"`{text}` is not written that way here. Try {OPERATIONS[other, name].example}.")
    names = sorted({row.name for row in ROWS}, key=str.lower)
    near = difflib.get_close_matches(name[:40], names, n=1, cutoff=0.7)
    some = ", ".join(f"`{examples[0]}`" for examples in catalogue().values())
    guess = f"Did you mean `{near[0]}`?" if near else f"For example {some}."
    raise ExpressionError(f"`{text}` is not an operation here. {guess}")


_LAYERS: Mapping[str, str] = {
    **{
        name.replace("_", ""): OPERATIONS[form, name].example
        for wanted in ("torch", "method", "F")
        for form, name in OPERATIONS
        if form == wanted
    },
    "bcewithlogitsloss": OPERATIONS["F", "binary_cross_entropy_with_logits"].example,
    "multiheadattention": OPERATIONS["F", "scaled_dot_product_attention"].example,
    "flatten": "x.flatten(1)",
}
"""Layers of torch.nn, in small letters, and the function that computes the same."""


def no_layer(name: str) -> str:
    """What to say of ``nn.Linear(…)``: its function, where that is an operation here."""
    known = name.lower()
    instead = _LAYERS.get(known) or _LAYERS.get(known.removesuffix("loss"))
    if instead is None:
        instead = "its arithmetic, x @ w, with w = torch.ones(3, 4) on a line before"
    return f"`nn.{name[:40]}` makes a layer, and only tensors are made here. Write {instead}."
