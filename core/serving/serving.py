"""How many users of which context fit beside the weights, and the least time of a token and of a prompt.

A roofline, and so a bound: arithmetic at the dense peak, memory at full bandwidth, each hidden behind the other, and
nothing for what accelerators send each other, for sampling or for the launch of kernels.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.formula import Explanation, Source, Symbol, formula
from core.hardware.accelerators import Accelerator
from core.hardware.operations import Placed, Work, place
from core.limits import cached
from core.messages import message
from core.models.flop_formulas import square_flop_full
from core.models.flops import FlopCount, flops_per_token
from core.models.spec import TransformerSpec
from core.models.symbols import HIDDEN, count
from core.serving.cache import CACHE_TYPES, Cache, CacheType, cache_of
from core.serving.weights import WEIGHT_TYPES, ServedWeights, WeightType, weights_of
from core.sources import OWN_CONSTRUCTION

_VLLM = Source(
    "vLLM",
    "vllm/config/cache.py, gpu_memory_utilization, 2026",
    "https://github.com/vllm-project/vllm/blob/002f10e0cfa1373a19a0d2756598a34b700d20e5/vllm/config/cache.py",
)
_LOGS = Source(
    "vLLM",
    "issue 10517: printed peaks of passes of 20,000 and 29,000 tokens",
    "https://github.com/vllm-project/vllm/issues/10517",
)
_BATCH = Source(
    "vLLM",
    "vllm/engine/arg_utils.py, get_batch_defaults",
    "https://github.com/vllm-project/vllm/blob/main/vllm/engine/arg_utils.py",
)
_POPE = Source(
    "Pope et al. 2022, Efficiently Scaling Transformer Inference", "section 2", "https://arxiv.org/abs/2211.05102"
)

USED_SHARE = 0.92
"""Share of an accelerator's memory that an engine takes by default."""

PASS_TOKENS, LARGE_PASS_TOKENS, LARGE_MEMORY = 2048, 8192, 70 * 2.0**30
"""Tokens that an engine reads in one pass by default, longer prompts cut into pieces: on cards of 70 GiB and more but
A100s the larger number."""

DEGREES = (1, 2, 4, 8, 16, 32)
"""Accelerators that may share a model by tensor parallelism."""

LONGEST = 2**30
"""Tokens beyond which a context counts as without end."""


@formula(
    r"\v{share} \cdot \v{memory} - \v{weights} - \v{workspace}",
    result=Symbol("R", "bytes for caches on one accelerator", "bytes"),
    symbols={
        "share": Symbol("u", "share of its memory that the engine takes", "ratio"),
        "memory": Symbol("M", "memory capacity of one accelerator", "bytes"),
        "weights": Symbol("W", "bytes of weights on it", "bytes"),
        "workspace": Symbol("A", "bytes of one pass at work", "bytes"),
    },
    sources=(_VLLM,),
)
def cache_room(share: float, memory: float, weights: float, workspace: float) -> float:
    """What is left for caches."""
    return share * memory - weights - workspace


@formula(
    r"6 \cdot \v{tokens} \cdot (\v{hidden} + \v{width})",
    result=Symbol("A", "bytes of one pass at work", "bytes"),
    symbols={
        "tokens": count("T", "tokens of one pass"),
        "hidden": HIDDEN,
        "width": count("f", "feed-forward width that a token runs through on one accelerator"),
    },
    sources=(_LOGS, _BATCH),
)
def workspace_bytes(tokens: float, hidden: float, width: float) -> float:
    """What one pass holds at once.

    Three tensors of the hidden and three of the feed-forward width in bf16: the slope of printed peaks over the tokens
    of a pass.
    """
    return 6 * tokens * (hidden + width)


@formula(
    r"\lfloor \frac{\v{room}}{\v{cache}} \rfloor",
    result=Symbol("U", "users at once", "count"),
    symbols={
        "room": Symbol("R", "bytes for caches on one accelerator", "bytes"),
        "cache": Symbol("K", "bytes of one user’s cache on it", "bytes"),
    },
    sources=(OWN_CONSTRUCTION,),
)
def users_at_once(room: float, cache: float) -> float:
    """Users whose caches fit beside each other, all of them at their full context."""
    return np.floor(room / cache)


@formula(
    r"\v{weights} + \v{users} \cdot \v{cache}",
    result=Symbol("Q", "bytes that one accelerator reads for one token of every user", "bytes"),
    symbols={
        "weights": Symbol("W_r", "bytes of the weights that are read", "bytes"),
        "users": count("B", "users, each of whom gets a token"),
        "cache": Symbol("K", "bytes of one user’s cache on one accelerator", "bytes"),
    },
    sources=(_POPE,),
)
def decode_bytes(weights: float, users: float, cache: float) -> float:
    """Memory traffic of one decoding step: the weights once for all users, and each user’s whole cache."""
    return weights + users * cache


