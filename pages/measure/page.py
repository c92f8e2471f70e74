"""Measure: what this machine really does, next to what it promises, and into the plan."""

from __future__ import annotations

import streamlit as st

from core.limits import limit
from core.measure.choices import CHOICES, programme
from core.measure.device import machine
from core.measure.form import EACH, LENGTH, MICRO_BATCH, MODEL, PANELS, WHAT, measure_form
from core.measure.points import Kind
from core.measure.programme import Programme
from core.measure.record import Record
from core.measure.showing import figures, matmul, others, state
from core.measure.timing.kinds import expected_s, items
from core.models.catalog import model_named
from pages.measure import panels
from pages.measure.running import Seen, ask, shared_runner, watched
from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.registry import DEVICE
from pages.parts.theme import TOKENS

CAPTION = "Each dtype at the size where it is fastest; the error is relative to a float64 product."
