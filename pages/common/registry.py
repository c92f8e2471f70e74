"""The product's pages: one row each. Navigation, tests and screenshots all walk this table."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass

import streamlit as st

from core.limits import cached
from core.messages import find_message, message


@dataclass(frozen=True, slots=True)
class PageSpec:
    """One page: its names, and the prefix of its query parameters (short and never reused).

    id: also its folder's name, that of its tests, and that of its texts in the catalog. plans: whether it answers for
    the current plan, whose fields stand in the sidebar and have a prefix of their own.
    """

    id: str
    url_path: str
    prefix: str
    plans: bool = False
    default: bool = False

    @property
    def path(self) -> str:
        """Its file."""
        return f"pages/{self.id}/page.py"

    @property
    def title(self) -> str:
        """Its name in the menu."""
        return find_message(f"page.{self.id}") or self.id

    @property
    def h1(self) -> str:
        """The page's heading: its title, unless it has a better one."""
        return find_message(f"page.{self.id}.heading") or self.title

    @property
    def lead(self) -> str:
        """What the page is for."""
        return find_message(f"page.{self.id}.lead") or ""


HOME = PageSpec("home", "", "h", plans=True, default=True)
FLOATS = PageSpec("floats", "float-formats", "f")
TENSORS = PageSpec("tensors", "tensor-views", "t")
LECTURE = PageSpec("lecture", "lecture", "l")
EXERCISES = PageSpec("exercises", "exercises", "e")
GLOSSARY = PageSpec("glossary", "glossary", "g")
COMPUTE = PageSpec("compute", "compute-budget", "c", plans=True)
MEMORY = PageSpec("memory", "training-memory", "m", plans=True)
PARALLEL = PageSpec("parallel", "parallel-plan", "s", plans=True)
WHAT_IF = PageSpec("what_if", "what-if", "w", plans=True)
DECIDE = PageSpec("decide", "decide", "y", plans=True)
COMPARE = PageSpec("compare", "compare", "k", plans=True)
SAVED = PageSpec("saved", "saved-plans", "r")
MEASURE = PageSpec("measure", "measure", "d")

GROUPS: dict[str, tuple[PageSpec, ...]] = {
    "": (HOME,),
    "Learn": (FLOATS, TENSORS, LECTURE, EXERCISES, GLOSSARY),
    "Plan": (COMPUTE, MEMORY, PARALLEL, WHAT_IF, DECIDE, COMPARE, SAVED),
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


OLDER: Mapping[str, PageSpec] = {"calendar": DECIDE}
"""Addresses of pages that are no more → the page that answers them."""


@cached("tables_kept")
def _registered() -> Mapping[str, st.Page]:
    now = {p.id: st.Page(p.path, title=p.title, url_path=p.url_path, default=p.default) for p in PAGES}
    return now | {name: st.Page(p.path, title=p.title, url_path=name) for name, p in OLDER.items()}


def registered() -> Mapping[str, st.Page]:
    """Return pages by id as Streamlit knows them, each run its own, as one says whether it may run. To make them again
    in every run would find every file again."""
    return {name: copy(page) for name, page in _registered().items()}
