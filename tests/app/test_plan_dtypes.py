"""Every dtype that a plan can hold, on every page that the plan can reach: answered, or refused by name."""

from __future__ import annotations

import pytest

from core.planning.comparison.entry import entry_of
from core.planning.form.plan_form import DTYPE
from core.step_time.running import BITS
from pages.common.registry import COMPARE, COMPUTE, DECIDE, HOME, MEMORY, PARALLEL, WHAT_IF
from pages.compute.form import FORM as COMPUTE_FORM
from pages.decide.form import FORM as DECIDE_FORM
from pages.memory.form import FORM as MEMORY_FORM
from pages.parallel.form import FORM as SEARCH_FORM
from pages.what_if.form import FORM as WHAT_IF_FORM
from tests.app.plan_pages import bodies, stripped
from tests.app.test_compare import with_plans
from tests.perf.walk import faults, observed

FORMS = {
    WHAT_IF: WHAT_IF_FORM,
    DECIDE: DECIDE_FORM,
    COMPUTE: COMPUTE_FORM,
    MEMORY: MEMORY_FORM,
    PARALLEL: SEARCH_FORM,
}
PLANS = {
    "one that fits": {"model": "Llama 3.1 8B", "tokens": "1T", "count": "64", "seq": "4,096", "gb": "128"},
    "one that does not": {"model": "Typed parameters", "n": "1000B", "count": "8", "seq": "8,192"},
}


@pytest.mark.sweep(5)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("dtype", DTYPE.options)
def test_every_dtype_is_answered_or_refused_by_name(dtype: str, plan: str) -> None:
    """On B200, which has a peak in each of them; every panel open."""
    texts = {**PLANS[plan], "gpu": "B200", "dtype": dtype}
    carried = (entry_of("A plan", texts),)
    with observed():
        for page, form in FORMS.items():
            panels = {one.id: "true" for one in form.fields if one.kind == "switch" and one.part == "panels"}
            app = with_plans(carried, page, **texts, **panels)
            assert not faults(app), (page.id, faults(app))
            said = stripped(" ".join(bodies(app, "np-error")))
            assert (f"for {dtype} " in said) == (page is PARALLEL and dtype not in BITS), (page.id, said)
        for page in (HOME, COMPARE):
            assert not faults(with_plans(carried, page))
