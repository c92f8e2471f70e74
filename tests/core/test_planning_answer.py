"""One coherent answer: more work never takes less time, and every question is the inverse of every other."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from core.budget.equations import BudgetError, Interval
from core.hardware.accelerators import accelerators
from core.messages import message
from core.planning.estimate import estimate
from core.planning.form.plan_form import plan_from
from core.planning.nearest_runs import at_mfu, similar_runs
from core.planning.plan import FINDS, OWN_SHAPE, TYPED, Within
from core.planning.presets import LECTURE, PRESETS
from core.runs.energy import footprint
from core.runs.goodput import Failures, Reliability, mfu_of_all_hours, mfu_of_steps
from core.views.report.rows import plan_rows
from core.views.runs import text_goodput as words_whole
from tests.core.plan_cases import columns
from tests.every import every
from tests.perf import plans

PLANS = 80
"""`python -m tests.perf plans` draws many more."""


@pytest.mark.sweep(3)
@pytest.mark.parametrize("law", plans.LAWS)
def test_laws_hold_for_random_plans(law: str) -> None:
    content = plans.over_random_plans(law, PLANS // len(plans.LAWS), seed=7)
    assert content.broken == []
    assert content.tried > 0.4 * content.drawn, "hardly any plan had an answer"


# ------------------------------------------------------------------------------------------ the answer by hand

TYPED_40 = plan_from({"mfu": "40%"})


def test_the_lecture_takes_143_9_days() -> None:
    a = estimate(plan_from(PRESETS[LECTURE]))
    m = a.middle
    assert m.days == pytest.approx(143.9, abs=0.05)
    assert m.flop == 6.3e24
    assert m.hours == pytest.approx(m.days * 24 * 1024)
    assert m.tokens_per_second * m.days * 86400 == pytest.approx(15e12)
    assert a.range_of("days") == Interval.point(m.days)
    assert not a.impossible


def test_deepseek_v3s_dollars_are_its_hours() -> None:
    """arXiv:2412.19437 table 1: 2,664K H800-hours at two dollars are $5.328 M."""
    a = estimate(
        replace(plan_from(PRESETS["DeepSeek-V3"]), find="MFU", within=Within(math.nan, 5.328e6), prices=(2, 2))
    )
    assert a.middle.hours == pytest.approx(2.664e6)
    assert a.middle.mfu == pytest.approx(6 * 37_552_282_624 * 14.8e12 / (2.664e6 * 3600 * a.peak))
    assert a.dollars == Interval.point(5.328e6)


@pytest.mark.parametrize(
    ("preset", "run", "hours", "accelerators"),
    [
        ("Llama 3.1 405B as trained", "Llama-3.1 405B", 30.84e6, 16384),
        ("DeepSeek-V3", "DeepSeek-V3", 2.664e6, 2048),
    ],
)
def test_a_published_run_stands_at_its_own_days(preset: str, run: str, hours: float, accelerators: int) -> None:
    """Among the runs that are nearest to it is itself, whose pace in the preset's layout takes what it took."""
    (own,) = (one for one in similar_runs(estimate(plan_from(PRESETS[preset]))) if one.run.model == run)
    assert own.value == pytest.approx(hours / accelerators / 24, rel=0.1)


@pytest.mark.parametrize("find", FINDS)
def test_the_derivation_leads_to_the_answer(find: str) -> None:
    for within in ("90 days", "$9M") if find in ("tokens", "parameters", "MFU") else ("90 days",):
        a = estimate(plan_from({"find": find, "mfu": "40%", "within": within, "n": "8B", "tokens": "1T"}))
        values = [step.value for step in a.explain()]
        first = 86400 * a.middle.days if find in ("time", "parameters", "accelerators") else a.result.mid
        assert values[0] == pytest.approx(first, rel=1e-9)
        for number in (a.middle.hours, a.middle.dollars, a.middle.tokens_per_second):
            assert any(value == pytest.approx(number, rel=1e-9) for value in values)
        assert all(step.sources for step in a.explain())
        names = [(step.name, tuple(term.value for term in step.terms)) for step in a.explain()]
        assert len(set(names)) == len(names), "a formula with the same values stands twice"


