"""Tensor views, the lecture's program line by line: its parts in order, and the claims that each shows."""

from __future__ import annotations

import streamlit as st

from core.lecture.catalogue import CLAIMS
from core.messages import message
from core.tensors.examples.lecture import PROGRAM, Part
from pages.common import show
from pages.common.registry import LECTURE, TENSORS
from pages.tensors.inputs import TensorInputs, preset_texts


def program() -> None:
    """Draw every part: a link that opens it above, how many lines it has, and its claims."""
    show.small_table(
        [
            show.Column(message("tensors.program.part")),
            show.Column(message("tensors.program.lines"), numeric=True),
            show.Column(message("tensors.program.claims")),
        ],
        [(_opens(part, part.title), str(len(part.source.splitlines())), _claims(part)) for part in PROGRAM],
    )


def where_it_stands(inputs: TensorInputs) -> None:
    """Draw, for code that is part of the lecture's program, which part it is, its claims by line, and the neighboring
    parts."""
    here = next((number for number, part in enumerate(PROGRAM) if part.source == inputs.shown["x"]), None)
    if here is None:
        return
    before, after = message("tensors.program.before"), message("tensors.program.next")
    beside = ((before, PROGRAM[max(here - 1, 0) : here]), (after, PROGRAM[here + 1 : here + 2]))
    ways = "".join(f" · {word}: {_opens(part, part.title)}" for word, parts in beside for part in parts)
    which = message("tensors.program.here", part=float(here + 1), parts=float(len(PROGRAM)))
    st.html(f'<p class="np-note">{which} · {_claims(PROGRAM[here])}{ways}</p>')


def _opens(part: Part, label: str) -> show.Html:
    return show.link(label, TENSORS, preset_texts(part.source, dtype="float32"))


def _claims(part: Part) -> show.Html:
    claims = [(line, CLAIMS[name]) for name, line in part.claims.items()]
    lines = [message("tensors.program.line", line=float(line)) for line, _ in claims]
    ways = [show.link(f"{one.number} {one.name}", LECTURE, {"claim": one.id}) for _, one in claims]
    links = (f"{line}: {way}" for line, way in zip(lines, ways, strict=True))
    return show.Html(", ".join(links))
