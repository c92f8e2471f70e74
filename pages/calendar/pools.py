"""Calendar and cost, the pools: a line for each, and small fields that write one."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.hardware.accelerators import accelerators
from core.limits import limit
from core.planning.calendar.form import POOLS
from core.planning.calendar.pools import HOLDING_WORDS, pool_line
from pages.common import show
from pages.common.inputs import Inputs

_NAMES = [device.name for device in accelerators()]


def pools(inputs: Inputs) -> None:
    """The lines as they are typed, and a popover that adds one."""
    title = "Pools beside the plan’s cluster: owned, rented, reserved, spot"
    with show.more(inputs, title, POOLS, key="fold_pools") as more:
        if more.open:
            inputs.draw(POOLS)
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
        line = pool_line(
            typed("name") or f"pool {len(inputs.reading.values[POOLS.id].pools) + 1}",
            typed("count") or "512",
            typed("gpu"),
            typed("held"),
            price=typed("price"),
            years=typed("years") or "4",
            interruptions=typed("taken"),
            first=typed("first"),
            last=typed("last"),
        )
        inputs.put(POOLS.id, f"{inputs.now(POOLS.id).rstrip()}\n{line}".strip())

    cells = st.columns([1.2, 1, 1.4])
    box(cells[0], "Name of the pool", "name", "burst")
    box(cells[1], "Accelerators", "count", "512")
    cells[2].selectbox("Of", _NAMES, index=_NAMES.index("H100 SXM"), key=key("gpu"))
    held = st.segmented_control("It is", HOLDING_WORDS, default="rented", required=True, key=key("held"))
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
    show.note("It becomes a line, where the rest is typed: spare nodes, maintenance, what idle hours cost.")
