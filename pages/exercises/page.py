"""Exercises: answer, then see the solution with its reason; and a sheet of ten to hand in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.exercises.exercise import LETTERS, ChoiceExercise, Exercise, is_readable
from core.exercises.path import TITLES, path, read_answers, write_answers
from core.exercises.sheet import LENGTH, TOPICS, Sheet, hand_in, read_handed_in, read_topics, sheet
from core.fields import Field, choice, quantity
from core.limits import limit
from core.messages import message, messages
from core.number_text import QuantityError
from core.views.exercises.text import handed_in_text, headline, progress, received_text, topic_scores
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.registry import EXERCISES, PAGE
from pages.common.server.programs import programs_ready

PRACTICE, HAND_IN, PATH = "practise", "hand in", "follow the path"
_NUMBERS = "floats, FLOPs, memory"  # torch answers those on views, and takes a second
_TOPICS = Field(
    "topics",
    message("exercises.field.topics"),
    _NUMBERS,
    read_topics,
    help=message("exercises.field.topics_help", topics=list(TOPICS)),
)
_SHEET = quantity(
    "sheet",
    message("exercises.field.sheet"),
    "1",
    "count",
    low=1,
    high=1e6,
    whole=True,
    help=message("exercises.field.sheet_help"),
)
_MODE = choice(
    "how",
    message("exercises.field.mode"),
    (PRACTICE, HAND_IN, PATH),
    PRACTICE,
    few=True,
    short=(message("exercises.mode.practice"), message("exercises.mode.hand_in"), message("exercises.mode.path")),
    help=message("exercises.field.mode_help"),
)
_PRESETS: Mapping[str, Mapping[str, str]] = {
    message("exercises.preset.numbers"): {"topics": _NUMBERS},
    message("exercises.preset.all"): {"topics": "floats, views, FLOPs, memory"},
    message("exercises.preset.floats"): {"topics": "floats"},
    message("exercises.preset.views"): {"topics": "views"},
    message("exercises.preset.flops"): {"topics": "FLOPs"},
    message("exercises.preset.memory"): {"topics": "memory"},
    message("exercises.preset.lecture"): {"topics": "lecture"},
}
_GIVEN, _HANDED, _STEPS, _PRACTICE = "e:given", "e:handed", "steps", "practice"
_KEPT = 20  # sheets whose answers a session keeps


def page() -> None:
    """Draw the fields, the exercises, and the lecturers' panel."""
    inputs = Inputs(EXERCISES)
    presets = show.slot()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        topics: tuple[str, ...] = inputs.ask(_TOPICS)
        seed = int(inputs.ask(_SHEET))
        mode: str = inputs.ask(_MODE)
        again = show.slot()
    show.input_errors(inputs)
    if mode == PATH:  # the same for everybody; what was entered is kept for the sheets
        st.html("<style>.st-key-e_topics, .st-key-e_sheet { display: none; }</style>")
    else:
        inputs.presets(_PRESETS, into=presets)
    if ("views" in topics or mode == PATH) and (why := programs_ready()):
        show.error(why)
    elif mode == HAND_IN:
        _hand_in(inputs, sheet(seed, topics))
    elif mode == PATH:
        again.button(message("exercises.button.start_over"), on_click=_start_over, args=(path(),))
        _practice(path(), TITLES)
    else:
        _practice(sheet(-seed, topics), ())
    with inputs.panel("check", message("exercises.panel.check")) as opened:
        if opened.open:
            _check(inputs)
    show.footer(inputs)


def _answers(key: str, of: Sheet) -> dict[int, str]:
    """Return the answers to a sheet by index, which can be added to. Those of older sheets are forgotten."""
    sheets: dict[tuple[int, tuple[str, ...]], dict[int, str]] = st.session_state.setdefault(key, {})
    given = sheets.setdefault((of.seed, of.topics), {})
    while len(sheets) > _KEPT:
        del sheets[next(iter(sheets))]
    return given


def _start_over(of: Sheet) -> None:
    """Forget the answers to the path, here and in the address, which the browser keeps."""
    _answers(_GIVEN, of).clear()
    st.query_params[_STEPS] = write_answers(of, {})


def _key(of: Sheet, number: int, mode: str) -> str:
    return f"e_{mode}:{of.seed}:{'-'.join(of.topics)}:{number}"


def _practice(of: Sheet, titles: Sequence[str]) -> None:
    """Draw one exercise after the other, each with its own solution. titles: of the steps of the path."""
    given = _answers(_GIVEN, of)
    address = _STEPS if titles else _PRACTICE
    if not given:
        given.update(read_answers(of, st.query_params.get(address, "")))
    show.answer(headline(of), progress(of, given))
    with st.container(key="exercises-questions"):
        for number, one in enumerate(of.exercises):
            key = _key(of, number, "p")
            if titles:
                show.heading(titles[number])
                there = PAGE[one.shown.page]
                label = message("exercises.look", page=there.title)
                show.next_page(label, there, one.shown.fields, at=one.shown.at)

            def reveal(number: int = number, key: str = key, one: Exercise = one) -> None:
                answer = _typed(st.session_state.get(key))
                try:
                    one.check_answer(answer)
                except QuantityError as problem:
                    st.session_state[f"{key}:problem"] = str(problem)
                    return
                given.setdefault(number, answer)
                st.query_params[address] = write_answers(of, given)

            with st.form(f"{key}:form", border=False), _ask(one, number, key, given.get(number)):
                if number not in given:
                    st.form_submit_button(message("exercises.button.reveal"), on_click=reveal)
            if problem := st.session_state.pop(f"{key}:problem", ""):
                show.error(problem)
            if number in given:
                _results([(number, one, given[number])])
                if one.explanations:
                    show.how(one.explanations, key=f"{key}:how")


