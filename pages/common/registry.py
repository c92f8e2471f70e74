"""The product's pages: one row each. Navigation, tests and screenshots all walk this table."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass

import streamlit as st

from core.limits import cached
from core.messages import message


@dataclass(frozen=True, slots=True)
class PageSpec:
    """One page: its names, and the prefix of its query parameters (short and never reused).

    id: also its folder's name, and that of its tests. plans: whether it answers for the current plan, whose fields
    stand in the sidebar and have a prefix of their own.
    """

    id: str
    title: str
    url_path: str
    prefix: str
    lead: str
    default: bool = False
    heading: str = ""
    plans: bool = False

    @property
    def path(self) -> str:
        """Its file."""
        return f"pages/{self.id}/page.py"

    @property
    def h1(self) -> str:
        """The page's heading: its title, unless it has a better one."""
        return self.heading or self.title


HOME = PageSpec(
    id="home",
    title=message("page.home"),
    url_path="",
    prefix="h",
    lead=message("page.home.lead"),
    default=True,
    heading=message("page.home.heading"),
    plans=True,
)
FLOATS = PageSpec(
    id="floats",
    title=message("page.floats"),
    url_path="float-formats",
    prefix="f",
    lead=message("page.floats.lead"),
)
TENSORS = PageSpec(
    id="tensors",
    title=message("page.tensors"),
    url_path="tensor-views",
    prefix="t",
    lead=message("page.tensors.lead"),
)
LECTURE = PageSpec(
    id="lecture",
    title=message("page.lecture"),
    heading=message("page.lecture.heading"),
    url_path="lecture",
    prefix="l",
    lead=message("page.lecture.lead"),
)
EXERCISES = PageSpec(
    id="exercises",
    title=message("page.exercises"),
    url_path="exercises",
    prefix="e",
    lead=message("page.exercises.lead"),
)
GLOSSARY = PageSpec(
    id="glossary",
    title=message("page.glossary"),
    url_path="glossary",
    prefix="g",
    lead=message("page.glossary.lead"),
)
COMPUTE = PageSpec(
    id="compute",
    title=message("page.compute"),
    url_path="compute-budget",
    prefix="c",
    lead=message("page.compute.lead"),
    plans=True,
)
MEMORY = PageSpec(
    id="memory",
    title=message("page.memory"),
    url_path="training-memory",
    prefix="m",
    lead=message("page.memory.lead"),
    plans=True,
)
PARALLEL = PageSpec(
    id="parallel",
    title=message("page.parallel"),
    url_path="parallel-plan",
    prefix="s",
    lead=message("page.parallel.lead"),
    plans=True,
)
WHAT_IF = PageSpec(
    id="what_if",
    title=message("page.what_if"),
    url_path="what-if",
    prefix="w",
    lead=message("page.what_if.lead"),
    plans=True,
)
CALENDAR = PageSpec(
    id="calendar",
    title=message("page.calendar"),
    heading=message("page.calendar.heading"),
    url_path="calendar",
    prefix="y",
    lead=message("page.calendar.lead"),
    plans=True,
)
COMPARE = PageSpec(
    id="compare",
    title=message("page.compare"),
    url_path="compare",
    prefix="k",
    lead=message("page.compare.lead"),
    plans=True,
)
SAVED = PageSpec(
    id="saved",
    title=message("page.saved"),
    url_path="saved-plans",
    prefix="r",
    lead=message("page.saved.lead"),
)
MEASURE = PageSpec(
    id="measure",
    title=message("page.measure"),
    url_path="measure",
    prefix="d",
    lead=message("page.measure.lead"),
)

GROUPS: dict[str, tuple[PageSpec, ...]] = {
    "": (HOME,),
    "Learn": (FLOATS, TENSORS, LECTURE, EXERCISES, GLOSSARY),
    "Plan": (COMPUTE, MEMORY, PARALLEL, WHAT_IF, COMPARE, CALENDAR, SAVED),
    "Measure": (MEASURE,),
}
GROUP_TITLES: Mapping[str, str] = {
    "": "",
    "Learn": message("page.group.learn"),
    "Plan": message("page.group.plan"),
    "Measure": message("page.group.measure"),
}
"""A group → its name in the menu."""

PAGES: tuple[PageSpec, ...] = tuple(page for members in GROUPS.values() for page in members)
PAGE: Mapping[str, PageSpec] = {page.id: page for page in PAGES}
"""Each by its id."""


@cached("tables_kept")
def _registered() -> Mapping[str, st.Page]:
    return {p.id: st.Page(p.path, title=p.title, url_path=p.url_path, default=p.default) for p in PAGES}


def registered() -> Mapping[str, st.Page]:
    """Pages by id as Streamlit knows them, each run its own, as one says whether it may run. To make them anew in every
    run would find every file again."""
    return {name: copy(page) for name, page in _registered().items()}
