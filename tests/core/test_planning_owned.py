"""Accelerators that are owned, at a price of 0: no page reads $0.00 for them, and none ranks them as the cheapest."""

from __future__ import annotations

import pytest

from core.messages import message
from core.planning.comparison.comparison import ComparedPlan, compare_plan
from core.planning.comparison.entry import entry_of
from core.planning.estimate import estimate
from core.planning.form.plan_form import plan_from
from core.planning.plan import Within
from core.planning.sweep.axes import AXES
from core.planning.sweep.sweep import RESULTS, SweptAxis, recommend, sweep_plan
from core.views.common.palette import LIGHT
from core.views.common.rows import row_label
from core.views.comparison import text as comparison_text
from core.views.comparison.charts import bars
from core.views.plan import text as plan_text
from core.views.report.rows import plan_rows
from core.views.sensitivity.text import unrented
from core.views.sweep import text as sweep_text
from tests.core.sentence_facts import says

TEXTS = {"n": "8B", "tokens": "2T", "count": "256"}
OWNED = estimate(plan_from({**TEXTS, "price": "0"}))


def of(name: str, **texts: str) -> ComparedPlan:
    return compare_plan(entry_of(name, {**TEXTS, **texts}))


def test_the_answer_says_that_no_rent_is_counted() -> None:
    assert OWNED.plan.owned
    assert not any(estimate(plan_from({**TEXTS, "price": price})).plan.owned for price in ("", "2", "0-2"))
    text = plan_text.headline(OWNED) + plan_text.range_text(OWNED) + unrented(OWNED)
    assert "$0" not in text
    assert plan_text.headline(OWNED).id == "plan.headline.time"
    assert next(line for line in plan_rows(OWNED) if line.key == "dollars").note == plan_text.OWNED


@pytest.mark.parametrize("others", [(), ("2",), ("2", "3"), ("2", "")], ids=str)
def test_a_comparison_does_not_rank_it_by_rent(others: tuple[str, ...]) -> None:
    plans = [of("mine", price="0"), *(of(f"at {price or 'an unknown price'}", price=price) for price in others)]
    for base in range(len(plans)):
        rows = comparison_text.result_rows(plans, base)
        (rents,) = (cells for label, cells in rows if label == row_label("dollars"))
        assert rents[0][0] == plan_text.OWNED
        assert message("comparison.cell.least") not in rents[0][1]
        parts = [
            *comparison_text.answer(plans, base),
            *comparison_text.notices(plans),
            comparison_text.bars_alt(plans, base),
            *map(comparison_text.in_short, plans),
            str(bars(plans, base, LIGHT)["layout"]["annotations"]),
        ]
        assert not any("$0.00" in text or "mine** is cheapest" in text for text in parts)
        says(" ".join(parts), "owned")
    if len(others) == 2 and "" not in others:
        (rent,) = (said for said in comparison_text.answer(plans, 0) if said.id == "comparison.cheapest_rent")
        assert rent.values["plan"] == "at 2"


def test_a_board_of_prices_does_not_choose_it_as_the_cheapest() -> None:
    x, y = SweptAxis(AXES["price"], ("0", "2", "3")), SweptAxis(AXES["global batch"], ("16M tokens",))
    texts = dict(entry_of("", TEXTS).texts)
    sweep = sweep_plan(texts, x, y, Within(1e4))
    assert sweep.satisfies.all()
    picked = recommend(sweep)
    assert picked is not None
    assert (picked.cell, picked.by) == ((0, 1), "cheapest")
    own = sweep_plan(
        texts,
        SweptAxis(AXES["price"], ("0",)),
        SweptAxis(AXES["global batch"], ("8M tokens", "16M tokens")),
        Within(1e4),
    )
    chosen = recommend(own)
    assert chosen is not None
    assert chosen.by != "cheapest"
    rents = RESULTS["dollars"]
    parts = [
        *sweep_text.answer(own, chosen),
        sweep_text.plan_text(OWNED),
        *(sweep_text.cell_label(own, (at, 0), rents) for at in range(2)),
    ]
    assert not any("$0.00" in text for text in parts)