def _ask(one: Exercise, number: int, key: str, given: str | None = None) -> DeltaGenerator:
    """Draw a question with its options, or with a field for a number, and return the place after it.

    given: the answer, once it counts.
    """
    if one.code:
        st.code(one.code, language="python")
    prompt = message("exercises.question", number=number + 1.0, prompt=one.prompt)
    options: dict[str, Any] = {"key": key if given is None else f"{key}:given", "disabled": given is not None}
    if isinstance(one, ChoiceExercise):
        index = None if given is None else LETTERS.index(given)
        places = range(len(one.options))
        st.radio(prompt, places, index, one.options.__getitem__, horizontal=True, **options)
        return st.container()
    st.html(f"<p>{show.rich(prompt)}</p>")
    row = st.container(horizontal=True)
    options |= {"placeholder": message("exercises.answer_example", example=one.example), "width": 400}
    most = limit("number_chars")
    row.text_input(prompt, given or "", label_visibility="collapsed", max_chars=most, **options)
    return row


def _typed(value: object) -> str:
    """Return what a widget holds as an answer."""
    return LETTERS[value] if isinstance(value, int) else str(value or "").strip()


def _results(answers: Iterable[tuple[int, Exercise, str]]) -> None:
    """Draw for each answer whether it is right, the solution, the reason, and where to see it."""
    rows = [
        (
            str(number + 1),
            show.badge(message("exercises.right"), "optimizer")
            if one.is_right(given)
            else show.badge(message("exercises.wrong"), "gradients"),
            show.typed(one.written(given)),
            f"**{one.solution}**",
            " ".join(one.feedback(given)),
            show.link(
                PAGE[one.shown.page].title, PAGE[one.shown.page], one.shown.fields, at=one.shown.at, new_tab=True
            ),
        )
        for number, one, given in answers
    ]
    show.small_table(
        messages("exercises.heading", "number result given solution why evidence"),
        rows,
        words=None,
    )


def _hand_in(inputs: Inputs, of: Sheet) -> None:
    """Draw all exercises at once, or the text of the sheet once it was handed in."""
    given = _answers(_HANDED, of)
    keys = [_key(of, number, "h") for number in range(LENGTH)]
    name_key, missing_key = f"{inputs.key('name')}:given", f"{inputs.key('name')}:missing"
    if given:
        show.answer(*handed_in_text(of, given))
        with st.container(key="exercises-questions"):
            name = st.text_input(
                message("exercises.name"),
                str(st.session_state.get(name_key, "")),
                key=f"{name_key}:after",
                max_chars=limit("plan_name"),
            )
            st.session_state[name_key] = name
            answers = [given[number] for number in range(LENGTH)]
            st.code(hand_in(name, of.seed, of.topics, answers), language=None, wrap_lines=True)
            _results(zip(range(LENGTH), of.exercises, answers, strict=True))
            show.how([each for one in of.exercises for each in one.explanations], key="e:how")
        return
    show.answer(headline(of), message("exercises.hand_in.detail"))
    if missing := st.session_state.pop(missing_key, 0):
        show.error(message("exercises.hand_in.missing", missing=float(missing)))
    with st.container(key="exercises-questions"):

        def take() -> None:
            answers = {number: _typed(st.session_state.get(key)) for number, key in enumerate(keys)}
            unread = sum(not is_readable(one, answers[number]) for number, one in enumerate(of.exercises))
            if unread:
                st.session_state[missing_key] = unread
                return
            st.session_state[name_key] = st.session_state.get(inputs.key("name"), "")
            given.update(answers)

        with st.form(f"{keys[0]}:form", border=False):
            st.text_input(message("exercises.name"), key=inputs.key("name"), max_chars=limit("plan_name"))
            for number, (one, key) in enumerate(zip(of.exercises, keys, strict=True)):
                _ask(one, number, key)
            st.form_submit_button(message("exercises.button.hand_in"), on_click=take, type="primary")


def _check(inputs: Inputs) -> None:
    """Draw the sheets that were handed in, from pasted text."""
    show.note(message("exercises.teaching"))
    pasted = st.text_area(message("exercises.pasted"), key=inputs.key("pasted"), max_chars=limit("pasted_chars"))
    if not pasted.strip():
        return
    if "views" in pasted and (why := programs_ready()):
        show.error(why)
        return
    found = read_handed_in(pasted)
    show.takeaway(received_text(found))
    if found:
        show.small_table(
            (
                *messages("exercises.received", "name sheet right"),
                show.Column(message("exercises.received.topics")),
                show.Column(message("exercises.received.status"), whole=True),
            ),
            [
                (
                    show.typed(one.name),
                    str(one.seed),
                    "–" if one.score is None else str(one.score),
                    ", ".join(topic_scores(one.scores) if one.scores else one.topics),
                    one.problem or message("exercises.received.valid"),
                )
                for one in found
            ],
        )


show.draw_page(page)
