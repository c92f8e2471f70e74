"""The largest of each thing that a fine-tuning plan may have: it leaves enough free, and one more does not."""

from __future__ import annotations

from collections.abc import Mapping

from core.models.catalog import CATALOG, catalog
from core.planning.fine_tuning.estimate import largest_fitting
from core.planning.form.plan_form import plan_from
from core.planning.memory_estimate import memory_estimate
from core.planning.presets import MEMORY_PRESETS
from core.training.layout import LayoutError
from tests.every import every

TUNING = {name: texts for name, texts in MEMORY_PRESETS.items() if "ft" in texts}


def leaves_enough(texts: Mapping[str, str]) -> bool:
    try:
        return memory_estimate(plan_from(texts)).room >= 0
    except LayoutError:
        return False


@every("name", list(TUNING))
@every("free", ["0%", "8%"])
def test_the_largest_leaves_enough_free_and_one_more_does_not(name: str, free: str) -> None:
    texts = {**TUNING[name], "free": free}
    found = {one.field: one.text for one in largest_fitting(plan_from(texts))}
    assert {"model", "seq", "mbs"} <= set(found)
    for field, text in found.items():
        assert not text or leaves_enough({**texts, field: text}), field
    for field in {"mbs", "rank"} & set(found):
        more = 1 + int(found[field].replace(",", "") or 0)
        assert not leaves_enough({**texts, field: f"{more:,}"}), field


@every("name", list(TUNING))
def test_no_model_with_more_parameters_fits(name: str) -> None:
    found = next(one.text for one in largest_fitting(plan_from(TUNING[name])) if one.field == "model")
    least = CATALOG[found].parameters if found else 0
    larger = [m.name for m in catalog() if m.laid_out and not m.spec.experts and m.parameters > least]
    assert [model for model in larger if leaves_enough({**TUNING[name], "model": model})] == []


@every("name", list(TUNING))
def test_the_largest_is_the_same_for_other_data_and_prices(name: str) -> None:
    plan = plan_from(TUNING[name])
    assert plan.own_layout
    for texts in ({"tokens": "3B"}, {"price": "9"}):
        other = plan_from({**TUNING[name], **texts})
        assert largest_fitting(other) == largest_fitting(plan)
        assert memory_estimate(other).total == memory_estimate(plan).total


def test_more_memory_kept_free_never_allows_more() -> None:
    texts = TUNING[next(iter(TUNING))]
    none, some = (
        {one.field: one.text for one in largest_fitting(plan_from({**texts, "free": free}))} for free in ("0%", "30%")
    )
    for field in ("seq", "mbs"):
        assert int(some[field].replace(",", "") or 0) <= int(none[field].replace(",", ""))
