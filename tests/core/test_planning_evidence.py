"""Evidence: every published row under one convention or left out by name, and runs predicted from the others."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from core.planning.evidence.comparable import (
    FEWEST,
    Profile,
    comparable,
    expected,
    expected_hours,
    predictions,
    profile_of,
    same_model,
    score,
)

from core.hardware.accelerators import find
from core.models import model_named
from core.planning.budget.errors import BudgetError
from core.planning.budget.interval import Interval
from core.planning.evidence.rows import (
    Evidence,
    base_peak,
    evidence,
    hardware_flop_narayanan,
    left_out,
    width_of,
)
from core.planning.evidence.runs import published_runs, run_hours

RUNS = published_runs()


def test_every_row_is_known_by_kind_and_source() -> None:
    kinds = Counter(run.kind for run in RUNS)
    assert kinds["benchmark"] > 400
    assert kinds["full_run"] > 70
    assert all(run.model and run.kind and run.source for run in RUNS)
    printed = [run for run in RUNS if not math.isnan(run.flop_per_s)]
    assert all(run.flop_convention for run in printed)


def test_every_row_is_evidence_or_left_out_with_a_reason() -> None:
    for basis, kinds in (("whole", {"full_run"}), ("steady", {"benchmark", "full_run_stage"})):
        rows = [run for run in RUNS if run.kind in kinds]
        kept, out = evidence(basis), left_out(basis)  # type: ignore[arg-type]
        assert sum(row.rows for row in kept) + len(out) == len(rows)
        assert all(row.reason for row in out)
        assert all(0.01 < row.utilisation < (1 if row.width == "16-bit" else 2) for row in kept)
    reasons = {row.run.model: row.reason for row in left_out("whole")}
    assert "assumes" in reasons["GPT-3 175B"]
    assert "impossible" in reasons["llm.c GPT-3 125M"]
    assert "post-training" in reasons["DBRX 132B"]
    assert "hardware(?)" not in {row.run.flop_convention for row in evidence("steady")}


def test_hardware_flops_agree_with_the_time_of_a_step() -> None:
    """BLOOM's chronicles and MT-NLG print both: the source's own formula must give the rate of the printed time."""
    both = [
        run
        for run in RUNS
        if run.flop_convention.startswith("hardware")
        and not math.isnan(run.step_seconds * run.batch_tokens * run.flop_per_s)
    ]
    off: list[float] = []
    for run in both:
        per_token = hardware_flop_narayanan(run.layers, run.hidden, run.seq_len, run.vocab)
        off.append(run.batch_tokens / run.step_seconds / run.accelerators * per_token / run.flop_per_s - 1)
    assert len(both) > 15
    assert abs(float(np.median(off))) < 0.01
    assert max(abs(o) for o in off) < 0.06


def test_a_model_mfu_is_scaled_to_the_rule() -> None:
    """Llama 3.1's 41 % at 8,192 tokens holds 4 to 8 % of attention that 6N leaves out."""
    (row,) = [r for r in evidence("steady") if r.run.model.startswith("Llama-3.1 405B stage")]
    assert row.rows == 2
    assert row.run.flop_per_s / base_peak(row.run.accelerator) / row.utilisation == pytest.approx(1.06, abs=0.01)
    assert any("attention is more" in out.reason or "long" in out.reason for out in left_out("steady"))


def test_llm_foundrys_rows_count_without_attention() -> None:
    """Their printed MFU divided by ours is 1 + attention over 6N, row by row."""
    rows = [r for r in evidence("steady") if "llm-foundry" in r.run.model and r.width == "16-bit" and r.run.mfu > 0]
    assert len(rows) > 15
    for row in rows:
        run = row.run
        attention = 12 * run.layers * run.hidden * run.seq_len / (6 * run.params)
        assert run.mfu / row.utilisation == pytest.approx(1 + attention, rel=3e-3)


def test_widths() -> None:
    assert [width_of(p) for p in ("", "bf16", "fp8 mixed", "mxfp8", "nvfp4", "bf16 + fp8 activation storage")] == [
        "16-bit",
        "16-bit",
        "8-bit",
        "8-bit",
        "4-bit",
        "16-bit",
    ]
    assert base_peak("V100 SXM 32 GB") == find("V100 SXM 32 GB").peak("fp16")


def test_comparable_rows_share_what_was_kept() -> None:
    plan = Profile(7e9, 2e12, "A100 SXM 80 GB")
    steady = comparable(plan, "steady")
    assert steady.dropped == ()
    assert steady.found == len(steady.rows) >= FEWEST
    assert {row.family for row in steady.rows} == {"A100"}
    assert {row.width for row in steady.rows} == {"16-bit"}
    assert all(not row.experts and 7e9 / 4 <= row.run.params <= 28e9 for row in steady.rows)
    whole = comparable(plan)
    assert set(whole.kept) >= {"tokens per parameter", "family", "experts"}
    assert len(whole.rows) >= FEWEST
    assert all(28.5 < row.ratio < 2858 / 1 and row.family == "A100" and not row.experts for row in whole.rows)


