"""A plan: everything that is said about a training run, in one record of plain values."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from core.budget.equations import Interval
from core.dates import refuse_day
from core.hardware.accelerators import Accelerator, find_in_nodes
from core.hardware.accelerators import find as find_accelerator
from core.limits import cached, limit
from core.messages import message, pick_message
from core.models.catalog import CatalogModel, model_named
from core.models.configs.custom import read_model
from core.models.flops import Attention
from core.number_text import QuantityError, is_money
from core.planning.measured import CarriedRates, OwnRun
from core.quantities import IN_PERCENT, parse_quantity
from core.runs.energy import US_GRID, USUAL_PUE
from core.runs.goodput import Reliability
from core.search.request import FREE, FREE_MEMORY, Constraints, Range
from core.step_time.running import EAGER, USUAL_SOFTWARE, USUAL_TUNING
from core.training.activations.tensors import FUSED, Loss
from core.training.custom_policy import OwnPolicy
from core.training.device.buffers import MEASURED
from core.training.layout import Layout, Recompute
from core.training.optimizers import USUAL_OPTIMIZER, Optimizer
from core.training.precision import USUAL_POLICY, PrecisionPolicy, find_policy
from core.training.trained import EVERYTHING, Trained

_SURELY_TOKENS = 500_000
"""Sequences that no step ever had: as a bare number they are rather tokens."""

_BATCH = re.compile(r"(.*?)\s*(tokens?|sequences?|seqs?)?", re.IGNORECASE | re.DOTALL)


PRE_TRAINING_BATCH = "16M tokens"
"""The batch that a plan begins with."""

FINE_TUNING_BATCH = "64 sequences"
"""The batch that a plan begins with where a part of a model is trained: that of Llama 2's fine-tuning [Touvron et al.
2023, arXiv:2307.09288, section 3.1]."""


def begun_batch(text: str, *, everything: bool) -> str:
    """Return the batch once a plan goes over to training everything, or a part of a model: the one that such plans
    begin with in the place of the one that the others begin with, else ``text``."""
    before, after = (FINE_TUNING_BATCH, PRE_TRAINING_BATCH) if everything else (PRE_TRAINING_BATCH, FINE_TUNING_BATCH)
    return after if text == before else text


@dataclass(frozen=True, slots=True)
class Batch:
    """Global batch as entered: a number of sequences, or an approximate number of tokens."""

    size: float = 16e6
    in_tokens: bool = True

    def target(self, seq_len: int) -> float:
        """Return the sequences per step that were entered, which may be fractional."""
        return max(1.0, self.size / seq_len) if self.in_tokens else self.size

    def sequences(self, seq_len: int) -> int:
        """Return the sequences per step, rounded to a whole number."""
        return round(self.target(seq_len))


def parse_batch(text: str) -> Batch:
    """Return a batch as entered: ``2,048``, ``2,048 sequences``, ``16M tokens`` or ``16M``: no step has millions of
    sequences.

    Raises `QuantityError` with an example.
    """
    match = _BATCH.fullmatch(text.strip())
    number, unit = (match[1], (match[2] or "").lower()) if match else (text, "")
    if not unit and number[-1:] in ("k", "K"):
        raise QuantityError(message("input.batch_of", number=number))
    in_tokens = unit.startswith("token") or (not unit and number[-1:].isalpha())
    most = limit("batch_tokens") if in_tokens else limit("batch_sequences")
    size = parse_quantity(number, "count", low=1, high=most, whole=True, example="16M tokens or 2,048 sequences")
    if not in_tokens and not unit and size >= _SURELY_TOKENS:
        typed = text.strip()
        raise QuantityError(message("input.batch_sequences", entered=typed, sequences=size))
    return Batch(size, in_tokens)


def parse_range(text: str) -> Range | None:
    """Return what a degree must keep to: ``8``, ``up to 8``, ``2-8``; nothing for any. Raises `QuantityError`
    otherwise."""
    cleaned = " ".join(text.replace("≤", "up to ").replace("–", "-").split()).lower()
    if cleaned in ("", "any"):
        return None
    if cleaned.startswith("up to "):
        return Range(1, _degree(cleaned.removeprefix("up to ")))
    ends = [_degree(end) for end in re.split(r"\s*-\s*|\s+to\s+", cleaned)]
    if len(ends) > 2:
        raise QuantityError(message("input.range", entered=text.strip()))
    return Range(min(ends), max(ends))


_EXAMPLES = "8, up to 8, or 2-8"


def _degree(text: str) -> int:
    return int(parse_quantity(text, "count", low=1, high=limit("accelerators"), whole=True, example=_EXAMPLES))


Find: TypeAlias = Literal["time", "tokens", "parameters", "accelerators", "MFU"]
"""What can be asked for; money is part of every answer."""

FINDS: tuple[Find, ...] = ("time", "tokens", "parameters", "accelerators", "MFU")

MfuKind: TypeAlias = Literal["all hours", "steady steps"]
"""What a typed MFU is of: everything billed from start to end, or the steps alone."""

MFU_KINDS: tuple[MfuKind, ...] = ("all hours", "steady steps")

TYPED = "Typed parameters"
"""The model of which only a number of parameters is known."""

OWN_SHAPE = "Own (config.json)"
"""The model whose shape is typed, or read from a config.json."""

OWN_POLICY = "own"
"""The precision whose types are chosen one by one."""

BY_AGE, FIRST_RUN, PROVEN = MATURITIES = ("by its age", "first run on it", "proven")
"""How far the software of the accelerator is made ready: as far as its age tells, or as somebody knows."""

FASTEST, OWN_LAYOUT = LAYINGS = ("fastest", "own")
"""Which layout a plan has."""

PUBLISHED = "published"
"""Typed for the MFU: take what published runs lead one to expect."""

LONGEST_DAYS = 365_250.0
"""A thousand years, the longest time that can be typed."""
_SPAN = re.compile(r"(?<=[\d%])\s*(?:-|–|to)\s*(?=[\d.])")


@dataclass(frozen=True, slots=True)
class Within:
    """The bound in the plan's question, such as *how many tokens within 90 days*: days on the wall, or dollars; the
    other one is NaN. typed: the duration's text."""

    days: float
    dollars: float = math.nan
    typed: str = ""

    @property
    def in_money(self) -> bool:
        return math.isnan(self.days)


