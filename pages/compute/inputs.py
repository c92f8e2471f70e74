"""Compute budget, its questions: what to find, the model, its tokens, the cluster, and what is folded under More."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

import streamlit as st

from core.hardware.accelerators import DTYPES, Accelerator, accelerators, find
from core.limits import limit
from core.models.catalog import CatalogModel, catalog, model_named, nearest_dense
from core.models.flops import Attention
from core.models.spec_text import EXAMPLE
from core.planning.answer import words
from core.planning.answer.outlook import (
    FINDS,
    PUBLISHED,
    UNKNOWN,
    Find,
    Outlook,
    Published,
    ask_outlook,
    parse_mfu,
    parse_within,
)
from core.planning.budget.rule import Plan, format_price, parse_price
from core.planning.budget.solver import BudgetError
from core.planning.counting.lengths import work_of
from core.planning.evidence import words as words_runs
from core.units import QuantityError
from pages.compute.shape import OWN, own_shape, remember
from pages.parts import show
from pages.parts.inputs import Inputs

T = TypeVar("T")


TYPED = "Typed parameters"
CAUSAL: Attention = "causal"
FULL: Attention = "full"
USUAL = {"model": TYPED, "n": "70B", "tokens": "15T", "count": "1024", "mfu": PUBLISHED, "within": "90 days"}
_GOOD = "compute:good"
_SOLVED = {"tokens": "tokens", "parameters": "n", "accelerators": "count", "MFU": "mfu"}
"""What can be found → the field that shows the answer instead."""

HELP = {
    "find": "What the rest decides. The answer takes the place of its field.",
    "within": "How long the run may take, such as 90 days; or what it may cost, such as $5M.",
    "n": "N of 6ND: the parameters that work on each token.",
    "active": "The parameters each token runs through, which 6ND takes; with all experts there are more.",
    "tokens": "Tokens trained on, repeats counted each time: D of 6ND.",
    "mfu": "Model FLOPs utilisation: the FLOPs the model needs, over what the accelerators could do at dense peak "
    "in the same time. “published” takes what comparable published runs made of all their hours, as a range. Or type "
    "one: 0.4, 40%, or a range, 35-45%.",
    "dtype": "The number format whose dense peak the MFU is a share of: that of the matrix products. The fp8 peak is "
    "about twice the bf16 one, so the same speed is half the MFU there.",
    "seq": "Tokens of one training sequence. Attention’s products grow with it and 6ND does not know it: beyond the "
    "longest sequence of a published run, what they add is counted and lengthens the answer.",
    "attn": "How the count by layer takes attention’s products of activations: causal, the half of the square that a "
    "token may look at, or the full square, as the MFU of the PaLM paper does. 6ND takes neither, and the answer does "
    "not depend on it.",
    "price": "Dollars per accelerator and hour, such as 2.50 or 2-3.50. Empty: the catalogue’s price, if it has one.",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the page is about, and its answer.

    model: the catalogue's model or one's own shape; None where only a number of parameters was typed (or is asked
    for), and then ``shape`` is the model whose layers stand in. own: whether the model is one's own shape.
    seen: the comparable published runs. published: whether the MFU is theirs.
    """

    model: CatalogModel | None
    shape: CatalogModel
    own: bool
    device: Accelerator
    dtype: str
    seq_len: int
    attention: Attention
    seen: Published
    published: bool
    outlook: Outlook

    @property
    def plan(self) -> Plan:
        """The plan at the middle of its range."""
        return self.outlook.plan


@dataclass(frozen=True, slots=True)
class More:
    """What is folded under More."""

    dtype: str
    seq_len: int
    attention: Attention
    prices: tuple[float, float]


def ask(inputs: Inputs) -> Asked:
    """Draw the inputs, read them and solve; bad input is reported and the last good one stays."""
    top = st.columns([4.2, 1.3], vertical_alignment="bottom")
    with top[0]:
        wanted = cast("Find", inputs.choice("find", "Find", list(FINDS), "time", segmented=True, help=HELP["find"]))
    limits = None
    if UNKNOWN[wanted] == "days":
        remember(inputs, "within", USUAL["within"])
    else:
        with top[1]:
            limits = _parsed(inputs, "within", "Within", parse_within)
    cells = st.columns([1.7, 1.45, 1.0, 1.55, 0.95, 1.0])
    with cells[0]:
        chosen = _model(inputs, asked_for=wanted == "parameters")
    under = show.slot()
    model = None if chosen in (TYPED, OWN) else model_named(chosen)
    if chosen == OWN:
        with under:
            model = own_shape(inputs)
    else:
        remember(inputs, "shape", EXAMPLE)
    given = dict.fromkeys(("parameters", "tokens", "accelerators"), 0.0)
    with cells[1]:
        if wanted != "parameters":
            given["parameters"] = _parameters(inputs, model)
    with cells[2]:
        if wanted != "tokens":
            given["tokens"] = _count(inputs, "tokens", "Tokens", "tokens", HELP["tokens"])
    with cells[3]:
        device = find(inputs.choice("gpu", "Accelerator", [a.name for a in accelerators()], "H100 SXM"))
    with cells[4]:
        if wanted != "accelerators":
            given["accelerators"] = _count(inputs, "count", "How many", "accelerators")
    with cells[5]:
        typed = _parsed(inputs, "mfu", "MFU", parse_mfu) if wanted != "MFU" else None
    more = _more(inputs, device)
    try:
        found, seen = ask_outlook(
            wanted,
            **given,
            device=device,
            dtype=more.dtype,
            experts=bool(model and model.mixture),
            mfu=typed,
            prices=more.prices,
            limits=limits,
            length=lambda n: work_of(model or nearest_dense(n, more.seq_len), more.seq_len, stand_in=model is None),
        )
        asked = Asked(
            model=model,
            shape=model or nearest_dense(found.plan.params, more.seq_len),
            own=chosen == OWN,
            device=device,
            dtype=more.dtype,
            seq_len=more.seq_len,
            attention=more.attention,
            seen=seen,
            published=typed is None and wanted != "MFU",
            outlook=found,
        )
        st.session_state[_GOOD] = asked
    except BudgetError as problem:
        last = st.session_state.get(_GOOD)
        asked = last or _first(device)
        inputs.fail(str(problem), "Still showing the last answer." if last else words.FIRST)
    if wanted in _SOLVED:
        name = _SOLVED[wanted]
        place = {"n": cells[1], "tokens": cells[2], "count": cells[4], "mfu": cells[5]}[name]
        with place:
            _shown(inputs, name, *words.in_its_field(wanted, asked.outlook))
    return asked


