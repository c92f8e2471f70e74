"""Published runs: rows that agree with the catalogues, MFU figures reproduced, and the 405B beside its plan."""

from __future__ import annotations

import math
import re
import statistics
from dataclasses import replace

import pytest

from core.budget.equations import rent
from core.hardware.accelerators import find
from core.lecture.catalogue import CLAIMS
from core.models.catalog import catalog, model_named
from core.models.spec_text import write_spec
from core.planning import nearest_runs
from core.planning.estimate import PlanEstimate, estimate
from core.planning.form.plan_form import plan_from
from core.planning.nearest_runs import repeated_runs
from core.planning.plan import OWN_SHAPE
from core.runs.published import (
    AS_PUBLISHED,
    PublishedRun,
    compare,
    compare_all,
    explain_comparison,
    full_runs,
    models_with_runs,
    printed_mfu,
    published_runs,
    run_hours,
    steady_mfus,
)
from core.units import format_count, format_duration
from core.views.runs.text import repeated_run
from tests.core.plan_walk import wrong
from tests.core.sentence_facts import says
from tests.every import every

RUNS = published_runs()
WHOLE = [(model, run) for model in catalog() for run in full_runs(model.name)]


def test_the_table_is_whole() -> None:
    assert len({run.kind for run in RUNS}) > 3
    assert all(run.source and run.confidence in {"verified", "recalled", "quoted"} for run in RUNS)


def test_rows_know_their_year() -> None:
    """Every whole run has one, and it is that of the arXiv number where the source begins with one."""
    assert all(2019 < run.year < 2030 for run in RUNS if run.kind == "full_run")
    dated = 0
    for run in RUNS:
        number = re.match(r"arXiv:(\d\d)\d\d\.\d{5}", run.source)
        if number:
            dated += 1
            assert run.year == 2000 + int(number[1])
    assert dated > 50


def test_rows_name_models_and_accelerators_that_exist() -> None:
    names = {model.name for model in catalog()}
    for run in RUNS:
        assert run.catalog == "" or run.catalog in names, run.model
        if run.accelerator:
            find(run.accelerator)


@every("run", [r for r in RUNS if r.catalog and not math.isnan(r.params)], ids=lambda r: r.model)
def test_linked_rows_have_the_models_size(run: PublishedRun) -> None:
    """As we count it, or as its authors print it."""
    model = model_named(run.catalog)
    assert run.params == pytest.approx(model.active, rel=0.02) or run.params == model.published_active


def test_llama_3_1_405b_as_trained() -> None:
    model = model_named("Llama 3.1 405B")
    (run,) = full_runs(model.name)
    assert (run.tokens, run.accelerators, run.gpu_hours, run.flop) == (15.6e12, 16_384, 30.84e6, 3.8e25)
    assert steady_mfus(model.name) == (0.38, 0.41, 0.43)
    c = compare(run, model, 0.41, 4096)
    assert c.hours.origin == AS_PUBLISHED
    assert c.seq_len == 8192
    assert c.rule_flop / run.flop == pytest.approx(1, abs=5e-4)
    assert c.utilisation == pytest.approx(0.346, abs=5e-4)
    assert c.rule_hours == pytest.approx(26.01e6, rel=1e-3)
    assert c.square_hours / c.rule_hours == pytest.approx(0.0417, abs=1e-4)
    assert c.rule_hours + c.square_hours + c.other_hours == pytest.approx(c.hours.value)
    assert explain_comparison(c).value == c.utilisation


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("LLaMA 1 7B", 0.43, 0.45),
        ("LLaMA 1 13B", 0.50, 0.52),
        ("Llama 2 70B", 0.42, 0.44),
        ("Llama 3.1 8B", 0.13, 0.15),
        ("Pythia 1B", 0.33, 0.34),
        ("GPT-3 175B", 0.19, 0.20),
    ],
)
def test_whole_run_utilisation_of_published_hours(name: str, low: float, high: float) -> None:
    model = model_named(name)
    assert low < compare(full_runs(name)[0], model, 0.4, 2048).utilisation < high