def parse_mfu(text: str) -> Interval | None:
    """Return an entered MFU, ``0.4``, ``40%``, ``40`` or a range ``35-45%``; None for ``published`` and for nothing.

    Raises `QuantityError` with the rule and an example otherwise.
    """
    if text.strip().lower() in ("", PUBLISHED):
        return None
    ends = _SPAN.split(text.strip())
    example = f"40%, 35-45%, or {PUBLISHED}"
    if len(ends) > 2:
        raise QuantityError(message("input.mfu", entered=text.strip()))
    if len(ends) == 2 and _in_percent(ends[1]) and not ends[0].endswith("%"):
        ends[0] += "%"
    values = sorted(parse_quantity(end, "ratio", low=0.001, high=1.0, example=example) for end in ends)
    return Interval(values[0], (values[0] + values[-1]) / 2, values[-1])


def _in_percent(share: str) -> bool:
    return share.endswith("%") or (re.fullmatch(r"\d+\.?\d*", share) is not None and float(share) >= IN_PERCENT)


def parse_within(text: str) -> Within:
    """Return the bound of a question as entered: a duration such as ``90 days``, or money such as ``$5M``.

    Raises `QuantityError` with the rule and an example otherwise.
    """
    example, typed = "90 days, 6 weeks, 3 months or $5M", text.strip()
    refuse_day(text)
    if is_money(text):
        return Within(math.nan, parse_quantity(text, "usd", low=1.0, high=1e15, example=example))
    if re.fullmatch(r"[\d.,]+", typed):
        raise QuantityError(message("input.within_unit", entered=typed))
    if re.fullmatch(r"[\d.,]+\s*[kmb]", typed, re.IGNORECASE):
        unclear = "input.within_months" if typed[-1] in "mM" else "input.within_money"
        raise QuantityError(pick_message(unclear, entered=typed, number=typed[:-1].strip()))
    seconds = parse_quantity(text, "seconds", low=60.0, high=LONGEST_DAYS * 86400, example=example)
    return Within(seconds / 86400, typed=" ".join(text.split()))


_PRICES = re.compile(r"\s*[-–](?!hour|h\b)\s*|\s+to\s+", re.IGNORECASE)
"""Between the ends of a range of prices; that of a GPU-hour is none."""


def parse_price(text: str) -> tuple[float, float]:
    """Return a price per accelerator-hour as entered: ``2.50``, a range ``2.5-3.5``, or 0 for what is owned.

    Raises `QuantityError` with an example otherwise.
    """
    ends = _PRICES.split(text.strip())
    if len(ends) > 2 or (len(ends) == 2 and not all(end.strip() for end in ends)):
        raise QuantityError(message("input.price", entered=text.strip()))
    prices = sorted(parse_quantity(end, "usd_per_hour", low=0.0, high=limit("price_per_hour")) for end in ends)
    return prices[0], prices[-1]


