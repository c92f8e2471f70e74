"""The layout that a plan gets is the fastest: a far wider space, walked through here, has none that trains faster."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from core.planning.form.plan_form import plan_from
from core.planning.layout import estimable_request, found_layout
from core.planning.plan import Plan
from core.search.fastest import FoundLayout, fastest
from core.search.request import SearchRequest
from core.search.space import WINDOW, chunked, divisors, laid
from core.training.layout import Layout, allowed

COUNTS = (100, 500, 1000, 2000, 5000, 10_000, 16_000, 20_000)
MODELS = ("Llama 3 70B", "Llama 3.1 8B", "Llama 3.1 405B", "GPT-3 175B")
SOME = (("Llama 3 70B", 10_000), ("GPT-3 175B", 72), ("Llama 3.1 8B", 714))
MIXTURES = (("Mixtral 8x7B", 300), ("Qwen3 30B-A3B", 250))


def layouts(request: SearchRequest, count: int, batch: float, stages: int) -> tuple[Layout, np.ndarray]:
    """Every layout of so many stages with any micro-batch up to 16, up to three ranks fewer than there could be, and
    the two largest numbers of rounds whose sequences are those of a step."""
    spec, per_node = request.spec, request.cluster.per_node
    cuts = np.union1d(divisors(spec.layers), divisors(spec.layers + 2))
    values = {
        "zero": np.arange(1, 4),
        "recompute": np.arange(3),
        "expert": divisors(spec.experts.count) if spec.experts else np.array([1]),
        "context": divisors(request.seq_len, request.seq_len // 256),
        "tensor": divisors(per_node),
        "micro_batch": np.arange(1, 17),
        "interleave": (cuts := np.union1d(divisors(spec.layers), divisors(spec.layers + 2)))[
            chunked(spec.layers, stages, cuts)
        ],
        "grouped": np.array([0, 1]),
        "fewer": np.arange(4),
        "later": np.arange(2),
    }
    grid = dict(zip(values, np.meshgrid(*values.values(), indexing="ij", sparse=True), strict=True))
    grouped, fewer, later = (grid.pop(name) for name in ("grouped", "fewer", "later"))
    node = np.where(grouped, per_node // grid["tensor"], 0)
    layout = Layout(**grid, pipeline=stages, shard_group=node, sequence_parallel=(grid["tensor"] > 1).astype(int))
    sets = layout.expert_ranks // np.gcd(layout.expert_ranks, layout.tensor * layout.context)
    unit = np.lcm(sets, np.maximum(node, 1) // np.gcd(np.maximum(node, 1), layout.context))
    data = (count // (layout.tensor * stages * layout.context) // unit - fewer) * unit
    turn = layout.micro_batch * np.where(layout.interleave > 1, stages, 1)
    rounds = (batch * (1 + WINDOW) // (np.maximum(data, 1) * turn)).astype(int) - later
    layout = replace(
        layout,
        data=np.maximum(data, unit),
        micro_batches=np.maximum(rounds, 1) * np.where(layout.interleave > 1, stages, 1),
    )
    sound = allowed(spec, layout, request.seq_len) & (data > 0) & (rounds > 0)
    return layout, sound & (data * rounds * turn >= batch * (1 - WINDOW)) & ((node == 0) | (node > 1))


def beaten_by(plan: Plan) -> float:
    """By what share of its tokens per second the plan's layout is slower than the best of `layouts` that fits."""
    request, found = estimable_request(plan), found_layout(plan)
    assert request is not None and found is not None  # noqa: PT018
    batch, count, best = plan.batch.target(plan.seq_len), int(plan.accelerators), found.tokens_per_second * found.fits
    for stages in range(1, min(request.spec.layers, count) + 1):
        layout, sound = layouts(request, count, batch, stages)
        sequences = layout.data * layout.micro_batch * layout.micro_batches
        rate = np.where(sound, sequences * request.seq_len / request.step(layout).total, 0.0)
        faster = np.nonzero(rate > best)
        if len(faster[0]):
            columns = (np.broadcast_to(getattr(layout, name), rate.shape)[faster] for name in Layout.__slots__)
            fits = request.bytes_of(Layout(*columns)) <= request.budget
            best = float(rate[faster][fits].max(initial=best))
    return 1 - found.tokens_per_second * found.fits / best if best else 0.0


