"""Published steps: each row’s layout holds, its rates agree with each other, and what is left out says why."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from core.models.parameters import parameters
from core.rows import read_rows
from core.step_time.calibration.fit import constant_mfu, errors_of, score
from core.step_time.calibration.measured_steps import TABLES, Convention, StepRun, flop_of_token, memory_runs, step_runs
from core.step_time.formulas import step_constants
from core.step_time.step import step_time
from core.training.device.buffers import MEASURED, TENSORS_ONLY, Runtime
from core.training.device.memory import DeviceMemory
from core.training.layout import Layout, check
from core.training.precision import BF16, find_policy
from tests.core.memory_of import memory_per_device
from tests.every import every

RUNS = step_runs()
PRINTED = [row for table in TABLES for row in read_rows(table)]


def of_group(group: str) -> list[StepRun]:
    """The rows of one source."""
    return [run for run in RUNS if run.group.startswith(group)]


def printed_of(run: StepRun) -> dict[str, str]:
    """The row of the table that a step was read from."""
    (row,) = [
        row
        for row in PRINTED
        if row["model"] == run.name
        and row["source"] == run.source
        and (row["accelerator"], int(row["n_gpus"])) == (run.cluster.accelerator.name, run.cluster.count)
        and row["global_batch_seqs"] == str(run.sequences)
        and (row.get("format") or row["precision"]) == run.format
    ]
    return row


def test_every_published_row_is_a_step_or_left_out_with_a_reason() -> None:
    left = [row for row in PRINTED if row.get("left_out")]
    assert len(RUNS) + len(left) == len(PRINTED)
    assert {run.stack for run in RUNS if run.cluster.accelerator.family == "TPU"} == {"MaxText"}


@every("run", RUNS, ids=lambda run: f"{run.group} {run.name} {run.sequences}")
def test_each_layout_holds_and_takes_every_accelerator(run: StepRun) -> None:
    check(run.spec, run.layout, run.seq_len, run.cluster.count)
    assert run.layout.accelerators == run.cluster.count
    assert 0 < run.seconds < 3600
    assert run.cluster.accelerator.peak(run.running.dtype) > 0
    assert run.cluster.link_between > 0


def test_no_row_counts_twice() -> None:
    keys = Counter((run.name, run.source, run.cluster, run.sequences, run.format) for run in RUNS)
    assert set(keys.values()) == {1}


def test_batches_times_and_rates_are_those_that_sources_print() -> None:
    """Sequences, time and tokens per second come back out of what was read, whichever of them was printed."""
    for run in RUNS:
        row = printed_of(run)
        if row["step_time_s"]:
            assert run.seconds == float(row["step_time_s"])
        elif row.get("tokens_per_s_per_gpu"):
            assert run.tokens_per_s == pytest.approx(float(row["tokens_per_s_per_gpu"]))


CONVENTIONS: dict[str, Convention] = {
    "Korthikanti 2022": "full",
    "Megatron-LM Llama": "full",
    "NeMo 24.07": "full",
    "Megatron-Bridge": "causal",
    "llm-foundry": "full",
    "MT-NLG": "hardware",
    "Nemotron-4": "full",
    "MegaScale": "full",
}


@pytest.mark.parametrize(("group", "convention"), CONVENTIONS.items())
def test_two_printed_rates_agree_by_the_convention_of_their_source(group: str, convention: Convention) -> None:
    """FLOP/s over tokens per second is FLOPs per token of the very shape; no other convention comes as close."""
    off: dict[Convention, list[float]] = {"hardware": [], "full": [], "causal": []}
    for run in of_group(group):
        per_token = float(printed_of(run)["tflops_per_gpu"] or "nan") * 1e12 / run.tokens_per_s
        changed = run.name.startswith("GPT OSS") or run.spec.mixer  # counted otherwise, from some release on
        if not math.isnan(per_token) and not changed:
            for item, values in off.items():
                values.append(abs(flop_of_token(item, run.spec, run.seq_len) / per_token - 1))
    assert np.median(off[convention]) < 0.005
    assert max(off[convention]) < 0.035
    assert min(off, key=lambda convention: float(np.median(off[convention]))) == convention


def test_hybrids_are_counted_with_the_whole_square_of_attention() -> None:
    """NVIDIA's printed rates of them agree with no other count: 22.1 GFLOP a token of Nemotron 3 Nano."""
    rows = [run for run in RUNS if run.spec.mixer and run.stack == "Megatron-Bridge"]
    assert len(rows) == 20
    for run in rows:
        per_token = float(printed_of(run)["tflops_per_gpu"]) * 1e12 / run.tokens_per_s
        assert flop_of_token("full", run.spec, run.seq_len) == pytest.approx(per_token, rel=0.025)
    assert parameters(rows[0].spec).total == pytest.approx(31.6e9, rel=0.001)


