"""One engine: steps times share. Monotonic over the whole domain, and judged on labs left out."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from core.budget.equations import BudgetError
from core.hardware.accelerators import DTYPES, Accelerator, accelerators, ceiling_of
from core.models.catalog import catalog
from core.number_text import QuantityError
from core.planning.estimate import PlanEstimate, estimate, timed_estimate
from core.planning.form.plan_form import plan_from
from core.planning.layout import search_request
from core.planning.measured import parse_own_runs
from core.planning.nearest_runs import run_features
from core.planning.plan import BY_AGE, FIRST_RUN, PROVEN, TYPED, Batch, Find, Plan, Within
from core.planning.solving import allocation_unit
from core.runs.published import evidence
from core.runs.run_efficiency import (
    Shares,
    is_low_precision,
    low_precision_gain,
    published_shares,
    run_shares,
    run_steps,
    shares_of,
    step_of_run,
    usable_matmul,
)
from core.runs.scores import (
    LEVELS,
    RunFeatures,
    beyond_evidence,
    nearest_runs,
    predictions,
    predictions_by_one_of_its_own,
    predictions_of,
    score,
    score_of,
)
from core.step_time.step import step_time
from core.views.plan.text import mfu_text
from tests.every import every

NAMES = [a.name for a in accelerators()]
PER_KIND = 5
"""Plans of one kind."""


def any_kind(rng: random.Random) -> Plan:
    """A plan of any accelerator, model, dtype, length and batch."""
    batches = [Batch(size) for size in (1e5, 1e6, 4e6, 16e6, 3.3e6)] + [Batch(n, False) for n in (7, 480, 1000)]
    return Plan(
        accelerator=rng.choice(NAMES),
        model=TYPED if rng.random() < 0.7 else rng.choice(catalog()).name,
        dtype=rng.choice(["bf16", "bf16", "fp8", "fp32"]),
        seq_len=rng.choice([2048, 4096, 8192, 32_768, 5000]),
        batch=rng.choice(batches),
    )


def any_size(rng: random.Random, kind: Plan) -> Plan:
    count = float(round(10 ** rng.uniform(0, 6.5)))
    return replace(kind, parameters=10 ** rng.uniform(6, 13), tokens=10 ** rng.uniform(8, 14), accelerators=count)


def known(plan: Plan) -> PlanEstimate | None:
    try:
        return estimate(plan)
    except BudgetError:
        return None


def crowded(a: PlanEstimate) -> bool:
    """Whether failures or the batch leave little use for more accelerators, so that their best number is near."""
    found = a.terms.found(a.middle.parameters, a.middle.accelerators)
    return found is not None and (found.busy < 0.9 * a.middle.accelerators or float(a.interruptions.goodput) < 0.95)


@pytest.mark.sweep(12)
@pytest.mark.parametrize("seed", range(100))
def test_more_work_never_takes_less(seed: int) -> None:
    """Days at each end of the range: tokens in proportion, more parameters no less, more accelerators no more."""
    rng = random.Random(seed)
    kind = any_kind(rng)
    for plan in [any_size(rng, kind) for _ in range(PER_KIND)]:
        here, factor = known(plan), 10 ** rng.uniform(5e-4, 0.6)
        if here is None:
            continue
        for name in ("tokens", "accelerators", *(["parameters"] if kind.model == TYPED else [])):
            value = getattr(plan, name) * factor
            there = known(replace(plan, **{name: float(round(value)) if name == "accelerators" else value}))
            if there is None:  # what is larger may not fit, or make no progress
                assert name != "tokens"
                continue
            for few, many in zip(here.ends, there.ends, strict=True):
                if name == "tokens":
                    assert many.days == pytest.approx(few.days * factor, rel=1e-9)
                elif name == "parameters":
                    assert many.days >= few.days * 0.99, (plan, factor)  # whose layers may divide better
                else:
                    assert many.days <= few.days * (1 + (0.05 if crowded(there) else 1e-9)), (plan, factor)


@pytest.mark.sweep(12)
@pytest.mark.parametrize("seed", range(60))
def test_ranges_are_ordered_and_never_pass_the_best_matmul_or_the_best_run(seed: int) -> None:
    rng = random.Random(1000 + seed)
    kind = any_kind(rng)
    best = max(run.without_failures for timed in (True, False) for run in run_shares(timed))
    for a in filter(None, (known(any_size(rng, kind)) for _ in range(PER_KIND))):
        assert 0 < a.low.mfu <= a.middle.mfu <= a.high.mfu
        assert all(end.mfu <= best * end.steps_mfu * 1.05 for end in a.ends)
        scale = a.middle.per_parameter / 6
        assert a.high.mfu <= ceiling_of(kind.device, kind.peak_dtype) * scale * (1 + 1e-9)


@pytest.mark.sweep(9)
@pytest.mark.parametrize("find", ["tokens", "parameters", "accelerators"])
@pytest.mark.parametrize("seed", range(12))
def test_every_question_is_the_inverse_of_time(seed: int, find: Find) -> None:
    rng = random.Random(2000 + seed)
    kind = replace(any_kind(rng), model=TYPED)
    plan = replace(any_size(rng, kind), find=find, within=Within(10 ** rng.uniform(1, 2.5)))
    a = known(plan)
    if a is None:
        return
    result, within = a.middle, plan.within.days
    back = estimate(replace(plan, find="time", **{find: getattr(result, find)})).middle
    assert back.days == pytest.approx(result.days, rel=1e-9)
    assert back.days <= within * (1 + 1e-9)
    if find == "tokens":
        assert back.days == pytest.approx(within, rel=1e-9)
        return
    size = getattr(result, find)
    next_one = size * 1.03 if find == "parameters" else size - allocation_unit(plan, size)
    beyond = known(replace(plan, find="time", **{find: next_one})) if next_one > 0 else None
    assert beyond is None or beyond.middle.days > within, "one more step keeps the time too"


@pytest.mark.sweep(40)
@pytest.mark.parametrize("seed", range(1000))
def test_days_memory_and_mfu_are_those_of_the_layout_that_is_shown(seed: int) -> None:
    """Its step is worked out from its layout alone here, by the account of step time."""
    rng = random.Random(3000 + seed)
    plan = any_size(rng, any_kind(rng))
    a = known(plan)
    if a is None or not a.terms.has_step_estimate:
        return
    at, request = timed_estimate(plan), search_request(plan)
    layout = at.step.layout
    alone = step_time(
        request.spec,
        replace(request.cluster, count=int(layout.accelerators)),
        layout,
        seq_len=request.timed_length,
        running=request.running,
        implementation=request.written,
        policy=request.policy,
        optimizer=request.optimizer,
        rates=request.rates,
    )
    tokens = int(layout.data * layout.micro_batch * layout.micro_batches) * request.timed_length
    assert at.step.seconds == pytest.approx(float(alone.total), rel=1e-9)
    assert a.middle.steps_days == pytest.approx(plan.tokens / tokens * float(alone.total) / 86400, rel=1e-9)
    assert a.memory.total == pytest.approx(float(request.bytes_of(layout)), rel=1e-9)
    assert a.memory.layout == layout
    assert a.middle.steps_mfu * a.count * a.peak == pytest.approx(
        a.middle.per_parameter * a.middle.parameters * tokens / float(alone.total), rel=1e-9
    )


def test_steps_of_published_runs_are_as_they_were_last_written() -> None:
    kept = run_steps()
    assert len(kept) == len(evidence("whole"))
    for row in evidence("whole"):
        step, now = kept[row.run.model, row.run.accelerator], step_of_run(row)
        assert (step.accelerators, step.sequences, step.shape) == (now.accelerators, now.sequences, now.shape)
        assert (step.mfu, step.goodput) == pytest.approx((now.mfu, now.goodput), rel=2e-3, nan_ok=True)


Note = Callable[[str, object], None]
"""Writes a figure into the report of the tests; bounds have room for a few more runs, as good as these."""


def test_labs_that_were_not_seen_end_inside(record_property: Note) -> None:
    """Each lab weighing the same: eight in ten inside P10 to P90, half inside P25 to P75, hardly any bias."""
    result = score()
    for name in ("inside", "half", "bias", "error", "ratio"):
        record_property(name, round(getattr(result, name), 3))
    assert result.runs == len(run_shares(has_step_estimate=True))
    assert 0.7 <= result.inside <= 0.9
    assert 0.35 <= result.half <= 0.65
    assert abs(result.bias) <= 0.12
    assert result.error <= 0.28
    assert result.ratio <= 3.5
    assert list(result.happened) == sorted(result.happened)


def test_as_many_runs_end_within_a_limit_as_was_said(record_property: Note) -> None:
    """With their lab left out, within ten points: of all runs in five bins, and at every level with labs weighing the
    same."""
    runs, levels = run_shares(has_step_estimate=True), (0.2, 0.4, 0.6, 0.8)
    others = [
        shares_of([other for other in runs if other.lab != run.lab], new_hardware=run.new_hardware) for run in runs
    ]
    happened = [
        np.mean([run.share <= run.goodput * known.at(level) for run, known in zip(runs, others, strict=True)])
        for level in levels
    ]
    record_property("below", [round(float(share), 3) for share in happened])
    assert np.abs(np.array(happened) - levels).max() <= 0.1
    assert np.abs(np.diff([0.0, *happened, 1.0]) - 0.2).max() <= 0.1 + 1e-9
    assert np.abs(np.array(score().happened) - LEVELS).max() <= 0.1


def test_mixtures_and_the_newest_end_inside(record_property: Note) -> None:
    """Of ten runs and of eight."""
    mixed = [p.inside for p in predictions() if p.run.evidence.experts]
    record_property("mixtures inside", f"{sum(mixed)} of {len(mixed)}")
    assert np.mean(mixed) >= 0.5
    runs = run_shares(has_step_estimate=True)
    year = {run: run.evidence.run.year for run in runs}
    before = predictions_of(runs, lambda other, run: other.lab != run.lab and (year[other] < 2025 or year[run] < 2025))
    newest = [p.inside for p in before if year[p.run] >= 2025]
    record_property("newest inside", f"{sum(newest)} of {len(newest)}")
    assert np.mean(newest) >= 0.5


def test_a_prediction_never_saw_its_lab() -> None:
    """However long a run is said to have taken, what is predicted of its lab stays the same."""
    runs = run_shares(has_step_estimate=True)
    slow = [replace(run, steps_mfu=run.steps_mfu * 9) if run.lab == "Meta" else run for run in runs]
    before, after = predictions(), predictions_of(slow, lambda other, run: other.lab != run.lab)
    for old, new in zip(before, after, strict=True):
        if old.run.lab == "Meta":
            assert new.utilisation.mid == pytest.approx(9 * old.utilisation.mid)


def test_a_share_for_all_beats_the_best_matmul() -> None:
    """Steps carry what differs between runs: without them the same model errs more."""
    plain = predictions_of(run_shares(has_step_estimate=False), lambda other, run: other.lab != run.lab)
    assert score().error < score_of(plain).error


def test_the_error_of_a_score_is_that_of_the_lab_in_the_middle() -> None:
    one_of_each = list({item.run.lab: item for item in predictions()}.values())[:5]
    errors = [item.error for item in one_of_each]
    found = score_of(one_of_each)
    assert (found.bias, found.error) == pytest.approx((sorted(errors)[2], sorted(map(abs, errors))[2]))


def test_one_run_of_its_own_narrows_by_a_quarter(record_property: Note) -> None:
    """Or nearly."""
    one = score_of(predictions_by_one_of_its_own())
    for name in ("inside", "error", "ratio"):
        record_property(name, round(getattr(one, name), 3))
    assert one.error < score().error
    assert one.inside >= 0.65
    assert math.log(one.ratio) <= 0.85 * math.log(score().ratio)


def test_a_new_accelerator_takes_longer_until_it_is_proven() -> None:
    new, first, proven = (timed(accelerator="B200", maturity=how) for how in (BY_AGE, FIRST_RUN, PROVEN))
    assert new.range_of("days") == first.range_of("days")
    assert new.middle.days > 1.1 * proven.middle.days
    assert mfu_text(new).id == "plan.mfu.predicted.new"
    old = [timed(maturity=how).middle.days for how in (BY_AGE, PROVEN, FIRST_RUN)]
    assert old[0] == old[1] < old[2]


def test_a_larger_accelerator_of_one_architecture_takes_no_longer() -> None:
    """More memory, bandwidth and links at the same rates: software that is proven on the one is on the other."""

    def rates(a: Accelerator) -> list[float]:
        more = (a.memory_bytes, a.bandwidth, a.interconnect_bandwidth, a.network, a.node_size)
        return [*(dict(a.peaks).get(dtype, 0.0) for dtype in DTYPES), *more]

    def days(a: Accelerator) -> float:
        return estimate(plan_from({"gpu": a.name})).middle.days

    pairs = [
        (small, large)
        for small, large in permutations(accelerators(), 2)
        if (small.family, small.generation) == (large.family, large.generation)
        and all(few <= many for few, many in zip(rates(small), rates(large), strict=True))
    ]
    assert len(pairs) > 3
    slower = [(small.name, large.name) for small, large in pairs if days(large) > days(small) * (1 + 1e-9)]
    assert slower == []


def test_own_runs_move_the_range_towards_themselves() -> None:
    """More of them move it further and leave less; one that did as expected moves nothing but the ends."""
    shares = published_shares(has_step_estimate=True)
    low, mid, high = shares.ends
    for own in ([0.4], [0.4] * 5):
        moved = shares.given(own).ends
        assert 0.4 < moved[1] < mid
        assert math.log(moved[2] / moved[0]) < math.log(high / low)
        low, mid, high = moved
    assert published_shares(has_step_estimate=True).given([shares.at(0.5)]).at(0.5) == pytest.approx(shares.at(0.5))
    usual, slow = timed(), timed(own_runs=parse_own_runs("70B, 1T tokens, 512 H100 SXM, 40 days"))
    assert slow.middle.days > 1.1 * usual.middle.days
    assert slow.middle.steps_days == pytest.approx(usual.middle.steps_days)
    assert mfu_text(slow).id == "plan.mfu.predicted.custom"


@every(
    "text",
    [
        "7B, 2T tokens, 256 H100 SXM, 19 days",
        "7B,2T,256,H100 SXM,19 days",
        "7B;2T;H100 SXM;256;456 h",
        "parameters\ttokens\tgpu\tcount\ttime\n7B\t2T\tH100 SXM\t256\t116,736 GPU-hours",
        "7B, 2T, 256 x h100 sxm, 116.736k accelerator hours",
    ],
)
def test_own_runs_are_read_as_people_write_them(text: str) -> None:
    (run,) = parse_own_runs(text)
    assert (run.parameters, run.tokens, run.accelerators, run.accelerator) == (7e9, 2e12, 256, "H100 SXM")
    assert run.hours == pytest.approx(19 * 24 * 256)


@every(
    "text, says",
    [
        ("7B, 2T, 256 H100, 19 days", "accelerator_near"),
        ("7B, 2T, 256 H100 SXM, 19 h", "fast"),
        ("7B, 2T, 256 H100 SXM, 900 days", "slow"),
        ("7B, 2T, H100 SXM, 19 days", "cluster"),
        ("7B, 2T", "cells"),
        ("7B, 2T, 256 H100 SXM, 19 days\n" * 21, "many"),
    ],
)
def test_own_runs_that_cannot_be_are_refused(text: str, says: str) -> None:
    with pytest.raises(QuantityError) as refused:
        parse_own_runs(text)
    message = refused.value.args[0]
    assert message.values.get("problem", message).id == f"runs.own.{says}"


def test_quantiles_of_shares() -> None:
    shares = published_shares(has_step_estimate=True)
    levels = [shares.at(level) for level in np.linspace(0.01, 0.99, 50)]
    assert levels == sorted(levels)
    assert shares.ends[1] == pytest.approx(shares.at(0.5))
    few = Shares.of(run_shares(has_step_estimate=True)[:20])
    assert few.labs < shares.labs


def timed(**changes: object) -> PlanEstimate:
    return estimate(replace(Plan(model="Llama 3 70B", tokens=15e12), **changes))  # type: ignore[arg-type]


def test_what_moves_the_steps_moves_the_whole_run() -> None:
    """Cluster, dtype, length, batch, network: on both times alike."""
    plan = timed()
    for changed in (
        {"accelerators": 8192.0},
        {"dtype": "fp8"},
        {"seq_len": 32_768},
        {"batch": Batch(1e6)},
        {"accelerators": 4096.0, "network": 5e9},
    ):
        other = timed(**changed)
        assert other.middle.steps_days != pytest.approx(plan.middle.steps_days, rel=1e-3), changed
        share = other.middle.steps_days / other.middle.days
        assert share == pytest.approx(plan.middle.steps_days / plan.middle.days, rel=0.08), changed


def test_accelerators_that_no_step_is_timed_on_go_by_their_best_matmul() -> None:
    a = estimate(Plan(dtype="fp32"))
    assert not a.terms.has_step_estimate
    assert a.middle.days > 2 * estimate(Plan()).middle.days
    assert a.high.days < a.middle.days < a.low.days


def test_a_typed_mfu_replaces_the_product_of_both() -> None:
    from core.planning.plan import parse_mfu

    a = timed(mfu=parse_mfu("45%"))
    assert a.middle.mfu == pytest.approx(0.45)
    assert a.layout_mfu == pytest.approx(timed().middle.steps_mfu)
    assert a.middle.steps_mfu == pytest.approx(max(a.layout_mfu, a.middle.mfu_while_training))


def test_narrow_products_gain_what_was_measured() -> None:
    assert 1.05 < low_precision_gain() < 2
    assert usable_matmul("H100 SXM", "8-bit") > usable_matmul("H100 SXM", "16-bit")
    assert usable_matmul("A100 SXM 80 GB", "8-bit") == usable_matmul("A100 SXM 80 GB", "16-bit")
    assert not is_low_precision("A100 SXM 80 GB", "8-bit")


def test_nearest_runs() -> None:
    rows = evidence("whole")
    near = nearest_runs(RunFeatures(70e9, 15e12, "H100 SXM", 1024), rows, len(rows))
    assert len(near) == len(rows)
    assert [n.distance for n in near] == sorted(n.distance for n in near)
    assert near[0].evidence.run.model.startswith("Llama-3")
    assert near[0].differences == ()
    old = next(n for n in near if n.evidence.run.accelerator == "TPU v3")
    assert (old.generations, old.differences[0]) == (2, "older")
    assert old.size == pytest.approx(4, rel=0.02)
    mixed = next(n for n in near if n.evidence.run.model == "DeepSeek-V3")
    assert mixed.differences == ("mixture", "width")
    assert mixed.size == pytest.approx(37.55 / 70, rel=0.02), "37B of 671B work on a token"


def test_plans_beyond_all_published_runs_are_said_to_be() -> None:
    usual = run_features(timed())
    assert beyond_evidence(usual) == ()
    for changed, kind, most, model in (
        ({"accelerators": 1e6}, "accelerators", 16_384, "Llama-3.1 405B"),
        ({"tokens": 1e14}, "tokens", 40e12, "Llama-4 Scout 17Bx16E"),
        ({"params": 1e13}, "parameters", 405.9e9, "Llama-3.1 405B"),
        ({"accelerator": "MI300X"}, "no run", math.nan, ""),
        ({"accelerator": "A100 SXM 80 GB", "width": "8-bit"}, "no rate", math.nan, ""),
    ):
        (row,) = beyond_evidence(replace(usual, **changed))  # type: ignore[arg-type]
        assert (row.kind, row.model) == (kind, model)
        assert row.most == pytest.approx(most, rel=1e-3, nan_ok=True)
    assert len(beyond_evidence(replace(usual, accelerator="RTX 4090"))) == 2
    assert len(beyond_evidence(RunFeatures(1e13, 1e15, "MI300X", 1e6, mixture=True, width="4-bit"))) == 5
