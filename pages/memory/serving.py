"""Training memory, serving the model: users that fit beside its weights, and the least time of a token."""

from __future__ import annotations

import math

import streamlit as st

from core.fields import choice, quantity
from core.hardware.accelerators import accelerators, find
from core.limits import limit
from core.planning.memory_estimate import MemoryEstimate
from core.serving.cache import CACHE_TYPES, cached_spec
from core.serving.serving import DEGREES, Serving, serving
from core.serving.weights import WEIGHT_TYPES
from core.units import LENGTHS
from core.views.plan import text_memory
from core.views.serving import text
from core.views.serving.charts import token_time
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS

_SHOWN, _SAME, _FEWEST = "shown", "the plan’s", "fewest"

WEIGHTS = choice("svw", "Weights in", tuple(WEIGHT_TYPES), "bf16", part=_SHOWN)
STORED = choice("svkv", "Cache in", tuple(CACHE_TYPES), "bf16", part=_SHOWN)
ON = choice("svgpu", "Served on", (_SAME, *(a.name for a in accelerators())), _SAME, part=_SHOWN)
CARDS = choice("svtp", "Accelerators", (_FEWEST, *map(str, DEGREES)), _FEWEST, part=_SHOWN)
CONTEXT = quantity(
    "svctx",
    "Context, tokens",
    "8,192",
    "length",
    low=1,
    high=limit("model_dimension"),
    whole=True,
    part=_SHOWN,
    help=f"Tokens of each user, prompt and answer together. {LENGTHS}",
)
USERS = quantity("svusers", "Users at once", "1", "count", low=1, high=100_000, whole=True, part=_SHOWN)

FIELDS = (WEIGHTS, STORED, ON, CARDS, CONTEXT, USERS)
"""The panel’s fields, for the page’s form."""


def _served(inputs: Inputs, h: MemoryEstimate) -> tuple[Serving, str]:
    """The model served as the fields say, and why not where they cannot be."""
    v, known = inputs.reading.values, h.plan.catalog_model
    spec = cached_spec(known) if known and not known.counted else h.spec
    device = h.plan.device if v[ON.id] == _SAME else find(v[ON.id])
    cards = None if v[CARDS.id] == _FEWEST else int(v[CARDS.id])
    how = {
        "weights": WEIGHT_TYPES[v[WEIGHTS.id]],
        "stored": CACHE_TYPES[v[STORED.id]],
        "context": int(v[CONTEXT.id]),
        "users": int(v[USERS.id]),
    }
    try:
        return serving(spec, device, tensor=cards, **how), ""
    except ValueError as refused:
        return serving(spec, device, **how), f"{CARDS.label}: {refused} Shown are the fewest on which a user fits."


def serving_panel(inputs: Inputs, h: MemoryEstimate) -> None:
    """The panel's content."""
    head = show.slot()
    with st.container(horizontal=True, key="memory_serving"):
        for field in FIELDS:
            inputs.draw(field)
    show.draw_problems(inputs, *(field.id for field in FIELDS))
    s, refused = _served(inputs, h)
    if refused:
        show.error(refused)
    known = h.plan.catalog_model
    name = plain(text_memory.model_of(h))
    fits, fast = text.answer(s, name), text.times(s)
    with head:
        show.takeaway(fits)
        show.takeaway(fast)
    if math.isfinite(float(s.decode(s.users).seconds)):
        show.chart(
            token_time(s, TOKENS),
            alt=f"The least time of a token over users at once. {plain(fast)}",
            key="memory:token",
        )
    show.note(text.BOUND)
    show.note(text.kept(s))
    for line in (
        text_memory.stood_in(h) if h.stands_in and not known else "",
        *text.remarks(s, known and known.max_seq, adapters=h.plan.trained.adapters),
    ):
        if line:
            show.note(line)
    rows, here = text.cache_rows(s)
    show.small_table(
        [show.Column(heading, numeric=i > 0) for i, heading in enumerate(text.CACHES)],
        rows,
        caption=f"The cache in each format, on one accelerator; a user has {s.context:,} tokens.",
        here=here,
    )
    rows, here = text.weight_rows(s)
    show.small_table(
        [show.Column(heading, numeric=0 < i < 6) for i, heading in enumerate(text.WEIGHTS)],
        rows,
        caption="The weights in each format, on as many accelerators; times are the least that can be.",
        here=here,
    )
    show.small_table(
        [show.Column(heading, numeric=i > 1) for i, heading in enumerate(text.KINDS)],
        text.kind_rows(s),
        caption=f"What each kind of attention keeps, in {s.stored.name}; a user has {s.context:,} tokens.",
    )
    show.how(s.explain, key="memory:serving:how", label="How serving is computed")