@formula(
    r"\frac{\v{users} \cdot \v{forward}}{\v{accelerators}}",
    result=Symbol("W", "work", "flop"),
    symbols={
        "users": count("B", "tokens of one pass: one for each user, or those of a prompt"),
        "forward": Symbol("F", "forward FLOPs per token, on average over them", "flop"),
        "accelerators": count("t", "accelerators that share the model"),
    },
    sources=(_POPE,),
)
def pass_flop(users: float, forward: float, accelerators: float) -> float:
    """Work of one pass on each of the accelerators that share the model."""
    return users * forward / accelerators


@dataclass(frozen=True, slots=True)
class Serving:
    """One model served on ``tensor`` accelerators that share it.

    context: tokens of each user, prompt and answer together. users: at once, for the times. share: of the memory
    that the engine takes. products: the format of its matrix products that the accelerator has.
    """

    spec: TransformerSpec
    device: Accelerator
    tensor: int
    weights: ServedWeights
    stored: CacheType
    context: int
    users: int
    share: float
    products: str

    @property
    def cache(self) -> Cache:
        """The cache of one user on one accelerator."""
        return cache_of(self.weights.spec, self.stored, tensor=self.tensor)

    @property
    def user_bytes(self) -> float:
        """Bytes of one user at the full context on one accelerator."""
        return float(self.cache.bytes(self.context))

    @property
    def pass_tokens(self) -> int:
        """Tokens that one pass reads."""
        large = self.device.memory_bytes >= LARGE_MEMORY and not self.device.name.startswith("A100")
        return LARGE_PASS_TOKENS if large else PASS_TOKENS

    @property
    def workspace(self) -> float:
        """Bytes of one pass at work on one accelerator."""
        return workspace_bytes(**self._workspace)

    @property
    def _workspace(self) -> dict[str, float]:
        s, width = self.weights.spec, 0.0
        if s.dense_layers:
            width = float(s.ffn)
        if moe := s.experts:
            width = max(width, moe.per_token * moe.width + moe.shared * (moe.shared_width or moe.width))
        return {"tokens": self.pass_tokens, "hidden": s.hidden, "width": width / self.tensor}

    @property
    def room(self) -> float:
        """Bytes for caches on one accelerator; negative where weights do not fit, NaN where its memory is unknown."""
        return cache_room(**self._room)

    @property
    def _room(self) -> dict[str, float]:
        memory, held = self.device.memory_bytes, self.weights.held
        return {"share": self.share, "memory": memory, "weights": held, "workspace": self.workspace}

    @property
    def users_that_fit(self) -> float:
        """Users at the full context; NaN where the memory is unknown."""
        return float(users_at_once.over(room=max(self.room, 0.0), cache=self.user_bytes))

    def longest(self, users: int) -> int:
        """Tokens of the longest context that so many users can have at once; `LONGEST` where nothing grows any more."""
        each = self.room / users

        def exceeds(tokens: int) -> bool:
            return not float(self.cache.bytes(tokens)) <= each

        return bisect_left(range(1, LONGEST + 1), True, key=exceeds)

    def decode(self, users: Any) -> Placed:
        """One token for each of ``users``, a number or an array, all at the full context, on the roofline."""
        flop = pass_flop.over(users=users, forward=self.decode_flop, accelerators=self.tensor)
        read = np.vectorize(self.weights.read)(users) if np.ndim(users) else self.weights.read(users)
        moved = decode_bytes.over(weights=read, users=users, cache=self.user_bytes)
        return self._placed(flop, moved, np.ndim(users) > 0)

    def prefill(self, tokens: int) -> Placed:
        """One prompt of so many tokens, whose cache is written, on the roofline."""
        flop = pass_flop(users=tokens, forward=self._prefill_flop(tokens), accelerators=self.tensor)
        moved = decode_bytes(weights=self.weights.read(tokens), users=1, cache=float(self.cache.bytes(tokens)))
        return self._placed(flop, moved, False)

    def _prefill_flop(self, tokens: int) -> float:
        """Forward FLOPs per token of a prompt, whose last token alone goes through the head."""
        counted = flops_per_token(self.weights.spec, tokens, "causal")
        head = sum(part.flop for part in counted.parts if part.group == "head")
        return counted.forward - head * (1 - 1 / tokens)

    def _placed(self, flop: Any, moved: Any, many: bool) -> Placed:
        work = Work(flop, moved) if many else Work(float(flop), float(moved))
        return place(work, self.device.peak(self.products), self.device.bandwidth)

    @property
    def decode_flop(self) -> float:
        """Forward FLOPs of one token that meets the whole context.

        With a latent, queries are taken into its space and meet it there: the projections cost what expanding one
        token would, and scores and values are as wide as the latent.
        """
        return _decode_count(self.weights.spec, self.context).forward + self._latent_more

    @property
    def _latent_more(self) -> float:
        low, s = self.weights.spec.latent, self.weights.spec
        if not low:
            return 0.0
        more = (low.kv_rank - low.nope_dim) + (low.kv_rank - low.value_dim)
        return square_flop_full(layers=s.attention_layers, heads=s.heads, head_dim=more, seq_len=self.context)

    def explain(self) -> list[Explanation | str]:
        """How its numbers come about, under headings."""
        room, cache = self.room, self.user_bytes
        fits = [users_at_once.explain(room=room, cache=cache)] if room > 0 and math.isfinite(room) else []
        steps: list[Explanation | str] = ["Weights and cache", *self.weights.explain(self.users)]
        steps += [*self.cache.explain(self.context), workspace_bytes.explain(**self._workspace)]
        steps += [cache_room.explain(**self._room)] if math.isfinite(room) else []
        steps += fits
        steps += ["One token for every user", *self._explain_decode()]
        steps += [f"A prompt of {self.context:,} tokens", *self._explain_prefill()]
        return steps

    def _explain_decode(self) -> list[Explanation]:
        read = self.weights.read(self.users)
        return [
            *(part.explain() for part in _decode_count(self.weights.spec, self.context).parts),
            pass_flop.explain(users=self.users, forward=self.decode_flop, accelerators=self.tensor),
            decode_bytes.explain(weights=read, users=self.users, cache=self.user_bytes),
            *(_times(self.decode(self.users))),
        ]

    def _explain_prefill(self) -> list[Explanation]:
        tokens, cache = self.context, float(self.cache.bytes(self.context))
        forward = self._prefill_flop(tokens)
        return [
            pass_flop.explain(users=tokens, forward=forward, accelerators=self.tensor).about("the prompt"),
            decode_bytes.explain(weights=self.weights.read(tokens), users=1, cache=cache).about("the prompt"),
            *_times(self.prefill(tokens)),
        ]


