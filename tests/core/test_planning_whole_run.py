"""Compute-optimal splits, checkpoints and failures, energy: against papers, a simulation and numeric minima."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from core.budget.compute_optimal import LAWS, LossLaw, compute_optimal, overtraining
from core.budget.equations import BudgetError, Interval
from core.formula import explain_run
from core.hardware.accelerators import Accelerator, accelerators
from core.messages import Message
from core.number_text import QuantityError
from core.planning.estimate import estimate
from core.planning.form.plan_form import plan_from
from core.runs.energy import footprint
from core.runs.goodput import (
    WRITE_EACH,
    Failures,
    Interruptions,
    Reliability,
    daly_interval,
    failure_records,
    goodput_with_failures,
    interruptions,
    no_progress,
    parse_failures,
    time_between_failures,
    young_interval,
)
from core.views.common.palette import LIGHT
from core.views.report.rows import plan_rows
from core.views.runs import text_goodput as words_whole
from core.views.runs.charts_goodput import hours_of_the_run
from tests.core.sentence_facts import says
from tests.every import every

CHINCHILLA_FLOP = 5.76e23


def test_the_rule_of_thumb_gives_chinchilla() -> None:
    """arXiv:2203.15556: 70 B parameters on 1.4 T tokens for Gopher's 5.76e23 FLOP."""
    thumb, hoffmann, besiroglu = compute_optimal(CHINCHILLA_FLOP)
    assert thumb.params == pytest.approx(70e9, rel=0.02)
    assert thumb.tokens == pytest.approx(1.4e12, rel=0.02)
    assert (thumb.overtraining, math.isnan(thumb.loss)) == (pytest.approx(1), True)
    # arXiv:2404.10102: the refit agrees with 20 tokens per parameter, the published constants ask for far more:
    # arXiv:2203.15556 gives 40B parameters for this budget by approach 3.
    assert 15 < besiroglu.tokens_per_parameter < 25
    assert hoffmann.params == pytest.approx(40e9, rel=0.02)
    assert all(6 * split.params * split.tokens == pytest.approx(CHINCHILLA_FLOP) for split in (thumb, hoffmann))
    assert overtraining(15e12, 8e9) == pytest.approx(93.75)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.id)
@pytest.mark.parametrize(("flop", "per_parameter"), [(1e19, 6.0), (5.76e23, 6.0), (3.8e25, 7.5)])
def test_no_other_split_has_a_lower_loss(law: LossLaw, flop: float, per_parameter: float) -> None:
    best = law.parameters(flop, per_parameter)
    sizes = best * np.geomspace(0.05, 20, 4001)
    losses = np.array([law.loss(n, flop / (per_parameter * n)) for n in sizes])
    assert sizes[np.argmin(losses)] == pytest.approx(best, rel=1e-3)
    split = next(s for s in compute_optimal(flop, per_parameter) if s.id == law.id)
    assert split.loss == pytest.approx(losses.min(), rel=1e-9)
    assert split.explanations[-1].value == split.loss


def test_exponents_of_the_optimum() -> None:
    """N grows with C^a: a = 0.46 for the published constants, 0.51 for the refit (both papers' exponents)."""
    for law, exponent in zip(LAWS, (0.46, 0.51), strict=True):
        grown = math.log(law.parameters(1e24) / law.parameters(1e23)) / math.log(10)
        assert grown == pytest.approx(exponent, abs=5e-3)


@pytest.mark.parametrize("flop", [0.0, -1.0, math.inf, math.nan, 1e8])
def test_no_model_for_no_compute(flop: float) -> None:
    with pytest.raises(BudgetError, match="No model"):
        compute_optimal(flop)


@pytest.mark.parametrize(("mtbf_minutes", "published"), [(24 * 60, 117), (6 * 60, 57), (15, 9.1)])
def test_dalys_published_intervals(mtbf_minutes: float, published: float) -> None:
    """Captions of figures 3 to 5 of Daly 2006, five minutes to write."""
    assert daly_interval(5, mtbf_minutes) == pytest.approx(published, abs=0.5 if published > 10 else 0.05)
    assert young_interval(5, mtbf_minutes) == pytest.approx(math.sqrt(10 * mtbf_minutes))


@pytest.mark.parametrize(("write", "restart", "mtbf"), [(57, 600, 11125), (300, 600, 3600), (5, 60, 86400)])
def test_daly_is_near_the_best_interval(write: float, restart: float, mtbf: float) -> None:
    intervals = np.geomspace(mtbf * 1e-3, mtbf * 3, 20_000)
    goodput = goodput_with_failures.over(interval=intervals, write=write, restart=restart, mtbf=mtbf)
    best = intervals[np.argmax(goodput)]
    assert daly_interval(write, mtbf) == pytest.approx(best, rel=0.01)
    assert goodput_with_failures(daly_interval(write, mtbf), write, restart, mtbf) > 0.9999 * goodput.max()


