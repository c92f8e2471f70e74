"""Fine-tuning: its time, the largest that fits, and what methods of post-training hold.

Step times are not asked for. Every copy is laid out as the plan lays out the model it trains; the engine that writes
answers shares itself over accelerators by tensor parallelism.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from core.budget.equations import BudgetError
from core.formula import Explanation, Source, Symbol, formula
from core.limits import cached
from core.models.catalog import catalog, model_named
from core.models.spec import SpecError, TransformerSpec
from core.models.symbols import count
from core.planning.estimate import timed_estimate
from core.planning.memory_estimate import MemoryEstimate, memory_estimate
from core.planning.plan import Plan
from core.serving.serving import DEGREES, Serving, divides, serving
from core.training.device.host import host_lacks
from core.training.device.memory import DeviceMemory, Setup
from core.training.device.peak import largest_micro_batch, largest_seq_len, split_sequence
from core.training.layout import LayoutError
from core.training.trained import EVERYTHING, parts_of_training

PRINTED = (0.99, 1.15)
"""Printed peaks of fine-tuning runs over what a plan counts, whatever the software keeps beside: eight in ten lie
between. Readings of bitsandbytes before 0.43.2 are left out: later ones contradict each other by a third."""


@dataclass(frozen=True, slots=True)
class FineTuningTime:
    """seconds: of a step. tokens_per_second: of all accelerators, padding not counted. minutes: in steady state for the
    plan's tokens. dollars: of these, low and high, NaN without a price. per_hour: dollars of all accelerators for an
    hour. waiting: share of a step in which the accelerator waits for its host to start operations."""

    seconds: float
    tokens_per_second: float
    minutes: float
    dollars: tuple[float, float]
    per_hour: tuple[float, float]
    waiting: float


@cached("results_kept")
def fine_tuning_time(plan: Plan) -> FineTuningTime | None:
    """Return how fast a plan's layout trains; None if the time of a step is not known."""
    with suppress(BudgetError, SpecError, LayoutError):
        at = timed_estimate(plan)
        seconds = at.step.seconds
        tokens = float(at.request.batch * at.request.timed_length)
        if not seconds > 0 or math.isinf(seconds):
            return None
        rate = tokens / seconds
        hours = plan.tokens / rate / 3600
        low, high = (price * plan.accelerators for price in plan.price_range)
        waiting = float(at.step.step.fixed) / seconds
        return FineTuningTime(seconds, rate, 60 * hours, (low * hours, high * hours), (low, high), waiting)
    return None


@dataclass(frozen=True, slots=True)
class Fitting:
    """Largest value of one field that fits with the plan's memory headroom and everything else unchanged.

    The value is a text of the field; empty if none fits.
    """

    field: str
    label: str
    text: str


def _most(fits: Callable[[int], bool], high: int) -> int:
    """Return the largest whole number up to ``high`` that fits if all smaller ones do; 0 if 1 does not."""
    return bisect_left(range(1, high + 1), True, key=lambda size: not fits(size))


def _largest_model(plan: Plan, h: MemoryEstimate) -> str:
    """Return the model with most parameters that leaves enough free; empty if none does.

    A smaller one may take more, by its vocabulary or its width: each is looked at, from the largest whose states alone
    would fit on.
    """
    failed, most = h, h.total + h.room
    for parameters, name in reversed(_dense_models()):
        if _least(failed, parameters, model_named(name).spec) > most:
            continue
        with suppress(LayoutError, SpecError):
            other = memory_estimate(replace(plan, model=name))
            if other.room >= 0 and other.host_holds:
                return name
            failed = other
    return ""


def _least(h: MemoryEstimate, parameters: float, spec: TransformerSpec) -> float:
    """Return bytes that another model takes at least under the plan of ``h``: states by its parameters, and activations
    by its layers or its vocabulary, whatever is less of them."""
    memory = h.device_memory
    states = float(memory.parameters + memory.gradients + memory.master_weights + memory.optimizer_state)
    wider = min(spec.layers * spec.hidden / (h.spec.layers * h.spec.hidden), spec.vocab / h.spec.vocab)
    return (states * parameters / h.parameters + float(memory.activations) * wider) / _MORE


def _largest_rank(h: MemoryEstimate, most: int) -> int:
    """Return the largest rank up to ``most`` that leaves enough free; 0 if none does."""

    def fits(rank: int) -> bool:
        with suppress(LayoutError):
            setup = replace(h.setup, trained=replace(h.plan.trained, rank=rank))
            held = host_lacks(setup, h.plan.device.node_size, h.plan.limits.host) <= 0
            return bool(held and setup.account(h.layout).total <= h.total + h.room)
        return False

    return _most(fits, most)


