"""The panels of a page: folded, under a few headings, in the order in which people ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from core.fields import Field, switch
from pages.common import show
from pages.common.inputs import Inputs

Groups = Mapping[str, Mapping[str, str]]
"""Heading → the titles of the panels under it by their ids."""

Subject = TypeVar("Subject")


def switches(groups: Groups) -> dict[str, Field]:
    """Return the switches of the panels as fields of the page's form, in order."""
    return {
        name: switch(name, title, False, part="panels") for titles in groups.values() for name, title in titles.items()
    }


def draw_panels(
    inputs: Inputs, groups: Groups, panels: Mapping[str, Callable[[Inputs, Subject], None]], about: Subject
) -> None:
    """Draw every panel under its heading. An open panel shows its content for ``about``."""
    for heading, titles in groups.items():
        show.heading(heading)
        for name, title in titles.items():
            with inputs.panel(name, title) as opened:
                if opened.open:
                    panels[name](inputs, about)