@pytest.mark.parametrize("writes", ["100 kB/s", "1 MB/s"])
def test_checkpoints_that_are_never_written_are_explained_too(writes: str) -> None:
    """Their goodput goes down to nothing, and what follows from no time at all is left out."""
    a = estimate(plan_from({"model": "Llama 3.1 405B", "each": writes}))
    values = {step.name.rpartition(".")[2]: step.value for step in a.explain()}
    assert all(map(math.isfinite, values.values()))
    assert values["daly_interval"] == a.interruptions.daly
    assert values["goodput_with_failures"] == a.middle.goodput


def test_columns_are_scenarios_that_hold_together() -> None:
    """In each column MFU, hours, days, dollars belong together: 6ND over peak, MFU and accelerators."""
    a = estimate(plan_from({"mfu": "35-45%", "rate1k": "5", "pace": "steady steps", "price": "2-3"}))
    for column, share, price in zip(columns(a), (0.35, 0.4, 0.45), (3.0, 2.5, 2.0), strict=True):
        assert column.steps_mfu == pytest.approx(share)
        assert column.mfu == pytest.approx(mfu_of_all_hours(share, column.goodput))
        assert column.days * 86400 == pytest.approx(6.3e24 / (1024 * a.peak * column.mfu))
        assert column.dollars == pytest.approx(column.hours * price)
    assert (a.dollars.low, a.dollars.high) == pytest.approx((a.high.hours * 2, a.low.hours * 3))
    for energy, end in ((a.energy.low, a.high), (a.energy.mid, a.middle), (a.energy.high, a.low)):
        assert energy == pytest.approx(end.hours * 10_200 / 8 * 0.76 * 1.1)
    assert a.carbon.mid == pytest.approx(footprint(a.middle.hours, 10_200 / 8, share=0.76).carbon)


def test_what_a_typed_mfu_is_of_decides_who_pays_for_failures() -> None:
    """At 400 failures per 1,000 accelerator-days steady steps take far longer, and all hours ask for faster steps."""
    calm, rough = (replace(TYPED_40, reliability=Reliability(failures=Failures(rate))) for rate in (0.0, 20.0))
    whole = [estimate(plan) for plan in (calm, rough)]
    steady = [estimate(replace(plan, mfu_kind="steady steps")) for plan in (calm, rough)]
    assert whole[0].middle.days == whole[1].middle.days == pytest.approx(steady[0].middle.days)
    goodput = steady[1].middle.goodput
    assert goodput < 0.85
    assert steady[1].middle.days == pytest.approx(steady[0].middle.days / goodput)
    assert steady[1].middle.dollars == pytest.approx(steady[0].middle.dollars / goodput)
    assert steady[1].energy.mid == pytest.approx(steady[0].energy.mid / goodput)
    assert whole[1].middle.mfu_while_training == pytest.approx(mfu_of_steps(0.4, goodput))
    shares = [share for _, share, _ in words_whole.time_shares(steady[1])]
    assert sum(shares) == pytest.approx(1)
    assert words_whole.failures(steady[1])[1] == pytest.approx(steady[1].middle.days * 1024 / 1000 * 20, rel=1e-6)


@pytest.mark.parametrize(
    "texts",
    [
        {"mfu": "85%"},
        {"mfu": "40%", "rate1k": "400"},
        {"mfu": "85%", "pace": "steady steps"},
        {"find": "MFU", "within": "85 days"},
    ],
)
def test_steps_faster_than_any_matmul_are_impossible(texts: dict[str, str]) -> None:
    a = estimate(plan_from(texts))
    assert a.impossible
    assert a.middle.mfu_while_training > a.ceiling
    assert not estimate(plan_from({"mfu": "40%"})).impossible
    assert {line.note for line in plan_rows(a) if line.key == "mfu_while_training"} == {message("row.note.impossible")}


