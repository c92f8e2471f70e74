"""A real step of a small model takes the bytes that are counted, and its process is watched, cancelled and checked."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from core.limits import limit
from core.models.catalog import CATALOG
from core.models.spec import TransformerSpec
from core.training.optimizers import find_optimizer, optimizers
from core.training.precision import POLICIES
from core.training.torch_check.events import MEASURED, Advance, Began, Event, Finished, Measured, decode, encode
from core.training.torch_check.step import (
    BATCH,
    TorchCheck,
    TorchCheckRunner,
    Trial,
    policy_run,
    small_config,
    trial_of,
)
from core.training.torch_check.worker import run
from core.training.torch_optimizers import IN_TORCH
from core.training.trained import Trained
from core.views.training import text_torch_check
from tests.every import every
from tests.patience import PATIENCE_S, until

GPT2, LLAMA, MIXTRAL = (CATALOG[name].spec for name in ("GPT-2 124M", "Llama 3 8B", "Mixtral 8x7B"))
FP32, BF16 = "fp32", "bf16 throughout"
MIXED, WIDE = "mixed bf16, fp32 master", "mixed bf16, fp32 master, fp32 gradients"
AUTOCAST = "fp32, bf16 autocast"

STEPS = [
    (GPT2, "AdamW", FP32),
    (GPT2, "SGD momentum", BF16),
    (LLAMA, "AdamW", MIXED),
    (LLAMA, "SGD", FP32),
    (LLAMA, "AMSGrad", WIDE),
    (MIXTRAL, "AdamW", BF16),
    (GPT2, "AdamW", AUTOCAST),
    (LLAMA, "SGD", AUTOCAST),
    (MIXTRAL, "SGD momentum", AUTOCAST),
]


def smaller(trial: Trial) -> Trial:
    """The same with two layers, which a busy machine builds sooner."""
    config = json.loads(trial.config)
    name = "n_layer" if trial.family == "gpt2" else "num_hidden_layers"
    return replace(trial, config=json.dumps({**config, name: 2}))


def measured(trial: Trial) -> dict[str, float]:
    said: list[Event] = []
    run(trial, said.append)
    assert isinstance(said[-1], Finished)
    return {event.part: event.size for event in said if isinstance(event, Measured)}


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("spec", "optimizer", "policy"), STEPS)
def test_torch_takes_what_is_counted(spec: TransformerSpec, optimizer: str, policy: str) -> None:
    trial = smaller(trial_of(spec, optimizer, POLICIES[policy], "cpu"))
    found, counted = measured(trial), trial.predicted
    for part in ("parameters", "gradients", "master"):
        assert found.get(part) == counted.get(part)
    counters = found["optimizer"] - counted.get("optimizer", 0)
    assert 0 <= counters < 12 * 200  # a step counter for each tensor, a few dozen of them
    assert found["activations"] == pytest.approx(counted["activations"], rel=0.01)
    assert found.get("casts", 0) == pytest.approx(counted.get("casts", 0), rel=0.01)
    assert ("casts" in found) == (policy == AUTOCAST)


ON_H100 = [
    (GPT2, AUTOCAST, 44.94, 7.34),
    (GPT2, BF16, 29.99, 0.0),
    (GPT2, FP32, 59.88, 0.0),
    (LLAMA, AUTOCAST, 32.40, 7.86),
    (LLAMA, BF16, 26.86, 0.0),
    (LLAMA, FP32, 68.77, 0.0),
    (MIXTRAL, AUTOCAST, 84.02, 2.38),
    (MIXTRAL, BF16, 45.98, 0.0),
    (MIXTRAL, FP32, 106.76, 0.0),
]
"""Megabytes of activations and of casts that the same steps took on an H100 [torch 2.11, transformers 5.17]. CUDA's
autocast takes GPT-2's third power in fp32, and in fp32 no kernel of attention shares keys among heads."""


@pytest.mark.parametrize(("spec", "policy", "activations", "casts"), ON_H100)
def test_a_gpu_takes_what_is_counted(spec: TransformerSpec, policy: str, activations: float, casts: float) -> None:
    counted = trial_of(spec, "AdamW", POLICIES[policy], "cuda").predicted
    assert counted["activations"] / 1e6 == pytest.approx(activations, rel=0.005)
    assert counted.get("casts", 0.0) / 1e6 == pytest.approx(casts, rel=0.005)


TUNED = [
    (Trained("adapters", rank=8), BF16),
    (Trained("adapters", rank=16, targets=("q_proj", "v_proj"), frozen="nf4"), FP32),
    (Trained("adapters", rank=8, targets=("attention",), norms=True, head=True), MIXED),
    (Trained("last layers", last=1), WIDE),
    (Trained("named tensors", names=("layers.1.mlp", "layers.*.self_attn.v_proj")), FP32),
]


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("trained", "policy"), TUNED)
def test_torch_keeps_of_a_fine_tuning_step_what_is_counted(trained: Trained, policy: str) -> None:
    """Frozen weights have no gradient and no state: all of both that torch holds is what trained tensors have."""
    trial = smaller(trial_of(LLAMA, "AdamW", POLICIES[policy], "cpu", trained))
    found, counted = measured(trial), trial.predicted
    for part in ("parameters", "gradients", "master"):
        assert found.get(part) == counted.get(part)
    each = {FP32: 4, BF16: 2, MIXED: 2, WIDE: 4}[policy]
    assert found["gradients"] == each * trial.trained_parameters < each * trial.parameters
    counters = found["optimizer"] - counted["optimizer"]
    assert counters % 4 == 0  # a step counter in fp32 for each tensor that is trained
    assert 0 < counters < 4 * 60
    assert found["activations"] == pytest.approx(counted["activations"], rel=0.01)


