"""Where a model's layers are given, the size of a plan is theirs: whatever number was typed is nowhere to be read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.fields import LINK_VERSION, VERSION
from core.models.catalog import catalog
from core.models.counts_only import EXAMPLE as COUNTED
from core.models.spec_text import EXAMPLE
from core.planning.comparison.entry import entry_of, pack, unpack
from core.planning.estimate import estimate, timed_estimate
from core.planning.form.links import link_texts
from core.planning.form.plan_form import PLAN_FORM, plan_from, plan_of
from core.planning.memory_estimate import memory_estimate
from core.planning.plan import OWN_SHAPE, TYPED
from core.search.fastest import searched
from core.units import format_count
from core.views.plan import text_fixes
from core.views.plan.text import headline as plan_headline
from core.views.report.data import as_json, read_json
from core.views.report.document import as_html
from core.views.report.report import Report
from core.views.report.tables import as_csv, as_markdown
from core.views.search import text as search_text
from tests.core.report_cases import report
from tests.every import every

DENSE = "layers=80 hidden=10240 heads=80 kv_heads=8 head_dim=128 ffn=36864 vocab=128256 glu=yes tied_head=no"
MIXTURE = (
    "layers=48 hidden=4096 heads=32 kv_heads=4 head_dim=128 ffn=0 vocab=128000 glu=yes tied_head=no "
    "experts.count=128 experts.per_token=8 experts.width=1536"
)
SHAPES = {"dense": DENSE, "mixture": MIXTURE, "counted": COUNTED, "example": EXAMPLE}
BESIDE = {"n": "30B", "count": "512", "tokens": "15T", "gb": "4M tokens", "zero": "3"}


@every("model", [m.name for m in catalog()])
def test_a_model_by_name_has_its_own_size(model: str) -> None:
    reading = PLAN_FORM.parse({"model": model, "n": "30B"})
    plan = plan_of(reading)
    assert plan.catalog_model is not None
    assert plan.parameters == plan.catalog_model.active == PLAN_FORM["n"].parse(reading.texts["n"])


@pytest.mark.parametrize("shape", SHAPES)
def test_a_config_beside_a_typed_number(shape: str) -> None:
    texts = {**BESIDE, "model": OWN_SHAPE, "shape": SHAPES[shape]}
    plan = plan_from(texts)
    assert plan.catalog_model is not None
    assert plan.parameters == plan.catalog_model.active
    size = format_count(plan.catalog_model.parameters)
    assert size != "30B"
    at = timed_estimate(plan)
    headline, result = search_text.headline(at), searched(at.request)
    assert headline.values["model"].endswith(f"{size} parameters)")
    for text in (
        headline,
        search_text.does_not_fit(plan, at.request, result),
        plan_headline(estimate(plan)),
        text_fixes.verdict(memory_estimate(plan)),
    ):
        assert "30B" not in text
        assert size in text
    assert "n" not in link_texts(texts), "a link to another page says the model alone"


@every("result", [as_json, as_csv, as_markdown, as_html], ids=lambda result: result.__name__)
@every("shape", SHAPES)
def test_no_export_says_the_typed_number(result: Callable[[Report], str], shape: str) -> None:
    texts = {**BESIDE, "model": OWN_SHAPE, "shape": SHAPES[shape]}
    assert "30B" not in result(report(entry_of("Ours", texts))).partition("<script>")[0]
    assert "30B" in as_json(report(entry_of("Ours", {**BESIDE, "model": TYPED}))), "which alone is the size"


def test_older_links_files_and_saved_plans_open_to_the_size_of_the_config() -> None:
    texts = {**PLAN_FORM.parse({}).texts, **BESIDE, "model": OWN_SHAPE, "shape": DENSE}
    wanted = f"{plan_from(texts).catalog_model.active:,}"  # pyright: ignore[reportOptionalMemberAccess]
    address = {PLAN_FORM.key(name): (text,) for name, text in texts.items()} | {VERSION: (str(LINK_VERSION),)}
    given, _ = PLAN_FORM.from_address(address)
    assert PLAN_FORM.parse(given).texts["n"] == wanted
    entry = entry_of("Ours", texts)
    (linked,), _ = unpack(pack([entry]))
    (opened,), _ = read_json(as_json(report(entry)).replace(wanted, "30B"))
    assert entry.texts["n"] == linked.texts["n"] == opened.texts["n"] == wanted


def test_parameters_that_are_asked_for_are_not_those_of_a_model() -> None:
    assert PLAN_FORM.parse({"find": "parameters", "model": OWN_SHAPE, "shape": DENSE, "n": "30B"}).texts["n"] == "30B"
    assert PLAN_FORM.parse({"n": "30B"}).texts["n"] == "30B"