@pytest.mark.parametrize("failing", [{}, {"rate1k": "400"}, {"rate1k": "9000", "count": "100000"}])
@pytest.mark.parametrize("pace", ["all hours", "steady steps"])
def test_an_mfu_that_is_asked_for_does_not_follow_from_one_typed_before(failing: dict[str, str], pace: str) -> None:
    def found(**typed: str) -> object:
        try:
            return estimate(plan_from({"find": "MFU", "within": "85 days", "pace": pace, **failing, **typed})).middle
        except BudgetError as problem:
            return str(problem)

    assert found() == found(mfu="40%") == found(mfu="30-50%")


def test_failures_that_leave_no_progress_are_refused() -> None:
    with pytest.raises(BudgetError, match="No progress") as refused:
        estimate(plan_from({"mfu": "40%", "pace": "steady steps", "rate1k": "9000", "count": "100000"}))
    assert refused.value.field == "rate1k"


@pytest.mark.parametrize(
    ("texts", "field", "reason"),
    [
        ({"find": "accelerators", "within": "$5M"}, "within", "budget_needs_time"),
        ({"find": "tokens", "within": "$5M", "gpu": "TPU v4"}, "price", "budget_needs_price"),
        ({"find": "tokens", "within": "$5M", "price": "0"}, "price", "budget_at_no_price"),
        ({"find": "MFU", "within": "5 days"}, "within", "mfu_above_peak"),
        ({"find": "accelerators", "within": "1 min", "tokens": "1e18", "n": "1e16"}, "within", "too_many_idle"),
        (
            {"find": "accelerators", "within": "1 h", "mfu": "40%", "pace": "steady steps", "rate1k": "100"},
            "within",
            "too_many_failures",
        ),
        (
            {"find": "parameters", "within": "1 min", "tokens": "1e18", "count": "1", "gpu": "T4"},
            "within",
            "too_little",
        ),
    ],
)
def test_what_cannot_be_answered_names_the_field_and_the_reason(texts: dict[str, str], field: str, reason: str) -> None:
    with pytest.raises(BudgetError) as refused:
        estimate(plan_from(texts))
    assert (refused.value.field, refused.value.args[0].id) == (field, f"error.{reason}")


@pytest.mark.parametrize("find", ["tokens", "parameters"])
def test_money_buys_what_it_costs(find: str) -> None:
    a = estimate(plan_from({"find": find, "mfu": "40%", "within": "$5M", "price": "2-3"}))
    for column, price in zip(columns(a), (3.0, 2.5, 2.0), strict=True):
        assert 0.998 * 5e6 < column.hours * price < 5e6 * (1 + 1e-9)
    back = {"tokens": a.middle.tokens, "parameters": a.middle.parameters}
    again = estimate(replace(a.plan, find="time", **{find: back[find]}, prices=(2.5, 2.5)))
    assert again.middle.dollars == pytest.approx(a.middle.dollars)


@every("device", accelerators(), ids=lambda d: d.name)
def test_an_owned_or_unpriced_accelerator_has_an_answer(device: object) -> None:
    name = device.name  # type: ignore[attr-defined]
    free, known, empty = (estimate(plan_from({"gpu": name, "price": price, "n": "1B"})) for price in ("0", "2", ""))
    assert free.dollars == Interval.point(0.0)
    assert known.dollars.mid == pytest.approx(2 * known.middle.hours)
    assert math.isnan(empty.middle.dollars) == math.isnan(device.price_low)  # type: ignore[attr-defined]
    assert free.result == known.result == empty.result


@pytest.mark.parametrize("find", FINDS)
def test_the_plan_at_its_own_mfu_is_the_answer(find: str) -> None:
    a = estimate(plan_from({"find": find, "within": "300 days"}))
    assert at_mfu(a, a.middle.mfu) == pytest.approx(a.result.mid)
    peers = similar_runs(a)
    assert 0 < len(peers) <= 12
    for peer in peers:
        assert peer.value == pytest.approx(at_mfu(a, peer.mfu))
        assert peer.run is peer.similarity.evidence.run
        if find == "time":
            assert peer.value * peer.mfu == pytest.approx(a.middle.days * a.middle.mfu)


