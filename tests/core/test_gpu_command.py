"""What the command for a CUDA device does, tried without one: small models on the processor."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from core.benchmark.device import GpuState, nvml_state
from core.benchmark.points import DeviceFacts
from core.benchmark.record import Record
from core.benchmark.running.events import Done, Event, Tried, encode
from core.benchmark.running.jobs import Runner
from core.models.spec_text import read_spec
from core.planning.fine_tuning import trained_parameters
from core.planning.form.plan_form import PLAN_FORM, plan_of
from core.planning.memory_estimate import memory_estimate
from core.rows import read_rows
from core.step_time.calibration.measured_steps import step_runs
from tests.core.measured_cases import copy, square
from tests.core.measured_cases import record as measured_record
from tests.core.timing_bench import bench
from tests.gpu import __main__ as command
from tests.gpu import cases, probe, training
from tests.gpu.cases import AUTOCAST, BF16, CASES, MORE, NF4, Case, predicted
from tests.gpu.checks import of_probe, of_record
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


ROOT = Path(__file__).parents[2]
SQUARE, COPY = (Tried(outcome=found) for found in (square("bf16", 8192, 7e14), copy("1 GiB", 2**30, 4e12)))


def runner(*events: Event, end: str = "") -> Runner:
    """A runner whose measuring process says the events and then does what ``end`` says."""
    says = "\n".join(f"print({encode(event)!r}, flush=True)" for event in events)
    return Runner(lambda _: [sys.executable, "-S", "-c", f"{says}\n{end}"])


@pytest.mark.process
def test_every_result_is_written_when_it_is_there(tmp_path: Path) -> None:
    """Whatever becomes of the command, what has been measured is in the file, which is a whole record at any time."""
    seen: list[Record] = []

    def keep(record: Record) -> None:
        command.write(tmp_path / "out" / "measurement.json", record.model_dump_json())
        seen.append(Record.model_validate_json((tmp_path / "out" / "measurement.json").read_bytes()))

    waits = runner(SQUARE, end="import time; time.sleep(1)\nprint('x')")
    found = command.measurement(waits, 0.1, keep)
    assert (found.stage, len(found.points)) == ("failed", 1), "a process that dies leaves its results"
    assert {("running", 1), ("failed", 1)} <= {(record.stage, len(record.points)) for record in seen}
    assert seen[-1] == found
    whole = command.measurement(runner(SQUARE, COPY, Done(elapsed_s=1.0)), 0.1, keep)
    assert (whole.stage, len(whole.points), seen[-1]) == ("finished", 2, whole)
    with pytest.raises(SystemExit):
        command.measurement(runner(end="raise SystemExit(1)"), 0.1, keep)


def found_on_h200(bf16: float = 7.8e14, fast: float = 1.4e15) -> Record:
    """A measurement of an H200 as it is expected, but for what is given."""
    large = copy("4 GiB", 4 * 2**30, 4.3e12)
    squares = (("bf16", bf16, 2.9e-3), ("fp16", 7.8e14, 4e-4), ("fp8", 1.2e15, 3.7e-2), ("fp8 fast", fast, 3.8e-2))
    return measured_record("cuda", *(square(name, 8192, rate, error=error) for name, rate, error in squares), large)


def test_a_figure_outside_its_band_fails() -> None:
    """Each by itself, with the band and its source; what was not measured has not passed."""
    plain = {check.name: check for check in of_record(found_on_h200())}
    right = {name for name, check in plain.items() if check.passed}
    assert right >= set(plain) - {"time of the measurement / promised"}
    assert len(plain) >= 10
    assert all(check.source for check in plain.values())
    for wrong, failing in (
        (found_on_h200(bf16=6e14), {"bf16 at n = 8,192", "fp16 / bf16 at n = 8,192"}),
        (found_on_h200(fast=1e15), {"fp8 fast / exact, rate"}),
    ):
        assert {check.name for check in of_record(wrong) if not check.passed} & right == failing
    missing = {check.name: check for check in of_record(measured_record("cuda", square("bf16", 8192, 7.8e14)))}
    assert missing["bf16 at n = 8,192"].passed
    assert not missing["fp8 at n = 8,192"].passed
    assert not missing["copy"].passed


def test_checks_are_kept_line_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.tell(tmp_path, "timers", list(of_probe("timers", {"queued": 1.01, "graph": 0.9})))
    command.tell(tmp_path, "failures", [], "took longer than 40 s")
    kept = [json.loads(line) for line in (tmp_path / "checks.jsonl").read_text().splitlines()]
    assert [check["passed"] for check in kept] == [True, False, False]
    assert [line[:4] for line in capsys.readouterr().out.splitlines()] == ["PASS", "FAIL", "FAIL"]


@pytest.mark.process
def test_a_probe_answers_or_says_why_not() -> None:
    """Without a device nothing is hidden and nothing can be launched, which fails by itself."""
    found, problem = command.probe("hidden", 300)
    assert ([check.passed for check in found], problem) == ([True], "")
    found, problem = command.probe("launch", 300)
    assert found == []
    assert problem


@pytest.mark.process
def test_a_measurement_that_is_cancelled_ends_soon() -> None:
    check = command.cancelled(runner(SQUARE, end="import sys; sys.stdin.read()"))
    assert check.passed


def test_without_nvml_a_device_is_measured_and_its_state_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = DeviceFacts(name="NVIDIA H200", detail="", threads=0, memory_bytes=None, power_limit_w=None)

    def cuda_bench(_: Any) -> tuple[Any, DeviceFacts]:
        assert nvml_state("1234") == GpuState()
        return bench(), facts

    monkeypatch.setattr(probe, "cuda_bench", cuda_bench)
    assert set(probe.silent().values()) == {1.0}


def test_failures_are_found_out_by_what_comes_after() -> None:
    assert probe.failures(bench()) == {
        "out of memory": 1.0,
        "usable after it": 1.0,
        "failed assertion": 1.0,
        "found out": 0.0,  # an index out of range leaves a processor as it was
    }
    shares = probe.relative({"events": lambda run: 2.0, "queued": lambda run: 2.1}, lambda: None)
    assert shares == pytest.approx({"events": 1.0, "queued": 1.05})


def test_every_step_is_written_when_it_is_there(tmp_path: Path) -> None:
    said = cases.Predicted(0.3, 0.2, 0.4, 1e9)
    row = command.Row(CASES[0], said, said, FOUND)
    lost = command.Row(CASES[1], said, said, None, "out of memory")
    for rows in ([row], [row, lost]):
        command.write_rows(tmp_path, rows, "H100 SXM", "day")
        lines = [json.loads(line) for line in (tmp_path / "steps.jsonl").read_text().splitlines()]
        assert [line["problem"] for line in lines] == ["", "out of memory"][: len(rows)]
        assert lines[0]["measured"]["seconds"] == FOUND.seconds
        with (tmp_path / f"{command.TABLE}.csv").open() as file:
            assert [kept["step_time_s"] for kept in csv.DictReader(file)] == ["0.2"]


def test_without_a_package_index_wheels_are_taken_from_a_folder() -> None:
    make = shutil.which("make")
    assert make
    lines = subprocess.run(
        [make, "-n", "gpu", "WHEELS=carried", "PYTHON=python3"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "--no-index" in lines
    assert "carried/*.whl" in lines
    assert "venv" not in lines
    assert "requirements" not in lines


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
