"""What raises all the same takes only its own part of the page with it: the part says so, and the log says why."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st
from streamlit.errors import FragmentHandledException

from core.messages import message
from core.views.common.markup import rich
from pages.common.components import copy_link
from pages.common.server.log import OncePer
from pages.streamlit_patches import OverdueError

LOG = logging.getLogger(__name__)
LOG.addFilter(OncePer())

MARK = "np-failed"
"""Class of the message, by which a test finds it on any page."""


@contextmanager
def guarded(part: str) -> Iterator[None]:
    """Catch errors of the ``part`` of the page, and show in its place that it failed.

    Streamlit stops and reruns a script with exceptions that are not an ``Exception``; they pass. If a run takes too
    long, the innermost part says so.
    """
    try:
        yield
    except FragmentHandledException:
        raise  # a fragment inside has said it
    except OverdueError as ended:
        _say_overdue(ended)
        raise
    except Exception:
        LOG.exception("A part of a page failed: %s", part)
        _say(rich(message("common.part_failed", part=part)))


@contextmanager
def guarded_page(query: str) -> Iterator[None]:
    """Catch errors of a page outside its parts, and show that it failed. query: query string of its link."""
    try:
        yield
    except FragmentHandledException:
        raise
    except OverdueError as ended:
        _say_overdue(ended)
        raise
    except Exception:
        LOG.exception("A page failed")
        reset = f'<a href="?">{message("common.page_reset")}</a>'
        _say(f"{rich(message('common.page_failed'))} {reset}")
        copy_link(query, key="failed:link")


def _say_overdue(ended: OverdueError) -> None:
    if not ended.args:
        ended.args = ("said",)
        _say(rich(message("common.overdue")))


def _say(safe: str) -> None:
    st.html(f'<div class="np-error {MARK}" role="alert">{safe}</div>')
