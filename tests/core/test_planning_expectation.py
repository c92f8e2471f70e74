"""The expectation of whole runs: smooth and monotonic over the whole domain, capped, and judged on runs left out."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.budget.errors import BudgetError
from core.hardware.accelerators import accelerators, find
from core.hardware.matmul import best_matmul
from core.runs.coverage import beyond_evidence, nearest_runs
from core.runs.expectation import (
    Expectation,
    RunFeatures,
    end_of_range,
    expected_run,
    expected_utilisation,
    explain_expectation,
    hours_at,
)
from core.runs.nearest import (
    DELTA,
    RECENT,
    SLACK,
    Balance,
    best_16bit,
    fit_of,
    gain_of,
    is_narrow,
    narrow_gain,
    published_fit,
    shared_by_lab,
    similarity,
)
from core.runs.scores import predictions, same_lab, same_model, score
from core.runs.utilisation import Width, base_peak, evidence
from tests.every import every

Array = npt.NDArray[np.float64]
MOST_PARAMS, MOST_TOKENS = 1e16, 1e18
NAMES = [a.name for a in accelerators()]
WIDTHS = ("16-bit", "8-bit", "4-bit")
BATCHES, SIZE = 25, 4000


def plans(seed: int) -> tuple[RunFeatures, np.random.Generator]:
    """4,000 random plans of one kind, half over the whole domain in the logarithm, half where runs were published."""
    rng = np.random.default_rng(seed)
    wide = np.exp(rng.uniform(0, 1, (2, SIZE // 2)) * np.log([[MOST_PARAMS], [MOST_TOKENS]]))
    usual = np.exp(rng.uniform(np.log([[5e7], [5e9]]), np.log([[1e12], [1e14]]), (2, SIZE // 2)))
    params, tokens = np.concatenate([wide, usual], axis=1)
    name = NAMES[int(rng.integers(len(NAMES)))]
    count = np.exp(rng.uniform(0, np.log(1e7), SIZE))
    return RunFeatures(params, tokens, name, count, bool(rng.integers(2)), WIDTHS[int(rng.integers(3))]), rng  # type: ignore[arg-type]


def ends(expectation: Expectation) -> tuple[Array, Array, Array]:
    return np.asarray(expectation.low), np.asarray(expectation.mid), np.asarray(expectation.high)


@lru_cache(maxsize=BATCHES)
def batch(seed: int) -> tuple[RunFeatures, Expectation, np.random.Generator]:
    setting, rng = plans(seed)
    return setting, expected_utilisation(setting), rng


def reach(accelerator: str, width: Width) -> float:
    """What the best matmul reaches, with the gain of narrower products: of the dense 16-bit peak."""
    return best_16bit(accelerator) * gain_of(accelerator, narrow=is_narrow(accelerator, width))


EACH = pytest.mark.parametrize("seed", range(BATCHES))


@EACH
def test_ranges_are_ordered_and_never_pass_the_best_matmul_or_the_best_run(seed: int) -> None:
    setting, expectation, _ = batch(seed)
    low, mid, high = ends(expectation)
    assert np.all((low > 0) & (low <= mid) & (mid <= high) & (high <= expectation.cap))
    assert np.all(mid < expectation.cap)
    best = max(row.utilisation / reach(row.run.accelerator, row.width) for row in evidence("whole"))
    assert np.all(high <= best * reach(setting.accelerator, setting.width) * (1 + 1e-12))
    rates = [best_matmul(setting.accelerator, d).rate for d in ("bf16", "fp16", "fp8")]
    assert expectation.cap <= np.nanmax(rates) / base_peak(setting.accelerator) * (1 + 1e-12)
    if setting.width == "16-bit":
        assert expectation.cap < 1
    np.testing.assert_array_equal(expectation.capped, high >= expectation.cap)


@pytest.mark.sweep(8)
@EACH
def test_more_work_takes_more_and_slopes_stay_near_one(seed: int) -> None:
    """d ln days over d ln N and d ln D are between 0.5 and 1.5 at P10, P50 and P90, so hours rise throughout."""
    setting, _, rng = batch(seed)
    for name, most in (("params", MOST_PARAMS), ("tokens", MOST_TOKENS)):
        step = np.exp(rng.uniform(1e-3, 0.2, SIZE))
        value = np.minimum(getattr(setting, name), most / 1.3)
        base = replace(setting, **{name: value})
        before = expected_utilisation(base)
        more = replace(base, **{name: value * step})
        for here, there in zip(ends(before), ends(expected_utilisation(more)), strict=True):
            slope = np.log(hours_at(more, there) / hours_at(base, here)) / np.log(step)
            assert slope.min() > 0.5
            assert slope.max() < 1.5


@pytest.mark.sweep(8)
@EACH
def test_the_answer_is_continuous(seed: int) -> None:
    setting, expectation, _ = batch(seed)
    for name in ("params", "tokens"):
        for sign in (-1, 1):
            moved = replace(setting, **{name: np.maximum(getattr(setting, name) * (1 + sign * 1e-6), 1.0)})
            for here, there in zip(ends(expectation), ends(expected_utilisation(moved)), strict=True):
                assert np.abs(np.log(there / here)).max() < 1e-4


@settings(max_examples=60, deadline=None)
@given(
    params=st.floats(1, MOST_PARAMS),
    tokens=st.floats(1, MOST_TOKENS),
    name=st.sampled_from(NAMES),
    counts=st.tuples(st.floats(1, 1e7), st.floats(1, 1e7)),
    mixture=st.booleans(),
)
def test_more_accelerators_take_no_more_days_and_no_fewer_hours(
    params: float, tokens: float, name: str, counts: tuple[float, float], mixture: bool
) -> None:
    few, many = (
        expected_run(params=params, tokens=tokens, accelerator=name, accelerators=n, mixture=mixture)
        for n in sorted(counts)
    )
    for end in ("low", "mid", "high"):
        assert getattr(many.days, end) <= getattr(few.days, end)
        assert getattr(many.hours, end) >= getattr(few.hours, end) * (1 - 1e-12)
    assert few.days.mid * 24 * min(counts) == pytest.approx(few.hours.mid)
    assert few.hours.low == pytest.approx(
        6 * params * tokens / few.utilisation.high / base_peak(name) / 3600, rel=1e-12
    )


def test_arrays_and_numbers_agree() -> None:
    setting, expectation, _ = batch(0)
    for i in (0, 1, SIZE // 2, SIZE - 1):
        item = expected_utilisation(
            replace(setting, params=float(setting.params[i]), tokens=float(setting.tokens[i]), accelerators=8.0)  # type: ignore[index]
        )
        assert isinstance(item.mid, float)
        for whole, single in zip(ends(expectation), ends(item), strict=True):
            assert whole[i] == pytest.approx(float(single), rel=1e-12)
    grid = expected_utilisation(RunFeatures(np.ones((2, 1)) * 1e9, np.geomspace(1e9, 1e12, 3), "H100 SXM", 8))
    assert np.shape(grid.mid) == (2, 3)


@given(
    st.lists(st.tuples(st.floats(-3, 0), st.floats(0.01, 1)), min_size=2, max_size=40),
    st.sampled_from([0.1, 0.5, 0.9]),
)
def test_pulls_balance_to_the_last_digit(rows: list[tuple[float, float]], share: float) -> None:
    values, weights = (np.array(column) for column in zip(*rows, strict=True))
    (result,) = Balance.of(values).at(weights[None, :], share)
    gap = (result[0] - values) / DELTA
    pull = float(weights @ (np.clip(gap, -1, 1) + SLACK * gap) / weights.sum())
    assert pull == pytest.approx(2 * share - 1, abs=1e-11)
    assert values.min() - DELTA <= result[0] <= values.max() + DELTA


def test_a_mistaken_row_moves_the_level_little() -> None:
    values = np.array([-1.0, -1.1, -0.9, -1.05, -0.95])
    weights = np.ones((1, 6))
    result = [float(Balance.of(np.append(values, wrong)).at(weights, 0.5)[0][0]) for wrong in (-2.0, -10.0)]
    assert abs(result[0] - result[1]) < 0.2
    assert all(abs(level + 1.0) < 0.3 for level in result)


def test_a_labs_weights_share_their_root() -> None:
    labs = np.array([[1.0, 0.0]] * 4 + [[0.0, 1.0]])
    shared = shared_by_lab(np.ones((1, 5)), labs)
    assert shared[0, :4].sum() == pytest.approx(2.0)
    assert shared[0, 4] == pytest.approx(1.0)


def test_old_runs_count_less() -> None:
    fit = published_fit()
    years = np.array([row.run.year for row in fit.rows])
    assert set(fit.age[years >= RECENT]) == {1.0}
    assert (years < RECENT).any()
    assert fit.age[years < RECENT].max() <= 0.5


def test_a_chip_without_runs_is_expected_like_its_generation_and_less_surely() -> None:
    """Its level is that of its generation, as a share of its own best matmul, and its range is wider."""
    usual = RunFeatures(8e9, 2e12, "H100 SXM", 512)
    hopper = expected_utilisation(usual)
    stranger = expected_utilisation(replace(usual, accelerator="MI300X"))
    assert float(stranger.mid / stranger.cap) == pytest.approx(float(hopper.mid / hopper.cap), rel=0.05)
    assert stranger.mid < 0.75 * hopper.mid
    newer = expected_utilisation(replace(usual, accelerator="GB200"))
    width = [float(expectation.high / expectation.low) for expectation in (hopper, stranger, newer)]
    assert min(width[1:]) > 1.2 * width[0]
    far = expected_utilisation(replace(usual, params=MOST_PARAMS, tokens=1e15))
    assert far.mid / far.low > hopper.mid / hopper.low


def test_chips_compare_by_what_they_are() -> None:
    hours = {n: expected_run(params=8e9, tokens=15e12, accelerator=n, accelerators=512).hours.mid for n in NAMES}
    assert hours["H100 SXM"] < hours["MI300X"]
    assert hours["A100 SXM 80 GB"] < hours["L40S"] < hours["RTX 4090"]
    assert hours["B200"] < hours["H100 SXM"] < hours["A100 SXM 80 GB"] < hours["V100 SXM 32 GB"]


def test_narrow_products_gain_what_was_measured() -> None:
    """8 bits gain, by less than twice; where the chip has no such rate nothing changes; 4 bits count as 8."""
    assert 1.05 < narrow_gain() < 2
    usual = RunFeatures(37e9, 14.8e12, "H100 SXM", 2048, mixture=True)
    hours = [float(expected_utilisation(replace(usual, width=w)).mid) for w in WIDTHS]  # type: ignore[arg-type]
    assert hours[0] < hours[1] == hours[2] < 2 * hours[0]
    old = replace(usual, accelerator="A100 SXM 80 GB")
    assert expected_utilisation(old) == expected_utilisation(replace(old, width="8-bit"))


def test_a_range_at_the_cap_says_so() -> None:
    """Few tokens for its size, which nobody trains on this chip: 79 % without a cap. The best run is on A100."""
    best = max(row.utilisation for row in evidence("whole"))
    expectation = expected_utilisation(RunFeatures(175e9, 3e11, "H100 SXM", 1024))
    assert expectation.capped
    assert expectation.high == expectation.cap == pytest.approx(best * (794.5 / 989.4) / (271.2 / 312))
    assert not expected_utilisation(RunFeatures(8e9, 2e12, "H100 SXM", 512)).capped


@pytest.mark.parametrize(("by", "error", "inside", "ratio"), [("model", 0.18, 0.83, 2.4), ("lab", 0.22, 0.77, 2.4)])
def test_whole_runs_are_predicted_from_the_others(by: str, error: float, inside: float, ratio: float) -> None:
    result = score(by)  # type: ignore[arg-type]
    assert result.runs == len(evidence("whole"))
    assert result.error <= error
    assert result.inside >= inside
    assert result.ratio <= ratio
    errors = [prediction.hours.mid / prediction.published - 1 for prediction in predictions(by)]  # type: ignore[arg-type]
    assert result.error == pytest.approx(float(np.median(np.abs(errors))))


def test_a_prediction_never_saw_what_it_predicts() -> None:
    """However long a run is said to have taken, what is predicted of it stays the same."""
    rows = evidence("whole")
    by_name = {prediction.run.model: prediction for prediction in predictions("lab")}
    for row in rows[::7]:
        others = [r for r in rows if not same_lab(r.run, row.run) and not same_model(r.run, row.run)]
        setting = RunFeatures(row.run.params, row.run.tokens, row.run.accelerator, 1, row.experts, row.width)
        assert expected_utilisation(setting, fit_of(others)).mid == pytest.approx(
            by_name[row.run.model].utilisation.mid
        )
        assert by_name[row.run.model].published == pytest.approx(
            6 * row.run.params * row.run.tokens / row.utilisation / base_peak(row.run.accelerator) / 3600
        )


def test_most_runs_of_a_family_of_chips_left_out_lie_inside() -> None:
    """What a chip nobody trained on would have been promised: two thirds of each family, four fifths of both."""
    rows = evidence("whole")
    inside: dict[str, list[bool]] = {}
    for family in ("A100", "Hopper"):
        fit = fit_of([row for row in rows if row.family != family])
        for row in rows:
            if row.family == family:
                run = row.run
                expectation = expected_utilisation(
                    RunFeatures(run.params, run.tokens, run.accelerator, 1, row.experts, row.width), fit
                )
                inside.setdefault(family, []).append(bool(expectation.low <= row.utilisation <= expectation.high))
    assert all(np.mean(each) > 2 / 3 for each in inside.values())
    assert np.mean([holds for each in inside.values() for holds in each]) >= 0.8


def test_nearest_runs() -> None:
    rows = nearest_runs(RunFeatures(70e9, 15e12, "H100 SXM", 1024))
    assert len(rows) == 9
    assert [n.share for n in rows] == sorted((n.share for n in rows), reverse=True)
    assert "Llama-3 70B" in {n.evidence.run.model for n in rows}
    whole = nearest_runs(RunFeatures(70e9, 15e12, "H100 SXM", 1024), most=1000)
    assert len(whole) == len(evidence("whole"))
    assert sum(n.share for n in whole) == pytest.approx(1)
    same = min(whole, key=lambda n: n.distance)
    assert same.evidence.run.model.startswith("Llama-3")
    assert "same kind" in same.text
    old = next(n for n in whole if n.evidence.run.accelerator == "TPU v3")
    assert "two chip generations older" in old.text
    assert "4 × the parameters" in old.text
    mixed = next(n for n in whole if n.evidence.run.model == "DeepSeek-V3")
    assert mixed.parts[-2:] == ("a mixture of experts", "8-bit products")


def test_plans_beyond_all_published_runs_are_said_to_be() -> None:
    usual = RunFeatures(70e9, 15e12, "H100 SXM", 1024)
    assert beyond_evidence(usual) == ()
    for changed, numbers in (
        ({"accelerators": 1e6}, ("1M", "16,384", "Llama-3.1 405B")),
        ({"tokens": 1e14}, ("100T", "40T", "Llama-4 Scout")),
        ({"params": 1e13}, ("10T", "405.9B", "Llama-3.1 405B")),
        ({"accelerator": "MI300X"}, ("No published run used MI300X", "H100 SXM")),
        ({"accelerator": "H200 SXM"}, ("No published run used H200 SXM", "H100 SXM")),
        ({"accelerator": "GB200"}, ("GB200", "generation")),
        ({"width": "4-bit"}, ("4-bit",)),
    ):
        (text,) = beyond_evidence(replace(usual, **changed))  # type: ignore[arg-type]
        assert all(number in text for number in numbers), text
    assert len(beyond_evidence(replace(usual, accelerator="RTX 4090"))) == 2
    assert len(beyond_evidence(RunFeatures(1e13, 1e15, "MI300X", 1e6, mixture=True, width="4-bit"))) == 5


@pytest.mark.parametrize("size", [(70e9, 15e12), (175e9, 3e11)], ids=["within", "at the cap"])
def test_the_derivation_ends_at_the_answer(size: tuple[float, float]) -> None:
    setting = RunFeatures(*size, "MI300X", 1024)
    expectation = expected_utilisation(setting)
    explanations = explain_expectation(setting)
    assert 4 <= len(explanations) <= 8
    values = [explanation.value for explanation in explanations]
    for end in (expectation.low, expectation.mid, expectation.high):
        assert any(value == pytest.approx(float(end), rel=1e-9) for value in values)
    assert similarity(0.0) > similarity(1.0) > similarity(9.0) > 0.01
    assert end_of_range(0.3, 0.0) == pytest.approx(0.3)


@every("bad", [0.0, -1.0, math.nan, math.inf])
@every("name", ["params", "tokens", "accelerators"])
def test_impossible_runs_are_refused(name: str, bad: float) -> None:
    numbers = {"params": 8e9, "tokens": 1e12, "accelerators": 8.0, name: bad}
    with pytest.raises(BudgetError, match="For example"):
        expected_run(accelerator="H100 SXM", **numbers)
    with pytest.raises(KeyError):
        expected_run(params=8e9, tokens=1e12, accelerators=8, accelerator="Z9000")


def test_it_is_fast() -> None:
    """A number in well under a millisecond, and both scores in a second, by the time of the processor."""
    expected_run(params=8e9, tokens=1e12, accelerator="H100 SXM", accelerators=8)
    start = time.process_time()
    for i in range(100):
        expected_run(params=8e9 + i, tokens=1e12, accelerator="H100 SXM", accelerators=8)
    assert (time.process_time() - start) / 100 < 2e-3
    for cached in (predictions, score):
        cached.cache_clear()
    start = time.process_time()
    score("model"), score("lab")
    assert time.process_time() - start < 2


def test_every_row_knows_its_chip() -> None:
    assert all(find(row.run.accelerator).family == row.family for row in published_fit().rows)
