"""Plans of a comparison: a link carries them whole, and hostile ones are survived."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.fields import Field
from core.limits import limit
from core.planning.comparison.comparison import with_saved_results
from core.planning.comparison.entry import Entry, entry_of, pack, results_of, unpack
from core.planning.form.plan_form import PLAN_FIELDS, PLAN_FORM
from core.planning.presets import PRESETS
from core.wording import cleaned
from tests.every import every

NAMES = st.text(min_size=1, max_size=limit("plan_name")).filter(lambda text: cleaned(text, limit("plan_name")))
TEXTS = st.dictionaries(st.sampled_from([field.id for field in PLAN_FORM.fields]), st.text(max_size=20), max_size=8)


@given(st.lists(st.tuples(NAMES, TEXTS), min_size=1, max_size=limit("compared_plans")))
def test_a_link_carries_plans_whole(plans: list[tuple[str, dict[str, str]]]) -> None:
    entries = tuple(entry_of(name, texts) for name, texts in plans)
    assert unpack(pack(entries)) == (entries, ())


def test_a_name_that_nobody_would_see_is_none() -> None:
    (entry,), _ = unpack(pack([Entry("\u200b\u3164", entry_of("", {}).texts)]))
    assert entry.name == "Plan 1"


@given(st.text(max_size=300))
def test_any_text_opens(text: str) -> None:
    entries, _ = unpack(text)
    assert len(entries) <= limit("compared_plans")
    assert all(set(entry.texts) == {f.id for f in PLAN_FORM.fields} and entry.reading for entry in entries)


def test_results_travel_and_unknown_fields_are_named() -> None:
    entries = [with_saved_results(entry_of(name, texts)) for name, texts in list(PRESETS.items())[:3]]
    back, sentences = unpack(pack(entries))
    assert not sentences
    for entry, again in zip(entries, back, strict=True):
        assert again.texts == entry.texts
        assert results_of(again.answer) == results_of(entry.answer)
        assert all(abs(again.results[k] / v - 1) < 1e-5 for k, v in entry.results.items() if v)
    _, sentences = unpack("a~n.70B~zzz.1")
    assert len(sentences) == 1
    assert "zzz" in sentences[0]


def test_more_plans_than_fit_are_said() -> None:
    many = [Entry(f"p{i}", entry_of("", {}).texts) for i in range(limit("compared_plans") + 2)]
    entries, sentences = unpack(pack(many))
    assert len(entries) == limit("compared_plans")
    assert str(len(many)) in sentences[0]


def test_of_a_link_that_is_too_long_no_plan_is_changed_in_silence() -> None:
    many = [entry_of(f"p{i}", {"shape": str(i) * 3_000}) for i in range(limit("compared_plans"))]
    assert len(pack(many)) > limit("compared_plans_chars")
    entries, sentences = unpack(pack(many))
    assert 1 < len(entries) < len(many)
    assert entries == tuple(many[: len(entries)])
    assert any(f"{limit('compared_plans_chars'):,}" in line for line in sentences)


@every("field", PLAN_FIELDS, ids=lambda field: field.id)
def test_a_plan_of_a_comparison_keeps_every_field(field: Field) -> None:
    """Whatever a text is, it is the field's own; those that others decide are what these say."""
    typed = f"not {field.default}"
    kept = entry_of("One", {field.id: typed}).texts
    derived = PLAN_FORM.parse({field.id: typed}).derived
    assert kept[field.id] == typed or field.id in derived
    assert kept.keys() == {one.id for one in PLAN_FIELDS}
