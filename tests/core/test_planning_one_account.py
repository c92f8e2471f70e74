"""One plan, one account: whatever is asked, on every page, bytes, verdict and checkpoint are the same."""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace

import pytest

from core.budget.equations import BudgetError, Interval
from core.hardware.accelerators import Accelerator, accelerators
from core.hardware.cluster import Rates
from core.models.catalog import CATALOG, catalog
from core.planning.actuals.log import parse_log
from core.planning.actuals.progress import progress
from core.planning.comparison.comparison import QUANTITY, compare_plan, result
from core.planning.comparison.entry import Entry, entry_of, results_of
from core.planning.decide.decision import DECIDE_FORM, decide
from core.planning.estimate import estimate, timed_estimate
from core.planning.form.layout import OWN_LAYOUT_FIELDS
from core.planning.form.links import link_texts, solved_texts
from core.planning.form.plan_form import PLAN_FORM, plan_from, plan_of
from core.planning.largest_model import largest
from core.planning.layout import search_request
from core.planning.measured import CarriedRates, rates_of
from core.planning.memory_estimate import memory_estimate
from core.planning.plan import FINDS, TYPED, Plan, Within
from core.planning.plan_limits import all_checks
from core.planning.presets import MEMORY_PRESETS
from core.planning.sensitivity import cluster_results
from core.planning.sweep.axes import AXES
from core.planning.sweep.sweep import SweptAxis, sweep_plan
from core.serving.serving import serving
from core.training.activations.tensors import IMPLEMENTATIONS
from core.training.layout import RECOMPUTES, LayoutError
from core.training.optimizers import optimizers
from core.training.precision import POLICIES
from core.training.trained import EVERYTHING
from core.views.actuals.text import example
from core.views.plan import text, text_memory
from core.views.report.rows import plan_rows, step_rows
from core.views.sweep import text as sweep_text
from tests.core.test_planning_expectation import crowded
from tests.every import every

COUNT = 250
NINETY = Within(90.0)


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
        "off": draw.choice(["optimizer", "none"]),
        "hsdp": draw.choice(["", "", "2"]),
        "r16": draw.choice(["", f"{draw.randint(50, 3000)} TFLOP/s"]),
        "rmem": draw.choice(["", f"{draw.randint(500, 9000)} GB/s"]),
        "rof": draw.choice(["", "H100 80GB HBM3, 22 Nov 2026"]),
    }


@every("device", accelerators(), ids=lambda device: device.name)
def test_an_accelerator_has_one_memory_capacity_whatever_is_asked(device: Accelerator) -> None:
    """Whatever is trained, searched, limited, compared, swept or served, and for the largest model."""
    capacity = set[float]()
    for method in ("everything", "adapters"):
        texts = {"model": "Llama 3.2 1B", "gpu": device.name, "count": "8", "ft": method}
        texts = PLAN_FORM.parse({**texts, "lay": "fastest"}).texts
        plan = plan_from(texts)
        a, h = estimate(plan), memory_estimate(plan)
        (check,) = (check for check in all_checks(a) if check.id == "memory")
        capacity |= {h.usable, a.memory.usable, h.setup.memory, search_request(plan).usable}
        capacity |= {
            round(check.limit / (1 - plan.limits.free)),
            largest(replace(plan, trained=EVERYTHING)).memory.usable,
        }
        capacity |= {result(compare_plan(Entry("plan", texts)), QUANTITY["usable_bytes"]).mid}
        capacity |= {serving(h.spec, plan.device).device.memory_bytes}
        sides = (SweptAxis(AXES[name], (value,)) for name, value in (("MFU", "published"), ("price", "2")))
        capacity |= {float(sweep_plan(texts, *sides, NINETY)["usable"][0, 0])}
    assert capacity == {device.memory_bytes}