def _hosted(h: MemoryEstimate, most: int, changed: Callable[[int], Setup]) -> int:
    """Return the largest number up to ``most`` of which the host holds what is offloaded."""
    node, there = h.plan.device.node_size, h.plan.limits.host
    return _most(lambda number: host_lacks(changed(number), node, there) <= 0, most)


_MORE = 1.2
"""By how much less than its share another model may hold: its embedding is another part of it."""


@cached("tables_kept")
def _dense_models() -> tuple[tuple[float, str], ...]:
    """Return models that can be downloaded and fine-tuned whole in one account, from the smallest."""
    published = (m for m in catalog() if "/" in m.hf_id and m.laid_out and not m.spec.experts)
    return tuple(sorted((float(m.parameters), m.name) for m in published))


def largest_fitting(plan: Plan) -> tuple[Fitting, ...]:
    """Return the largest model, rank, sequence length and micro-batch that a plan may have, each with all else as it
    is."""
    # What one's own layout holds depends on neither, so that other data or prices find it worked out.
    return _largest_fitting(replace(plan, tokens=1e9, prices=None) if plan.own_layout else plan)


@cached("results_kept")
def _largest_fitting(plan: Plan) -> tuple[Fitting, ...]:
    h = memory_estimate(plan)
    if h.fits == "unknown":
        return ()
    found = [Fitting("model", "model", _largest_model(plan, h))]
    if plan.trained.adapters:
        most = max(1, min(h.spec.hidden, h.spec.kv_heads * h.spec.head_dim))
        rank = _largest_rank(h, most)
        found.append(Fitting("rank", "rank", f"{rank:,}" if rank else ""))
    setup, each = h.setup, split_sequence(h.layout)
    length = each * _hosted(h, largest_seq_len(h.roomy) // each, lambda times: replace(setup, seq_len=each * times))
    batch = _hosted(
        h, largest_micro_batch(h.roomy), lambda size: replace(setup, layout=replace(h.layout, micro_batch=size))
    )
    found.append(Fitting("seq", "sequence length", f"{length:,}" if length else ""))
    found.append(Fitting("mbs", "micro-batch", f"{batch:,}" if batch else ""))
    return tuple(found)


def trained_parameters(h: MemoryEstimate) -> int:
    """Return how many parameters are trained."""
    return sum(part.tensor.elements for part in parts_of_training(h.spec, h.plan.trained) if part.trained)


Method: TypeAlias = Literal["DPO", "GRPO", "PPO"]

_TRL = "https://github.com/huggingface/trl/blob/f2cd57710ae345ea6428ae95363267fcf38a3dc8/trl"
_TRL_DPO = Source("TRL", "trainer/dpo_trainer.py, July 2026", f"{_TRL}/trainer/dpo_trainer.py")
_TRL_GRPO = Source("TRL", "trainer/grpo_config.py, July 2026", f"{_TRL}/trainer/grpo_config.py")
_TRL_PPO = Source("TRL", "experimental/ppo/ppo_trainer.py, July 2026", f"{_TRL}/experimental/ppo/ppo_trainer.py")
_DPO = Source("Rafailov et al. 2023, Direct Preference Optimization", "section 4", "https://arxiv.org/abs/2305.18290")
_GRPO = Source("Shao et al. 2024, DeepSeekMath", "section 4.1 and figure 4", "https://arxiv.org/abs/2402.03300")
_PPO = Source("Ouyang et al. 2022, InstructGPT", "section 3.5", "https://arxiv.org/abs/2203.02155")

ANSWERS = 8
"""Answers that are written at once: GRPO's group by TRL's default."""

ENGINE_SHARE = 0.3
"""Share of an accelerator's memory that an engine beside training takes by TRL's default."""


@formula(
    r"2 \cdot \v{copies} \cdot \v{parameters}",
    result=Symbol("F", "bytes of frozen copies on one accelerator", "bytes"),
    symbols={
        "copies": count("m", "frozen models as large as the one that is trained: a reference, a reward model"),
        "parameters": count("N_r", "parameters that one accelerator holds of each"),
    },
    sources=(_DPO, _TRL_DPO, _GRPO, _TRL_GRPO, _PPO, _TRL_PPO),
)
def frozen_bytes(copies: float, parameters: float) -> float:
    """Frozen models in addition to the trained one.

    They are stored in bf16, without gradients and optimizer state, and sharded like its weights.
    """
    return 2 * copies * parameters


@dataclass(frozen=True, slots=True)
class Ingredients:
    """Memory that a method needs in addition to the trained model.

    sequences: sequences of one example at once. frozen: number of frozen models. critic: whether a second model is
    trained. engine: whether a copy generates answers, with its KV cache.
    """

    method: Method
    sequences: int
    frozen: int
    critic: bool
    engine: bool


METHODS: tuple[Ingredients, ...] = (
    Ingredients("DPO", sequences=2, frozen=1, critic=False, engine=False),
    Ingredients("GRPO", sequences=1, frozen=1, critic=False, engine=True),
    Ingredients("PPO", sequences=1, frozen=2, critic=True, engine=True),
)
"""A pair of answers and a reference; a reference and an engine; a critic, reference, reward model and engine."""


@dataclass(frozen=True, eq=False, slots=True)
class PostTraining:
    """One method on the plan's accelerators. frozen: bytes of frozen copies, critic: of the critic's states, engine:
    of the weights that write answers, cache: of their caches, pairs: of the activations that a pair adds."""

    method: Ingredients
    memory: DeviceMemory
    frozen: float
    critic: float
    engine: float
    cache: float
    pairs: float
    copies: int
    held: float
    served: Serving | None

    @property
    def total(self) -> float:
        """Total memory of one accelerator, in bytes."""
        return float(self.memory.total)

    def explain(self) -> list[Explanation]:
        """Return frozen copies, and the engine's weights and cache."""
        name = self.method.method
        steps = [frozen_bytes.explain(copies=self.copies, parameters=self.held).about(name)] if self.copies else []
        if self.served:
            steps += [step.about(name) for step in self.served.weights.explain(ANSWERS)]
            steps += [step.about(name) for step in self.served.cache.explain(self.served.context)]
        return steps


def _engine(h: MemoryEstimate) -> Serving | None:
    """Return the copy that writes answers, on the fewest accelerators on which it keeps to its share of their
    memory."""
    known = h.plan.catalog_model
    spec = known.spec if known and not known.counted else h.spec
    many = int(h.layout.accelerators)
    tried = [
        serving(spec, h.plan.device, tensor=degree, context=h.plan.seq_len, users=ANSWERS)
        for degree in DEGREES
        if degree <= many and many % degree == 0 and divides(spec, degree)
    ]
    room = ENGINE_SHARE * h.usable
    return next((s for s in tried if not s.weights.held + ANSWERS * s.user_bytes > room), tried[-1] if tried else None)


@cached("results_kept")
def post_training(h: MemoryEstimate) -> tuple[PostTraining, ...]:
    """Return the memory that each method needs on one accelerator of the plan.

    The trained model's weights are those of the plan. A critic is a second model with its own states, whose activations
    follow those of the policy. With adapters, the frozen weights under them are the reference model.
    """
    return tuple(_under(h, method, _engine(h)) for method in METHODS)


def _under(h: MemoryEstimate, method: Ingredients, engine: Serving | None) -> PostTraining:
    layout = replace(h.layout, micro_batch=int(h.layout.micro_batch) * method.sequences)
    memory = h.over_layouts(layout)
    plain = h.device_memory
    whole = h if h.plan.trained.everything else memory_estimate(replace(h.plan, trained=EVERYTHING))
    held = float(whole.device_memory.parameters) / h.policy.weights.bytes
    copies = method.frozen - int(h.plan.trained.adapters)
    frozen = frozen_bytes(copies=copies, parameters=held)
    critic = float(plain.states - plain.later) if method.critic else 0.0
    served = engine if method.engine else None
    weights = served.weights.held if served else 0.0
    cache = ANSWERS * served.user_bytes if served else 0.0
    pairs = float(memory.total) - float(plain.total)
    more: Sequence[str] = ("gradients", "master_weights", "optimizer_state") if method.critic else ()
    memory = replace(
        memory,
        parameters=memory.parameters + frozen + weights + (plain.parameters if method.critic else 0.0),
        gathered=memory.gathered + cache,
        later=memory.later + (plain.later if method.critic else 0.0),
        **{name: getattr(memory, name) + getattr(plain, name) for name in more},
    )
    return PostTraining(method, memory, frozen, critic, weights, cache, pairs, copies, held, served)
