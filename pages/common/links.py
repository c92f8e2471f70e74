"""Addresses within the product: a page with its fields, the part to be in sight, and what stays with a visitor."""

from __future__ import annotations

from collections.abc import Mapping

from core.fields import SHARED, query_of
from core.planning.form.plan_form import PLAN_IDS
from pages.common import comparison_list
from pages.common.registry import PageSpec
from pages.common.theme import in_link

LANDS_AT = "at"
"""The parameter of a link that names the part of the page to be in sight when it opens."""


def key_of(page: PageSpec, name: str) -> str:
    """Return the name of a field of ``page`` in an address: a plan's is the same on every page that has one."""
    return f"{SHARED if page.plans and name in PLAN_IDS else page.prefix}_{name}"


def address(page: PageSpec, fields: Mapping[str, str], others: Mapping[str, str] | None = None, at: str = "") -> str:
    """Return the address of ``page`` from any page, with these fields (names without prefix) set, and the plans to
    compare.

    others: further parameters, by their names in an address. at: the part of the page, by the same kind of name as its
    fields, that is to be in sight when it opens.
    """
    named = {key_of(page, name): text for name, text in fields.items()}
    there = {LANDS_AT: f"{page.prefix}_{at}"} if at else {}
    carried = comparison_list.in_link(page)
    return f"{page.url_path or './'}?{query_of({**named, **(others or {}), **there, **carried, **in_link()})}"
