"""Files of Parallel plan are about the layout on its page: its degrees, step, days, memory and launch lines."""

from __future__ import annotations

import html
import json

import pytest

from core.planning.estimate import timed_estimate
from core.planning.form.plan_form import plan_from
from core.planning.presets import SEARCH_PRESETS
from core.views.report.data import as_json, read_json
from core.views.report.document import as_html
from core.views.report.report import Report
from core.views.report.tables import as_markdown
from core.views.search.text import headline
from core.wording import plain
from tests.core.report_cases import about_a_layout

NODE = "13B on one node"


@pytest.fixture(scope="module")
def node() -> Report:
    return about_a_layout(NODE)


@pytest.mark.parametrize("preset", SEARCH_PRESETS)
def test_json_has_the_plan_of_the_page(preset: str) -> None:
    made = about_a_layout(preset)
    at = timed_estimate(plan_from(SEARCH_PRESETS[preset]))
    best = at.step
    (one,) = json.loads(as_json(made))["plans"]
    assert one["sentence"] == plain(headline(at))
    fields = ("tensor", "pipeline", "interleave", "context", "expert", "data", "micro_batch", "micro_batches", "zero")
    assert {name: one["layout"][name] for name in fields} == {name: getattr(best.layout, name) for name in fields}
    step = one["step"]
    assert step["step_seconds"] == best.seconds
    assert (step["step_seconds_low"], step["step_seconds_high"]) == (best.low, best.high)
    assert step["step_mfu"] == at.request.by_6n(best.mfu)
    assert step["step_days"] == pytest.approx(at.middle.steps_days, rel=1e-12)
    assert step["step_memory_bytes"] == float(best.memory.total)
    assert step["step_memory_bytes"] == pytest.approx(one["results"]["memory_bytes"], rel=1e-9), "one account"
    lines = at.launches
    assert {name: said["text"] for name, said in one["launch"].items()} == {line.system: line.text for line in lines}
    (entry,), said = read_json(as_json(made))
    assert (entry.texts, said) == (made.plans[0].entry.texts, ())


def test_a_reader_finds_answer_and_launch_lines(node: Report) -> None:
    at = node.layout
    assert at is not None
    markdown, page = as_markdown(node), html.unescape(as_html(node))
    assert headline(at) in markdown
    for one in at.launches:
        assert f"```{one.language}\n{one.text}\n```" in markdown
        assert f"<h3>{one.system}</h3><pre class=wide>{one.text}</pre>" in page
        for note in one.notes:
            assert note in markdown
