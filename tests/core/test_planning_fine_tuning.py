"""The largest of each thing that a fine-tuning plan may have: it leaves enough free, and one more does not."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Mapping

import pytest

from core.budget.equations import BudgetError
from core.models.catalog import CATALOG, catalog
from core.planning.estimate import estimate, timed_estimate
from core.planning.fine_tuning import fine_tuning_time, largest_fitting
from core.planning.form.plan_form import plan_from
from core.planning.memory_estimate import memory_estimate
from core.planning.plan import FINE_TUNING_BATCH, PRE_TRAINING_BATCH, Plan, begun_batch, parse_batch
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
@every("seq", ["", "512"])
def test_no_model_with_more_parameters_fits(name: str, seq: str) -> None:
    texts = {**TUNING[name], **({"seq": seq, "rank": "64"} if seq else {})}
    found = next(one.text for one in largest_fitting(plan_from(texts)) if one.field == "model")
    least = CATALOG[found].parameters if found else 0
    published = [m for m in catalog() if "/" in m.hf_id and m.laid_out and not m.spec.experts]
    assert not found or CATALOG[found] in published
    larger = [m.name for m in published if m.parameters > least]
    assert [model for model in larger if leaves_enough({**texts, "model": model})] == []


@pytest.mark.parametrize("seed", range(6))
def test_steps_and_memory_are_those_of_the_plan_whatever_lengths_examples_have(seed: int) -> None:
    """On Training memory, Compute budget, and Parallel plan: time of the mean length, memory of the longest example."""
    draw = random.Random(seed)
    for name in draw.sample(list(MEMORY_PRESETS), 6):
        texts = {"tokens": f"{10 ** draw.uniform(6, 9):.0f}", "mean": draw.choice(["", "300", "1500"])}
        texts |= {"longest": draw.choice(["", "900"]), "lay": draw.choice(["own", "fastest"])}
        plan = plan_from({**MEMORY_PRESETS[name], **texts})
        with contextlib.suppress(BudgetError, LayoutError):
            a, h, at, found = estimate(plan), memory_estimate(plan), timed_estimate(plan), fine_tuning_time(plan)
            assert found is not None
            days = a.middle.steps_days
            assert found.minutes == pytest.approx(1440 * days), (name, texts)
            assert at.days_of_steps(at.step.seconds) == pytest.approx(days), (name, texts)
            assert float(at.step.memory.total) == pytest.approx(h.total), (name, texts)


def test_a_begun_batch_goes_over_and_back_and_a_typed_one_stays() -> None:
    begun = Plan().batch
    assert parse_batch(PRE_TRAINING_BATCH) == begun != parse_batch(FINE_TUNING_BATCH)
    tuned = begun_batch(PRE_TRAINING_BATCH, everything=False)
    assert (tuned, begun_batch(tuned, everything=True)) == (FINE_TUNING_BATCH, PRE_TRAINING_BATCH)
    assert {begun_batch("96", everything=everything) for everything in (False, True)} == {"96"}
    assert plan_from({"ft": "adapters"}).batch == begun, "what links said before there was a batch of fine-tuning"
    for texts in MEMORY_PRESETS.values():
        assert (texts.get("ft", "everything") == "everything") or texts["gb"] == FINE_TUNING_BATCH
