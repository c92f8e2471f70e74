"""Tensor views, the lecture's program line by line: its parts in order, and the claims that each shows."""

from __future__ import annotations

import streamlit as st

from core.lecture.catalogue import CLAIMS
from core.tensors.examples.lecture import PROGRAM, Part
from pages.common import show
from pages.common.registry import LECTURE, TENSORS
from pages.tensors.inputs import TensorInputs, preset_texts


def program() -> None:
    """Every part: a link that opens it above, how many lines it has, and its claims."""
    show.note(
        "The lecture’s program in our words, part by part. A part opens above with each assert worked out, ✓ or ✗, "
        "each value shown, and the storage of its last line drawn."
    )
    show.small_table(
        [show.Column("Part"), show.Column("Lines", numeric=True), show.Column("Claims that it shows")],
        [(_opens(part, part.title), str(len(part.source.splitlines())), _claims(part)) for part in PROGRAM],
    )


def where_it_stands(inputs: TensorInputs) -> None:
    """Of code that is a part of the program: which, its claims at their lines, and the parts beside it."""
    here = next((number for number, part in enumerate(PROGRAM) if part.source == inputs.shown["x"]), None)
    if here is None:
        return
    beside = (("before", PROGRAM[max(here - 1, 0) : here]), ("next", PROGRAM[here + 1 : here + 2]))
    ways = "".join(f" · {word}: {_opens(part, part.title)}" for word, parts in beside for part in parts)
    says = f"Part {here + 1} of {len(PROGRAM)} of the lecture’s program · {_claims(PROGRAM[here])}{ways}"
    st.html(f'<p class="np-note">{says}</p>')


def _opens(part: Part, label: str) -> show.Html:
    return show.link(label, TENSORS, preset_texts(part.source, dtype="float32"))


def _claims(part: Part) -> show.Html:
    claims = [(line, CLAIMS[name]) for name, line in part.claims.items()]
    links = (
        f"line {line}: {show.link(f'{one.number} {one.name}', LECTURE, {'claim': one.id})}" for line, one in claims
    )
    return show.Html(", ".join(links))
