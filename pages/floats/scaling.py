"""Float formats, the panel on loss scaling."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.fields import choice, slider
from core.floats.formats import FORMATS, FloatFormat
from core.floats.scaling import loss_scaling as scaling_loss_scaling
from core.floats.scaling.gradients import SPIKES, Course
from core.floats.scaling.loss_scaling import Scaler
from core.limits import cached, limit
from core.views.floats.charts_scaling import followed, gradients
from core.wording import plain
from pages.common import show
from pages.common.figures import wire
from pages.common.theme import TOKENS
from pages.floats.inputs import FloatInputs

_MOST_POWER = 40
_MOST_INTERVAL = _MOST_SEED = 1_000_000
_TARGETS = ("fp16", "bf16", "fp8_e5m2", "fp8_e4m3fn")
_WIDTHS = (0.9, 1.5, 1.5, 1.2, 1.1, 1.2, 0.9)
_TORCHS = {"every": "2000", "least": "0", "hys": "1"}
_FIXED = {"k": "0", **_TORCHS, "n": "600", "med": "-24", "end": "-30", "spike": "6", "to": "fp16"}
LOSS = {
    "Follows shrinking gradients": {**_FIXED, "k": "16", "every": "100"},
    "As torch starts": {**_FIXED, "k": "16", "n": "5000"},
    "As Megatron starts": {**_FIXED, "k": "32", "every": "1000", "n": "5000", "least": "1", "hys": "2"},
    "No scaling": _FIXED,
    "Starts too high": {**_FIXED, "k": "32", "every": "100"},
    "Spikes of 2¹²": {**_FIXED, "k": "16", "every": "100", "spike": "12"},
    "bf16 needs none": {**_FIXED, "to": "bf16"},
}
POWER_HELP = "Its power of two: −24 is 2⁻²⁴, about 6 × 10⁻⁸. Half of a step’s gradients are smaller in magnitude."
GROWTH_HELP = "The scale is multiplied by it after as many steps without overflow as the growth interval says."
BACKOFF_HELP = "The scale is multiplied by it after every step that overflows."
EVERY_HELP = "Steps without overflow, one after another, before the scale grows. torch: 2,000."
LEAST_HELP = "The scale does not fall below it. Megatron: 1; torch has none, which is 0."
HYSTERESIS_HELP = (
    "Overflows, each of which skips its step, before the scale falls; counted anew once it has grown. Megatron: 2; "
    "torch: 1."
)
SPREAD_HELP = "Standard deviation of log₂ of the magnitudes of a step: 4 is a factor of 2⁴ up or down."
SPIKE_HELP = f"A power of two: 6 makes about one step in {1 / SPIKES:.0f} 2⁶ times as large as the others. 0: none."
COUNT_HELP = "In each step. The more there are, the further the largest lies from the median."


def loss_scaling(inputs: FloatInputs) -> None:
    """A loss scale that follows the gradients, and one step of them under it."""
    head = show.slot()
    with show.errors_under(inputs), st.container(horizontal=True, vertical_alignment="bottom"):
        power = inputs.ask(slider("k", "First loss scale", 0, _MOST_POWER, 16), format="2^%d")
        _typed_power(inputs, power)
        growth = inputs.number("grow", "Growth factor", "2", 1.001, 1024, GROWTH_HELP)
        backoff = inputs.number("back", "Backoff factor", "0.5", 0.001, 0.999, BACKOFF_HELP)
        interval = inputs.count("every", "Growth interval", "100", 1, _MOST_INTERVAL, EVERY_HELP)
        least = inputs.number("least", "Least scale", "0", 0, 2.0**24, LEAST_HELP)
        hysteresis = inputs.count("hys", "Hysteresis", "1", 1, 1000, HYSTERESIS_HELP)
        fmt = FORMATS[inputs.ask(choice("to", "Gradients kept in", _TARGETS, "fp16", few=True))]
    course = _course(inputs, "")
    scaler = Scaler(2.0**power, growth, backoff, interval, least, hysteresis)
    run = scaling_loss_scaling.follow(course, scaler, fmt)
    with head:
        show.takeaway(scaling_loss_scaling.takeaway(run))
    inputs.presets(LOSS, into=head, key="scaling")
    show.chart(_followed(course, scaler, fmt), alt=plain(scaling_loss_scaling.takeaway(run)), key="floats:followed")
    sentence_place, step_place = st.columns([6, 1], vertical_alignment="bottom")
    with step_place, show.errors_under(inputs):
        step = min(inputs.count("step", "Step shown", "1", 1, limit("scaled_steps")), course.steps)
    with sentence_place:
        show.takeaway(scaling_loss_scaling.at_step(run, step))
    alt = plain(scaling_loss_scaling.at_step(run, step))
    show.chart(_histogram(course, scaler, fmt, step), alt=alt, key="floats:gradients")
    show.note(f"A cross in the first picture marks a skipped step. {scaling_loss_scaling.best_line(run, step)}")
    show.how(
        lambda: scaling_loss_scaling.explain(run, step),
        key="floats:scaling:how",
        notes=scaling_loss_scaling.model_notes(),
    )


def _course(inputs: FloatInputs, prefix: str) -> Course:
    """The gradients that a panel is about; each panel has its own, under names with its prefix."""
    base = Course()

    def number(name: str, label: str, default: float, low: float, high: float, help: str) -> float:
        return inputs.number(prefix + name, label, f"{default:g}", low, high, help)

    slot = show.slot()
    with show.errors_under(inputs):
        fields = st.columns(_WIDTHS, gap="small")
        with fields[0]:
            steps = inputs.count(f"{prefix}n", "Steps", f"{base.steps}", 2, limit("scaled_steps"))
        with fields[1]:
            first = number("med", "First median, log₂", base.first, -60, 20, POWER_HELP)
        with fields[2]:
            last = number("end", "Last median, log₂", base.last, -60, 20, POWER_HELP)
        with fields[3]:
            spread = number("sd", "Spread, log₂", base.spread, 0.5, 10, SPREAD_HELP)
        with fields[4]:
            spike = number("spike", "Spike, log₂", base.spike, 0, 40, SPIKE_HELP)
        with fields[5]:
            count = inputs.count(f"{prefix}many", "Gradients", "1M", 1_000, 1e12, COUNT_HELP)
        with fields[6]:
            seed = inputs.count(f"{prefix}seed", "Seed", f"{base.seed}", 0, _MOST_SEED)
    course = Course(steps, first, last, spread, spike, count, seed)
    with slot:
        show.note(scaling_loss_scaling.course_line(course))
    return course


@cached("arrays_kept")
def _followed(course: Course, scaler: Scaler, fmt: FloatFormat) -> dict[str, Any]:
    return wire(followed(scaling_loss_scaling.follow(course, scaler, fmt), TOKENS))


@cached("arrays_kept")
def _histogram(course: Course, scaler: Scaler, fmt: FloatFormat, step: int) -> dict[str, Any]:
    return wire(gradients(scaling_loss_scaling.follow(course, scaler, fmt).at(step - 1), TOKENS))


def _typed_power(inputs: FloatInputs, power: int) -> None:
    """The slider's number to type: it writes the slider's field, which alone the link carries."""
    key = "floats:k:typed"

    def take() -> None:
        st.session_state[inputs.key("k")] = st.session_state[key]

    st.session_state[key] = power
    st.number_input("or its log₂", 0, _MOST_POWER, key=key, on_change=take, width=110)