def test_what_plain_torch_cannot_train_is_replaced_and_said_or_refused() -> None:
    bf16 = POLICIES[BF16]
    plan = Trained("adapters", rank=4096, frozen="nf4", dora=True, dropout=True, frozen_fp32=True)
    trial = trial_of(LLAMA, "AdamW", bf16, "cpu", plan)
    assert trial.trained == Trained("adapters", rank=64)
    said = text_torch_check.instead_trained(plan, trial)
    for word in ("bf16, not nf4", "no DoRA", "no dropout", "rank 64, not 4096"):
        assert word in said
    assert text_torch_check.instead_trained(trial.trained, trial) == ""
    assert "LoRA adapters of rank 64" in text_torch_check.what_is_run(trial)
    autocast = trial_of(LLAMA, "AdamW", POLICIES[AUTOCAST], "cpu", plan)
    assert FP32 in text_torch_check.instead(POLICIES[AUTOCAST], autocast)
    with pytest.raises(ValueError, match="cannot run what is trained"):
        replace(trial, trained=plan)
    with pytest.raises(ValueError, match="names no tensor"):
        trial_of(LLAMA, "AdamW", bf16, "cpu", Trained("named tensors", names=("layers.31.mlp",)))
    with pytest.raises(ValueError, match="Llama’s kind"):
        trial_of(MIXTRAL, "AdamW", bf16, "cpu", plan)


@pytest.mark.process
@pytest.mark.long
def test_the_process_runs_a_fine_tuning_step() -> None:
    runner = TorchCheckRunner()
    trial = smaller(trial_of(LLAMA, "AdamW", POLICIES[BF16], "cpu", Trained("adapters", rank=8)))
    done = wait(runner, runner.start(trial)[0].id, lambda now: not now.running)
    assert (done.state, done.message) == ("finished", "")
    assert done.measured["gradients"] == trial.predicted["gradients"]


def wait(runner: TorchCheckRunner, id: str, wanted: Callable[[TorchCheck], bool]) -> TorchCheck:
    def now() -> TorchCheck | None:
        seen = runner.poll(id)
        assert seen is not None
        return seen if wanted(seen) else None

    return until(now)


@pytest.mark.process
@pytest.mark.long
def test_the_process_measures_and_says_so() -> None:
    runner = TorchCheckRunner()
    trial = smaller(trial_of(None, "Adam", POLICIES[FP32], "cpu"))
    job, mine = runner.start(trial)
    assert mine
    assert runner.start(trial) == (replace(runner.poll(job.id), seconds=pytest.approx(0, abs=PATIENCE_S)), False)
    done = wait(runner, job.id, lambda now: not now.running)
    assert (done.state, done.message) == ("finished", "")
    assert set(done.measured) == {"parameters", "gradients", "optimizer", "activations"}
    assert done.began is not None
    assert "agrees" in text_torch_check.answer(done)
    assert len(text_torch_check.rows(done)) == 4
    assert done.began.torch in text_torch_check.measured_with(done)


def scripted(*lines: str) -> TorchCheckRunner:
    code = "import sys, time\n" + "\n".join(lines)
    return TorchCheckRunner(lambda trial: [sys.executable, "-S", "-c", code])


def says(event: Event) -> str:
    return f"print({encode(event)!r}, flush=True)"


TRIAL = trial_of(LLAMA, "AdamW", POLICIES[FP32], "cpu")


@pytest.mark.process
def test_a_step_is_cancelled_and_keeps_what_it_has() -> None:
    runner = scripted(says(Advance(phase="forward")), says(Measured(part="parameters", size=5.0)), "time.sleep(600)")
    job, _ = runner.start(TRIAL)
    now = wait(runner, job.id, lambda now: bool(now.measured))
    assert now.running
    assert now.advance == Advance(phase="forward")
    assert text_torch_check.progress(now).startswith("Forward")
    assert runner.cancel(job.id)
    ended = wait(runner, job.id, lambda now: not now.running)
    assert (ended.state, ended.measured, ended.advance) == ("cancelled", {"parameters": 5.0}, None)
    assert runner.latest_with_results() == ended
    assert not runner.cancel(job.id)


@pytest.mark.process
def test_a_process_that_cannot_import_torch_says_so() -> None:
    runner = scripted("raise ModuleNotFoundError(\"No module named 'torch'\")")
    job, _ = runner.start(TRIAL)
    ended = wait(runner, job.id, lambda now: not now.running)
    assert ended.state == "failed"
    assert "No module named 'torch'" in ended.message
    assert text_torch_check.answer(ended) == ""


