"""Training software: how a step is run by its name, and that a plan's steps are those of its software."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from core.hardware.accelerators import find
from core.models.catalog import model_named
from core.planning.estimate import timed_estimate
from core.planning.form.layout import TRAINING_SOFTWARE
from core.planning.form.plan_form import plan_from
from core.planning.layout import evaluate_layout, plan_layout, search_request, traffic
from core.planning.memory_estimate import memory_estimate
from core.search.fastest import searched
from core.search.request import LayoutResult
from core.step_time.calibration.measured_steps import StepRun, step_runs
from core.step_time.running import (
    AS_USUAL,
    COMPILED,
    EAGER,
    MEGATRON,
    MEGATRON_TUNED,
    SOFTWARE,
    TUNED_BY,
    USUAL_TUNING,
    running_on,
)
from core.step_time.step import default_states, step_over
from core.training.layout import Layout

MIXTURE = model_named("Qwen3 30B-A3B").spec
H100 = find("H100 SXM")
SMALL = {"count": "16", "gb": "128", "seq": "4,096", "gpu": "H100 SXM"}


def seconds(model: str, software: str, **layout: int) -> float:
    query = search_request(plan_from({**SMALL, "model": model, "sw": software}))
    return evaluate_layout(
        query, Layout(**{"data": 16, "micro_batch": 4, "micro_batches": 2, "zero": 3, **layout})
    ).seconds


def test_a_plan_that_names_none_has_the_usual_one() -> None:
    """Links from before the field: dense steps are as they were."""
    plan = plan_from({**SMALL, "model": "Llama 3.1 8B"})
    assert plan.software == MEGATRON.id == TRAINING_SOFTWARE.default
    assert search_request(plan).running == AS_USUAL


@pytest.mark.parametrize("software", SOFTWARE)
def test_a_plans_steps_are_those_of_its_software(software: str) -> None:
    query = search_request(plan_from({**SMALL, "model": "Qwen3 30B-A3B", "sw": software}))
    assert query.running == running_on(software, MIXTURE, H100, "bf16")


def _off(run: StepRun, software: str) -> float:
    """How far off a published step is by what a plan of that software takes, and its own layout alone."""
    running = running_on(software, run.spec, run.cluster.accelerator, run.running.dtype)
    states = default_states(run.spec)
    return float(step_over(run.spec, run.cluster, run.layout, states, seq_len=run.seq_len, running=running).total
                 / run.seconds - 1)  # fmt: skip


@pytest.mark.parametrize(
    ("software", "releases"), [(MEGATRON_TUNED.id, ("26.06", "26.08")), (MEGATRON.id, ("25.11", "26.02", "26.04"))]
)
def test_mixtures_are_predicted_by_the_name_of_their_software(software: str, releases: tuple[str, ...]) -> None:
    """What a plan knows, without the recipe of a row: the median is not off, and the other software's would be."""
    rows = [run for run in step_runs() if run.mixture and run.release in releases]
    assert len(rows) > 15
    other = MEGATRON_TUNED.id if software == MEGATRON.id else MEGATRON.id
    own, wrong = (np.median([_off(run, name) for run in rows]) for name in (software, other))
    assert abs(own) < 0.06
    assert abs(wrong) > 0.15


def test_a_search_free_in_its_experts_loses_to_no_degree_of_them() -> None:
    def best(software: str, **texts: str) -> float:
        result = searched(search_request(plan_from({**SMALL, "model": "Qwen3 30B-A3B", "sw": software, **texts}))).best
        return result.seconds if result else math.inf

    for software in SOFTWARE:
        pinned = [best(software, kep=str(degree)) for degree in (1, 2, 4, 8, 16)]
        assert best(software) == pytest.approx(min(pinned))
        assert all(math.isfinite(value) for value in pinned)


_TITAN = {
    "model": "Qwen3 32B",
    "gpu": "H100 SXM",
    "count": "32",
    "seq": "4,096",
    "tp": "8",
    "sp": "true",
    "zero": "3",
    "rc": "full",
    "sw": EAGER.id,
}


@pytest.mark.parametrize(("local", "printed_gib"), [(16, 43.45), (32, 70.79)])
def test_the_loss_follows_the_software(local: int, printed_gib: float) -> None:
    """Peaks that torchtitan printed without torch.compile [pytorch/torchtitan PR 1690]."""
    plan = plan_from({**_TITAN, "mbs": f"{local}", "gb": f"{4 * local} sequences"})
    assert memory_estimate(plan).total / 2**30 == pytest.approx(printed_gib, rel=0.1)
    fused = replace(plan, runtime_options=replace(plan.runtime_options, loss="fused"))
    assert memory_estimate(fused).total / 2**30 < 0.8 * printed_gib


@pytest.mark.parametrize(("model", "printed_s"), [("Qwen3 0.6B", 137), ("Qwen3 32B", 1295)])
def test_the_kernel_of_attention_decides_long_sequences(model: str, printed_s: float) -> None:
    """A step over one sequence of 2²⁰ tokens on eight H100 [huggingface/trl PR 6845, long_context_training]."""
    long = {"gpu": "H100 SXM", "count": "8", "seq": "1,048,576", "gb": "1 sequences", "cp": "8", "zero": "3"}
    texts = {**long, "rc": "full", "model": model, "sw": COMPILED.id}

    def step(kernel: str) -> LayoutResult:
        plan = plan_from({**texts, "fa": kernel})
        return evaluate_layout(search_request(plan), plan_layout(plan))

    newest = step("FlashAttention-3 or cuDNN")
    assert newest.seconds == pytest.approx(printed_s, rel=0.05)
    assert newest.low < printed_s < newest.high
    assert step("usual") == newest
    assert step("FlashAttention-2").seconds > 1.9 * newest.seconds


