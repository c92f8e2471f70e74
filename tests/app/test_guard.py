"""What raises takes its own part of the page with it and no more; the log gets it once."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.common import guard
from pages.common.registry import COMPUTE, FLOATS, HOME, MEMORY, TENSORS, PageSpec
from pages.tensors import memory as tensors_memory
from tests.patience import PATIENCE_S

APP = str(Path(__file__).parents[2] / "app.py")


def opened(spec: PageSpec, **query: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run()
    app.query_params.update({f"{spec.prefix}_{name}": text for name, text in query.items()})
    return app.run() if spec.default else app.switch_page(spec.path).run()


def texts(app: AppTest) -> list[str]:
    return [html.proto.body for html in app.get("html")]


def failed(app: AppTest) -> list[str]:
    return [text for text in texts(app) if guard.MARK in text]


def fails(*_: object, **__: object) -> None:
    raise RuntimeError("planted")


def whole(app: AppTest, spec: PageSpec) -> bool:
    """Title, menu and the link to copy are there, and no red box."""
    links = [component for component in app.get("bidi_component") if "query" in str(component.proto)]
    return [title.value for title in app.title] == [spec.h1] and not app.exception and bool(links)


def test_a_panel_that_fails_says_so_and_keeps_the_page(
    monkeypatch: pytest.MonkeyPatch, failures: list[logging.LogRecord]
) -> None:
    monkeypatch.setattr(tensors_memory, "overlap_of", fails)
    app = opened(TENSORS, shared="true", named="true")
    assert whole(app, TENSORS)
    assert len(failed(app)) == 1
    assert "Overlap" in failed(app)[0]
    assert [record.exc_info[1].args for record in failures if record.exc_info and record.exc_info[1]] == [("planted",)]


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        (HOME, "pages.common.show.answer"),
        (FLOATS, "pages.common.show.answer"),
        (TENSORS, "pages.common.show.answer"),
        (COMPUTE, "pages.common.show.answer"),
        (MEMORY, "pages.common.show.chart"),
    ],
    ids=lambda value: getattr(value, "id", ""),
)
def test_an_answer_or_a_chart_that_fails_keeps_the_page(
    spec: PageSpec, where: str, monkeypatch: pytest.MonkeyPatch, failures: list[logging.LogRecord]
) -> None:
    monkeypatch.setattr(where, fails)
    app = opened(spec)
    assert whole(app, spec)
    assert failed(app)
    for _ in range(3):
        assert len(failed(app.run())) == (3 if spec is HOME else 1)
    assert len(failures) == 1, "the same fault again and again is logged once"
    assert app.text_input, "the inputs stay"


@pytest.mark.parametrize("spec", [HOME, FLOATS, TENSORS, COMPUTE, MEMORY], ids=lambda spec: spec.id)
def test_what_fails_outside_of_any_part_leaves_title_menu_and_link(
    spec: PageSpec, monkeypatch: pytest.MonkeyPatch, failures: list[logging.LogRecord]
) -> None:
    monkeypatch.setattr("pages.common.show.footer", fails)
    app = opened(spec)
    assert whole(app, spec)
    assert len(failed(app)) == len(failures) == 1
    assert 'href="?"' in failed(app)[0]


def test_a_page_comes_back_when_the_fault_is_gone(
    monkeypatch: pytest.MonkeyPatch, failures: list[logging.LogRecord]
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("pages.common.show.answer", fails)
        app = opened(COMPUTE)
        assert failed(app)
    assert not failed(app.run())
    assert failures


def test_reruns_and_stops_pass(failures: list[logging.LogRecord]) -> None:
    def script() -> None:
        import streamlit as st

        from pages.common.guard import guarded

        st.session_state["runs"] = st.session_state.get("runs", 0) + 1
        with guarded("a part"):
            if st.session_state["runs"] < 3:
                st.rerun()
        st.text(f"run {st.session_state['runs']}")
        with guarded("another"):
            st.stop()
        st.text("never")

    app = AppTest.from_function(script).run()
    assert [text.value for text in app.text] == ["run 3"]
    assert not failures
