"""Descriptors: the limit is raised, and those of sessions that ended are given back."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from pages.common.server.admission import raise_limit

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]


@pytest.mark.process
def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    code = (
        "import resource as r; from pages.common.server.admission import raise_limit\n"
        "r.setrlimit(r.RLIMIT_NOFILE, (100, 300)); assert raise_limit() == 300; assert raise_limit() == 300"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_a_limit_that_cannot_be_raised_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError

    before = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert raise_limit() == before
    monkeypatch.setattr("pages.common.server.admission.resource", None)
    assert raise_limit() is None


LEFT = """
import os, sys, time
from types import SimpleNamespace
import streamlit as st
from pages.common.server.admission import close_expired_sessions

app = st.App(os.path.abspath("app.py"))
storage = app._create_runtime()._session_mgr._session_storage
now = time.monotonic()
storage._cache._timer, storage._cache._ttl = lambda: now, 180
closed = []
for name in "abc":
    session = SimpleNamespace(id=name, shutdown=lambda name=name: closed.append(name))
    storage.save(SimpleNamespace(session=session))
    now += 50
# The first left 150 s ago, with 180 allowed.
assert close_expired_sessions() == 0 and not closed and len(storage.list()) == 3, closed
now += 50
assert close_expired_sessions() == 1 and closed == ["a"], closed
now += 500
assert close_expired_sessions() == 2 and closed == ["a", "b", "c"] and not storage.list(), closed
"""


@pytest.mark.process
def test_who_does_not_come_back_is_let_go() -> None:
    done = subprocess.run([sys.executable, "-c", LEFT], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