def simulated_goodput(interval: float, write: float, restart: float, mtbf: float, segments: int) -> float:
    """Time in training over time on the wall, failures drawn one by one."""
    rng = np.random.default_rng(1)
    wall, done = 0.0, 0
    needed, until = interval + write, rng.exponential(mtbf)
    while done < segments:
        if until >= needed:
            wall, until, done, needed = wall + needed, until - needed, done + 1, interval + write
        else:
            wall, until, needed = wall + until, rng.exponential(mtbf), restart + interval + write
    return done * interval / wall


@pytest.mark.parametrize(("interval", "write", "restart", "mtbf"), [(1086, 57, 600, 11125), (900, 300, 900, 3600)])
def test_goodput_is_what_a_simulation_finds(interval: float, write: float, restart: float, mtbf: float) -> None:
    simulated = simulated_goodput(interval, write, restart, mtbf, 40_000)
    assert goodput_with_failures(interval, write, restart, mtbf) == pytest.approx(simulated, rel=0.01)


LLAMA, CHECKPOINT = 16_384.0, 14 * 405e9


def whole_run(accelerators: float = LLAMA, rate: float = 0.474, **others: float) -> Interruptions:
    return interruptions(accelerators, CHECKPOINT, Reliability(failures=Failures(rate), **others))  # type: ignore[arg-type]


def test_llama_3s_failures() -> None:
    """arXiv:2407.21783: 419 in 54 days on 16,384, one every three hours; over 90% effective, 2 TB/s of storage."""
    record = failure_records()[0]
    assert record.rate == pytest.approx(0.4736, abs=1e-4)
    assert time_between_failures(record.rate, LLAMA) / 3600 == pytest.approx(54 * 24 / 419)
    assert 0.90 < whole_run(rate=record.rate).goodput < 0.95
    assert pytest.approx(2e12, rel=0.02) == LLAMA * WRITE_EACH
    assert {r.known for r in failure_records()} == {"verified", "recalled"}
    assert all(0.2 < r.rate < 1 and r.source and r.counted for r in failure_records())


def test_storage_grows_with_the_cluster_and_writing_behind_saves_time() -> None:
    few, many = whole_run(8.0), whole_run()
    assert few.write == pytest.approx(many.write * 2048)
    behind = whole_run(blocking=0.0)
    assert behind.goodput > many.goodput
    assert behind.interval >= many.write  # one is written before the next begins


def test_blooms_checkpoint() -> None:
    """The training notes print 329 GB of bf16 weights and 2.3 TB with the optimizer, which are binary."""
    a = estimate(plan_from({"n": "176.247B", "prec": "mixed bf16, fp32 master", "mfu": "40%"}))
    copied = 2 * 176.247e9  # the bf16 weights, which BLOOM saved beside the fp32 ones that they follow from
    assert copied / 2**30 == pytest.approx(329, rel=0.005)
    assert (float(a.interruptions.checkpoint) + copied) / 2**40 == pytest.approx(2.3, rel=0.03)
    assert float(a.interruptions.checkpoint) == a.memory.checkpoint


SHAPES: list[dict[str, float]] = [
    {},
    {"rate": 0.0},
    {"rate": 0.0, "interval": 3600.0},
    {"elsewhere": 0.1},
    {"rate": 2.0, "restart": 3600.0},
    {"rate": 50.0, "restart": 0.0},
    {"interval": 600.0, "blocking": 0.1},
    {"write_each": 1e3},
    {"rate": 1e4, "interval": 1.0},
]


@every("given", SHAPES, ids=str)
def test_shares_of_the_wall_time_sum_to_one(given: dict[str, float]) -> None:
    counts = np.array([1.0, 8.0, 1024.0, LLAMA, 1e6])
    run = whole_run(counts, **given)  # type: ignore[arg-type]
    shares = np.array([run.goodput, run.writing, run.lost, run.restarting, np.full(5, run.elsewhere)])
    np.testing.assert_allclose(shares.sum(axis=0), 1, atol=1e-12)
    assert shares.min() >= 0
    if given == {"rate": 0.0}:
        assert np.all(run.goodput == 1)
    for i, count in enumerate(counts.tolist()):
        item = whole_run(count, **given)
        assert float(item.goodput) == run.goodput[i]
        recorded = explain_run(lambda count=count: whole_run(count, **given))
        steps = {step.name.rpartition(".")[2]: step.value for step in recorded}
        assert steps.get("goodput_with_failures", float(item.goodput > 0)) * (1 - item.elsewhere) == pytest.approx(
            float(item.goodput), rel=1e-9
        ) or not given.get("rate", 1.0)


