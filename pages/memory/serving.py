"""Training memory, serving the model: users that fit with its weights, and minimum times."""

from __future__ import annotations

from typing import get_args

import streamlit as st

from core.fields import Field, choice, optional, quantity
from core.hardware.accelerators import accelerators, find
from core.limits import limit
from core.messages import message
from core.planning.memory_estimate import MemoryEstimate
from core.quantities import parse_quantity
from core.serving.cache import CACHE_TYPES, cached_spec
from core.serving.engine import Draft, Engine, Version
from core.serving.serving import DEGREES, Serving, serving
from core.serving.weights import WEIGHT_TYPES
from core.views.serving import text
from pages.common import show
from pages.common.inputs import Inputs

_SHOWN, _SAME, _FEWEST = "shown", "the plan’s", "fewest"
_DEVICES, _DEGREES = [a.name for a in accelerators()], [str(degree) for degree in DEGREES]

WEIGHTS = choice("svw", message("serving.field.weights"), tuple(WEIGHT_TYPES), "bf16", part=_SHOWN)
STORED = choice("svkv", message("serving.field.cache"), tuple(CACHE_TYPES), "bf16", part=_SHOWN)
ON = choice(
    "svgpu",
    message("serving.field.device"),
    (_SAME, *_DEVICES),
    _SAME,
    short=(message("serving.field.same"), *_DEVICES),
    part=_SHOWN,
)
CARDS = choice(
    "svtp",
    message("serving.field.count"),
    (_FEWEST, *_DEGREES),
    _FEWEST,
    short=(message("serving.field.fewest"), *_DEGREES),
    part=_SHOWN,
)
CONTEXT = quantity(
    "svctx",
    message("serving.field.context"),
    "8,192",
    "length",
    low=1,
    high=limit("model_dimension"),
    whole=True,
    part=_SHOWN,
    help=message("serving.field.context_help", lengths=message("quantity.lengths")),
)
USERS = quantity("svusers", message("serving.field.users"), "1", "count", low=1, high=100_000, whole=True, part=_SHOWN)

UTILIZATION = quantity("svutil", message("serving.field.utilization"), "92%", "ratio", low=0.01, high=1, part=_SHOWN)


def _passes(name: str, label: str) -> Field:
    def read(typed: str) -> int:
        return int(parse_quantity(typed, "length", low=1, high=limit("model_dimension"), whole=True))

    nothing, lengths = message("serving.field.default"), message("quantity.lengths")
    return optional(name, label, read, nothing=None, placeholder=nothing, part=_SHOWN, omit_if_empty=True, help=lengths)


PASS, REQUESTS = (
    _passes("svpass", message("serving.field.pass")),
    _passes("svseqs", message("serving.field.requests")),
)
VISION = quantity(
    "svvit",
    message("serving.field.vision"),
    "0",
    "parameters",
    high=1e11,
    part=_SHOWN,
    help=message("serving.field.vision_help"),
)
DRAFT = choice("svdraft", message("serving.field.draft"), get_args(Draft), "none", part=_SHOWN)
VERSION = choice("svver", message("serving.field.version"), get_args(Version), get_args(Version)[0], part=_SHOWN)

FIELDS = (WEIGHTS, STORED, ON, CARDS, CONTEXT, USERS, UTILIZATION, PASS, REQUESTS, VISION, DRAFT, VERSION)
"""The panel’s fields, for the page’s form."""


def _served(inputs: Inputs, h: MemoryEstimate) -> tuple[Serving, str]:
    """Return the model served as the fields say, and why not where they cannot be."""
    v, known = inputs.reading.values, h.plan.catalog_model
    spec = cached_spec(known) if known and not known.counted else h.spec
    device = h.plan.device if v[ON.id] == _SAME else find(v[ON.id])
    cards = None if v[CARDS.id] == _FEWEST else int(v[CARDS.id])
    how = {
        "weights": WEIGHT_TYPES[v[WEIGHTS.id]],
        "stored": CACHE_TYPES[v[STORED.id]],
        "context": int(v[CONTEXT.id]),
        "users": int(v[USERS.id]),
        "engine": Engine(v[UTILIZATION.id], v[PASS.id], v[REQUESTS.id], v[VISION.id], v[DRAFT.id], v[VERSION.id]),
    }
    try:
        return serving(spec, device, tensor=cards, **how), ""
    except ValueError as problem:
        return serving(spec, device, **how), message("serving.error.shown", problem=str(problem))


def serving_panel(inputs: Inputs, h: MemoryEstimate) -> None:
    """Draw how many users the model serves on a cluster, and how fast."""
    head = show.slot()
    with st.container(horizontal=True, key="memory_serving"):
        for field in FIELDS:
            inputs.draw(field)
    show.draw_problems(inputs, *(field.id for field in FIELDS))
    s, problem = _served(inputs, h)
    if problem:
        show.error(problem)
    known = h.plan.catalog_model
    show.alerts(text.contradictions(s, known.family if known else ""))
    plan = h.plan if s.device is h.plan.device else h.plan.on_accelerator(s.device.name)
    with head:
        show.takeaway(text.fitting_text(s, known.name if known else message("serving.model")))
        show.takeaway(" ".join([*text.fleet_text(s, plan.price_range), text.times_text(s)]))
    show.note(message("serving.bound"))
    for line in text.notices(s, known and known.max_seq, adapters=h.plan.trained.adapters):
        show.note(line)
    tables = (
        (message("serving.table.caption_engine"), (0,), text.engine_rows(s)),
        (message("serving.table.caption_cache"), (0,), text.cache_rows(s)),
        (message("serving.table.caption_weights"), (0, 6), text.weight_rows(s)),
    )
    for caption, words, (headings, rows, here) in tables:
        columns = [show.Column(heading, numeric=i not in words) for i, heading in enumerate(headings)]
        show.small_table(columns, rows, caption=caption, here=here)
    show.how(s.explain, key="memory:serving:how", label=message("serving.how"))