@every(("model", "run"), WHOLE, ids=[run.model for _, run in WHOLE])
def test_every_whole_run_can_be_compared(model: object, run: PublishedRun) -> None:
    c = compare(run, model, 0.4, 2048)  # type: ignore[arg-type]
    assert c.hours.value > 0
    assert 0.04 < c.utilisation < 1.06
    assert c.rule_hours == pytest.approx(c.hours.value * c.utilisation / 0.4)


def test_hours_are_taken_from_the_most_direct_figure() -> None:
    by_name = {run.model: run for run in RUNS}
    printed = run_hours(by_name["Llama-2 70B"])
    from_days = run_hours(by_name["GPT-3 175B"])
    from_rate = run_hours(by_name["llm.c GPT-2 124M"])
    assert printed
    assert from_days
    assert from_rate
    assert (printed.value, printed.origin, printed.basis) == (1_720_320, AS_PUBLISHED, "published")
    assert (from_days.value, from_days.basis) == (14.8 * 24 * 10_000, "assumed")
    assert from_rate.basis == "steps"
    assert [run_hours(by_name[name]).basis for name in ("MPT-7B", "Falcon-7B", "Pythia 12B")] == [  # type: ignore[union-attr]
        "derived",
        "derived",
        "steps",
    ]
    # The script's author prints 94.3 minutes on 8 GPUs.
    assert from_rate.value == pytest.approx(94.3 / 60 * 8, rel=0.02)
    assert run_hours(by_name["PaLM 62B"]) is None
    with pytest.raises(ValueError, match="PaLM 62B"):
        compare(by_name["PaLM 62B"], model_named("LLaMA 1 65B"), 0.4, 2048)


def test_deepseek_v3_as_published() -> None:
    """arXiv:2412.19437, table 1: 2,664K of 2,788K H800-hours are pre-training; two dollars each make $5.328 M."""
    model = model_named("DeepSeek-V3")
    (run,) = full_runs(model.name)
    assert (run.params_total, run.params, run.tokens, run.accelerators) == (671e9, 37e9, 14.8e12, 2048)
    assert run.gpu_hours == 2_664e3
    assert rent(run.gpu_hours, find(run.accelerator).price_low) == pytest.approx(5.328e6)
    c = compare(run, model, 0.41, 8192)
    assert c.peak == find("H800 SXM").peak("bf16")
    assert c.evidence
    assert c.utilisation == pytest.approx(6 * 37_552_282_624 * 14.8e12 / (2.664e6 * 3600 * 989.4e12), rel=1e-9)


def test_hours_that_prove_nothing_are_no_evidence() -> None:
    assert not compare_all(model_named("GPT-3 175B"), 0.4, 2048, "")[0].evidence
    assert not compare_all(model_named("GPT-3 small 125M"), 0.4, 2048, "")[0].evidence
    assert not compare_all(model_named("DBRX"), 0.4, 2048, "")[0].evidence  # post-training is in them
    assert compare_all(model_named("Llama 3.1 405B"), 0.4, 2048, "")[0].evidence


def test_models_with_runs_are_those_that_can_be_compared() -> None:
    assert set(models_with_runs()) == {model.name for model, _ in WHOLE}
    assert "DeepSeek-V3" in models_with_runs()
    assert "Mixtral 8x7B" not in models_with_runs()


def test_remarks_on_whole_runs_are_sentences() -> None:
    for _, run in WHOLE:
        assert run.notes == "" or run.notes.endswith(".")
        assert "gpu_hours" not in run.notes


def test_runs_on_the_chosen_accelerator_come_first() -> None:
    model = model_named("GPT-2 124M")
    assert len(compare_all(model, 0.4, 1024, "A100 SXM 80 GB")) == 2
    for accelerator in ("A100 SXM 80 GB", "A100 SXM 40 GB"):
        assert compare_all(model, 0.4, 1024, accelerator)[0].run.accelerator == accelerator
    assert compare_all(model_named("Mixtral 8x7B"), 0.4, 1024, "H100 SXM") == []


