"""Calendar and cost, the pools: a line for each, and small fields that write one."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.hardware.accelerators import accelerators
from core.hardware.offers import CONTRACTS, offer_line
from core.limits import limit
from core.planning.calendar.form import CLUSTER_POOL, POOLS
from core.views.calendar.text_pools import read_as
from pages.common import show
from pages.common.inputs import Inputs

_NAMES = [device.name for device in accelerators()]


def pools(inputs: Inputs) -> None:
    """The lines as they are typed, and a popover that adds one."""
    title = "Additional pools: owned, rented, reserved, spot"
    with show.more(inputs, title, POOLS, CLUSTER_POOL, key="fold_pools") as more:
        if more.open:
            inputs.draw(POOLS)
            if understood := read_as(inputs.reading.values[POOLS.id].offers):
                show.note(understood)
            with st.columns([1, 2])[0]:
                inputs.draw(CLUSTER_POOL)
            with st.popover("Add a pool", icon=":material/add:"):
                _add(inputs)


def _add(inputs: Inputs) -> None:
    """Fields of one pool; its button writes its line."""

    def key(name: str) -> str:
        return inputs.key(f"pool_{name}")

    def typed(name: str) -> str:
        return str(st.session_state.get(key(name)) or "").strip()

    def box(cell: DeltaGenerator, label: str, name: str, example: str) -> None:
        cell.text_input(label, key=key(name), max_chars=limit("number_chars"), placeholder=example)

    def write() -> None:
        owned, price = typed("held") == "owned", typed("price").lstrip("$")
        line = offer_line(
            typed("name") or f"pool {len(inputs.reading.values[POOLS.id].offers) + 1}",
            typed("count"),
            typed("gpu"),
            typed("held"),
            (f"${price} over {typed('years') or 4} years" if owned else f"${price}/h") if price else "",
            f"{typed('taken')} interruptions/h" if typed("taken") and typed("held") == "spot" else "",
            f"from {typed('first')}" if typed("first") else "",
            f"to {typed('last')}" if typed("last") else "",
        )
        inputs.put(POOLS.id, f"{inputs.now(POOLS.id).rstrip()}\n{line}".strip())

    cells = st.columns([1.2, 1, 1.4])
    box(cells[0], "Name of the pool", "name", "burst")
    box(cells[1], "Accelerators", "count", "any number")
    cells[2].selectbox("Of", _NAMES, index=_NAMES.index("H100 SXM"), key=key("gpu"))
    held = st.segmented_control("Contract", CONTRACTS, default="rented", required=True, key=key("held"))
    cells = st.columns(2)
    if held == "owned":
        box(cells[0], "Capital of each, $", "price", "30,000")
        box(cells[1], "Years of its use", "years", "4")
    else:
        box(cells[0], "Price of the pool, $/h", "price", "2.60")
    if held == "spot":
        box(cells[1], "Interruptions/h", "taken", "0.05")
    cells = st.columns(2)
    box(cells[0], "Open from", "first", "2027-03-01")
    box(cells[1], "Open to", "last", "2027-09-01")
    st.button("Add it", key=key("add"), on_click=write, type="primary")
    show.note("The pool becomes a line. Add spare nodes, maintenance, or the price of idle hours there.")
