"""The layout that a plan gets is the fastest: the walk through every layout finds none that is faster."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from core.planning.form.plan_form import plan_from
from core.planning.plan_search import evaluate_layout
from core.planning.resolved_layout import estimable_request, plan_layout, plan_layouts
from core.search.constraints import SpaceError
from core.search.search import searched

MODELS = ("Llama 3.1 8B", "Llama 3 70B", "Llama 3.1 405B", "Qwen3 30B-A3B", "Mixtral 8x7B", "DeepSeek-V3", "GPT-3 175B")
COUNTS = (48, 72, 96, 250, 300, 512, 714, 1024, 6144)
SETTINGS = (("H100 SXM", "8192"), ("H200 SXM", "4096"), ("H100 SXM", "131072"))
SOME = (("Qwen3 30B-A3B", 250, "H200 SXM", "8192"), ("GPT-3 175B", 72, "H100 SXM", "8192"))
SOME += (("Llama 3.1 405B", 96, "H200 SXM", "4096"), ("Mixtral 8x7B", 300, "H100 SXM", "8192"))
SOME += (("Llama 3.1 8B", 714, "H100 SXM", "8192"), ("Llama 3.1 8B", 8, "H100 SXM", "131072"))


def lost(model: str, count: int, device: str, seq_len: str) -> float:
    """By what share of its time the fastest layout is slower than the best of the whole space, on as many accelerators
    and with as many sequences as it has; 0 where none fits at all or there are too many to walk through."""
    plan = plan_from({"model": model, "count": f"{count}", "gpu": device, "seq": seq_len})
    request, layout = estimable_request(plan), plan_layout(plan)
    assert request is not None
    batch = int(layout.data * layout.micro_batch * layout.micro_batches)
    request = replace(request, batch=batch).on(int(layout.accelerators))
    try:
        best = searched(request).best
    except SpaceError:
        return 0.0
    if best is None:
        return 0.0
    here = evaluate_layout(request, layout)
    assert here.spare >= 0, (model, count, device, seq_len)
    return here.seconds / best.seconds - 1


def test_no_layout_of_the_whole_space_is_faster() -> None:
    """Odd counts, mixtures, long sequences, clusters that hardly hold the model."""
    assert [(where, slower) for where in SOME if (slower := lost(*where)) > 0.005] == []


@pytest.mark.long
def test_hardly_any_layout_of_many_plans_is_faster() -> None:
    slower = np.array([lost(*where, *how) for where, how in product(product(MODELS, COUNTS), SETTINGS)])
    assert np.mean(slower < 0.005) > 0.96
    assert slower.max() < 0.1


def test_several_numbers_of_accelerators_are_searched_as_each_alone() -> None:
    counts = (1, 8, 24, 96, 250, 512, 6144)
    for model in ("Llama 3 70B", "Qwen3 30B-A3B"):
        plans = [plan_from({"model": model, "count": f"{count}"}) for count in counts]
        assert plan_layouts(plans) == [plan_layout(plan) for plan in plans]