def test_one_constant_holds_for_three_generations_of_tpu() -> None:
    """MaxText on v5e, v5p and v6e, dense and mixed, recomputed whole and in part: what products reach of the peak is
    fitted to them, all else to other accelerators."""
    own = [constant.name for constant in step_constants() if constant.family == "TPU"]
    errors = np.abs(np.expm1(errors_of(of_group("MaxText"), step_constants())))
    assert own == ["matmul16"]
    assert np.median(errors) < 0.1
    assert errors.max() < 0.25


@every("run", of_group("Narayanan 2021")[:10], ids=lambda run: run.name)
def test_what_the_table_leaves_open_is_about_the_fastest_that_fits(run: StepRun) -> None:
    """Of all micro-batches and interleaves that fit 80 GB none is 5 % faster than what is taken."""
    taken, device = run.layout, run.cluster.accelerator
    each = run.sequences // int(taken.data)
    deep = run.spec.layers // int(taken.pipeline)
    chunks = [number for number in range(1, deep + 1) if deep % number == 0] if taken.pipeline > 1 else [1]
    sizes = [size for size in (1, 2, 4, 8, 16) if each % size == 0]
    both_ways = itertools.product(sizes, chunks)
    turns = [(b, v) for b, v in both_ways if v == 1 or each // b % int(taken.pipeline) == 0]  # Megatron's own rule
    micro, interleave = np.array(turns).T
    plans = replace(taken, micro_batch=micro, micro_batches=each // micro, interleave=interleave)

    def both(layout: Layout) -> tuple[float, float]:
        how = {"seq_len": run.seq_len, "implementation": run.implementation}
        memory = memory_per_device(run.spec, layout, policy=POLICY["process"], **how)
        took = step_time(run.spec, run.cluster, layout, running=run.running, **how)
        return took.total, memory.total

    seconds, value = both(plans)
    ours, fits = both(taken)
    assert fits < device.memory_bytes
    assert ours < 1.05 * np.min(np.where(value < device.memory_bytes, seconds, np.inf))


def test_recipes_say_how_every_row_of_a_release_was_run() -> None:
    """The vendor's own settings, one row each, cover its table; what captures whole steps came with release 26.06."""
    settings = {(row["model"], row["source"]): row for row in read_rows("step_settings")}
    bridge = of_group("Megatron-Bridge")
    for run in bridge:
        recipe = settings[run.name, run.source]
        tuned = bool(recipe["dispatch"]) and recipe["graphs"] == "step"
        assert run.running.software == ("megatron tuned" if tuned else "megatron")
    assert {run.release for run in bridge if run.running.software == "megatron tuned"} == {"26.06", "26.08"}
    assert any(run.release == "26.06" and run.running.software != "megatron tuned" and run.mixture for run in bridge)


RUNTIME = {"process": MEASURED, "reserved": Runtime(context=0.0, communicator=0.0), "tensors": TENSORS_ONLY}
POLICY = {
    # BigScience: going from one to two replicas freed 16 bytes per parameter, which is all but 2 + 2 in 16 bits.
    "process": find_policy("mixed fp16, fp32 copies of both"),
    # torchtitan: fp32 shards, which FSDP casts as it gathers them, so that all activations are in bf16.
    "reserved": replace(find_policy("fp32, bf16 autocast"), saved=BF16),
    "tensors": find_policy("mixed bf16, fp32 master, fp32 gradients"),
}


def account(run: StepRun) -> DeviceMemory:
    """What the account says of the fullest stage of a run whose memory was read."""
    policy = find_policy(run.policy) if run.policy else POLICY[run.reading]
    how = {"implementation": run.implementation, "runtime": RUNTIME[run.reading], "trained": run.trained}
    return memory_per_device(run.spec, run.layout, policy=policy, seq_len=run.seq_len, **how)


def test_readings_of_memory_are_met() -> None:
    """Half of what was read off accelerators is met within 5.5 %, and nothing is off by a third."""
    off_by = {run: abs(float(account(run).total) / run.memory_bytes - 1) for run in memory_runs()}
    off = [off for run, off in off_by.items() if run.reading != "tensors"]
    assert len(off) == 42
    assert np.median(off) < 0.055
    assert max(off) < 1 / 3
    counted = [off for run, off in off_by.items() if run.reading == "tensors" and not run.policy]
    assert max(counted) < 0.1
    allocated = [off for run, off in off_by.items() if run.policy]  # steps of this program's own
    assert np.median(allocated) < 0.07
    assert max(allocated) < 0.22


def test_the_account_beats_one_utilisation_per_family() -> None:
    ours, plain = score("ours", errors_of(RUNS, step_constants())), score("plain", constant_mfu(RUNS))
    assert ours.rows == plain.rows == len(RUNS)
    assert ours.median < plain.median / 3
    assert ours.p90 < plain.p90 / 2