def _first(device: Accelerator) -> Asked:
    """Before there was any answer: the page's own first one."""
    dtype = device.usable("bf16")
    found, seen = ask_outlook(
        "time",
        parameters=70e9,
        tokens=15e12,
        accelerators=1024,
        device=device,
        dtype=dtype,
        experts=False,
        mfu=None,
        prices=(device.price_low, device.price_high),
    )
    return Asked(None, nearest_dense(70e9, 8192), False, device, dtype, 8192, CAUSAL, seen, True, found)


def _shown(inputs: Inputs, name: str, label: str, text: str) -> None:
    """The answer in the place of its field."""
    key = inputs.key(f"{name}_found")
    st.session_state[key] = text
    st.text_input(label, key=key, disabled=True)
    remember(inputs, name, USUAL[name])


def _model(inputs: Inputs, *, asked_for: bool) -> str:
    if asked_for:
        _shown(inputs, "model", "Model", "of any shape")
        return TYPED
    names = [TYPED, OWN, *(m.name for m in catalog())]
    chosen = inputs.choice("model", "Model", names, TYPED, help=words_runs.runs_to_compare())
    inputs.keep("model", chosen)
    return chosen


def _parameters(inputs: Inputs, model: CatalogModel | None) -> float:
    if model is None:
        return _count(inputs, "n", "Parameters", "parameters", HELP["n"])
    label, text = words.fixed_parameters(model)
    help_ = HELP["active" if model.mixture else "n"]
    st.text_input(label, text, disabled=True, key=inputs.key(f"fixed_{model.active}"), help=help_)
    remember(inputs, "n", USUAL["n"])
    return float(model.active)


def _count(inputs: Inputs, name: str, label: str, cap: str, help_: str | None = None) -> float:
    return inputs.quantity(name, label, USUAL[name], "count", low=1, high=limit(cap), whole=True, help=help_)


def _parsed(inputs: Inputs, name: str, label: str, read: Callable[[str], T]) -> T:
    """A typed text that ``read`` understands; a bad one shows why, and the last good one stays in force."""
    text = inputs.text(name, label, USUAL[name], max_chars=limit("number_chars"), help=HELP[name])
    try:
        value = read(text)
        inputs.keep(name, text)
    except QuantityError as problem:
        good = inputs.last_good(name, USUAL[name])
        value = read(good)
        inputs.fail(problem.about(label), f"Still using {good}.")
    return value


def _more(inputs: Inputs, device: Accelerator) -> More:
    with st.expander("More: peak’s dtype, sequence length, attention convention, price"):
        cells = st.columns([1, 1, 1.3, 1.7])
        with cells[0]:
            dtypes = [d for d in DTYPES if d != "fp64_tensor"]
            wanted = inputs.choice("dtype", "Peak of", dtypes, "bf16", help=HELP["dtype"])
        with cells[1]:
            high = limit("model_dimension")
            seq_len = inputs.quantity(
                "seq", "Sequence length", "8192", "count", low=1, high=high, whole=True, help=HELP["seq"]
            )
        with cells[2]:
            ways = [CAUSAL, FULL]
            counted = inputs.choice("attn", "Attention counted", ways, CAUSAL, segmented=True, help=HELP["attn"])
        with cells[3]:
            prices = _prices(inputs, device)
    dtype = device.usable(wanted)
    if dtype != wanted:
        inputs.fail(f"No dense {wanted} peak of {device.name} is known.", f"Using its {dtype} peak.")
    return More(dtype, int(seq_len), FULL if counted == FULL else CAUSAL, prices)


def _prices(inputs: Inputs, device: Accelerator) -> tuple[float, float]:
    text = inputs.text(
        "price",
        "Price per accelerator-hour, or a range",
        "",
        max_chars=limit("number_chars"),
        placeholder=format_price(device.price_low, device.price_high),
        help=HELP["price"],
    )
    usual = device.price_low, device.price_high
    try:
        prices = parse_price(text) if text.strip() else usual
        inputs.keep("price", text)
    except QuantityError as problem:
        kept = inputs.last_good("price", "")
        prices = parse_price(kept) if kept.strip() else usual
        inputs.fail(problem.about("Price"), words.price_kept(*prices))
    return prices
