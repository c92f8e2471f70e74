"""Plans as JSON: read back they are the same, and no file can do more than be refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.fields import LINK_VERSION
from core.limits import limit
from core.planning.comparison.entry import entry_of, results_of
from core.planning.form.plan_form import PLAN_FORM
from core.views.report.data import PlansFileError, as_json, read_json
from core.wording import cleaned
from tests.core.report_cases import ODD, PAGE_PRESETS, about_a_layout, report
from tests.every import every

NAMES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30).filter(lambda x: cleaned(x, 30))
TYPED = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
TEXTS = st.dictionaries(st.sampled_from([one.id for one in PLAN_FORM.fields]), TYPED)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
)


@every("name", [*PAGE_PRESETS, *ODD])
def test_a_plan_comes_back_with_its_results(name: str) -> None:
    entry = (PAGE_PRESETS | ODD)[name]
    ((again,), said) = read_json(as_json(report(entry)))
    assert said == ()
    assert (again.name, again.texts) == (entry.name, entry.texts)
    answered = report(entry).plans[0].answer
    assert again.results == (results_of(answered) if answered else {})


def test_layout_with_trained_layers_on_several_stages_is_exported_with_why_nothing_launches_it() -> None:
    made = about_a_layout("Last layers", n="8B", ft="last layers", lay="own", pp="2")
    (launch,) = json.loads(as_json(made))["plans"][0]["launch"].values()
    assert not launch["text"]
    assert launch["notes"]


@settings(max_examples=40)
@given(st.lists(st.tuples(NAMES, TEXTS), min_size=1, max_size=3))
def test_any_plans_come_back(plans: list[tuple[str, dict[str, str]]]) -> None:
    entries = tuple(entry_of(name, texts) for name, texts in plans)
    back, said = read_json(as_json(report(*entries)))
    assert said == ()
    assert [(one.name, one.texts) for one in back] == [(one.name, one.texts) for one in entries]


MADE = json.loads(as_json(report(next(iter(PAGE_PRESETS.values())))))


def changed(**fields: object) -> str:
    """A file of one plan with some fields of its own."""
    return json.dumps({**MADE, **fields})


BAD = {
    "nothing": "",
    "a list": "[]",
    "deep": "[" * 100_000,
    "twice": '{"kind": "napkin plans", "kind": "x"}',
    "infinite": changed(plans=[{"name": "a", "texts": {}, "results": {"days": 12321}}]).replace("12321", "1e999"),
    "huge": " " * 200_000,
    "no plans": changed(plans=[]),
    "another kind": changed(kind="config"),
    "version 0": changed(version=0),
    "texts that are numbers": changed(plans=[{"name": "a", "texts": {"n": 70}}]),
    "a text too long": changed(plans=[{"name": "a", "texts": {"n": "9" * 5000}}]),
    "half a pair": '{"kind": "\\ud800"}',
}


@every("name", BAD)
def test_what_holds_no_plans_is_refused(name: str) -> None:
    with pytest.raises(PlansFileError) as refused:
        read_json(BAD[name])
    assert 10 < len(str(refused.value)) < 300


@settings(max_examples=40)
@given(JSON)
def test_any_json_is_read_or_refused(value: object) -> None:
    plan = {"name": "a", "texts": value}
    for text in (json.dumps(value), changed(plans=value), changed(version=value), changed(plans=[plan])):
        try:
            entries, _ = read_json(text)
        except PlansFileError:
            continue
        assert all(set(one.texts) == {f.id for f in PLAN_FORM.fields} and one.reading for one in entries)


def test_what_cannot_be_taken_over_is_said() -> None:
    plan = {"name": "a", "texts": {"n": "8B", "zzz": "1"}, "results": {"days": 1.0, "zzz": 2.0}}
    (one,), said = read_json(changed(plans=[plan]))
    assert "zzz" in said[0]
    assert (one.texts["n"], one.results) == ("8B", {"days": 1.0})
    many = limit("compared_plans") + 1
    entries, said = read_json(changed(plans=[plan] * many))
    assert len(entries) == limit("compared_plans")
    assert str(many) in said[0]
    assert any(str(LINK_VERSION + 1) in line for line in read_json(changed(version=LINK_VERSION + 1))[1])


def test_texts_of_an_older_version_are_translated() -> None:
    (one,), _ = read_json(changed(version=2, plans=[{"name": "a", "texts": {"shard": "ZeRO-1"}}]))
    assert one.texts["zero"] == "1"
