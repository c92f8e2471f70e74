"""Float formats: what a number becomes in each format, bit by bit, and what that does to training."""

import streamlit as st

from core.floats.comparison import comparable_format, store
from core.floats.typed_numbers import code_text
from core.messages import message
from core.views.floats.latex import value_latex
from core.views.floats.text import answer_text, detail_texts, format_summary
from pages.common import show
from pages.common.registry import EXERCISES, FLOATS
from pages.common.theme import TOKENS, projecting
from pages.floats import bits
from pages.floats.arithmetic import arithmetic
from pages.floats.inputs import FloatInputs, choice_of, read_inputs
from pages.floats.landscape import landscape
from pages.floats.rounding import everywhere, libraries, microscope
from pages.floats.training import training

PRESETS: dict[str, dict[str, str]] = {
    preset: {"x": number, "over": "format", **choice_of(format_name)}
    for preset, number, format_name in (
        (message("floats.preset.tenth"), "0.1", "bf16"),
        (message("floats.preset.lecture"), "0.15625", "fp32"),
        (message("floats.preset.tiny"), "1e-8", "fp16"),
        (message("floats.preset.subnormal"), "2^-133", "bf16"),
        (message("floats.preset.overflow"), "65520", "fp16"),
        (message("floats.preset.large"), "3.0e38", "bf16"),
        (message("floats.preset.fp8_tie"), "464", "fp8_e4m3fn"),
        (message("floats.preset.fp8_nan"), "465", "fp8_e4m3fn"),
        (message("floats.preset.nan"), "nan", "fp16"),
        (message("floats.preset.double"), "1 + 2^-8 + 2^-40", "bf16"),
    )
}


def page() -> None:
    """Draw the inputs, what the number becomes bit by bit, and the panels behind it."""
    inputs = FloatInputs(FLOATS)

    def take_flip() -> None:
        """Rewrite the entered text after a flipped bit. Only this text says which number the page shows."""
        fmt = inputs.chosen()
        code = bits.flipped(fmt)
        if code is not None:
            inputs.type_in(code_text(code, fmt, st.session_state.get(inputs.key("over"), "format")))

    place = show.slot()
    number_inputs = read_inputs(inputs)
    errors = show.slot()
    inputs.presets(PRESETS, into=place)

    typed, fmt, overflow = number_inputs.typed, number_inputs.fmt, number_inputs.overflow
    stored = store(typed, fmt, overflow)
    with show.guarded(message("floats.section.answer")):
        show.answer(answer_text(stored), " ".join(detail_texts(stored)))
    bits.bit_strip(stored.view, take_flip)
    with st.container(key="floats_formula"), show.guarded(message("floats.section.formula")):
        for row in value_latex(stored.view, TOKENS, in_symbols=not projecting()):
            st.latex(row)
    if projecting():
        with st.container(key="floats_beside"), show.guarded(message("floats.section.other")):
            bits.still_strip(store(typed, comparable_format(typed, fmt)))
    bits.facts(stored, format_summary(fmt))

    for title, draw in (
        (message("floats.everywhere.title"), lambda: everywhere(inputs, number_inputs)),
        (message("rounding.title"), lambda: microscope(number_inputs, stored)),
        (message("oracles.title"), lambda: libraries(number_inputs)),
        (message("arithmetic.title"), lambda: arithmetic(inputs, number_inputs)),
        (message("floats.section.training"), lambda: training(inputs)),
        (message("formats.title"), lambda: landscape(inputs, number_inputs)),
    ):
        with show.guarded(title), show.errors_under(inputs):
            draw()
    with errors:
        show.input_errors(inputs)
    show.next_page(message("floats.link.exercises"), EXERCISES, {"topics": "floats"})
    show.footer(inputs)


show.draw_page(page)
