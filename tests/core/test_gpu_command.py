"""What the command for a CUDA device does, tried without one: small models on the processor."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from core.models.spec_text import read_spec
from core.planning.fine_tuning.estimate import trained_parameters
from core.planning.form.plan_form import PLAN_FORM, plan_of
from core.planning.memory_estimate import memory_estimate
from core.rows import read_rows
from core.step_time.calibration.measured_steps import step_runs
from tests.gpu import __main__ as command
from tests.gpu import cases, training
from tests.gpu.cases import AUTOCAST, BF16, CASES, MORE, NF4, Case, predicted
from tests.gpu.training import Measured

_SMALL = {
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 500,
}
_SMALL_GPT2 = {"n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": 64, "vocab_size": 500}
_SMALL_EXPERTS = {"head_dim": 16, "moe_intermediate_size": 64, "num_experts": 4, "num_experts_per_tok": 2}
FOUND = Measured(seconds=0.2, best_s=0.19, p90_s=0.21, steps=10, peak_bytes=40 * 2**30, used_bytes=0, torch="2")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same models, as small as a processor trains at once."""
    models = {
        name: {**model, **_SMALL_GPT2}
        if "n_embd" in model
        else {**model, **_SMALL, **(_SMALL_EXPERTS if "num_experts" in model else {})}
        for name, model in cases.MODELS.items()
    }
    monkeypatch.setattr(cases, "MODELS", models)
    monkeypatch.setattr(training, "MODELS", models)


def on_cpu(case: Case) -> Case:
    """As small, its frozen weights as they are: four bits take a library of CUDA's."""
    return replace(case, sequences=2, seq_len=32, compiled=False, layers=min(case.layers, 1), frozen="bf16")


@pytest.mark.usefixtures("small", "one_thread")
@pytest.mark.parametrize("case", CASES + MORE, ids=lambda case: case.name)
def test_a_step_trains_what_the_plan_trains(case: Case) -> None:
    """Every case runs, moves the weights that are trained and no others, and they are as many as the plan says."""
    small = on_cpu(case)
    torch.manual_seed(0)
    model = training.built(small, "cpu")
    trained = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    plan = plan_of(PLAN_FORM.parse({**small.texts, "gpu": "H100 SXM"}))
    gates = 2 * 64 if "mixture" in case.model else 0  # queries and keys have a norm of one gain a head width
    assert trained == trained_parameters(memory_estimate(plan)) or trained - gates == trained_parameters(
        memory_estimate(plan)
    )
    assert training.measured(small, "cpu").seconds > 0


def test_a_row_of_evidence_is_read_as_the_step_that_it_is(tmp_path: Any) -> None:
    """Written and read again, a case is the model, layout and time that were run."""
    assert set(command.evidence(command.Row(CASES[0], *[None] * 2, FOUND), "H100 SXM", "day")) == set(
        read_rows(command.TABLE)[0]
    )
    kept = {run.name: run for run in step_runs() if run.source.startswith("make gpu")}
    assert len(kept) >= 10
    by_name = {case.name: case for case in CASES}
    for name, run in kept.items():
        case = by_name[name]
        row = command.evidence(command.Row(case, *[None] * 2, FOUND), "H100 SXM", "day")
        assert run.spec == read_spec(row["shape"])
        assert run.sequences == case.sequences
        assert run.layout.accelerators == 1
        assert (run.running.software, run.policy) == ("compiled" if case.compiled else "eager", case.policy)


HELD_OUT = Path(__file__).parents[1] / "data" / "steps_h200.csv"
"""The same cases on one H200, from which nothing was fitted."""


WAITING = {
    case.name
    for case in CASES
    if case.sequences * case.seq_len <= 2048 and (case.frozen == NF4 or "1.2B" in case.model)
}
OTHER_HOST: Mapping[Case, float] = {
    Case("Llama 1.2B", 1, 512, BF16, rank=16): 0.0706,
    Case("Llama 1.2B", 1, 512, BF16, rank=16, frozen=NF4): 0.1157,
    Case("Llama 8B", 1, 512, BF16, recompute="full", rank=16): 0.2586,
    Case("narrow 0.5B", 1, 512, AUTOCAST): 0.0707,
    Case("Llama 1.2B", 1, 1024, AUTOCAST): 0.0751,
    Case("narrow 0.5B", 2, 2048, BF16): 0.0733,
}
"""Seconds on another host of an H100, from which nothing was fitted either."""


def test_small_batches_wait_for_their_host() -> None:
    off = {case.name: predicted(case, "H100 SXM", None).seconds / took - 1 for case, took in OTHER_HOST.items()}
    assert all(-0.15 < each < 0.35 for each in off.values()), off


@pytest.mark.parametrize("card", ["H100 SXM", "H200 SXM"])
def test_steps_measured_here_are_met(card: str) -> None:
    """By the datasheet alone each within a sixth, half of them within 8 %, adapters and frozen weights in four bits
    among them; every peak within 1 %, of compiled steps within 3 %. Small batches wait for their host, and hosts
    differ: within 40 %."""
    by_name = {case.name: case for case in CASES}
    with HELD_OUT.open(encoding="utf-8") as file:
        rows = [row for row in (*read_rows(command.TABLE), *csv.DictReader(file)) if row["accelerator"] == card]
    said = [(row, predicted(by_name[row["model"]], card, None)) for row in rows]
    assert len(said) >= 14
    off = {row["model"]: found.seconds / float(row["step_time_s"]) - 1 for row, found in said}
    assert all(abs(each) < (0.4 if name in WAITING else 1 / 6) for name, each in off.items()), off
    assert sorted(map(abs, off.values()))[len(off) // 2] < 0.08, off
    over = {row["model"]: found.peak_bytes / float(row["peak_bytes"]) - 1 for row, found in said}
    assert all(abs(each) < (0.03 if "compiled" in name else 0.01) for name, each in over.items()), over


MEASURED_MORE = (
    *((0.433, 58.0), (0.326, 39.6), (0.884, 38.1), (0.309, 35.4), (0.166, 38.3), (0.288, 52.1), (0.257, 45.52)),
    *((0.0943, 22.92), (0.572, 27.7), (0.572, 27.4), (0.146, 32.7), (0.0640, 12.70), (2.496, 43.0), (0.279, 25.47)),
    *((0.273, 25.38), (0.1592, 19.95)),
)
"""Seconds and GiB of `MORE` on one H100 [python -m tests.gpu --more, torch 2.11, 27 November 2026]."""


def test_other_models_are_met_without_a_fit() -> None:
    """Half within 9 %, three in four inside their range, which they widen; peaks within 3.5 %.

    What the models needed beside was GELU in single steps, experts that autocast leaves in fp32, and a loss that is
    compiled with its model.
    """
    said = [predicted(case, "H100 SXM", None) for case in MORE]
    off = [each.seconds / took - 1 for each, (took, _) in zip(said, MEASURED_MORE, strict=True)]
    assert sorted(map(abs, off))[len(off) // 2] < 0.09, off
    inside = [each.low <= took <= each.high for each, (took, _) in zip(said, MEASURED_MORE, strict=True)]
    assert sum(inside) >= 0.75 * len(inside)
    over = [each.peak_bytes / 2**30 / held - 1 for each, (_, held) in zip(said, MEASURED_MORE, strict=True)]
    assert all(abs(each) < 0.035 for each in over), over
