"""Studies on Parallel plan: run here, stopped, refused, and read from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.limits import limit
from core.search.search import search_plans
from core.search.study.columns import schema_of, table_of
from core.search.study.run import run_study
from core.search.study.study_file import read_study
from pages.common.registry import PARALLEL
from tests.app.plan_pages import bodies, opened, stripped, words

STUDY: dict[str, Any] = {
    "models": ["Llama 3.1 8B"],
    "clusters": [{"accelerator": "H100 SXM", "accelerators": [8, 16]}],
    "global_batch_sequences": [64],
    "seq_len": [4096, 8192],
    "tokens": 1e12,
}


@pytest.fixture
def app() -> AppTest:
    return opened(PARALLEL, {"model": "Llama 3.1 8B", "count": "16", "gb": "64", "seq": "4,096", "study": "true"})


def run(app: AppTest, text: str) -> AppTest:
    next(area for area in app.text_area if area.label == "Study").set_value(text)
    next(button for button in app.button if button.label == "Run the study").click()
    app.run()
    assert not app.exception
    return app


def told(app: AppTest) -> str:
    return " ".join(stripped(body) for body in bodies(app, "np-takeaway"))


def test_the_study_to_begin_from_is_one_around_the_plan(app: AppTest) -> None:
    text = next(area.value for area in app.text_area if area.label == "Study")
    study = read_study(text)
    assert [one.count for one in study.clusters] == [8, 16, 32]
    assert study.batches == (64, 128)
    assert study.models[0][0] == "Llama 3.1 8B"


def test_a_study_is_run_and_its_points_are_those_of_the_search(app: AppTest) -> None:
    run(app, json.dumps(STUDY))
    found = [point for chunk in run_study(read_study(json.dumps(STUDY)), search=search_plans) for point in chunk.points]
    assert len(found) == 4
    assert "4 points" in told(app)
    for point in found:
        assert point.best is not None
        assert f"{point.fitting:,} of {point.plans:,}" in stripped(words(app))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"models": ["GPT-9"]}, "GPT-9"),
        ({"seq_len": []}, "seq_len"),
        ({"colour": "red"}, "colour"),
        ({"global_batch_sequences": list(range(1, 102))}, str(limit("study_points_shared"))),
    ],
)
def test_what_is_no_study_is_said_and_results_stay(app: AppTest, change: dict[str, Any], says: str) -> None:
    run(app, json.dumps(STUDY))
    run(app, json.dumps(STUDY | change))
    assert says in " ".join(stripped(body) for body in bodies(app, "np-error"))
    assert "4 points" in told(app)


def test_results_of_a_file_are_shown(app: AppTest, tmp_path: Path) -> None:
    study = read_study(json.dumps(STUDY))
    points = [point for chunk in run_study(study, search=search_plans) for point in chunk.points]
    import pyarrow.parquet

    path = tmp_path / "study.parquet"
    pyarrow.parquet.write_table(table_of(points, schema_of(study.digest)), path)
    app.file_uploader[0].set_value(("study.parquet", path.read_bytes(), "application/octet-stream"))
    app.run()
    assert not app.exception
    assert "4 points" in told(app)


def test_a_file_that_holds_no_results_is_said(app: AppTest) -> None:
    app.file_uploader[0].set_value(("study.parquet", b"PAR1 nothing", "application/octet-stream"))
    app.run()
    assert not app.exception
    assert "no results of a study" in " ".join(stripped(body) for body in bodies(app, "np-error"))
