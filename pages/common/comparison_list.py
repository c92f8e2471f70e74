"""The comparison list: up to six plans that a visitor lays beside each other, on whatever page of planning they stand.

It stays with the visitor from page to page, and every link to a page of planning carries it in one parameter. Each plan
has a number of its own, so that what is said of a column still finds it after another one was removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import streamlit as st

from core.fields import VERSION, clipped, newer, read_version
from core.limits import limit
from core.messages import message
from core.planning.comparison.comparison import distinct
from core.planning.comparison.entry import Entry, pack, unpack
from core.views.comparison.text import already_in
from core.views.comparison.text import full as no_more
from pages.common.registry import COMPARE, GROUPS, PageSpec

IN_LINK = "plans"
"""The parameter of a link that carries the comparison list."""

_PLANS, _PACKED, _NEXT = "compared:plans", "compared:packed", "compared:next"


def take_up_link() -> tuple[str, ...]:
    """Open the comparison of the link that opened the session, once, and return messages about it."""
    if _PLANS in st.session_state or IN_LINK not in st.query_params:
        return ()
    address = {name: st.query_params.get_all(name) for name in (VERSION, IN_LINK)}
    version = read_version(address)
    entries, sentences = unpack(address[IN_LINK][-1], version)
    put(entries)
    of_the_list = (line for line in sentences if not line.endswith(newer(version)))  # which the page's own form says
    return (*of_the_list, *problems(entries))


def problems(entries: Iterable[Entry]) -> tuple[str, ...]:
    """Return what cannot be read of plans, each under its name."""
    return tuple(
        message("comparison.error.field", plan=clipped(entry.name), problem=wrong.message)
        for entry in entries
        for wrong in entry.reading.problems
    )


def same(entry: Entry) -> Entry | None:
    """Return the plan of the comparison with the same texts, under any name; None if there is none."""
    return next((plan for plan in plans() if plan.texts == entry.reading.texts), None)


def plans() -> tuple[Entry, ...]:
    """Return the plans of the comparison list, in order."""
    return tuple(held().values())


def held() -> Mapping[int, Entry]:
    """Return the plans by their numbers, which they keep while they are in the comparison."""
    return st.session_state.get(_PLANS, {})


def full() -> bool:
    """Return whether the comparison has the maximum number of plans."""
    return len(held()) >= limit("compared_plans")


def add(entry: Entry) -> bool:
    """Append a plan. Return False, without a change, if the comparison is full."""
    return insert(entry, len(held()))


def offer(entry: Entry) -> str:
    """Append a plan unless it is already there. Return a message if it was not added."""
    if there := same(entry):
        return already_in(there)
    return "" if add(entry) else no_more()


def way_there() -> None:
    """Draw the link to Compare if the comparison has plans."""
    if count := len(held()):
        st.page_link(
            COMPARE.path,
            label=message("sidebar.compared", count=float(count), most=float(limit("compared_plans"))),
            width="content",
        )


def insert(entry: Entry, at: int) -> bool:
    """Add a plan in front of the one at the place ``at``; whether there was room."""
    if full():
        return False
    order = list(held().items())
    order.insert(at, (_number(), _readable(entry)))
    _hold(dict(order))
    return True


def put(entries: Iterable[Entry]) -> None:
    """Replace all plans by these, up to the maximum."""
    _hold({_number(): _readable(entry) for entry in tuple(entries)[: limit("compared_plans")]})


def put_back(entries: Mapping[int, Entry]) -> None:
    """Replace all plans by these, which stood there before, under the numbers that they had."""
    _hold(entries)


def change(number: int, entry: Entry) -> None:
    """Put ``entry`` in the place of the plan ``number``; nothing if that has been removed."""
    if number in held():
        _hold({**held(), number: entry})


def remove(number: int) -> None:
    """Remove a plan from the comparison."""
    _hold({n: entry for n, entry in held().items() if n != number})


def move(number: int, by: int) -> None:
    """Move a plan by a number of places, as far as possible."""
    order = list(held())
    if number in order:
        at = order.index(number)
        order.insert(min(max(at + by, 0), len(order) - 1), order.pop(at))
        _hold({n: held()[n] for n in order})


def in_link(page: PageSpec) -> dict[str, str]:
    """Return the part of a link to ``page`` that carries the comparison; empty without plans or for a page without a
    plan."""
    packed: str = st.session_state.get(_PACKED, "")
    return {IN_LINK: packed} if packed and page in GROUPS["Plan"] else {}


def remember(page: PageSpec) -> None:
    """Add the comparison to the browser's address, so that reloading the page keeps it."""
    packed = in_link(page).get(IN_LINK)
    if packed != st.query_params.get(IN_LINK):
        if packed:
            st.query_params[IN_LINK] = packed
        else:
            st.query_params.pop(IN_LINK)


def _readable(entry: Entry) -> Entry:
    """Return the plan with the texts in force: what cannot be read has its default."""
    return replace(entry, texts=entry.reading.texts)


def _hold(entries: Mapping[int, Entry]) -> None:
    """Keep the plans under their numbers, no two with one name, and what a link says of them."""
    named = distinct(entries.values())
    st.session_state[_PLANS], st.session_state[_PACKED] = dict(zip(entries, named, strict=True)), pack(named)


def _number() -> int:
    st.session_state[_NEXT] = st.session_state.get(_NEXT, 0) + 1
    return st.session_state[_NEXT]
