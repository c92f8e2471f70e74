"""Float formats: what a number becomes in each format, bit by bit, and what that does to training."""

import streamlit as st

from core.floats.comparison import comparable_format, store
from core.floats.typed_numbers import code_text
from core.views.floats.latex import value_latex
from core.views.floats.text import describe_outcome
from pages.common import show
from pages.common.registry import EXERCISES, FLOATS
from pages.common.theme import TOKENS, projecting
from pages.floats import bits
from pages.floats.arithmetic import arithmetic
from pages.floats.inputs import FloatInputs, choice_of, policies, read_inputs
from pages.floats.landscape import landscape
from pages.floats.rounding import agree, everywhere, microscope
from pages.floats.training import training

PRESETS = {
    group: {
        preset: {"x": number, "over": "format", **choice_of(format_name)} for preset, number, format_name in presets
    }
    for group, presets in {
        "Precision": (
            ("0.1 is never exact", "0.1", "bf16"),
            ("The lecture’s 0.15625", "0.15625", "fp32"),
            ("Double rounding", "1 + 2^-8 + 2^-40", "bf16"),
            ("3 in E8M0", "3", "e8m0fnu"),
        ),
        "Too small": (
            ("1e-8 in fp16", "1e-8", "fp16"),
            ("2⁻¹³³ in bf16", "2^-133", "bf16"),
        ),
        "Too large": (
            ("65504 fits fp16", "65504", "fp16"),
            ("65520 does not", "65520", "fp16"),
            ("3.0e38 fits bf16", "3.0e38", "bf16"),
        ),
        "fp8 and NaN": (
            ("448 fits E4M3", "448", "fp8_e4m3fn"),
            ("464 is a tie", "464", "fp8_e4m3fn"),
            ("465 is NaN", "465", "fp8_e4m3fn"),
            ("NaN", "nan", "fp16"),
        ),
    }.items()
}


def page() -> None:
    """Inputs, what the number becomes bit by bit, and the panels behind it."""
    inputs = FloatInputs(FLOATS)

    def take_flip() -> None:
        """A flipped bit rewrites the typed text, which alone says what number the page is about."""
        fmt = inputs.chosen()
        code = bits.flipped(fmt)
        if code is not None:
            inputs.type_in(code_text(code, fmt, st.session_state.get(inputs.key("over"), "format")))

    place = show.slot()
    number_inputs = read_inputs(inputs)
    errors = show.slot()
    with place, st.container(horizontal=True, key="f_presets"):
        for number, (group, presets) in enumerate(PRESETS.items()):
            with st.container(width="content", gap=None):
                st.html(f'<p class="np-note">{group}</p>')
                inputs.presets(presets, into=show.slot(), key=f"presets{number}")

    typed, fmt, overflow = number_inputs.typed, number_inputs.fmt, number_inputs.overflow
    stored = store(typed, fmt, overflow)
    with show.guarded("The answer in words"):
        description = describe_outcome(stored)
        show.answer(description.answer, description.detail)
    bits.bit_strip(stored.view, take_flip)
    with st.container(key="floats_formula"), show.guarded("The formula of the value"):
        for row in value_latex(stored.view, TOKENS, in_symbols=not projecting()):
            st.latex(row)
    if projecting():
        with st.container(key="floats_beside"), show.guarded("The same number in another format"):
            bits.still_strip(store(typed, comparable_format(typed, fmt)))
    bits.facts(stored, policies(fmt))

    for title, draw in (
        ("In every format", lambda: everywhere(inputs, number_inputs)),
        ("The number among its neighbours", lambda: microscope(number_inputs, stored)),
        ("What other libraries say", lambda: agree(number_inputs)),
        ("Arithmetic", lambda: arithmetic(inputs, number_inputs)),
        ("What rounding does to training", lambda: training(inputs)),
        ("The landscape of formats", lambda: landscape(inputs, number_inputs)),
    ):
        with show.guarded(title), show.errors_under(inputs):
            draw()
    with errors:
        show.input_errors(inputs)
    show.next_page("Exercises on floats: predict, then see", EXERCISES, {"topics": "floats"})
    show.footer(inputs)


show.draw_page(page)