def test_a_geforce_card_trains_a_narrow_model_about_as_fast_as_it_did() -> None:
    """20 layers of width 1,280, 524,288 tokens a step: 13.777 s on one RTX 4090 [karpathy/nanochat, issue 157]."""
    shape = "layers=20 hidden=1280 heads=10 kv_heads=10 head_dim=128 ffn=5120 vocab=65536 glu=no tied_head=no"
    alone = {"gpu": "RTX 4090", "count": "1", "lay": "own", "zero": "0", "rc": "none", "mbs": "4", "loss": "fused"}
    work = {"model": "Own (config.json)", "shape": shape, "seq": "2,048", "gb": "256 sequences", "sw": COMPILED.id}
    took = 13.777
    assert took < timed_estimate(plan_from({**alone, **work, "prec": "bf16 throughout"})).step.seconds < 1.25 * took


_PIPED = {
    "model": "Llama 3.3 70B",
    "gpu": "H100 SXM",
    "count": "32",
    "seq": "1,024",
    "gb": "128 sequences",
    "mbs": "1",
    "pp": "8",
    "zero": "3",
    "rc": "full",
    "lay": "own",
}


def test_under_a_pipeline_software_keeps_weights_whole_or_gathers_them_again() -> None:
    """NeMo AutoModel ran out of 80 GB with this layout [PR 2673]; Megatron's FSDP shards after each layer."""
    kept, again = (plan_from({**_PIPED, "sw": software}) for software in (COMPILED.id, MEGATRON.id))
    assert memory_estimate(kept).fits == "over"
    assert memory_estimate(again).fits == "fits"
    once, often = (timed_estimate(plan).step for plan in (kept, again))
    assert once is not None
    assert often is not None
    assert once.layout.micro_batches == often.layout.micro_batches == 32
    assert often.step.data > 5 * once.step.data
    few, many = (traffic(search_request(plan), once.layout).data for plan in (kept, again))
    assert many == pytest.approx(48 * few)  # three exchanges a micro-batch for two a step


def test_who_tuned_a_run_decides_its_range_and_nothing_else() -> None:
    """Printed without torch.compile: 876 tokens a second, which no range of tuned steps holds [torchtitan PR 1690]."""
    texts = {**_TITAN, "gpu": "H100 96 GB (OCP)", "mbs": "16", "gb": "64 sequences", "lay": "own"}
    printed = 16 * 4096 / 8 / 876
    results = [timed_estimate(plan_from({**texts, "tun": tuned})).step for tuned in TUNED_BY]
    assert len({result.seconds for result in results}) == 1
    assert [result.low < printed < result.high for result in results] == [False, True, True]
    assert all(more.low > less.low and more.high < less.high for more, less in pairwise(results))
    assert timed_estimate(plan_from(texts)).step == results[list(TUNED_BY).index(USUAL_TUNING)]


@pytest.mark.parametrize(("seq", "printed_gb"), [("1,048,576", 27.9), ("4,194,304", 73.7)])
def test_rings_of_torch_hold_the_keys_of_all_ranks(seq: str, printed_gb: float) -> None:
    """Qwen3 0.6B on eight H100, inputs of layers on the host: 116.5 kB a token of a rank [huggingface/trl PR 6845]."""
    where = {"model": "Qwen3 0.6B", "gpu": "H100 SXM", "count": "8", "seq": seq, "gb": "1 sequences", "mbs": "1"}
    how = {"cp": "8", "zero": "3", "rc": "full", "impl": "Hugging Face SDPA", "aoff": "true", "chunks": "64"}
    texts = {**where, **how}
    eager, megatron = (memory_estimate(plan_from({**texts, "sw": name})) for name in (EAGER.id, MEGATRON.id))
    assert eager.total / 1e9 == pytest.approx(printed_gb, rel=0.2)
    tokens = float(seq.replace(",", "")) / 8
    assert float(eager.device_memory.activations) / tokens == pytest.approx(116.5e3, rel=0.01)
    gathered = float(eager.device_memory.activations - megatron.device_memory.activations)
    assert gathered / tokens == pytest.approx(8 * 2 * 2 * 8 * 128)


def test_products_in_fp32_take_the_time_of_fp32() -> None:
    """1.2B in fp32 takes eight times as long as under autocast: the ratio of rates, and no more than that of peaks."""
    texts = {**SMALL, "model": "Llama 3.2 1B", "sw": EAGER.id, "impl": "Hugging Face SDPA"}
    in_fp32, cast = (plan_from({**texts, "prec": policy}) for policy in ("fp32", "fp32, bf16 autocast"))
    took = [timed_estimate(plan).step.seconds for plan in (in_fp32, cast)]
    assert 4 < took[0] / took[1] < H100.peak("bf16") / H100.peak("fp32")
