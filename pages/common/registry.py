"""The product's pages: one row each. Navigation, tests and screenshots all walk this table."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass

import streamlit as st

from core.limits import cached


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
    title="Home",
    url_path="",
    prefix="h",
    lead="Training a language model costs bits, bytes, FLOPs, days and dollars. Change any number below and read "
    "the answer; every page behind it shows why.",
    default=True,
    heading="Three napkin questions",
    plans=True,
)
FLOATS = PageSpec(
    id="floats",
    title="Float formats",
    url_path="float-formats",
    prefix="f",
    lead="See what a number becomes in every format training uses: flip its bits, read its exact value, "
    "and compare what each format keeps and loses.",
)
TENSORS = PageSpec(
    id="tensors",
    title="Tensor views",
    url_path="tensor-views",
    prefix="t",
    lead="See the memory behind a tensor: which operations only change strides, which copy, and why .view() fails.",
)
LECTURE = PageSpec(
    id="lecture",
    title="Lecture",
    heading="The lecture, checked",
    url_path="lecture",
    prefix="l",
    lead="Claims of Stanford CS336 lecture 2 and of students’ notes on it, each recomputed now by the code "
    "behind these pages, with a verdict.",
)
EXERCISES = PageSpec(
    id="exercises",
    title="Exercises",
    url_path="exercises",
    prefix="e",
    lead="Predict first, then see, with the reason: floats, views, FLOPs and memory, ten to a sheet.",
)
GLOSSARY = PageSpec(
    id="glossary",
    title="Glossary",
    url_path="glossary",
    prefix="g",
    lead="The terms that these pages use, from 6ND to ZeRO: one definition each, with the work it comes from.",
)
COMPUTE = PageSpec(
    id="compute",
    title="Compute budget",
    url_path="compute-budget",
    prefix="c",
    lead="From a model, its tokens and a cluster to FLOPs, days and accelerator-hours, checked against published runs.",
    plans=True,
)
MEMORY = PageSpec(
    id="memory",
    title="Training memory",
    url_path="training-memory",
    prefix="m",
    lead="Will it fit? What fills each accelerator, byte by byte, and the cheapest change if it does not.",
    plans=True,
)
PARALLEL = PageSpec(
    id="parallel",
    title="Parallel plan",
    url_path="parallel-plan",
    prefix="s",
    lead="Find the fastest parallel layout for your cluster, and see where each step spends its time.",
    plans=True,
)
WHAT_IF = PageSpec(
    id="what_if",
    title="What if",
    url_path="what-if",
    prefix="w",
    lead="One plan, two of its numbers swept: which combinations fit and meet the deadline. Choose a cell to make it "
    "the plan.",
    plans=True,
)
CALENDAR = PageSpec(
    id="calendar",
    title="Calendar",
    heading="Calendar and cost",
    url_path="calendar",
    prefix="y",
    lead="When do several runs on one fleet end, and what does that cost rented, reserved or owned? Stages in "
    "sequence, experiments beside them, maintenance, a deadline.",
    plans=True,
)
COMPARE = PageSpec(
    id="compare",
    title="Compare",
    url_path="compare",
    prefix="k",
    lead="Up to six plans side by side: which is sooner, which is cheaper, by how much, and in what they differ. "
    "Change any number and see what follows.",
    plans=True,
)
SAVED = PageSpec(
    id="saved",
    title="Saved plans",
    url_path="saved-plans",
    prefix="r",
    lead="Every plan that was kept, with its history. Find one, open it where it was worked out, or lay it beside "
    "others.",
)
MEASURE = PageSpec(
    id="measure",
    title="Measure",
    url_path="measure",
    prefix="d",
    lead="What this machine really does, next to what its datasheet promises, and into the plan.",
)

GROUPS: dict[str, tuple[PageSpec, ...]] = {
    "": (HOME,),
    "Learn": (FLOATS, TENSORS, LECTURE, EXERCISES, GLOSSARY),
    "Plan": (COMPUTE, MEMORY, PARALLEL, WHAT_IF, COMPARE, CALENDAR, SAVED),
    "Measure": (MEASURE,),
}
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