def whole_accelerators(count: float) -> int:
    """Return ``count`` rounded up to whole accelerators, at least one."""
    return max(1, math.ceil(count - 1e-9))


@cached("results_kept")
def _own(shape: str) -> CatalogModel:
    return read_model(shape)


def known_model(find: Find, model: str, shape: str) -> CatalogModel | None:
    """Return the model of this name, or of a custom shape.

    None if no layers are known, or if the plan solves for parameters.
    """
    if find == "parameters" or model == TYPED:
        return None
    if model == OWN_SHAPE:
        return _own(shape) if shape else None
    return model_named(model)


@dataclass(frozen=True, slots=True)
class Power:
    """Inputs of energy and carbon.

    draw: average power as a share of the accelerators' power limits; None uses the published share of their nodes' peak
    power. grid: kg of CO₂ per kWh.
    """

    draw: float | None = None
    pue: float = USUAL_PUE
    grid: float = US_GRID


CERTAINTIES = {"P50": 0.5, "P75": 0.75, "P90": 0.9}
"""Name → the least share of a range that has to keep a limit."""


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """What a plan has to keep to; NaN if there is no limit.

    days: on the wall. dollars: of rent. watts: of the building, at once. host: bytes of a node's host. free: share of
    an accelerator's memory. certainty: one of `CERTAINTIES`.
    """

    days: float = math.nan
    dollars: float = math.nan
    watts: float = math.nan
    host: float = math.nan
    free: float = FREE_MEMORY
    certainty: str = "P50"

    @property
    def level(self) -> float:
        """Share of a range that has to meet a limit."""
        return CERTAINTIES[self.certainty]

    @property
    def has_limits(self) -> bool:
        """Whether there is a limit but that of an accelerator's memory, which every plan has."""
        return not all(map(math.isnan, (self.days, self.dollars, self.watts, self.host)))


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """Memory options besides the layout: the implementation of layers and loss, and what the runtime needs.

    implementation: by name, as in `core.training`. chunks: loss chunks. runtime_bytes: bytes of the runtime itself.
    slack: fraction that the allocator reserves beyond the tensors. in_backward: whether each tensor is updated as soon
    as its gradient is computed. paged: whether optimizer state may move to the host. offload_activations: whether saved
    activations are stored in host memory. display: bytes that a desktop uses. kernel: attention kernel by name; empty
    for the default.
    """

    implementation: str = FUSED.id
    loss: Loss = FUSED.loss
    chunks: int = 1
    runtime_bytes: float = MEASURED.context
    slack: float = MEASURED.slack
    in_backward: bool = False
    paged: bool = False
    offload_activations: bool = False
    display: float = 0.0
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of a data set's examples: their mean, 0 if they are packed to the sequence length, and the longest, 0
    where that is the sequence length."""

    mean: int = 0
    longest: int = 0


NOT_MEASURED = math.nan
"""A rate that nobody measured."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is asked of a run. The field that ``find`` names is ignored.

    model: a name of the catalog, `TYPED` or `OWN_SHAPE`. shape: the text of a custom shape, empty until one is read.
    parameters: the entered count. mfu: None for the MFU that published runs predict. mfu_kind: what an entered MFU
    refers to. prices: dollars per accelerator-hour, low and high; None for the catalog's. attention: how the count by
    layer counts it. optimizer, policy: of the model states, by name, as in `core.training`; own_policy: the dtypes of
    `OWN_POLICY`. layout: the custom layout without its data-parallel degree, which follows from the accelerators;
    micro-batches of 0 follow from the batch. own_layout: whether the plan uses it; otherwise it uses the fastest one.
    software: training software by name, as in `core.step_time.running`; tuned_by: its tuning level. network: bytes per
    second of one accelerator between nodes, one way; per_node: accelerators per node; None for the defaults. batch,
    constraints: constraints on the fastest layout. measured: rates of the accelerator; `core.planning.layout` decides
    whether and where they are used. own_runs: earlier runs of the same team. maturity: one of `MATURITIES`. within: the
    limit of the question. limits: limits that the result is compared with and does not depend on. trained: which part
    of the model is trained. lengths: of its examples.
    """

    find: Find = "time"
    within: Within = Within(90.0)
    model: str = TYPED
    shape: str = ""
    parameters: float = 70e9
    tokens: float = 15e12
    accelerator: str = "H100 SXM"
    accelerators: float = 1024.0
    dtype: str = "bf16"
    seq_len: int = 8192
    mfu: Interval | None = None
    mfu_kind: MfuKind = "all hours"
    attention: Attention = "causal"
    prices: tuple[float, float] | None = None
    optimizer: str = USUAL_OPTIMIZER
    policy: str = USUAL_POLICY
    own_policy: OwnPolicy = field(default_factory=OwnPolicy)
    layout: Layout = field(
        default_factory=lambda: Layout(micro_batches=0, zero=3, sequence_parallel=1, recompute=Recompute.FULL)
    )
    own_layout: bool = False
    software: str = USUAL_SOFTWARE
    tuned_by: str = USUAL_TUNING
    network: float | None = None
    per_node: int | None = None
    runtime_options: RuntimeOptions = field(default_factory=RuntimeOptions)
    reliability: Reliability = field(default_factory=Reliability)
    power: Power = field(default_factory=Power)
    batch: Batch = field(default_factory=Batch)
    constraints: Constraints = FREE
    measured: CarriedRates = field(default_factory=CarriedRates)
    own_runs: tuple[OwnRun, ...] = ()
    maturity: str = BY_AGE
    limits: PlanLimits = field(default_factory=PlanLimits)
    trained: Trained = EVERYTHING
    lengths: Lengths = field(default_factory=Lengths)

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence that a step has."""
        return min(self.seq_len, self.lengths.longest or self.seq_len)

    @property
    def mean_length(self) -> int:
        """Tokens of a sequence on average."""
        return min(self.longest, self.lengths.mean or self.longest)

    @property
    def device(self) -> Accelerator:
        """The accelerator, with the node size that the plan sets."""
        if self.per_node is None:
            return find_accelerator(self.accelerator)
        return find_in_nodes(self.accelerator, self.per_node)

    @property
    def typed_mfu(self) -> Interval | None:
        """The MFU as entered; None if the plan solves for it or predicts it."""
        return None if self.find == "MFU" else self.mfu

    @property
    def expects_mfu(self) -> bool:
        """Whether steps and published runs say the MFU."""
        return self.mfu is None and self.find != "MFU"

    @property
    def mfu_is_of_steps(self) -> bool:
        """Whether the MFU is entered, and in steady state."""
        return self.typed_mfu is not None and self.mfu_kind == "steady steps"

    @property
    def sequences(self) -> int:
        """Sequences of a step."""
        return self.batch.sequences(self.seq_len)

    @property
    def usable_memory(self) -> float:
        """Bytes of one accelerator that a step can use: its memory capacity without that of a desktop's display."""
        return self.device.memory_bytes - self.runtime_options.display

    @property
    def trains_with_trl(self) -> bool:
        """Whether TRL runs the plan, as PyTorch’s only software here that trains a part of a model: its FSDP shards,
        and splits no layer."""
        return not self.trained.everything and self.software == EAGER.id

    @property
    def catalog_model(self) -> CatalogModel | None:
        """The model if its layers are known; None for a parameter count, or if the plan solves for parameters."""
        return known_model(self.find, self.model, self.shape)

    @property
    def lacks_model(self) -> bool:
        """Whether the plan uses a custom config.json that has not been read."""
        return self.model == OWN_SHAPE and not self.shape and self.find != "parameters"

    def policy_under(self, optimizer: Optimizer) -> PrecisionPolicy:
        """Return the precision of the model states under an optimizer, such as the plan's own."""
        return self.own_policy.under(optimizer) if self.policy == OWN_POLICY else find_policy(self.policy)

    @property
    def peak_dtype(self) -> str:
        """The dtype whose dense peak MFU refers to: the selected one if the accelerator has it."""
        return self.device.usable(self.dtype)

    @property
    def price_range(self) -> tuple[float, float]:
        """Dollars per accelerator-hour, NaN if unknown."""
        return self.prices or (self.device.price_low, self.device.price_high)

    @property
    def owned(self) -> bool:
        """Whether the accelerators are owned (a price of 0), so that there is no rent to count or compare."""
        return self.price_range[1] == 0

    def on_accelerator(self, accelerator: str) -> Plan:
        """Return the plan on another accelerator, without values that were entered for the current one."""
        if accelerator == self.accelerator:
            return self
        return replace(self, accelerator=accelerator, prices=None, network=None, per_node=None, maturity=BY_AGE)
