"""One plan, one account: whatever is asked, on every page, bytes, verdict and checkpoint are the same."""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from datetime import date

import pytest

from core.budget.errors import BudgetError
from core.budget.interval import Interval
from core.hardware.accelerators import accelerators
from core.hardware.rates import Rates
from core.models.catalog import CATALOG
from core.planning.calendar.schedule import Fleet, Run, schedule
from core.planning.comparison.comparison import QUANTITY, compare_plan, result
from core.planning.comparison.entry import Entry, results_of
from core.planning.evaluation import answer, evaluate
from core.planning.form.plan_form import PLAN_FORM, link_texts, plan_of
from core.planning.largest_model import largest
from core.planning.memory_estimate import memory_estimate
from core.planning.plan import FINDS, TYPED, CarriedRates, Plan, whole_accelerators
from core.planning.rates import rates_of
from core.training.activations.tensors import IMPLEMENTATIONS
from core.training.layout import RECOMPUTES, LayoutError
from core.training.optimizers import optimizers
from core.training.precision import POLICIES
from core.units import format_duration
from core.views.plan import text, text_memory
from core.views.report.plan_table import plan_lines

COUNT = 250


def texts_of(draw: random.Random) -> dict[str, str]:
    """A plan at random, as texts: any question, model, accelerator, optimizer, precision and layout."""
    power = draw.choice
    return {
        "find": draw.choice(FINDS),
        "within": draw.choice(["90 days", "3 months", "$20M"]),
        "model": draw.choice([TYPED, TYPED, *CATALOG]),
        "n": f"{10 ** draw.uniform(7.5, 12.5):.0f}",
        "tokens": f"{10 ** draw.uniform(9, 13.5):.0f}",
        "gpu": draw.choice(accelerators()).name,
        "count": f"{2 ** draw.randint(0, 14)}",
        "mfu": draw.choice(["published", "40%", "30-45%"]),
        "seq": str(2 ** draw.randint(9, 16)),
        "opt": draw.choice(list(optimizers())),
        "prec": draw.choice(list(POLICIES)),
        "zero": str(draw.randint(0, 3)),
        "rc": draw.choice(list(RECOMPUTES)),
        "mbs": str(2 ** draw.randint(0, 3)),
        "tp": str(power([1, 1, 2, 8])),
        "pp": str(power([1, 1, 1, 2, 4])),
        "cp": str(power([1, 1, 1, 2])),
        "off": draw.choice(["true", "false"]),
        "hsdp": draw.choice(["", "", "2"]),
        "r16": draw.choice(["", f"{draw.randint(50, 3000)} TFLOP/s"]),
        "rmem": draw.choice(["", f"{draw.randint(500, 9000)} GB/s"]),
        "rof": draw.choice(["", "H100 80GB HBM3, 22 Nov 2026"]),
    }


def test_compute_and_training_memory_have_one_account() -> None:
    draw = random.Random(12)
    met = {"fits": 0, "over": 0, "refused": 0}
    for _ in range(COUNT):
        reading = PLAN_FORM.parse(texts_of(draw))
        plan = plan_of(reading)
        try:
            a = answer(plan)
        except BudgetError:
            continue
        there = plan_of(PLAN_FORM.parse(link_texts(reading.texts, a)))
        try:
            here = memory_estimate(there)
        except LayoutError:
            assert "cannot be laid out" in text.memory(a)
            met["refused"] += 1
            continue
        assert there.measured == plan.measured
        assert rates_of(there) == rates_of(plan)
        estimate = a.memory
        rel = 1e-6 if plan.find in ("parameters", "accelerators") else 1e-12  # what was found is carried in digits
        assert estimate.layout == here.layout
        assert estimate.total == pytest.approx(here.total, rel=rel)
        assert float(estimate.device_memory.states) == pytest.approx(float(here.device_memory.states), rel=rel)
        assert float(a.interruptions.checkpoint) == pytest.approx(here.checkpoint, rel=rel)
        lines = {line.name: line.value for line in plan_lines(a)}
        assert lines["all that one accelerator holds"] == estimate.total
        assert lines["model states on one accelerator"] == float(estimate.device_memory.states)
        assert lines["checkpoint"] == pytest.approx(here.checkpoint, rel=rel)
        assert bool(text.memory(a)) == (here.states_fit == "over")
        message = text_memory.sentence(here).replace("**", "")
        assert bool(text.memory(a) or text.tight(a)) == (here.fits == "over") == ("not fit" in message)
        met[here.fits] += 1
    assert min(met.values()) >= 20, met