def as_plan(run: PublishedRun, **other: str) -> PlanEstimate:
    """A published run as somebody would enter it; on 512 accelerators where it does not name their number."""
    count = run.accelerators if run.accelerators > 0 else 512
    texts = {"model": run.catalog, "tokens": f"{run.tokens:.0f}", "gpu": run.accelerator, "count": f"{count:.0f}"}
    return estimate(plan_from(texts | other))


@every("run", [run for _, run in WHOLE], ids=lambda run: run.model)
def test_a_plan_that_repeats_a_published_run_shows_what_it_took(run: PublishedRun) -> None:
    a = as_plan(run)
    assert repeated_runs(a) == (run,)
    hours = run_hours(run)
    assert hours
    days = run.days if run.days > 0 else hours.value / 24 / a.middle.accelerators
    shown = repeated_run(a, run).replace("**", "")
    says(shown, run.model, format_duration(86400 * days, 3) if run.accelerators > 0 else "accelerator-hours")
    assert f"{format_count(hours.value, 3)} accelerator-hours" in shown
    assert format_duration(86400 * days, 3) in shown
    assert not wrong(shown)
    # What Napkin predicts is the same whether or not the plan is a run that was published.
    assert a.middle.days == pytest.approx(as_plan(run, tokens=f"{1.001 * run.tokens:.0f}").middle.days, rel=0.003)


@every("run", [run for _, run in WHOLE], ids=lambda run: run.model)
def test_a_plan_a_fifth_away_repeats_no_published_run(run: PublishedRun) -> None:
    for share in (0.8, 1.2):
        assert repeated_runs(as_plan(run, tokens=f"{share * run.tokens:.0f}")) == ()
        if run.accelerators > 0:
            assert repeated_runs(as_plan(run, count=f"{max(1, share * run.accelerators):.0f}")) == ()
    other = "H100 SXM" if run.accelerator != "H100 SXM" else "H200 SXM"
    assert repeated_runs(as_plan(run, gpu=other)) == ()


def test_two_published_runs_of_one_model_are_told_apart() -> None:
    runs = full_runs("GPT-2 124M")
    assert len(runs) == 2
    assert {repeated_runs(as_plan(run)) for run in runs} == {(run,) for run in runs}


def test_all_published_runs_that_a_plan_repeats_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    (run,) = full_runs("DeepSeek-V3")
    twice = (run, replace(run, model="DeepSeek-V3 again", gpu_hours=3e6))
    monkeypatch.setattr(nearest_runs, "full_runs", lambda name: twice if name == run.catalog else ())
    assert repeated_runs(as_plan(run)) == twice


def test_fine_tuning_repeats_no_published_run_and_an_equal_custom_shape_does() -> None:
    (run,) = full_runs("DeepSeek-V3")
    shape = write_spec(model_named("DeepSeek-V3").spec)
    assert repeated_runs(as_plan(run, model=OWN_SHAPE, shape=shape)) == (run,)
    assert repeated_runs(as_plan(run, model=OWN_SHAPE, shape=shape.replace("layers=61", "layers=60"))) == ()
    (llama,) = full_runs("Llama 2 7B")
    assert repeated_runs(as_plan(llama, ft="adapters")) == ()


def test_what_is_said_of_a_good_mfu_is_what_the_lecture_page_finds() -> None:
    spread = printed_mfu()
    values = sorted(run.mfu for run in RUNS if run.mfu > 0)
    assert spread.count == len(values)
    assert spread.median == pytest.approx(statistics.median(values))
    assert spread.highest == values[-1]
    assert sum(v < spread.p10 for v in values) == pytest.approx(0.1 * len(values), abs=1)
    anies = {f"{100 * v:.3g}" for v in (spread.p10, spread.median, spread.p90, spread.highest)}
    assert anies <= set(re.findall(r"[\d.]+(?=\s?%)", CLAIMS["C13"].check().value))
