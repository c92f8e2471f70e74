"""What is counted against what torch allocates: a small model of a family, one real training step, byte for byte.

The small model keeps the plan's ratios (query heads per key/value head, widths, experts) at a size that any machine
trains in a second. Its shape is read from the same config.json that transformers builds it from.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from core.benchmark.device import DeviceKind
from core.jobs.process import Job, ProcessRunner, State
from core.limits import limit
from core.models.configs.config import from_hf_config
from core.models.parameters import parameters
from core.models.spec import TransformerSpec
from core.training.activations.tensors import HF_SDPA
from core.training.device.buffers import TENSORS_ONLY
from core.training.device.inputs import StepSettings, states_of, written_under
from core.training.device.memory import parts_of
from core.training.layout import Layout, degrees_of
from core.training.memory import state_bytes, states_per_parameter
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES, PrecisionPolicy, find_policy
from core.training.torch_check.events import Advance, Began, Finished, Measured, decode
from core.training.torch_optimizers import IN_TORCH
from core.training.trained import EVERYTHING, Trained, parts_of_training

BATCH = 2
_HEADS, _HEAD_DIM, _GRID = 8, 32, 8
_EXPERTS = 8
_LLAMA = TransformerSpec(
    layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256, glu=True, tied_head=False
)
"""Llama 3 8B, whose ratios a model has of which only its size is known."""


def _near(value: float, least: int = _GRID) -> int:
    """The multiple of 8 nearest to ``value``."""
    return max(round(value / _GRID) * _GRID, least)


def small_config(spec: TransformerSpec | None) -> dict[str, Any]:
    """A config.json of a small model with the ratios of ``spec``, of Llama 3 8B where there is none.

    A table of learned positions makes it a GPT-2, routed experts a Mixtral, anything else a Llama.
    """
    spec = spec or _LLAMA
    group = min(spec.heads // spec.kv_heads, 2 * _HEADS)
    kv_heads = max(_HEADS // group, 1)
    heads = group * kv_heads
    hidden = min(_HEAD_DIM * heads, limit("torch_check_width"))
    share = hidden / spec.hidden
    same = {"vocab_size": limit("torch_check_vocab"), "tie_word_embeddings": spec.tied_head, "pad_token_id": 0}
    layers = min(spec.layers, limit("torch_check_layers"))
    if spec.position_kind == "learned" and not spec.experts:
        return {
            **same,
            "model_type": "gpt2",
            "n_layer": layers,
            "n_embd": hidden,
            "n_head": heads,
            "n_inner": _near(spec.ffn * share),
            "n_positions": limit("torch_check_length"),
            **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0),
        }
    settings = {
        **same,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": _near(spec.heads * spec.head_dim * share / heads),
    }
    if spec.experts:
        count = min(spec.experts.count, _EXPERTS)
        routed = {"num_local_experts": count, "num_experts_per_tok": min(spec.experts.per_token, count)}
        width = _near(spec.experts.width * share, least=32)
        return {**settings, "model_type": "mixtral", "intermediate_size": width, **routed}
    return {**settings, "model_type": "llama", "intermediate_size": min(_near(spec.ffn * share), 8 * hidden)}


def _number(value: Any) -> float:
    """The one number of an array."""
    return float(np.ravel(value)[0])


def policy_run(policy: PrecisionPolicy) -> PrecisionPolicy:
    """The policy that a step in plain torch has in place of ``policy``: fp32, with autocast to bf16 or without, or
    bf16, with a master copy or without."""
    if policy.weights.bytes == POLICIES["fp32"].weights.bytes:
        return POLICIES["fp32, bf16 autocast" if policy.autocasts else "fp32"]
    if policy.master is None:
        return POLICIES["bf16 throughout"]
    wide = policy.gradients.bytes > policy.weights.bytes
    return POLICIES["mixed bf16, fp32 master, fp32 gradients" if wide else "mixed bf16, fp32 master"]


def trained_run(trained: Trained, policy: PrecisionPolicy, shape: TransformerSpec) -> Trained:
    """What a step in plain torch trains of the small model ``shape`` in place of ``trained``.

    Frozen weights are in bf16, or in fp32 where they meet trained ones in fp32; no DoRA, no dropout; the rank is at
    most the least width, the last layers at most all.
    """
    if trained.everything:
        return EVERYTHING
    alone = trained.adapters and not (trained.head or trained.norms) and trained.frozen != "fp32"
    frozen = "fp32" if policy.weights.bytes == POLICIES["fp32"].weights.bytes and not alone else "bf16"
    least = min(shape.hidden, shape.kv_heads * shape.head_dim, shape.ffn or shape.hidden)
    small = {"rank": min(trained.rank, least), "last": min(trained.last, shape.layers)}
    return replace(trained, frozen=frozen, frozen_fp32=False, dora=False, dropout=False, **small)


@dataclass(frozen=True)
class Trial:
    """One step to be run: a config.json as text, an optimizer, a policy, a device, what is trained. Sizes are checked.

    Raises `TrainedError`, a ``ValueError``, for tensors that the model does not have, and ``ValueError`` for a model
    beyond the caps of `core.limits`, or what torch has no optimizer for.
    """

    config: str
    optimizer: str
    policy: str
    device: DeviceKind
    trained: Trained = EVERYTHING

    def __post_init__(self) -> None:
        shape = self.shape
        caps = {"torch_check_width": shape.hidden, "torch_check_layers": shape.layers, "torch_check_vocab": shape.vocab}
        for name, value in caps.items():
            if value > limit(name):
                raise ValueError(f"{value:,} is beyond {name}, {limit(name):,}")
        if self.optimizer not in IN_TORCH:
            raise ValueError(f"torch.optim has no {self.optimizer}")
        if self.device not in ("cpu", "cuda") or policy_run(find_policy(self.policy)).id != self.policy:
            raise ValueError(f"cannot run {self.policy} on {self.device}")
        if self.trained.everything:
            return
        if self.family != "llama":
            raise ValueError("Fine-tuning is run on models of Llama’s kind only: no GPT-2, no routed experts.")
        if find_policy(self.policy).autocasts or trained_run(self.trained, find_policy(self.policy), shape) != (
            self.trained
        ):
            raise ValueError("cannot run what is trained in this policy")
        parts_of_training(shape, self.trained)

    @cached_property
    def shape(self) -> TransformerSpec:
        """The model's shape, as the reader of every config.json has it."""
        return from_hf_config(self.config)

    @property
    def family(self) -> str:
        """``llama``, ``gpt2`` or ``mixtral``."""
        return str(json.loads(self.config)["model_type"])

    @property
    def length(self) -> int:
        """Tokens of one sequence."""
        return limit("torch_check_length")

    @cached_property
    def parameters(self) -> int:
        """How many parameters the model has."""
        return parameters(self.shape).total

    @cached_property
    def trained_parameters(self) -> int:
        """How many parameters have gradients, adapters among them."""
        return sum(part.tensor.elements for part in parts_of_training(self.shape, self.trained) if part.trained)

    @cached_property
    def predicted(self) -> Mapping[str, float]:
        """Bytes of each part, as they are counted for any model; on a GPU also the peak."""
        policy, optimizer = find_policy(self.policy), find_optimizer(self.optimizer)
        each = states_per_parameter(optimizer, policy)
        states = {
            "parameters": each.parameters,
            "gradients": each.gradients,
            "master": each.master,
            "optimizer": each.optimizer,
        }
        degrees, step = degrees_of(Layout(micro_batch=BATCH)), self._step
        states_held = states_of(optimizer, policy, self.shape, self.trained)
        parts = parts_of(self.shape, degrees, states_held, step, TENSORS_ONLY, ("first",))
        activations = parts.activations
        by_name: dict[str, float] = {
            part: state_bytes(self.parameters, stored) for part, stored in states.items() if stored
        }
        if not self.trained.everything:
            held = (parts.parameters, parts.gradients, parts.master_weights, parts.optimizer_state)
            sizes = {part: round(_number(each)) for part, each in zip(states, held, strict=True)}
            by_name = {part: size for part, size in sizes.items() if size}
        by_name["activations"] = _number(activations.layers + activations.head + activations.embedding)
        if policy.autocasts:
            by_name["casts"] = _number(parts.casts)
        if self.device == "cuda":
            by_name["peak"] = _number(parts.fullest.tensors)
        return by_name

    @property
    def _step(self) -> StepSettings:
        policy = find_policy(self.policy)
        how = written_under(HF_SDPA, self.shape, policy, self.trained)
        if self.device == "cpu":
            how = replace(how, autocasts=False, flash=HF_SDPA.flash)
        return StepSettings(self.length, how).under(policy, self.trained)