def test_measured_rates_change_no_answer_where_the_mfu_is_typed() -> None:
    """Days, dollars and bytes then follow from MFU and layout, on every page alike, whatever was measured."""
    draw = random.Random(4)
    message = 0
    for _ in range(COUNT // 10):
        plan = replace(
            plan_of(PLAN_FORM.parse(texts_of(draw))), find="time", mfu=Interval.point(0.3), pace="steady steps"
        )
        with contextlib.suppress(BudgetError):
            a, b = answer(plan), answer(replace(plan, measured=CarriedRates()))
            assert repr(a.middle) == repr(b.middle)
            assert (text.sentence(a), text.assumptions(a)) == (text.sentence(b), text.assumptions(b))
            measured = [line for line in plan_lines(a) if line.name.startswith("measured, ")]
            assert repr([line for line in plan_lines(a) if line not in measured]) == repr(list(plan_lines(b)))
            assert {line.value for line in measured} == {rate for _, rate in (rates_of(plan) or Rates()).known}
            message += bool(measured)
    assert message >= 5


def test_the_largest_model_fits_and_a_slightly_larger_one_does_not() -> None:
    draw = random.Random(7)
    tried = 0
    for _ in range(COUNT // 8):
        plan = plan_of(PLAN_FORM.parse(texts_of(draw)))
        try:
            everything, alone = largest(plan), largest(plan, "model states alone")
        except LayoutError:
            continue
        if not everything.parameters >= 1:
            continue
        assert everything.parameters <= 1.1 * alone.parameters
        assert everything.memory.fits == "fits"
        assert text_memory.typed(everything) in text_memory.holding(everything).replace(" ", "")
        typed = {"model": TYPED, "n": text_memory.typed(everything), "find": "time"}
        size = PLAN_FORM.parse(typed).values["n"]
        assert size == everything.parameters
        next_one = size + 10 ** max(0, len(f"{size:.0f}") - 4)
        if next_one <= 1.1 * alone.parameters:
            assert not fits(replace(everything.memory.plan, parameters=next_one))
        tried += 1
    assert tried >= 15


def fits(plan: Plan) -> bool:
    """Whether a plan can be laid out, and fits."""
    try:
        return memory_estimate(plan).fits == "fits"
    except LayoutError:
        return False


def test_the_loss_of_a_plan_is_written_as_its_layers_are_unless_it_says_otherwise() -> None:
    def loss(**texts: str) -> str:
        return plan_of(PLAN_FORM.parse(texts)).compute_options.loss

    for name, how in IMPLEMENTATIONS.items():
        assert loss(impl=name) == how.loss
        assert (loss(impl=name, loss="separate"), loss(impl=name, loss="fused")) == ("separate", "fused")
    assert loss() == Plan().compute_options.loss == "fused"
    assert loss(impl="Hugging Face SDPA") == "separate"


@pytest.mark.sweep(10)
@pytest.mark.parametrize("seed", range(200))
def test_one_plan_has_one_number_wherever_it_is_asked(seed: int) -> None:
    """Six plans a seed: alone, among others, in a comparison, as a calendar, in the sentence of every page, and in
    what is kept. Three kinds of two numbers of tokens by turns, so that what is worked out together is put in order."""
    draw = random.Random(9000 + seed)
    kinds = [{**texts_of(draw), "find": "time"} for _ in range(3)]
    forms = [PLAN_FORM.parse({**kind, "tokens": f"{10 ** draw.uniform(9, 13.5):.0f}"}) for kind in (*kinds, *kinds)]
    plans = [plan_of(reading) for reading in forms]
    together = evaluate(plans)
    for i in range(6):
        if together.problems[i]:
            continue
        a = answer(plans[i])
        days = a.middle.days
        assert together.middle("days")[i] == pytest.approx(days, rel=1e-12)
        assert together.middle("steps_days")[i] == pytest.approx(a.middle.steps_days, rel=1e-12)
        compared = compare_plan(Entry("plan", forms[i].texts))
        for name, value in (("days", days), ("steps_days", a.middle.steps_days)):
            assert result(compared, QUANTITY[name]).mid == pytest.approx(value, rel=1e-12)
        assert results_of(a)["days"] == days
        lines = {line.name: line.value for line in plan_lines(a)}
        assert lines["days of the steps alone"] == a.middle.steps_days
        assert format_duration(86400 * days, 3) in text.steps_and_whole(a)
        assert format_duration(86400 * days, 3) in text.sentence(a).replace("**", "")
        whole = replace(plans[i], accelerators=float(whole_accelerators(plans[i].accelerators)))
        with contextlib.suppress(BudgetError):
            fleet = Fleet(whole.accelerator, int(whole.accelerators))
            (run,) = schedule(fleet, [Run("run", whole)], date(2027, 1, 4)).runs
            assert run.answer.middle.days == answer(whole).middle.days
