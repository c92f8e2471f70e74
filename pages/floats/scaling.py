"""Float formats, the panel on loss scaling."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.fields import choice, slider
from core.floats.formats import FORMATS, FloatFormat
from core.floats.scaling.gradients import Course
from core.floats.scaling.loss_scaling import Scaler, explain, follow
from core.limits import cached, limit
from core.messages import message
from core.views.floats.charts_scaling import followed, gradients
from core.views.floats.text_training import best_scale_text, scaling_texts, step_text
from core.wording import plain
from pages.common import show
from pages.common.figures import wire
from pages.common.theme import TOKENS
from pages.floats.inputs import FloatInputs, titles

_MOST_POWER = 40
_MOST_INTERVAL = _MOST_SEED = 1_000_000
_TARGETS = ("fp16", "bf16", "fp8_e5m2", "fp8_e4m3fn")
_TORCHS = {"every": "2000", "least": "0", "hys": "1"}
_FIXED = {"k": "0", **_TORCHS, "n": "600", "med": "-24", "end": "-30", "spike": "6", "to": "fp16"}
LOSS: dict[str, dict[str, str]] = {
    message("scaling.preset.shrinking"): {**_FIXED, "k": "16", "every": "100"},
    message("scaling.preset.torch"): {**_FIXED, "k": "16", "n": "5000"},
    message("scaling.preset.megatron"): {**_FIXED, "k": "32", "every": "1000", "n": "5000", "least": "1", "hys": "2"},
    message("scaling.preset.none"): _FIXED,
    message("scaling.preset.high"): {**_FIXED, "k": "32", "every": "100"},
    message("scaling.preset.spikes"): {**_FIXED, "k": "16", "every": "100", "spike": "12"},
    message("scaling.preset.bf16"): {**_FIXED, "to": "bf16"},
}


def loss_scaling(inputs: FloatInputs) -> None:
    """Draw a loss scale that follows the gradients, one step of them under it, and then what both are made of."""
    head, picture = show.slot(), st.container()
    with show.errors_under(inputs), st.container(horizontal=True, vertical_alignment="bottom"):
        scaler, fmt = _scaler(inputs)
    course = _course(inputs)
    run = follow(course, scaler, fmt)
    takeaway = " ".join(scaling_texts(run))
    with head:
        show.takeaway(takeaway)
    inputs.presets(LOSS, into=head, key="scaling")
    with picture:
        show.chart(_followed(course, scaler, fmt), alt=plain(takeaway), key="floats:followed")
        said, field = st.columns([6, 1], vertical_alignment="bottom")
        with field, show.errors_under(inputs):
            most = limit("scaled_steps")
            step = min(inputs.count("step", message("scaling.field.step"), "1", 1, most), course.steps)
        text = step_text(run, step)
        with said:
            show.takeaway(text)
        show.chart(_histogram(course, scaler, fmt, step), alt=plain(text), key="floats:gradients")
    show.how(
        lambda: explain(run, step),
        key="floats:scaling:how",
        notes=[best_scale_text(run, step), message("scaling.model")],
    )


def _scaler(inputs: FloatInputs) -> tuple[Scaler, FloatFormat]:
    """Ask for the loss scale and the format of the gradients."""
    power = inputs.ask(
        slider("k", message("scaling.field.first"), 0, _MOST_POWER, 16, help=message("scaling.field.first_help")),
        format="2^%d",
    )
    growth = inputs.number(
        "grow", message("scaling.field.growth"), "2", 1.001, 1024, message("scaling.field.growth_help")
    )
    backoff = inputs.number(
        "back", message("scaling.field.backoff"), "0.5", 0.001, 0.999, message("scaling.field.backoff_help")
    )
    interval = inputs.count(
        "every", message("scaling.field.interval"), "100", 1, _MOST_INTERVAL, message("scaling.field.interval_help")
    )
    least = inputs.number("least", message("scaling.field.least"), "0", 0, 2.0**24, message("scaling.field.least_help"))
    hysteresis = inputs.count(
        "hys", message("scaling.field.hysteresis"), "1", 1, 1000, message("scaling.field.hysteresis_help")
    )
    target = choice("to", message("scaling.field.format"), _TARGETS, "fp16", few=True, short=titles(_TARGETS))
    fmt = FORMATS[inputs.ask(target)]
    return Scaler(2.0**power, growth, backoff, interval, least, hysteresis), fmt


def _course(inputs: FloatInputs) -> Course:
    """Ask for the gradients of the run."""
    base = Course()
    power = message("scaling.field.median_help")

    def number(name: str, label: str, default: float, low: float, high: float, help: str) -> float:
        return inputs.number(name, label, f"{default:g}", low, high, help)

    with show.errors_under(inputs), st.container(horizontal=True, vertical_alignment="bottom"):
        return Course(
            inputs.count("n", message("scaling.field.steps"), f"{base.steps}", 2, limit("scaled_steps")),
            number("med", message("scaling.field.first_median"), base.first, -60, 20, power),
            number("end", message("scaling.field.last_median"), base.last, -60, 20, power),
            number("sd", message("scaling.field.spread"), base.spread, 0.5, 10, message("scaling.field.spread_help")),
            number("spike", message("scaling.field.spike"), base.spike, 0, 40, message("scaling.field.spike_help")),
            inputs.count(
                "many", message("scaling.field.count"), "1M", 1_000, 1e12, message("scaling.field.count_help")
            ),
            inputs.count("seed", message("scaling.field.seed"), f"{base.seed}", 0, _MOST_SEED),
        )


@cached("arrays_kept")
def _followed(course: Course, scaler: Scaler, fmt: FloatFormat) -> dict[str, Any]:
    return wire(followed(follow(course, scaler, fmt), TOKENS))


@cached("arrays_kept")
def _histogram(course: Course, scaler: Scaler, fmt: FloatFormat, step: int) -> dict[str, Any]:
    return wire(gradients(follow(course, scaler, fmt).at(step - 1), TOKENS))