def test_compute_and_training_memory_have_one_account() -> None:
    draw = random.Random(12)
    met = {"fits": 0, "over": 0, "refused": 0}
    for _ in range(COUNT):
        reading = PLAN_FORM.parse(texts_of(draw))
        plan = plan_of(reading)
        try:
            a = estimate(plan)
        except BudgetError:
            continue
        there = plan_of(PLAN_FORM.parse(link_texts(reading.texts, a)))
        try:
            here = memory_estimate(there)
        except LayoutError:
            assert getattr(text.does_not_fit(a), "id", "") == "plan.notice.invalid_layout"
            met["refused"] += 1
            continue
        assert there.measured == plan.measured
        assert rates_of(there) == rates_of(plan)
        held = a.memory
        rel = 1e-6 if plan.find in ("parameters", "accelerators") else 1e-12  # what was found is carried in digits
        assert held.layout == here.layout
        assert held.total == pytest.approx(here.total, rel=rel)
        assert float(held.device_memory.states) == pytest.approx(float(here.device_memory.states), rel=rel)
        assert float(a.interruptions.checkpoint) == pytest.approx(here.checkpoint, rel=rel)
        lines = {line.key: line.value for line in plan_rows(a)}
        assert lines["memory_bytes"] == held.total
        assert lines["model_states"] == float(held.device_memory.states)
        assert lines["checkpoint"] == pytest.approx(here.checkpoint, rel=rel)
        over = text_memory.sentence(here).id == "memory.headline.over"
        assert bool(text.does_not_fit(a)) == (here.fits == "over") == over
        met[here.fits] += 1
    assert min(met.values()) >= 20, met