@pytest.mark.process
def test_a_step_that_takes_too_long_is_stopped() -> None:
    runner = TorchCheckRunner(lambda trial: [sys.executable, "-S", "-c", "import time; time.sleep(600)"], timeout_s=0.2)
    job, _ = runner.start(TRIAL)
    assert "stopped after 0.2 s" in wait(runner, job.id, lambda now: not now.running).message


@every("name", CATALOG)
def test_every_model_of_the_catalogue_has_a_small_one_with_its_ratios(name: str) -> None:
    spec = CATALOG[name].spec
    trial = trial_of(spec, "AdamW", POLICIES[BF16], "cpu")
    small = trial.shape
    assert trial.parameters < 1.5e8
    assert small.hidden % small.heads == 0
    if trial.family != "gpt2" and spec.heads // spec.kv_heads <= 16:
        assert small.heads // small.kv_heads == spec.heads // spec.kv_heads
    if trial.family == "llama" and spec.glu:
        assert small.ffn / small.hidden == pytest.approx(min(spec.ffn / spec.hidden, 8), rel=0.05)
    assert bool(small.experts) == bool(spec.experts)
    assert small.tied_head == spec.tied_head
    assert trial.predicted["activations"] > 0


@every("policy", POLICIES)
def test_every_policy_has_one_that_plain_torch_can_run(policy: str) -> None:
    run_as = policy_run(POLICIES[policy])
    assert policy_run(run_as) == run_as
    assert run_as.weights.bytes == max(POLICIES[policy].weights.bytes, 2)  # fp8 is run in bf16
    assert run_as.autocasts == POLICIES[policy].autocasts
    assert bool(text_torch_check.instead(POLICIES[policy])) == (run_as.id != policy)


def test_optimizers_are_torchs_or_refused() -> None:
    assert set(IN_TORCH) <= set(optimizers())
    for name in optimizers():
        assert (text_torch_check.refused(find_optimizer(name)) == "") == (name in IN_TORCH)
    with pytest.raises(ValueError, match="Lion"):
        replace(TRIAL, optimizer="Lion")


@pytest.mark.parametrize(
    "wrong",
    [
        {"config": json.dumps({**small_config(LLAMA), "hidden_size": 2 * limit("torch_check_width")})},
        {"config": json.dumps({**small_config(LLAMA), "num_hidden_layers": limit("torch_check_layers") + 1})},
        {"config": json.dumps({**small_config(LLAMA), "vocab_size": limit("torch_check_vocab") + 1})},
        {"policy": "fp8 matmuls, fp32 master, bf16 states"},
        {"device": "tpu"},
    ],
)
def test_what_is_beyond_the_caps_is_not_run(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"beyond|cannot run"):
        replace(TRIAL, **wrong)  # type: ignore[arg-type]


def test_a_difference_is_said_with_its_part() -> None:
    done = TorchCheck("1", TRIAL, "finished", 1.0, None, None, dict(TRIAL.predicted), "")
    assert "last byte" in text_torch_check.answer(done)
    off = replace(done, measured={**TRIAL.predicted, "activations": 1.07 * TRIAL.predicted["activations"]})
    assert "activations" in text_torch_check.answer(off)
    assert "+7.00 %" in text_torch_check.answer(off)
    assert text_torch_check.rows(off)[-1][-1] == "1.07000"


@pytest.mark.parametrize(
    "event",
    [
        Began(torch="2.13", transformers="5.23", device="CPU"),
        Advance(phase="forward"),
        Measured(part="peak", size=1e9),
        Finished(elapsed_s=2.0),
    ],
)
def test_events_survive_the_pipe_and_nothing_else_does(event: Event) -> None:
    assert decode(encode(event).encode()) == event
    for bad in (b"", b"noise", b'{"event": "measured", "part": "parameters", "size": -1}', b'{"event": "done"}'):
        assert decode(bad) is None
    assert decode(b'{"event": "measured", "part": "souls", "size": 1}') is None
    assert decode(b'{"event": "advance", "phase": "thinking"}') is None


def test_a_gpus_peak_is_counted_at_its_fullest_moment_and_judges_no_part() -> None:
    """At the loss: all parts but gradients, and 12 bytes for each logit."""
    on_gpu = replace(TRIAL, device="cuda")
    parts = {part: size for part, size in on_gpu.predicted.items() if part != "peak"}
    logits = 12 * BATCH * TRIAL.length * TRIAL.shape.vocab
    assert on_gpu.predicted["peak"] == sum(parts.values()) - parts["gradients"] + logits
    done = TorchCheck("1", on_gpu, "finished", 1.0, None, None, {**on_gpu.predicted, "peak": 1.0}, "")
    assert "last byte" in text_torch_check.answer(done)
    assert [row[0] for row in text_torch_check.rows(done)][-1].startswith("Peak")


def test_progress_goes_forward() -> None:
    shares = [
        Advance(phase=phase).fraction for phase in ("loading torch and transformers", "forward", "optimizer step")
    ]
    assert 0 < shares[0] < shares[1] < shares[2] < 1
    assert "activations" in MEASURED