def _times(placed: Placed) -> tuple[Explanation, ...]:
    known = math.isfinite(placed.peak), math.isfinite(placed.bandwidth)
    return placed.explanations if all(known) else ()


@cached("small_results_kept")
def _decode_count(spec: TransformerSpec, context: int) -> FlopCount:
    return flops_per_token(spec, context, "full")


def divides(spec: TransformerSpec, tensor: int) -> bool:
    """Whether ``tensor`` accelerators can share the model's heads."""
    shared = (heads % tensor == 0 and (kv % tensor == 0 or tensor % kv == 0) for heads, kv in spec.heads_of_kinds)
    return all(shared) and (not spec.mixer or spec.mixer.heads % tensor == 0)


@cached("small_results_kept")
def serving(
    spec: TransformerSpec,
    device: Accelerator,
    *,
    tensor: int | None = None,
    weights: WeightType = WEIGHT_TYPES["bf16"],
    stored: CacheType = CACHE_TYPES["bf16"],
    context: int = 8192,
    users: int = 1,
    share: float = USED_SHARE,
) -> Serving:
    """``spec`` served on ``tensor`` accelerators; None takes the fewest of `DEGREES` on which one user fits.

    Raises ``ValueError`` for accelerators that cannot share the model's heads, naming how many can.
    """
    can = [degree for degree in DEGREES if divides(spec, degree)]
    if tensor is not None and not divides(spec, tensor):
        known = [str(degree) for degree in can]
        raise ValueError(message("serving.error.heads", tensor=float(tensor), heads=float(spec.heads), known=known))
    first = can[0] if tensor is None else tensor
    known_products = not math.isnan(device.peak(weights.products))
    made = Serving(
        spec=spec,
        device=device,
        tensor=first,
        weights=weights_of(spec, weights, tensor=first),
        stored=stored,
        context=context,
        users=users,
        share=share,
        products=weights.products if known_products else device.usable("bf16"),
    )
    if tensor is not None:
        return made
    tried = (replace(made, tensor=degree, weights=weights_of(spec, weights, tensor=degree)) for degree in can)
    return next(
        (one for one in tried if not one.room < one.user_bytes),
        replace(made, tensor=can[-1], weights=weights_of(spec, weights, tensor=can[-1])),
    )