def test_measured_rates_change_no_answer_where_the_mfu_is_typed() -> None:
    """Days, dollars and bytes then follow from MFU and layout, on every page alike, whatever was measured."""
    draw = random.Random(4)
    message = 0
    for _ in range(COUNT // 10):
        plan = replace(
            plan_of(PLAN_FORM.parse(texts_of(draw) | {"lay": "own"})),
            find="time",
            mfu=Interval.point(0.3),
            mfu_kind="steady steps",
        )
        with contextlib.suppress(BudgetError):
            a, b = estimate(plan), estimate(replace(plan, measured=CarriedRates()))
            if a.terms.has_step_estimate != b.terms.has_step_estimate:
                continue  # rates that nobody else knows time its steps
            assert repr(a.middle) == repr(b.middle)
            assert text.headline(a) == text.headline(b)
            assert all(text.mfu_text(a).values[name] == text.mfu_text(b).values[name] for name in ("steps", "mfu"))
            measured = [line for line in plan_rows(a) if line.key.startswith("measured_")]
            assert repr([line for line in plan_rows(a) if line not in measured]) == repr(list(plan_rows(b)))
            assert {line.value for line in measured} == {rate for _, rate in (rates_of(plan) or Rates()).known}
            message += bool(measured)
    assert message >= 5


@pytest.mark.sweep(2)
@pytest.mark.parametrize("seed", range(5))
def test_no_run_is_faster_than_its_steps(seed: int) -> None:
    """In time and MFU, at each end of the range: published runs or a typed MFU, however high, and long sequences."""
    draw = random.Random(5 + seed)
    met = {"published": 0, "slower": 0, "faster": 0}
    for _ in range(2 * COUNT // 5):
        texts = texts_of(draw) | {
            "lay": draw.choice(["fastest", "own"]),
            "mfu": draw.choice(["published", "9%", "70%"]),
        }
        plan = plan_of(PLAN_FORM.parse(texts | {"pace": draw.choice(["all hours", "steady steps"])}))
        try:
            a = estimate(plan)
        except BudgetError:
            continue
        for end in (a.low, a.middle, a.high):
            assert end.mfu <= end.steps_mfu * (1 + 1e-12), plan
            assert end.steps_days <= end.days * (1 + 1e-12), plan
            assert end.steps_mfu == pytest.approx(end.mfu_while_training) or end.steps_mfu > end.mfu_while_training
        kind = (
            "published" if a.plan.expects_mfu else "faster" if a.middle.steps_mfu > a.layout_mfu * 1.001 else "slower"
        )
        met[kind] += 1
    assert min(met.values()) >= 4, met


@pytest.mark.parametrize("pace", ["all hours", "steady steps"])
def test_a_typed_mfu_decides_the_days_in_the_same_words_on_every_page(pace: str) -> None:
    plan = plan_from({"model": "Llama 3.1 70B", "count": "1,024", "mfu": "30%", "pace": pace})
    a = estimate(plan)
    at = timed_estimate(plan)
    assert text.headline(a).values["days"] == a.middle.days
    assert a.layout_days == pytest.approx(at.days_of_steps(at.step.seconds))
    assert text.times_text(a).values["steps"] == text.steps_time(a).values["days"] == a.layout_days
    assert text.days_basis(a)
    assert sweep_text.plan_text(a).values["result"].values["days"] == a.middle.days


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
        assert fits(everything.memory.plan)
        assert text_memory.holding(everything).values["parameters"] == everything.parameters
        typed = {"model": TYPED, "n": text_memory.typed(everything), "find": "time"}
        size = PLAN_FORM.parse(typed).values["n"]
        assert size == everything.parameters
        next_one = size + 10 ** max(0, len(f"{size:.0f}") - 4)
        if next_one <= 1.1 * alone.parameters:
            assert not fits(replace(everything.memory.plan, parameters=next_one))
        tried += 1
    assert tried >= 15


def fits(plan: Plan) -> bool:
    """Whether a plan can be laid out, fits, and leaves what it keeps free."""
    try:
        h = memory_estimate(plan)
        return h.fits == "fits" and not h.lacks
    except LayoutError:
        return False


def test_the_loss_of_a_plan_is_written_as_its_layers_are_unless_it_says_otherwise() -> None:
    def loss(**texts: str) -> str:
        return plan_of(PLAN_FORM.parse(texts)).runtime_options.loss

    for name, how in IMPLEMENTATIONS.items():
        assert loss(impl=name) == how.loss
        assert (loss(impl=name, loss="separate"), loss(impl=name, loss="fused")) == ("separate", "fused")
    assert loss() == Plan().runtime_options.loss == "fused"
    assert loss(impl="Hugging Face SDPA") == "separate"


@pytest.mark.sweep(5)
@pytest.mark.parametrize("seed", range(200))
def test_one_plan_has_one_number_wherever_it_is_asked(seed: int) -> None:
    """Six plans a seed: alone, in a comparison, in a decision, in the sentence of every page, and in what is kept."""
    draw = random.Random(9000 + seed)
    for reading in [PLAN_FORM.parse({**texts_of(draw), "find": "time"}) for _ in range(6)]:
        plan = plan_of(reading)
        try:
            a = estimate(plan)
        except BudgetError:
            continue
        days = a.middle.days
        compared = compare_plan(Entry("plan", reading.texts))
        for name, value in (("days", days), ("steps_days", a.middle.steps_days)):
            assert result(compared, QUANTITY[name]).mid == pytest.approx(value, rel=1e-12)
        assert results_of(a)["days"] == days
        lines = {line.key: line.value for line in plan_rows(a)}
        assert lines["steps_days"] == a.middle.steps_days
        headline = text.headline(a)
        answer = headline.values.get("headline", headline)  # of an impossible plan it says so behind it
        assert text.times_text(a).values["days"] == answer.values["days"] == days
        cell = decide(DECIDE_FORM.parse(reading.texts)).matrix.at(0, 0).answer
        assert cell
        assert cell.middle == a.middle


def laid_texts(draw: random.Random) -> dict[str, str]:
    """A plan at random whose steps are timed: layouts of its own, odd counts, long sequences, mixtures."""
    texts = {
        "model": draw.choice([TYPED, TYPED, *(model.name for model in catalog() if model.laid_out)]),
        "n": f"{10 ** draw.uniform(8.5, 12):.0f}",
        "tokens": f"{10 ** draw.uniform(9, 13.5):.0f}",
        "gpu": draw.choice(["H100 SXM", "H200 SXM", "A100 SXM 80 GB", "B200"]),
        "count": f"{draw.choice([2 ** draw.randint(0, 14), draw.randint(1, 400), draw.randint(100, 20_000)])}",
        "seq": f"{2 ** draw.randint(11, 17)}",
        "gb": draw.choice(["16M tokens", "4M tokens", "1,000", "7", "3.3M tokens"]),
        "free": draw.choice(["8%", "0%", "30%"]),
        "price": "2-3",
    }
    if draw.random() < 0.5:
        power = draw.choice
        texts |= {"lay": "own", "zero": str(draw.randint(0, 3)), "rc": draw.choice(list(RECOMPUTES))}
        texts |= {"tp": power("1248"), "pp": power("1124"), "cp": power("112"), "mbs": power("1124")}
    return texts


@pytest.mark.sweep(5)
@pytest.mark.parametrize("seed", range(250))
def test_one_layout_has_one_step_days_and_memory_wherever_it_is_asked(seed: int) -> None:
    """Twenty plans a seed: the layout that days rest on is the one whose step, memory, MFU and dollars pages say."""
    draw = random.Random(40_000 + seed)
    seen, sized = 0, False
    for _ in range(20):
        reading = PLAN_FORM.parse(laid_texts(draw))
        plan = plan_of(reading)
        try:
            a, h = estimate(plan), memory_estimate(plan)
        except (BudgetError, LayoutError):
            continue  # both, or nothing: next test
        seen += 1
        at = timed_estimate(plan)
        assert a.memory.layout == h.layout == at.step.layout
        count = int(plan.accelerators)
        assert at.idle == count - int(h.layout.accelerators) >= 0
        assert at.step.seconds > 0
        assert a.memory.total == h.total == pytest.approx(float(at.step.memory.total), rel=1e-9)
        assert at.days_of_steps(at.step.seconds) == pytest.approx(a.middle.steps_days, rel=1e-9)
        close = 1e-9 if plan.catalog_model else 1e-3  # a stand-in has nearly as many parameters
        assert at.request.by_6n(at.step.mfu) == pytest.approx(text.by_6n(a), rel=close)
        (held,) = [check for check in all_checks(a) if check.id == "memory"]
        assert held.value == h.total
        assert results_of(a)["memory_bytes"] == h.total
        lines = {line.key: line.value for line in (*plan_rows(a), *step_rows(at))}
        assert lines["memory_bytes"] == h.total
        assert lines["layout_time"] == pytest.approx(86400 * a.middle.steps_days, rel=1e-9)
        compared = compare_plan(Entry("plan", reading.texts))
        assert compared.memory is not None
        assert compared.memory.layout == h.layout
        assert result(compared, QUANTITY["days"]).mid == a.middle.days
        assert [n.values["idle"] for n in text.cautions(a) if n.id == "plan.notice.idle"] == [at.idle] * (at.idle > 0)
        assert text_memory.sentence(h).values["where"].values.get("idle", 0) == at.idle
        if h.fits == "fits" and not sized:  # which searches for every size: one of each seed
            sized = True
            (here,) = [size for size in cluster_results(plan) if size.accelerators == count]
            assert (here.layout, here.answer.middle.days, here.answer.dollars) == (h.layout, a.middle.days, a.dollars)
        sides = (SweptAxis(AXES[name], (value,)) for name, value in (("MFU", "published"), ("price", "2")))
        (cell,) = sweep_plan(reading.texts, *sides, NINETY)["memory"]
        assert cell[0] == pytest.approx(h.total, rel=1e-9)
    assert seen >= 5


@pytest.mark.sweep(5)
@pytest.mark.parametrize("seed", range(100))
def test_more_is_never_slower_and_no_layout_of_ones_own_beats_the_fastest(seed: int) -> None:
    draw = random.Random(70_000 + seed)
    compared = 0
    for _ in range(20):
        texts = laid_texts(draw)
        plan = plan_of(PLAN_FORM.parse(texts))
        with contextlib.suppress(BudgetError):
            days = estimate(plan).middle.days
            more = replace(plan, accelerators=float(int(plan.accelerators * draw.uniform(1, 3)) + 1))
            there = estimate(more)
            assert there.middle.days <= days * (1 + (0.05 if crowded(there) else 1e-9))
            assert estimate(replace(plan, tokens=2 * plan.tokens)).middle.days >= days
        own = {"lay": "own", "zero": draw.choice("13"), "rc": draw.choice(["none", "selective", "full"])}
        own |= {"tp": draw.choice("1248"), "pp": draw.choice("124"), "mbs": draw.choice("124"), "free": "8%"}
        own |= {"gb": "1024", "count": f"{2 ** draw.randint(3, 10)}", "sp": "true", "cp": "1", "model": "Llama 3 70B"}
        own |= {"model": draw.choice(["Llama 3 70B", "Llama 3.1 8B", "Mixtral 8x7B"])}
        if own["tp"] == "1":
            own["sp"] = "false"
        plan = plan_of(PLAN_FORM.parse({**texts, **own}))
        try:
            mine = estimate(plan)
            if mine.memory.room < 0 or mine.memory.layout.accelerators < plan.accelerators:
                continue
        except (BudgetError, LayoutError):
            continue
        fastest = estimate(replace(plan, own_layout=False))
        assert mine.middle.steps_days >= fastest.middle.steps_days * (1 - 1e-9), texts | own
        compared += 1
    assert compared


def test_old_texts_have_the_layout_that_they_were_about() -> None:
    """What leaves the layout as it began means the fastest; what typed any of it, or trains a part, means that one."""

    def own(texts: dict[str, str]) -> bool:
        return plan_of(PLAN_FORM.parse(texts)).own_layout

    begun = {field.id: field.default for field in OWN_LAYOUT_FIELDS}
    assert not own({})
    assert not own({"n": "8B", **begun})
    assert own({**begun, "tp": "8"})
    assert own({"ft": "adapters"})
    assert not own({"ft": "adapters", "lay": "fastest"})
    assert not own({"tp": "8", "lay": "fastest"})
    assert not own({"tp": "8", "look": "best found"})
    assert own({"look": "own layout"})
    texts, said = PLAN_FORM.from_address({"v": ("4",), "p_tp": ("8",), "p_n": ("8B",)})
    assert (texts["lay"], said) == ("own", ())
    assert entry_of("old", {"tp": "8"}).texts["lay"] == "own"


def test_a_layout_of_ones_own_moves_days_and_one_that_cannot_be_has_none() -> None:
    texts = {"model": "Llama 3.3 70B", "count": "512"}
    fastest, own = (estimate(plan_from({**texts, **more})) for more in ({}, {"tp": "8"}))
    assert own.middle.days > 1.2 * fastest.middle.days
    assert own.middle.dollars > 1.2 * fastest.middle.dollars
    with pytest.raises(BudgetError, match=r"tensor = 3, but it must divide the 64 query heads. Use 2"):
        estimate(plan_from({**texts, "tp": "3"}))
    with pytest.raises(BudgetError, match=r"640 .* 512 "):
        estimate(plan_from({**texts, "tp": "8", "pp": "80"}))


def test_layouts_of_counts_that_do_not_divide_have_idle_accelerators() -> None:
    for count in (250, 300):
        a = estimate(plan_from({"model": "Llama 3.3 70B", "gpu": "H200 SXM", "count": f"{count}"}))
        assert count - 8 <= a.memory.layout.accelerators <= count
        fewer = estimate(plan_from({"model": "Llama 3.3 70B", "gpu": "H200 SXM", "count": f"{count - 40}"}))
        assert a.middle.days < fewer.middle.days


@pytest.mark.parametrize(
    "texts",
    [
        {"model": "Llama 3.3 70B", "tokens": "3.5T"},
        {"model": "Qwen3 30B-A3B", "gpu": "H200 SXM"},
        {"n": "70B", "tokens": "4T", "tp": "8", "pp": "4"},
        {"model": "DeepSeek-V3", "tokens": "3T", "gb": "64M tokens", "tp": "8", "pp": "8", "ep": "64", "zero": "1"},
    ],
)
def test_accelerators_that_are_asked_for_are_one_number(texts: dict[str, str]) -> None:
    """The sentence, the table, a comparison, what is stored and carried on, the layout, its memory, the job's log."""
    plan = plan_from({**texts, "find": "accelerators", "within": "90 days", "until": "91 days", "spend": "$9M"})
    a = estimate(plan)
    (line,) = (line for line in plan_rows(a) if line.key == "accelerators")
    assert text.headline(a).values["accelerators"] == a.count
    found = {a.count, line.value, QUANTITY["accelerators"].of(a, None).mid, results_of(a)["accelerators"]}
    found |= {int(solved_texts(a)["count"].replace(",", "")), a.memory.plan.accelerators}
    found |= {timed_estimate(plan).whole.accelerators}
    assert len(found) == 1
    there = estimate(replace(plan, find="time", accelerators=float(a.count)))
    assert a.middle == there.middle
    assert all_checks(a) == all_checks(there)
    assert text.times_text(a) == text.times_text(there)
    assert a.middle.days <= 90
    if plan.own_layout:
        assert a.count == int(a.memory.layout.accelerators)
    assert progress(parse_log(example(a)), a)


def test_one_accelerator_is_found_where_more_of_them_are_no_faster() -> None:
    """A fine-tuning on one desktop: the table of its throughput is flat, and a part of one would be enough."""
    plan = plan_from({**MEMORY_PRESETS["QLoRA 8B on 24 GB"], "find": "accelerators", "within": "90 days"})
    for device in ("M2 Ultra 192 GB", "H100 SXM", "RTX 4090"):
        a = estimate(replace(plan, accelerator=device))
        assert a.middle.accelerators == a.count == 1
        assert 0 < a.middle.days < 90
