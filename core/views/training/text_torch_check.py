"""What a step on this machine's torch says about what is counted, in sentences and in a table."""

from __future__ import annotations

from core.training.optimizers import Optimizer
from core.training.precision import PrecisionPolicy, find_policy
from core.training.torch_check.events import MEASURED, PHASES
from core.training.torch_check.step import BATCH, TorchCheck, Trial, policy_run
from core.training.torch_optimizers import IN_TORCH
from core.training.trained import Trained, active_share
from core.units import QuantityText, format_bytes, format_count
from core.wording import listed, percent, signed

_TITLES = {
    "parameters": "Parameters",
    "gradients": "Gradients",
    "master": "Master weights",
    "optimizer": "Optimizer state",
    "activations": "Activations, saved for backward",
    "casts": "Weights cast to bf16, saved for backward",
    "peak": "Peak of a second step, without the workspace of cuBLAS; counted: its fullest moment",
}
_FAMILIES = {"gpt2": "GPT-2", "llama": "Llama", "mixtral": "Mixtral"}
_CLOSE = 0.01
"""A part counted to a hundredth is counted right: index and mask tensors of a small model are not counted."""


def what_is_run(trial: Trial) -> str:
    """The small model, and the step that it makes."""
    s = trial.shape
    routed = f", {s.experts.count} experts of which {s.experts.per_token} work on a token" if s.experts else ""
    return (
        f"A {_FAMILIES[trial.family]} of {format_count(trial.parameters)} parameters: {s.layers} layers of width "
        f"{s.hidden}, {s.heads} query heads on {s.kv_heads} key/value heads{routed}, with the ratios of the chosen "
        f"model{_trained(trial)}. {BATCH} sequences of {trial.length} tokens, forward, backward and one step of "
        f"{trial.optimizer}, {trial.policy}, on the {'GPU' if trial.device == 'cuda' else 'CPU'}."
    )


def _trained(trial: Trial) -> str:
    """How much of the small model is trained, and what."""
    t = trial.trained
    if t.everything:
        return ""
    what = {
        "adapters": f"LoRA adapters of rank {t.rank}",
        "last layers": f"the last {t.last} of its layers",
        "named tensors": "the named tensors",
    }[t.method]
    return (
        f"; {format_count(trial.trained_parameters)} parameters are trained ({what}), the rest is frozen in {t.frozen}"
    )


def instead_trained(trained: Trained, trial: Trial) -> str:
    """How what is trained differs from the plan; empty where it does not."""
    run = trial.trained
    if trained.everything or run == trained:
        return ""
    changes = [f"frozen weights in {run.frozen}, not {trained.frozen}"] * (run.frozen != trained.frozen)
    changes += ["no fp32 for norms and embedding"] * trained.frozen_fp32 + ["no DoRA"] * trained.dora
    changes += ["no dropout"] * trained.dropout
    changes += [f"rank {run.rank}, not {trained.rank}"] * (run.rank != trained.rank and run.adapters)
    changes += [f"{run.last} last layers, not {trained.last}"] * (run.last != trained.last)
    return f"Plain torch runs it with {listed(changes)}." if changes else ""


def instead(policy: PrecisionPolicy, trial: Trial | None = None) -> str:
    """Which policy is run where a step in plain torch cannot have ``policy``; empty where it can."""
    run = find_policy(trial.policy) if trial else policy_run(policy)
    return "" if run.id == policy.id else f"Run in “{run.id}”, which plain torch has, in place of “{policy.id}”."


def refused(optimizer: Optimizer) -> str:
    """Why no step can be run with an optimizer; empty where one can."""
    if optimizer.name in IN_TORCH:
        return ""
    return f"torch.optim has no {optimizer.name}: choose one of {listed(list(IN_TORCH), 'or')}."


def progress(now: TorchCheck) -> str:
    """What is being done, and for how long already."""
    phase = now.advance.phase if now.advance else PHASES[0]
    return f"{phase[0].upper()}{phase[1:]} · {now.seconds:.0f} s"


def answer(done: TorchCheck) -> str:
    """How well the counted bytes are borne out; empty while something is still to come."""
    counted = {part: size for part, size in done.spec.predicted.items() if part != "peak"}
    pairs = {part: (size, counted[part]) for part, size in done.measured.items() if part in counted}
    if done.running or not pairs:
        return ""
    shares = {part: abs(size / value - 1) for part, (size, value) in pairs.items()}
    worst = max(shares, key=lambda part: shares[part])
    if shares[worst] < _CLOSE:
        most = f"to {percent(shares[worst])}" if shares[worst] >= 1e-6 else "to the last byte"
        return f"**torch agrees {most}** in {len(pairs)} of {len(counted)} parts."
    size, value = pairs[worst]
    return f"**torch differs:** {_TITLES[worst].lower()}: {signed(size / value - 1)} against what is counted."


def rows(done: TorchCheck) -> list[tuple[str, str, str, str]]:
    """Part, bytes counted, bytes measured, and measured over counted."""
    result: list[tuple[str, str, str, str]] = []
    for part in MEASURED:
        counted, size = done.spec.predicted.get(part), done.measured.get(part)
        if counted is not None or size is not None:
            ratio = QuantityText(f"{size / counted:.5f}", size / counted) if counted and size is not None else "–"
            result.append((_TITLES[part], _shown(counted), _shown(size), ratio))
    return result


def _shown(value: float | None) -> str:
    return "–" if value is None else format_bytes(value, system="decimal")


def measured_with(done: TorchCheck) -> str:
    """The libraries, and how each part is measured."""
    on = (
        f"torch {done.began.torch}, transformers {done.began.transformers}, {done.began.device}. " if done.began else ""
    )
    return (
        f"{on}Sums of storages, each once; the optimizer’s from optimizer.state with its step counters, activations "
        f"from torch.autograd.graph.saved_tensors_hooks up to the logits, without weights.{_lowest(done.spec)}"
    )


def _lowest(trial: Trial) -> str:
    if active_share(trial.shape, trial.trained) == 1:
        return ""
    return (
        " The lowest layer that is trained hands no gradient down, so torch keeps less of its first norm; it is "
        "counted like the other layers."
    )


def before(done: TorchCheck) -> str:
    """That what is shown is not of the step that ended last."""
    return f"Measured before that, in {done.seconds:.0f} s:"


def other(done: TorchCheck) -> str:
    """That a step was run with other inputs than those in force."""
    return f"This was measured with other inputs: {what_is_run(done.spec)}"