def test_the_pool_widens_until_it_is_large_enough() -> None:
    nobody = comparable(Profile(8e9, 15e12, "MI300X"))
    assert "family" in nobody.dropped
    assert nobody.found == 0
    lonely = comparable(Profile(1e15, 1.0, "Trainium3", True, "4-bit"))
    assert lonely.kept == ()
    assert len(lonely.rows) == len(evidence("whole"))
    for params in (1e6, 1e9, 1e12, 1e16):
        for basis in ("whole", "steady"):
            assert len(comparable(Profile(params, math.nan, "H100 SXM"), basis).rows) >= FEWEST  # type: ignore[arg-type]
    assert "tokens per parameter" not in comparable(Profile(8e9, math.nan, "H100 SXM")).kept


def test_nine_rows_span_p10_to_p90() -> None:
    nine = [p.comparables for p in predictions() if len(p.comparables.rows) == FEWEST]
    assert nine
    for peers in nine:
        used = sorted(row.utilisation for row in peers.rows)
        assert (peers.utilisation.low, peers.utilisation.mid, peers.utilisation.high) == pytest.approx(
            (used[0], used[4], used[-1])
        )


def test_the_range_in_the_plans_own_convention() -> None:
    peers = comparable(Profile(37e9, 14.8e12, "H800 SXM", True, "8-bit"))
    fp8 = find("H800 SXM").peak("fp8")
    scaled = peers.mfu(1.05, fp8)
    assert scaled.mid == pytest.approx(peers.utilisation.mid * 1.05 * 989.4 / 1978.9)
    assert peers.mfu() == peers.utilisation


def test_hours_follow_from_the_utilisation() -> None:
    plan = Profile(70e9, 15e12, "H100 SXM")
    peers = comparable(plan)
    hours = expected_hours(plan, peers)
    assert hours.mid == pytest.approx(6.3e24 / (peers.utilisation.mid * 989.4e12 * 3600))
    assert hours.low == pytest.approx(6.3e24 / (peers.utilisation.high * 989.4e12 * 3600))


def test_days_and_dollars_carry_the_range() -> None:
    plan = Profile(70e9, 15e12, "H100 SXM")
    peers = comparable(plan)
    made = expected(plan, peers, 1024, Interval(2.0, 2.5, 3.5))
    assert made.days.high == pytest.approx(made.hours.high / 24 / 1024)
    assert (made.dollars.low, made.dollars.high) == pytest.approx((2 * made.hours.low, 3.5 * made.hours.high))
    assert not expected(plan, peers, 1024, Interval.point(math.nan)).dollars.known
    with pytest.raises(BudgetError, match="0 accelerators"):
        expected(plan, peers, 0, Interval.point(2.0))


def test_a_prediction_never_sees_its_own_model() -> None:
    for made in predictions():
        assert not any(same_model(row.run, made.run) for row in made.comparables.rows), made.run.model
        hours = run_hours(made.run)
        assert hours
        assert made.published == pytest.approx(hours.value)
    names = {made.run.model for made in predictions()}
    peers = next(p for p in predictions() if p.run.model == "Llama-3.1 8B").comparables.rows
    assert "Llama-3 8B" in names
    assert "Llama-3 8B" not in {row.run.model for row in peers}


def test_whole_runs_are_predicted_from_the_others() -> None:
    """Median absolute error of P50 at most 25 %, and at least 75 % of runs inside P10 to P90."""
    made = score()
    assert made.runs == len(evidence("whole"))
    assert made.error <= 0.25
    assert made.inside >= 0.75
    errors = [abs(p.error) for p in predictions()]
    assert made.error == pytest.approx(float(np.median(errors)))
    wide = [p.hours.high / p.hours.low for p in predictions()]
    assert float(np.median(wide)) < 3


def test_leaving_out_a_whole_lab_is_harder_and_says_so() -> None:
    for made in predictions("lab"):
        assert made.run.lab
        assert all(row.run.lab != made.run.lab for row in made.comparables.rows)
    lab = score("lab")
    assert score().error < lab.error < 0.3
    assert 0.6 < lab.inside < score().inside


def test_the_score_beats_one_utilisation_for_all() -> None:
    rows = evidence("whole")

    def off(row: Evidence) -> float:
        others = [r.utilisation for r in rows if not same_model(r.run, row.run)]
        return abs(row.utilisation / float(np.median(others)) - 1)

    assert score().error < 0.8 * float(np.median([off(row) for row in rows]))


def test_steady_steps_alone_promise_too_much() -> None:
    """Whole runs take longer than steady benchmarks of comparable models would say: why goodput is asked for."""
    rows = evidence("whole")
    ratio = [r.utilisation / comparable(profile_of(r.run), "steady", r.run).utilisation.mid for r in rows]
    assert 0.6 < float(np.median(ratio)) < 0.9


def test_catalogue_models_have_the_evidence_of_their_runs() -> None:
    linked = [row for row in evidence("whole") if row.run.catalog]
    assert len(linked) > 25
    for row in linked:
        assert row.experts == model_named(row.run.catalog).mixture, row.run.model
