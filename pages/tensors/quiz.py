"""Tensor views, the quiz: predict shape, strides and storage, then see what torch did. The score lasts the session."""

from __future__ import annotations

import streamlit as st

from core.fields import quantity
from core.tensors.examples.quiz import Grade, Question, grade, items, question
from pages.common import show
from pages.tensors.inputs import TensorInputs, preset_texts

_SCORE, _REVEALED, _MISSING = "t:quiz:score", "t:quiz:revealed", "t:quiz:missing"


def quiz(inputs: TensorInputs) -> None:
    """One question: its code, what to predict, and once revealed the answers with their reasons."""
    with show.errors_under(inputs), st.container(horizontal=True, vertical_alignment="bottom"):
        number = int(
            inputs.ask(
                quantity("q", f"Question, 1 to {len(items())}", "1", "count", low=1, high=len(items()), whole=True)
            )
        )
        st.html(f'<p class="np-score">{_score()}</p>')
    question_shown = question(number - 1)
    start = ", ".join(map(str, question_shown.item.shape))
    numel = question_shown.run[0].layout.numel
    head = f"x = torch.arange({numel}, dtype=torch.{question_shown.item.dtype}).view({start or '()'})"
    st.code(f"{head}\n{question_shown.item.source}", language="python")
    keys = [f"t:quiz:{number}:{place}" for place in range(len(question_shown.asks))]

    def reveal() -> None:
        choices = [st.session_state.get(key) for key in keys]
        given = tuple(choice for choice in choices if isinstance(choice, int))
        st.session_state[_MISSING] = len(given) < len(keys)
        if len(given) < len(keys):
            return
        st.session_state.setdefault(_REVEALED, {})[number] = given
        right = sum(item.correct for item in grade(question_shown, given))
        # What counts is the first guess: later ones have seen the answer.
        st.session_state.setdefault(_SCORE, {}).setdefault(number, (right, len(given)))

    with st.form(f"t:quiz:{number}", border=False):
        for ask, key in zip(question_shown.asks, keys, strict=True):
            places = range(len(ask.options))
            st.radio(ask.prompt, places, index=None, horizontal=True, format_func=ask.options.__getitem__, key=key)
        st.form_submit_button("Reveal", on_click=reveal)
    if st.session_state.pop(_MISSING, False):
        show.error("Choose one answer to each question first.")
    revealed = st.session_state.get(_REVEALED, {}).get(number)
    if revealed is not None:
        _reveal(inputs, question_shown, grade(question_shown, revealed), number, start)


def _score() -> str:
    scores: dict[int, tuple[int, int]] = st.session_state.get(_SCORE, {})
    if not scores:
        return "No answers yet."
    right, number = (sum(values) for values in zip(*scores.values(), strict=True))
    questions = "1 question" if len(scores) == 1 else f"{len(scores)} questions"
    return f"<b>{right} of {number}</b> predictions right, in {questions}."


def _reveal(inputs: TensorInputs, question_shown: Question, grades: tuple[Grade, ...], number: int, start: str) -> None:
    rows = [
        (
            show.badge("right" if g.correct else "wrong", "optimizer" if g.correct else "gradients"),
            ask.prompt,
            f"**{g.answer}**",
            g.reason,
        )
        for ask, g in zip(question_shown.asks, grades, strict=True)
    ]
    show.small_table([show.Column(name) for name in ("", "Asked", "torch", "Why")], rows)

    def see() -> None:
        for name, value in preset_texts(question_shown.item.source, start or "()", question_shown.item.dtype).items():
            st.session_state[inputs.key(name)] = value

    def go_on() -> None:
        st.session_state[inputs.key("q")] = str(number % len(items()) + 1)

    with st.container(horizontal=True):
        st.button("Next question", key="t:quiz:next", on_click=go_on, type="primary")
        st.button("See it drawn above", key="t:quiz:see", on_click=see)
