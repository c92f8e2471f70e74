"""Exercises: predict, then see, with the reason; and a sheet of ten to hand in."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.exercises.exercise import Exercise
from core.exercises.path import TITLES, path, read, written
from core.exercises.sheet import LENGTH, TOPICS, Sheet, hand_in, read_handed_in, read_topics, sheet
from core.fields import Field, choice, quantity
from core.limits import limit
from core.views.exercises.text import TEACHING, handed_in, headline, progress, received
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.registry import EXERCISES, PAGE
from pages.common.server.programs import programs_ready

PRACTISE, HAND_IN, PATH = "practise", "hand in", "follow the path"
_ALL = ", ".join(TOPICS)
_NUMBERS = "floats, FLOPs, memory"  # torch answers those on views, and takes a second
_TOPICS = Field("topics", "Topics", _NUMBERS, read_topics, help=f"Any of {_ALL}, separated by commas.")
_SHEET = quantity("sheet", "Sheet", "1", "count", low=1, high=1e6, whole=True)
_MODE = choice(
    "how",
    "To",
    (PRACTISE, HAND_IN, PATH),
    PRACTISE,
    few=True,
    help="Practice asks other questions than the sheet to hand in. The path has nine steps from a bit to 6ND. The "
    "address keeps your answers in both.",
)
_PRESETS = (
    {"Floats, FLOPs, memory": {"topics": _NUMBERS}, "And views": {"topics": _ALL}}
    | {name[0].upper() + name[1:]: {"topics": name} for name in TOPICS if name != "lecture"}
    | {"Does it stand?": {"topics": "lecture"}}
)
_CHOSEN, _HANDED, _STEPS, _PRACTICE = "e:chosen", "e:handed", "steps", "practice"
_NAME = "Your name, as it shall stand on the sheet"
_KEPT = 20  # sheets whose answers a session keeps


def page() -> None:
    """Which sheet, its exercises, and what was chosen."""
    inputs = Inputs(EXERCISES)
    presets = show.slot()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        topics: tuple[str, ...] = inputs.ask(_TOPICS)
        seed = int(inputs.ask(_SHEET))
        mode: str = inputs.ask(_MODE)
        again = show.slot()
    show.input_errors(inputs)
    if mode == PATH:  # the same for everybody; what was typed is kept for the sheets
        st.html("<style>.st-key-e_topics, .st-key-e_sheet { display: none; }</style>")
    else:
        inputs.presets(_PRESETS, into=presets)
    if ("views" in topics or mode == PATH) and (why := programs_ready()):
        show.error(why)
        show.footer(inputs)
        return
    of = path() if mode == PATH else sheet(-seed if mode == PRACTISE else seed, topics)
    if mode == PATH:
        with again:
            st.button("Start over", on_click=_start_over, args=(of,))
        _practise(of, TITLES)
    elif mode == PRACTISE:
        _practise(of)
    else:
        _hand_in(inputs, of)
    with inputs.panel("check", "For lecturers: give a sheet, and check those that were handed in") as opened:
        if opened.open:
            _check(inputs)
    show.footer(inputs)


def _kept(key: str, of: Sheet) -> dict[int, int]:
    """What was chosen on a sheet, by number; of older sheets than the last few nothing is kept."""
    sheets: dict[tuple[int, tuple[str, ...]], dict[int, int]] = st.session_state.setdefault(key, {})
    chosen = sheets.setdefault((of.seed, of.topics), {})
    while len(sheets) > _KEPT:
        del sheets[next(iter(sheets))]
    return chosen


def _start_over(of: Sheet) -> None:
    """Forget what was chosen on the path, here and in the address, which the browser keeps."""
    _kept(_CHOSEN, of).clear()
    st.query_params[_STEPS] = written(of, {})


def _key(of: Sheet, number: int, mode: str) -> str:
    return f"e:{mode}:{of.seed}:{'-'.join(of.topics)}:{number}"


def _practise(of: Sheet, titles: Sequence[str] = ()) -> None:
    """One exercise after the other, each revealed by itself. titles: of the steps of the path."""
    chosen = _kept(_CHOSEN, of)
    address = _STEPS if titles else _PRACTICE
    if not chosen:
        chosen.update(read(of, st.query_params.get(address, "")))
    show.answer(headline(of), progress(of, chosen))
    with st.container(key="exercises-questions"):
        for number, one in enumerate(of.exercises):
            key = _key(of, number, "p")
            if titles:
                show.heading(titles[number])
                page = PAGE[one.shown.page]
                show.next_page(f"Look: {page.title}", page, one.shown.fields, at=one.shown.at)

            def reveal(number: int = number, key: str = key) -> None:
                choice = st.session_state.get(key)
                if isinstance(choice, int):
                    chosen.setdefault(number, choice)
                    st.query_params[address] = written(of, chosen)
                else:
                    st.session_state[f"{key}:missing"] = True

            with st.form(f"{key}:form", border=False):
                _ask(one, number, key, chosen.get(number))
                if number not in chosen:
                    st.form_submit_button("Reveal", on_click=reveal)
            if st.session_state.pop(f"{key}:missing", False):
                show.error("Choose an answer first.")
            if number in chosen:
                _results([(number, one, chosen[number])])
                if one.explanations:
                    show.how(one.explanations, key=f"{key}:how")


def _ask(one: Exercise, number: int, key: str, chosen: int | None = None) -> None:
    if one.code:
        st.code(one.code, language="python")
    places = range(len(one.options))
    st.radio(
        f"{number + 1}. {one.prompt}",
        places,
        index=chosen,
        horizontal=True,
        format_func=one.options.__getitem__,
        key=key if chosen is None else f"{key}:chosen",
        disabled=chosen is not None,
    )


def _results(answers: list[tuple[int, Exercise, int | None]]) -> None:
    """Right or wrong, the answer given where it is not right, the right one, why, and where to see it."""
    rows = [
        (
            str(number + 1),
            show.badge("right", "optimizer") if one.right(choice) else show.badge("wrong", "gradients"),
            "" if choice is None or one.right(choice) else one.options[choice],
            f"**{one.options[one.answer]}**",
            one.why(choice),
            show.link(
                PAGE[one.shown.page].title, PAGE[one.shown.page], one.shown.fields, at=one.shown.at, new_tab=True
            ),
        )
        for number, one, choice in answers
    ]
    show.small_table(("", "", "Yours", "Answer", "Why", "See it ↗"), rows, words=None)


def _hand_in(inputs: Inputs, of: Sheet) -> None:
    """All exercises at once, and the text of a sheet that was handed in."""
    given = _kept(_HANDED, of)
    keys = [_key(of, number, "h") for number in range(LENGTH)]
    name_key = f"{inputs.key('name')}:given"
    if given:
        choices = [given.get(number) for number in range(LENGTH)]
        show.answer(handed_in(of, choices), "Hand in the two lines below as they stand.")
        with st.container(key="exercises-questions"):
            name = st.text_input(
                _NAME,
                str(st.session_state.get(name_key, "")),
                key=f"{name_key}:after",
                max_chars=limit("plan_name"),
            )
            st.session_state[name_key] = name
            st.code(hand_in(name, of.seed, of.topics, choices), language=None)
            _results([(number, of.exercises[number], choices[number]) for number in range(LENGTH)])
            show.how([each for one in of.exercises for each in one.explanations], key="e:how")
        return
    show.answer(
        headline(of), "All at once, and once: then the score, each answer with its reason, and a text to hand in."
    )
    missing = st.session_state.pop(f"{inputs.key('name')}:missing", 0)
    if missing:
        show.error(f"{missing} of {LENGTH} exercises have no answer yet.")
    with st.container(key="exercises-questions"):

        def take() -> None:
            found = {n: c for n, key in enumerate(keys) if isinstance(c := st.session_state.get(key), int)}
            if len(found) < LENGTH:
                st.session_state[f"{inputs.key('name')}:missing"] = LENGTH - len(found)
                return
            st.session_state[name_key] = st.session_state.get(inputs.key("name"), "")
            given.update(found)

        with st.form(f"{keys[0]}:form", border=False):
            st.text_input(_NAME, key=inputs.key("name"), max_chars=limit("plan_name"))
            for number, (one, key) in enumerate(zip(of.exercises, keys, strict=True)):
                _ask(one, number, key)
            st.form_submit_button("Hand in", on_click=take, type="primary")


def _check(inputs: Inputs) -> None:
    """Sheets that were handed in, pasted as they came."""
    show.note(TEACHING)
    pasted = st.text_area("Handed in, any number of sheets", key=inputs.key("pasted"), max_chars=limit("pasted_chars"))
    if not pasted.strip():
        return
    if "views" in pasted and (why := programs_ready()):
        show.error(why)
        return
    found = read_handed_in(pasted)
    show.takeaway(received(found))
    if found:
        show.small_table(
            ("Name", "Sheet", show.Column("Topics"), "Right", show.Column("Remark", whole=True)),
            [
                (
                    show.typed(one.name),
                    str(one.seed),
                    ", ".join(one.topics),
                    "–" if one.score is None else str(one.score),
                    one.problem or "as it was made",
                )
                for one in found
            ],
        )


show.draw_page(page)
