"""One plan walks over every page of planning: of what two pages both say of it, none says another number."""

from __future__ import annotations

import random
import re
from itertools import combinations

import pytest

from core.budget.equations import BudgetError
from core.models.catalog import CATALOG
from core.planning.estimate import estimate, timed_estimate
from core.planning.form.plan_form import PLAN_FORM, plan_of
from core.planning.plan import TYPED
from core.training.layout import LayoutError
from pages.common.registry import COMPARE, COMPUTE, HOME, MEMORY, PARALLEL, WHAT_IF
from tests.app.plan_pages import opened, stripped
from tests.app.plan_pages import words as said_on
from tests.app.test_current_plan import go
from tests.core.test_planning_one_account import laid_texts

PAGES_OF_ONE_PLAN = (COMPUTE, HOME, MEMORY, PARALLEL, WHAT_IF, COMPARE)

NUMBER = r"\d(?:[\d.,]*\d)?"
TIME = rf"({NUMBER} (?:[nµm]?s|min|h|days?|years?))"
DEGREES = r"((?:(?:tensor|pipeline|context|expert|data) [\d,]+ (?:· )?)*(?:replicated|under ZeRO-\d|one accelerator))"
FACTS = {
    "days": rf"(?:tokens takes|[Ee]nd-to-end time:?|Your plan:) ?{TIME}",
    "days, early and late": rf"(?:tokens takes|[Ee]nd-to-end time:?) ?{TIME} ?"
    rf"\(?(?:P10–P90: )?({NUMBER}(?: \w+)?–{TIME})",
    "days of the steps": rf"[Ss]teady-state time(?: of this layout)?: ?{TIME}",
    "days from the deadline": rf"90 days(?:: ✗|: ✓| by) {TIME}",
    "dollars": rf"(?:for about|costs about|Your plan: [^$\n]*,|takes [^$\n]* for|Cost) ?(\${NUMBER}(?: [kMB])?)",
    "MFU over all hours": rf"(?:({NUMBER}%) end-to-end MFU|End-to-end MFU ?({NUMBER}%)"
    rf"|MFU ({NUMBER}%) over all hours)",
    "MFU of the steps": rf"(?:({NUMBER}%) steady-state MFU|steady-state MFU of ({NUMBER}%)"
    rf"|layout: {NUMBER} \w+ at ({NUMBER}%) MFU)",
    "peak memory": rf"(?:holds|Peak memory per accelerator)(?: is)? ?({NUMBER} [KMGT]iB)"
    r"(?= ?(?:fits|exceeds memory|of))",
    "too much": rf"(?:({NUMBER} [KMGT]iB) ?(?:too much|over)|capacity by ({NUMBER} [KMGT]iB))",
    "layout": rf"(?:(?:[Ff]astest|[Cc]ustom|own) layout: |[Ll]ayout|, under ){DEGREES}(?=:| · |Open|[\d,]+ acc)",
    "idle": rf"(?:({NUMBER}) of (?:them|{NUMBER}) idle|\(({NUMBER}) idle\)"
    rf"|under ZeRO-\d({NUMBER}) accelerators? (?:is|are) idle)",
    "energy": rf"(?:Energy({NUMBER} [kMGT]?Wh)|({NUMBER} [kMGT]?Wh) of energy)",
    "power": rf"(?:({NUMBER} [kMG]?W) of peak power|Peak power({NUMBER} [kMG]?W))",
    "limits": r"^((?:✓|✗|\?)[^\n]*(?:limits|free|capacity|reserved)[^\n]*)$",
}


def random_texts(draw: random.Random, model: str) -> dict[str, str]:
    """A plan at random of a model, or of typed parameters, that can be laid out: with limits of its own or without, of
    all of the model trained or of adapters, of packed sequences or of examples with lengths."""
    while True:
        texts = laid_texts(draw) | {
            "model": model,
            "mfu": draw.choice(["published", "published", "35%", "30-45%"]),
            "until": draw.choice(["", "", "90 days"]),
            "spend": draw.choice(["", "", "$6M"]),
            "sure": draw.choice(["P50", "P90"]),
            "ft": draw.choice(["everything", "everything", "adapters"]),
            "mean": draw.choice(["", "", "700"]),
        }
        plan = plan_of(PLAN_FORM.parse(texts))
        try:
            timed_estimate(plan)
            if estimate(plan).range_of("days").high < A_CENTURY:
                return texts
        except (BudgetError, LayoutError):
            continue


ALWAYS = {
    "days": (COMPUTE, HOME, WHAT_IF, COMPARE),
    "dollars": (COMPUTE, HOME, WHAT_IF, COMPARE),
    "MFU over all hours": (COMPUTE, HOME, WHAT_IF, COMPARE),
    "MFU of the steps": (COMPUTE, HOME),
    "peak memory": (COMPARE,),
    "energy": (COMPARE,),
    "power": (COMPARE,),
    "limits": (COMPUTE, HOME, MEMORY, PARALLEL, WHAT_IF),
}
"""What pages say of every plan; of others more of them say it."""

A_CENTURY = 36_500
"""Days beyond which nothing is compared."""

HOMES_OWN_QUESTION = "How large a model fits?"


def facts_of(text: str) -> dict[str, set[tuple[str, ...]]]:
    """What a page says of the plan, by kind; a kind that it says nothing of is left out."""
    text = text.partition(HOMES_OWN_QUESTION)[0]
    found = {fact: re.findall(pattern, text, re.MULTILINE) for fact, pattern in FACTS.items()}
    return {
        fact: {tuple(filter(None, one)) if isinstance(one, tuple) else (one.strip(" ·"),) for one in values}
        for fact, values in found.items()
        if values
    }


@pytest.mark.sweep(3)
@pytest.mark.parametrize("model", [*CATALOG, *[TYPED] * 8])
def test_no_two_pages_say_another_number_of_one_plan(model: str, request: pytest.FixtureRequest) -> None:
    """120 plans, 15 pairs of pages each; every model of the catalogue is answered on all of them, by its name."""
    texts = random_texts(random.Random(request.node.name), model)
    app = opened(COMPUTE, texts)
    app.button(key="plan:add").click().run()
    texts_of = {page.id: stripped(said_on(go(app, page))) for page in PAGES_OF_ONE_PLAN}
    said = {page: facts_of(text) for page, text in texts_of.items()}
    assert model == TYPED or [page for page, text in texts_of.items() if model not in text] == []
    assert not [(fact, page.id) for fact, pages in ALWAYS.items() for page in pages if fact not in said[page.id]]
    apart = [
        f"{fact}: {one} {said[one][fact]}, {other} {said[other][fact]}"
        for one, other in combinations(said, 2)
        for fact in said[one].keys() & said[other].keys()
        if said[one][fact] != said[other][fact]
    ]
    assert not apart, "\n".join([str(texts), *apart])