@every(
    ("text", "between"),
    [
        ("0.474", 86400e3 / 0.474 / LLAMA),
        ("8 per day", 10_800),
        ("8/day", 10_800),
        ("3 h", 10_800),
        ("MTBF 3 h", 10_800),
        ("mtbf = 180 min", 10_800),
        ("1e-2", 86400e3 / 0.01 / LLAMA),
        ("0", math.inf),
        ("0 per day", math.inf),
    ],
)
def test_failures_as_typed(text: str, between: float) -> None:
    result = interruptions(LLAMA, CHECKPOINT, Reliability(failures=parse_failures(text)))
    assert float(result.mtbf) == pytest.approx(between)


@every("text", ["", "often", "-1", "1e5", "nan", "8 per", "per day", "MTBF", "0 h", "1e99 h"])
def test_bad_failures_are_refused(text: str) -> None:
    with pytest.raises(QuantityError, match=r"such as|example|[Ee]mpty|out of range"):
        parse_failures(text)


@pytest.mark.parametrize("pace", ["all hours", "steady steps"])
@pytest.mark.parametrize("mfu", ["40%", "published"])
def test_the_whole_run_has_the_hours_of_the_answer(mfu: str, pace: str) -> None:
    a = estimate(plan_from({"mfu": mfu, "pace": pace, "rate1k": "2", "other": "5%"}))
    parts = [share for _, share, _ in words_whole.time_shares(a)]
    assert sum(parts) == pytest.approx(1)
    assert min(parts) > 0
    assert parts[0] == pytest.approx(min(a.middle.steps_days / a.middle.days, a.middle.goodput))
    assert words_whole.whole_text(a).values["days"] == a.middle.days
    assert words_whole.energy_text(a).values["energy"] == a.energy.mid
    assert 100 in hours_of_the_run(words_whole.time_shares(a), LIGHT)["layout"]["xaxis"]["tickvals"]


@every("accelerators", ["1000", "100000", "200000", "300000", "500000"])
@every("dtype", ["bf16", "fp8"])
def test_no_end_of_the_steps_is_faster_than_the_best_matmul(accelerators: str, dtype: str) -> None:
    a = estimate(plan_from({"count": accelerators, "dtype": dtype}))
    assert a.middle.accelerators == float(accelerators)
    assert a.low.steps_mfu == a.middle.steps_mfu <= a.high.steps_mfu <= a.ceiling
    assert a.low.mfu < a.middle.mfu < a.high.mfu <= a.ceiling
    assert a.middle.steps_days < a.middle.days


def test_failures_and_checkpoints_have_the_range_of_the_answer() -> None:
    """Where days or accelerators are a range, so are the failures in them and the pace of checkpoints."""
    for find in ("time", "accelerators"):
        a = estimate(plan_from({"find": find, "within": "180 days", "mfu": "30-50%"}))
        low, middle, high = words_whole.failures(a)
        for value, column in zip((low, middle, high), (a.low, a.middle, a.high), strict=True):
            assert value == pytest.approx(column.days * column.accelerators * 0.474 / 1000)
        said = words_whole.failures_text(a)
        assert (said.values["failures"], said.values["range"]) == (round(middle), (round(high), round(low)))
        lines = {line.key: line for line in plan_rows(a)}
        assert (lines["failures"].pessimistic, lines["failures"].optimistic) == (low, high)
        every = lines["checkpoint_interval"]
        assert (every.pessimistic < every.optimistic) == (find == "accelerators")
        assert ("(" in words_whole.checkpoint_rows(a)[-1][1]) == (find == "accelerators")
    exact = estimate(plan_from({"mfu": "40%"}))
    assert words_whole.failures_text(exact).id == "whole.failures"
    assert "–" not in "".join(text for _, text in words_whole.checkpoint_rows(exact))


TABLE = (Path(__file__).parents[1] / "data" / "energy_llama.csv").read_text(encoding="utf-8")
ENERGY = list(csv.DictReader(TABLE.splitlines()))