def test_published_ranges_are_of_the_peak_that_was_asked_for() -> None:
    """A narrow format's peak is higher, so the same speed is a smaller share of it; the days stay near."""
    wide, narrow = (estimate(plan_from({"dtype": dtype})) for dtype in ("bf16", "fp8"))
    assert wide.peak_ratio == 1
    assert narrow.peak_ratio == pytest.approx(wide.peak / narrow.peak)
    for a in (wide, narrow):
        assert (a.range_of("mfu").low, a.range_of("mfu").high) == pytest.approx((a.expected.low, a.expected.high))


def test_an_own_shape_counts_like_the_model_it_describes() -> None:
    shape = "layers=32 hidden=4096 heads=32 kv_heads=8 head_dim=128 ffn=14336 vocab=128256 glu=yes tied_head=no"
    own, listed = (estimate(plan_from({"model": model, "shape": shape})) for model in (OWN_SHAPE, "Llama 3 8B"))
    assert own.middle == listed.middle
    typed = estimate(plan_from({"model": TYPED, "n": f"{listed.middle.parameters:.0f}"}))
    assert typed.middle.days == pytest.approx(listed.middle.days, rel=0.15)


@pytest.mark.parametrize("find", FINDS)
def test_own_shape_that_was_not_read_has_no_answer(find: str) -> None:
    plan = plan_from({"model": OWN_SHAPE, "find": find, "within": "300 days"})
    if find == "parameters":
        assert estimate(plan).result == estimate(replace(plan, model=TYPED)).result
        return
    with pytest.raises(BudgetError) as refused:
        estimate(plan)
    assert refused.value.field == "shape"


def test_long_sequences_lengthen_the_answer_and_ordinary_ones_do_not() -> None:
    """Llama 3.1 8B at 1M tokens: attention's causal half over the rest, against 8,192, counted here by hand."""
    given = {"model": "Llama 3.1 8B", "mfu": "40%", "tokens": "1T"}
    short, usual, million = (estimate(plan_from({**given, "seq": seq})) for seq in ("1024", "8192", "1048576"))
    assert short.range_of("days") == usual.range_of("days")
    spec = usual.shape.spec
    weights = usual.shape.active - spec.vocab * spec.hidden - spec.hidden * (2 * spec.layers + 1)
    work = [6 * weights + 6 * spec.layers * spec.heads * spec.head_dim * seq for seq in (8192, 1_048_576)]
    assert million.middle.days / usual.middle.days == pytest.approx(work[1] / work[0], rel=1e-9)
    assert million.middle.per_parameter > 15 * 6


def test_memory_is_that_of_the_accelerators_which_were_found() -> None:
    a = estimate(plan_from({"find": "accelerators", "mfu": "40%", "within": "90 days", "lay": "own"}))
    count = int(a.memory.layout.accelerators)
    assert count == math.ceil(a.middle.accelerators)
    assert count * float(a.memory.device_memory.states) == pytest.approx(16 * 70e9, rel=1e-6)
    small = estimate(plan_from({"model": "DeepSeek-V3", "gpu": "T4", "count": "8", "mfu": "40%"}))
    assert small.memory.states_fit == small.memory.fits == "over"
    assert small.interruptions.checkpoint == pytest.approx(small.memory.checkpoint, rel=1e-12)
    assert small.stored_parameters == small.shape.parameters
    split = estimate(plan_from({"find": "accelerators", "mfu": "40%", "within": "90 days", "tp": "8", "pp": "5"}))
    assert int(split.memory.layout.accelerators) == 40 * math.ceil(split.middle.accelerators / 40)


def test_an_mfu_may_be_found_again_at_every_price() -> None:
    prices = np.array([1.0, 2.0, 4.0])
    values = [estimate(plan_from({"find": "MFU", "within": "$30M", "price": str(p)})).middle.mfu for p in prices]
    assert values == pytest.approx(values[0] * prices)