def trial_of(
    spec: TransformerSpec | None,
    optimizer: str,
    policy: PrecisionPolicy,
    device: DeviceKind,
    trained: Trained = EVERYTHING,
) -> Trial:
    """The step that stands for a plan; see `small_config`, `policy_run` and `trained_run`. Raises as `Trial` does."""
    config, run = json.dumps(small_config(spec)), policy_run(policy)
    if not trained.everything and run.autocasts:
        run = POLICIES["fp32"]
    return Trial(config, optimizer, run.id, device, trained_run(trained, run, from_hf_config(config)))


def worker_command(trial: Trial) -> Sequence[str]:
    """The command line of the process that runs a step."""
    parts = [trial.config, trial.optimizer, trial.policy, trial.device, json.dumps(asdict(trial.trained))]
    return [sys.executable, "-m", "core.training.torch_check.worker", *parts]


@dataclass(frozen=True, slots=True)
class TorchCheck:
    """A step at one moment. measured: bytes by part, as far as it has come. message: why it ended early, or empty."""

    id: str
    spec: Trial
    state: State
    seconds: float
    began: Began | None
    advance: Advance | None
    measured: Mapping[str, float]
    message: str

    @property
    def running(self) -> bool:
        """Whether its process still works."""
        return self.state == "running"


@dataclass
class _CheckJob(Job[Trial, TorchCheck]):
    began: Began | None = None
    advance: Advance | None = None
    measured: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def found(self) -> bool:
        return bool(self.measured)

    def take(self, line: bytes) -> None:
        match decode(line):
            case Began() as event:
                self.began = event
            case Advance() as event:
                self.advance = event
            case Measured() as event:
                self.measured[event.part] = event.size
            case Finished():
                self.done = True
            case None:
                self.ignored_lines += bool(line.strip())

    def snapshot(self) -> TorchCheck:
        return TorchCheck(
            id=self.id,
            spec=self.spec,
            state=self.state,
            seconds=self.seconds,
            began=self.began,
            advance=self.advance if self.state == "running" else None,
            measured=dict(self.measured),
            message=self.message,
        )


class TorchCheckRunner(ProcessRunner[Trial, TorchCheck]):
    """Runs one step at a time for everybody. command: the process to run, that of this module by default."""

    def __init__(self, command: Any = worker_command, timeout_s: float | None = None) -> None:
        most = float(limit("torch_check_seconds")) if timeout_s is None else timeout_s
        super().__init__(command, _CheckJob, most, "step")