@pytest.mark.parametrize("row", ENERGY, ids=[row["model"] for row in ENERGY])
def test_energy_and_carbon_of_llamas_table_15(row: dict[str, str]) -> None:
    result = footprint(
        float(row["gpu_hours"]),
        float(row["gpu_power_W"]),
        pue=float(row["pue"]),
        intensity=float(row["kgco2_per_kwh"]),
    )
    # The paper cuts 449.8 to 449 and prints the rest rounded; the exact products stand beside them.
    assert result.energy / 1e6 == pytest.approx(float(row["energy_check_MWh"]), abs=6e-3)
    assert result.carbon / 1e3 == pytest.approx(float(row["tco2_check"]), abs=6e-3)
    assert result.energy / 1e6 == pytest.approx(float(row["energy_MWh"]), abs=1.5)
    assert result.carbon / 1e3 == pytest.approx(float(row["tco2eq"]), abs=1)


def test_a_whole_servers_power_is_more_than_its_accelerators_limits() -> None:
    """10.2 kW for eight of 700 W."""
    usual, server = (estimate(plan_from({"gpu": "H100 SXM", "draw": text})) for text in ("100%", "1.82"))
    assert server.energy.mid == pytest.approx(1.82 * usual.energy.mid)
    assert server.energy.mid == estimate(plan_from({"gpu": "H100 SXM", "draw": "182"})).energy.mid
    assert round(10_200 / (8 * 700), 2) == 1.82


def test_power_is_that_of_the_nodes_unless_it_was_typed() -> None:
    """192 nodes of 10.2 kW take 2.15 MW at most where their accelerators alone have 1.18."""
    rented = {"gpu": "H200 SXM", "count": "1,536"}
    nodes, alone = (estimate(plan_from({**rented, "draw": text})) for text in ("", "100%"))
    assert nodes.middle.peak_watts == alone.middle.peak_watts == pytest.approx(192 * 10_200 * 1.1)
    assert nodes.energy.mid / nodes.middle.hours == pytest.approx(0.76 * 10_200 / 8 * 1.1)
    assert alone.energy.mid / alone.middle.hours == pytest.approx(700 * 1.1)
    typed = estimate(plan_from({**rented, "draw": "250%"}))
    assert typed.middle.peak_watts == pytest.approx(1536 * 2.5 * 700 * 1.1)
    basis, entered = (words_whole.power_basis(a) for a in (nodes, alone))
    assert isinstance(basis, Message)
    assert isinstance(entered, Message)
    assert (basis.id, basis.values["watts"], basis.values["share"]) == ("whole.power_basis", 10_200, 0.76)
    assert entered.id == "whole.power_basis_entered"
    assert words_whole.power_basis(estimate(plan_from({"gpu": "TPU v6e"}))) == ""
    assert [step.kind for step in nodes.explain_power()] == ["kg_co2", "watt_hours", "watts", "watts"]
    assert estimate(plan_from({"gpu": "TPU v6e"})).explain_power() == []


@every("device", accelerators(), ids=lambda device: device.name)
def test_no_node_draws_more_than_its_most(device: Accelerator) -> None:
    a = estimate(plan_from({"gpu": device.name, "n": "1B"}))
    assert not a.energy.mid > a.middle.peak_watts * 24 * a.middle.days * (1 + 1e-9)
    assert math.isnan(a.energy.mid) == math.isnan(a.middle.peak_watts)


@pytest.mark.parametrize(
    "bad", [{"share": 3.2}, {"pue": 0.9}, {"intensity": -1.0}, {"hours": -1.0}, {"share": math.inf}]
)
def test_impossible_footprints_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(BudgetError) as refused:
        footprint(**{"hours": 1.0, "watts": 400.0, **bad})  # type: ignore[arg-type]
    assert refused.value.field == next(iter(bad))


def test_intervals_pass_through_rising_and_falling_functions() -> None:
    mfu = Interval(0.2, 0.4, 0.5)
    assert mfu.through(lambda u: 1 / u) == Interval(2.0, 2.5, 5.0)
    assert mfu.contains(0.5)
    assert not mfu.contains(0.51)
    assert not Interval.point(math.nan).known
    with pytest.raises(ValueError, match="low to high"):
        Interval(2, 1, 3)


def test_no_progress_is_told_in_hours_and_days() -> None:
    refused = str(no_progress(whole_run(8.0, 1000.0, write_each=1e6)))
    says(refused, "failure every 3 h", "checkpoint", "8.2 days", "restart 10 min")


def test_what_is_unknown_or_never_happens_is_said() -> None:
    assert words_whole.failures_text(estimate(plan_from({"rate1k": "0"}))).id == "whole.no_failures"
    assert words_whole.energy_text(estimate(plan_from({"gpu": "TPU v6e"}))).id.startswith("whole.energy_unknown")
    assert math.isnan(estimate(plan_from({"gpu": "TPU v6e"})).energy.mid)
