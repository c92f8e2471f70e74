"""Float formats: what a number becomes in each format, bit by bit."""

import streamlit as st

from core.floats import FORMATS, OVERFLOWS
from core.floats.compare import explain_error, store, store_everywhere
from core.floats.story import tell
from core.floats.text import FloatTextError, clipped, code_text, number_text, parse
from core.floats.view import explain, value_latex
from core.limits import limit
from pages.parts import bits, show
from pages.parts.inputs import Inputs
from pages.parts.registry import FLOATS
from pages.parts.theme import TOKENS

NUMBER, FORMAT = "0.1", "bf16"
STORIES = {
    chip: {"x": number, "fmt": format_name, "over": "format"}
    for chip, number, format_name in (
        ("1e-8 vanishes in fp16", "1e-8", "fp16"),
        ("0.1 is never exact", "0.1", "bf16"),
        ("The lecture’s 0.15625", "0.15625", "fp32"),
        ("65504 fits fp16", "65504", "fp16"),
        ("65520 does not", "65520", "fp16"),
        ("448 fits E4M3", "448", "fp8_e4m3fn"),
        ("464 is a tie", "464", "fp8_e4m3fn"),
        ("3.0e38 fits bf16", "3.0e38", "bf16"),
        ("NaN", "nan", "fp16"),
        ("2⁻¹³³, bf16’s smallest", "2^-133", "bf16"),
    )
}

TYPE_HELP = (
    "A decimal (0.1, 1e-8, 65,504), a fraction (1/3), a power (2^-24, 1.25*2^-3), a hexfloat (0x1.8p-3), nan, -inf; or "
    "a code of the chosen format in hex (0x3c00) or in bits (0 01111 0000000000)."
)
OVERFLOW_HELP = (
    "What a number beyond the largest finite value becomes. format: infinity, or NaN in fp8 E4M3, which has no "
    "infinity. saturate: the largest finite value."
)

inputs = Inputs(FLOATS)
X, FMT, OVERFLOW, SEEN = inputs.key("x"), inputs.key("fmt"), inputs.key("over"), "floats:seen"


def follow_format() -> None:
    """A typed code belongs to its format: when only the format changes, keep the number that the code stood for."""
    text, name = st.session_state.get(SEEN, ("", ""))
    chosen = st.session_state.get(FMT, name)
    if name in FORMATS and chosen != name and st.session_state.get(X) == text:
        try:
            st.session_state[X] = number_text(text, FORMATS[name])
        except FloatTextError:
            return


def take_flip() -> None:
    """A flipped bit rewrites the typed text, which alone says what number the page is about."""
    flip = bits.flipped()
    if flip is not None and flip[1].name == st.session_state.get(FMT, FORMAT):
        st.session_state[X] = code_text(*flip, st.session_state.get(OVERFLOW, "format"))


follow_format()
chips = show.slot()
left, middle, right = st.columns([1.32, 2.15, 0.6])
with left:
    text = inputs.text("x", "Number", NUMBER, max_chars=limit("float_chars"), help=TYPE_HELP)
with middle:
    fmt = FORMATS[inputs.choice("fmt", "Format", list(FORMATS), FORMAT, segmented=True)]
with right:
    overflow = inputs.choice("over", "Overflow", list(OVERFLOWS), "format", help=OVERFLOW_HELP)
try:
    typed = parse(text, fmt)
    inputs.keep("x", number_text(text, fmt))
except FloatTextError as problem:
    good = inputs.last_good("x", NUMBER)
    typed = parse(good, fmt)
    inputs.fail(f"Number: {problem}", f"Still using {clipped(good)}.")
st.session_state[SEEN] = (text, fmt.name)
show.input_errors(inputs)
inputs.presets("Stories", STORIES, into=chips)

stored = store(typed, fmt, overflow)
story = tell(stored, overflow)
show.answer(story.answer, story.detail)
bits.bit_strip(stored.view, take_flip)
with st.container(key="floats_formula"):
    st.latex(value_latex(stored.view, TOKENS))
bits.facts(stored)
bits.format_rows(store_everywhere(typed, overflow=overflow), fmt)
bits.format_table()
show.how(lambda: [*explain(stored.view), *explain_error(stored)], key="floats:how")
show.footer(inputs)
