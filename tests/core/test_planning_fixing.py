"""What would make a plan fit: every change does what it says, the cheapest first, and the way there adds up."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from core.budget.equations import BudgetError
from core.messages import Message
from core.planning.estimate import estimate, timed_estimate
from core.planning.form.plan_form import plan_from
from core.planning.memory_estimate import MemoryEstimate, memory_estimate
from core.planning.memory_fixes import fewest_accelerators, fixed_plan, fixes, larger_accelerators
from core.planning.plan_limits import all_checks
from core.planning.presets import MEMORY_PRESETS
from core.planning.sensitivity import made_own
from core.training.device.host import host_memory
from core.training.layout import LayoutError
from core.views.plan import text_fixes, text_memory
from tests.every import every

OVER: dict[str, dict[str, str]] = {
    "32B": {"n": "32B", "count": "8"},
    "batch 8": {"n": "8B", "count": "8", "mbs": "8", "loss": "separate"},
    "32k": {"n": "8B", "count": "8", "mbs": "2", "rc": "full", "seq": "32768", "loss": "separate"},
    "offloaded alone": {"n": "13B", "count": "1"},
    "pipeline": {"model": "Llama 3.3 70B", "count": "16", "pp": "4", "acc": "8", "seq": "16384"},
    "own precision": {"n": "40B", "count": "8", "prec": "own", "pm": "none", "pv": "fp32"},
    "one thing": {"n": "8B", "count": "8", "zero": "0", "seq": "2048"},
    **{name: dict(texts) for name, texts in MEMORY_PRESETS.items() if memory_estimate(plan_from(texts)).fits == "over"},
}
HOPELESS: dict[str, dict[str, str]] = {"400B": {"n": "400B", "count": "8"}, "1T on one": {"n": "1T", "count": "1"}}


def plan_held(texts: dict[str, str]) -> MemoryEstimate:
    return memory_estimate(plan_from({"lay": "own", **texts, "find": "time"}))


@every("name", OVER)
def test_every_fix_fits_and_saves_what_it_says(name: str) -> None:
    h = plan_held(OVER[name])
    assert h.fits == "over"
    result = fixes(h)
    assert result
    for fix in result:
        applied = plan_held({**OVER[name], **fix.texts})
        assert fixed_plan(h, fix) == applied.plan
        assert applied.total == pytest.approx(float(fix.device_memory.total), rel=1e-12)
        assert applied.fits == "fits"
        assert h.total - applied.total == pytest.approx(fix.saved, rel=1e-12)
        assert applied.layout.accelerators == h.layout.accelerators
    changed = [fix.texts.keys() for fix in result]
    assert not [a for i, a in enumerate(changed) for b in changed[:i] if b <= a]


def test_a_fix_leaves_free_what_the_plan_keeps_free() -> None:
    for fix in fixes(plan_held({"n": "32B", "tokens": "8T", "count": "256", "zero": "0"})):
        applied = plan_held({"n": "32B", "tokens": "8T", "count": "256", "zero": "0", **fix.texts})
        assert not applied.lacks


@pytest.mark.parametrize("name", HOPELESS)
def test_where_no_layout_fits_there_is_no_change(name: str) -> None:
    h = plan_held(HOPELESS[name])
    assert (h.fits, fixes(h)) == ("over", ())


def test_one_change_is_enough_where_it_is() -> None:
    h = plan_held(OVER["one thing"])
    assert len(fixes(h)[0].texts) == 1


def test_a_pipelines_wait_is_named_as_its_cost() -> None:
    """Stages send little, and stand still: m micro-batches over p stages wait for (p − 1) / m of their work."""
    result = [fix for fix in fixes(plan_held({**OVER["one thing"], "acc": "4"})) if fix.texts.keys() == {"pp"}]
    for fix in result:
        stages = int(fix.texts["pp"])
        assert fix.extra_bubble == pytest.approx((stages - 1) / 4)
        assert {cost.id: cost.values["extra"] for cost in text_fixes.costs(fix)}[
            "memory.cost.bubble"
        ] == fix.extra_bubble
    assert result


def test_what_fits_but_leaves_too_little_free_has_a_way_out() -> None:
    roomy = {"n": "8B", "count": "8", "zero": "1"}
    free = 1 - plan_held(roomy).total / plan_held(roomy).usable
    assert 0 < free < 0.9
    texts = {**roomy, "free": f"{100 * free + 1:.0f}%"}
    h = plan_held(texts)
    assert (h.fits, h.lacks) == ("fits", True)
    assert text_fixes.rescue(h)[0].id == "memory.fix.enough"
    assert fixes(h)
    for fix in fixes(h):
        assert not plan_held({**texts, **fix.texts}).lacks
    most = plan_held({"n": "3B", "count": "1", "seq": "2048", "rc": "full", "free": "90%"})
    assert (most.fits, most.lacks, fixes(most)) == ("fits", True, ())


def test_what_trains_a_part_of_a_model_is_not_split_by_its_weights() -> None:
    h = plan_held({**MEMORY_PRESETS["70B QLoRA on 2 × 24 GB"], "free": "60%"})
    assert fixes(h)
    assert not any({"tp", "pp"} & way.texts.keys() for way in fixes(h))


def test_what_fits_needs_no_fix() -> None:
    h = plan_held({"n": "8B", "count": "8", "rc": "full"})
    assert (h.fits, fixes(h)) == ("fits", ())


@every("name", [*OVER, *HOPELESS])
def test_unchanged_it_fits_on_more_of_them_or_on_others(name: str) -> None:
    texts = {**OVER, **HOPELESS}[name]
    h = plan_held(texts)
    if more := fewest_accelerators(h):
        assert plan_held({**texts, "count": f"{more}"}).room >= 0
        node = h.plan.device.node_size
        assert plan_held({**texts, "count": f"{more - 1 if more <= node else more - node}"}).room < 0
    accelerators = larger_accelerators(h)
    sizes = [accelerator.memory_bytes for accelerator in accelerators]
    assert sizes == sorted(set(sizes))
    for accelerator in accelerators:
        assert accelerator.vendor == h.plan.device.vendor
        assert memory_estimate(replace(h.plan, accelerator=accelerator.name)).room >= 0


def test_a_change_that_offloads_says_what_it_takes_of_the_host() -> None:
    texts = {"model": "Llama 3.1 8B", "gpu": "RTX 4090", "count": "1", "prec": "bf16 throughout", "seq": "2,048"}
    h = plan_held({**texts, "rc": "full"})
    fix = fixes(h)[0]
    held = host_memory(plan_held({**texts, "rc": "full", **fix.texts}).setup).total
    assert held > 0
    for said in (text_fixes.rescue(h), text_fixes.priced(h, fix)):
        assert [part.values["host"] for part in said if part.id == "memory.fix.host"] == [held]


def test_bytes_inside_a_node_are_cheaper_than_over_a_network() -> None:
    """Sharding model states over one node comes before splitting matrices over it; both are named for what they are."""
    h = plan_held({"n": "7B", "count": "8", "zero": "0", "prec": "fp32", "seq": "4096"})
    assert fixes(h)[0].texts.get("zero") in ("1", "2", "3")
    assert "tp" not in fixes(h)[0].texts


def test_a_change_that_fits_is_named_everywhere_and_applied_fits() -> None:
    """A long sequence, whose loss in pieces is one of two changes: what holds least is called so, and no page says
    that nothing helps or that nothing fits where it does."""
    texts = {"model": "Llama 3.1 8B", "count": "8", "seq": "1048576", "disp": "5.5 GB"}
    h = memory_estimate(plan_from(texts))
    assert h.fits == "over"
    assert text_memory.counted(h).values["source"].id == "memory.layout.smallest"
    (fix, *_) = fixes(h)
    assert dict(fix.texts) == {"off": "optimizer", "chunks": "16"}
    plan = plan_from({**texts, **made_own(h.plan, h.layout), **fix.texts})
    held, at = memory_estimate(plan), timed_estimate(plan)
    assert held.total == pytest.approx(float(fix.device_memory.total), rel=1e-12)
    assert held.spare == at.step.spare > 0


# ------------------------------------------------------------------------------------------ the plan's limits


LIMITS = {
    "limits.the.deadline": "deadline",
    "limits.the.money": "money",
    "limits.the.power": "power",
    "limits.the.host": "host",
    "limits.the.memory": "memory",
}
_ASKED: dict[str, tuple[str, ...]] = {
    "model": ("Llama 3.1 8B", "Llama 2 13B", "Llama 3.1 70B", "Mixtral 8x7B", "Typed parameters"),
    "n": ("7B", "30B", "120B"),
    "tokens": ("1B", "100B"),
    "gpu": ("H100 SXM", "RTX 4090", "A100 PCIe 40 GB"),
    "count": ("1", "2", "8", "16"),
    "lay": ("own", "fastest"),
    "zero": ("0", "1", "2", "3"),
    "rc": ("none", "full"),
    "off": ("", "", "optimizer"),
    "gb": ("64", "128"),
    "seq": ("2,048", "8,192"),
    "mbs": ("1", "2", "4"),
    "ft": ("", "", "adapters"),
    "sw": ("", "PyTorch, eager"),
}
_LIMITED: dict[str, tuple[str, ...]] = {
    "free": ("8%", "8%", "20%", "45%"),
    "ram": ("", "32 GiB", "512 GiB"),
    "until": ("", "", "3 days", "40 days", "400 days"),
    "spend": ("", "", "$20k", "$2M"),
    "mw": ("", "", "12 kW", "200 kW"),
}


def random_texts(rng: random.Random) -> dict[str, str]:
    """A plan of few accelerators with some limits, many of which it misses."""
    return {name: text for name, values in (_ASKED | _LIMITED).items() if (text := rng.choice(values))}


def said_to_miss(said: list[Message]) -> set[str]:
    return {LIMITS[name.id] for part in said if part.id == "limits.misses.but" for name in part.values["misses"]}


def missed(texts: dict[str, str]) -> set[str]:
    """The limits that a plan misses, by the whole of its answer."""
    return {check.id for check in all_checks(estimate(plan_from(texts))) if check.met is False}


def offers(texts: dict[str, str]) -> Iterator[tuple[str, dict[str, str], list[Message]]]:
    """What pages offer where a plan does not fit, or leaves too little free: which page, texts, and the sentences."""
    plan = plan_from(texts)
    h = memory_estimate(plan)
    for fix in fixes(h):
        yield "fix", {**made_own(h.plan, h.layout), **fix.texts}, text_fixes.priced(h, fix)
    if more := fewest_accelerators(h):
        yield "count", {"count": f"{more:,}"}, text_fixes.on_more(h, more)
    if h.lacks:
        for other in larger_accelerators(h)[:2]:
            yield "accelerator", {"gpu": other.name}, text_fixes.elsewhere(h, other)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("seed", range(5))
def test_what_is_offered_misses_no_limit_but_those_that_its_sentence_names(seed: int) -> None:
    rng, seen = random.Random(seed), Counter[str]()
    while seen["plans"] < 10:
        texts = random_texts(rng)
        try:
            found = list(offers(texts))
        except (LayoutError, BudgetError):
            continue
        seen["plans"] += bool(found)
        for what, changed, said in found:
            misses = missed({**texts, **changed})
            assert said_to_miss(said) == misses, (texts, changed, said)
            seen.update((what, "one" if misses else "none"))
        kinds = [said_to_miss(said) for what, _, said in found if what == "fix"]
        assert kinds == sorted(kinds, key=bool), "what misses no limit comes first"
    assert min(seen[name] for name in ("fix", "accelerator", "count", "none", "one")) > 0, seen


@every("lay", ["own", "fastest"])
def test_a_change_without_headroom_is_offered_only_where_none_leaves_as_much(lay: str) -> None:
    texts = {"model": "Llama 3.1 8B", "gpu": "RTX 4090", "count": "2", "gb": "64", "lay": lay, "mbs": "4"}
    for free in range(0, 60, 4):
        h = memory_estimate(plan_from({**texts, "free": f"{free}%"}))
        enough = [float(fix.device_memory.total) <= h.total + h.room for fix in fixes(h)]
        assert all(enough) or not any(enough)
