"""Parallel plan, studies: the search over a grid, run here with progress, or read from a file of results."""

from __future__ import annotations

import streamlit as st

from core.limits import limit
from core.search.search import search_plans
from core.search.study.columns import read_results
from core.search.study.result import PointResult
from core.search.study.run import run_study
from core.search.study.study import StudyError
from core.search.study.study_file import read_study
from core.views.study import text as study_text
from pages.common import show
from pages.common.inputs import Inputs
from pages.parallel.request import SearchInputs

_FOUND, _OF, _WRONG = "plan_search:study", "plan_search:study:of", "plan_search:study:wrong"


def _keep(points: list[PointResult], of: int) -> None:
    st.session_state[_FOUND], st.session_state[_OF] = points, of
    st.session_state.pop(_WRONG, None)


def _run(text: str) -> None:
    """Search point by point; whatever is clicked meanwhile stops it, and what is found by then stays."""
    try:
        study = read_study(text)
        if too_many := study_text.too_many(study):
            raise StudyError(too_many)
        results: list[PointResult] = []
        _keep(results, study.count)
        place = st.empty()
        with place.container(horizontal=True, vertical_alignment="center"):
            bar = st.progress(0.0)
            st.button("Stop", key="plan_search:study:stop")
        for chunk in run_study(study, search=search_plans):
            results.extend(chunk.points)
            bar.progress(len(results) / study.count, f"{len(results):,} of {study.count:,} points")
        results.sort(key=lambda result: result.point)
        place.empty()
    except StudyError as problem:
        st.session_state[_WRONG] = str(problem)


def study(inputs: Inputs, a: SearchInputs) -> None:
    """A study to edit and run, results to open, and the table of either."""

    def opened() -> None:
        if file := st.session_state.get("plan_search:study:file"):
            try:
                points = read_results(file.getvalue())
            except StudyError as problem:
                st.session_state[_WRONG] = str(problem)
            else:
                _keep(list(points), len(points))

    show.note(study_text.ABOUT)
    if apart := study_text.without_rates(a.plan):
        show.note(apart)
    key = "plan_search:study:text"
    if key not in st.session_state:
        st.session_state[key] = study_text.example(a.plan, a.request)
    left, right = st.columns([3, 2])
    with left:
        text = st.text_area("Study", key=key, height=260)
    with right:
        st.file_uploader(
            "or open results",
            type="parquet",
            max_upload_size=limit("upload_bytes") >> 20,
            key="plan_search:study:file",
            on_change=opened,
        )
        st.button("Begin from this plan", key="plan_search:study:again", on_click=lambda: st.session_state.pop(key))
        run = st.button("Run the study", key="plan_search:study:run", type="primary")
    if run:
        _run(text or "")
    if _WRONG in st.session_state:
        show.error(st.session_state[_WRONG])
    points: list[PointResult] = st.session_state.get(_FOUND, [])
    if points:
        show.takeaway(study_text.study_summary(points, st.session_state[_OF]))
        rows = points[: limit("study_rows_shown")]
        show.small_table(
            [show.Column(heading, numeric=i not in (0, 1, 4)) for i, heading in enumerate(study_text.RESULTS)],
            study_text.rows(rows),
            caption=f"The first {len(rows):,} of {len(points):,} points." if len(rows) < len(points) else "",
        )