@pytest.mark.parametrize(("model", "count"), SOME)
def test_no_layout_of_a_wider_space_trains_faster(model: str, count: int) -> None:
    assert beaten_by(plan_from({"model": model, "count": f"{count}"})) < 0.01


@pytest.mark.long
@pytest.mark.parametrize(("model", "count"), [*product(MODELS, COUNTS), *MIXTURES])
def test_no_layout_of_a_wider_space_trains_faster_on_any_cluster(model: str, count: int) -> None:
    assert beaten_by(plan_from({"model": model, "count": f"{count}"})) < 0.03


@pytest.mark.parametrize(
    ("model", "count"), [("Mixtral 8x7B", 40), ("Llama 3.1 405B", 400), ("Llama 3.1 8B", 96), ("Llama 3 70B", 8)]
)
def test_no_layout_of_its_own_space_trains_faster(model: str, count: int) -> None:
    request = estimable_request(plan_from({"model": model}))
    assert request is not None
    found = fastest(request, count, np.ones_like)
    space, possible = laid(request, count)
    tokens = space.data * space.micro_batches * space.micro_batch * request.timed_length
    memory = np.where(possible, request.bytes_of(space), np.inf)
    rates = np.where(memory <= request.budget, tokens / request.step(space).total, 0.0)
    assert found is not None
    assert found.tokens_per_second * found.fits >= rates.max() * (1 - 1e-6)
    assert found.fits or math.isclose(found.memory_bytes, memory.min())


@pytest.mark.sweep(4)
@pytest.mark.parametrize("seed", range(12))
def test_more_accelerators_hold_and_train_no_less(seed: int) -> None:
    """Of all hours, failures counted, whatever the batch is, of layouts that leave free what the plan keeps."""
    draw = random.Random(seed)
    plan = plan_from(
        {
            "model": draw.choice([*MODELS, "Mixtral 8x7B"]),
            "gpu": draw.choice(["H100 SXM", "A100 SXM 40 GB", "B200", "RTX 4090"]),
            "gb": draw.choice(["16M tokens", "1M tokens", "480 sequences", "64 sequences"]),
        }
    )
    counts = sorted(round(10 ** draw.uniform(0, 5)) for _ in range(20))
    found = [found_layout(replace(plan, accelerators=float(count))) for count in counts]
    most = plan.usable_memory * (1 - plan.limits.free)
    roomy = [(count, one) for count, one in zip(counts, found, strict=True) if one and one.memory_bytes <= most]
    assert [count for count, _ in roomy] == counts[len(counts) - len(roomy) :], "more hold it as well"
    for (_, few), (count, many) in pairwise(roomy):
        less, more = (one.tokens_per_second * _goodput(plan, one) for one in (few, many))
        crowded = many.busy < 0.9 * count or _goodput(plan, many) < 0.95  # failures or the batch use up what is more
        assert more >= less * (1 - (0.05 if crowded else 1e-9))
    batch = plan.batch.target(plan.seq_len)
    sequences = [one.sequences for one in found if one]
    assert all(abs(some / batch - 1) <= WINDOW + 1e-9 for some in sequences)


def _goodput(plan: Plan, found: FoundLayout) -> float:
    from core.planning.layout import plan_checkpoint
    from core.runs.goodput import interruptions

    model = plan.catalog_model
    assert model is not None
    size = float(plan_checkpoint(plan).of(model.parameters))
    return float(interruptions(found.busy, size, plan.reliability).goodput)


def test_a_batch_that_no_layout_meets_has_no_layout() -> None:
    plan = plan_from({"model": "Llama 3.1 8B", "count": "64", "gb": "10 sequences", "kmbs": "8"})
    assert found_layout(plan) is None
    assert math.isclose(plan.batch.target(plan.seq_len), 10)
