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
from core.models.symbols import count
from core.serving.cache import CACHE_TYPES, Cache, CacheType, cache_of
from core.serving.engine import (
    BLOCKS,
    DRIVER,
    PER_LOGIT,
    PER_LOGIT_SORTED,
    SAMPLER_BUFFERS,
    Blocks,
    Engine,
    activation_bytes,
    blocks_of,
    cache_room,
    layer_bytes,
    overhead,
    sampler_bytes,
    sglang_room,
)
from core.serving.weights import WEIGHT_TYPES, ServedWeights, WeightType, draft_bytes, weights_of

_POPE = Source(
    "Pope et al. 2022, Efficiently Scaling Transformer Inference", "section 2", "https://arxiv.org/abs/2211.05102"
)

DEGREES = (1, 2, 4, 8, 16, 32)
"""Accelerators that may share a model by tensor parallelism."""

LONGEST = 2**30
"""Tokens beyond which a context counts as without end."""


@formula(
    r"\lfloor \frac{\v{room}}{\v{cache}} \rfloor",
    result=Symbol("U", "users at once", "count"),
    symbols={
        "room": Symbol("R", "bytes for caches on one accelerator", "bytes"),
        "cache": Symbol("K_b", "bytes of the blocks of one user on it", "bytes"),
    },
    sources=(BLOCKS,),
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

    context: tokens of each user, prompt and answer together. users: at once, over all copies of the model. products:
    the format of its matrix products that the accelerator has.
    """

    spec: TransformerSpec
    device: Accelerator
    tensor: int
    weights: ServedWeights
    stored: CacheType
    context: int
    users: int
    engine: Engine
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
    def blocks(self) -> Blocks:
        """The blocks that one user at the full context is given, draft layers with those of the model."""
        return self._blocks(self.context)

    def _blocks(self, context: int) -> Blocks:
        drafting = 0 if self.engine.draft == "none" else max(1, self.spec.mtp_modules)
        cache = cache_of(self.spec, self.stored, tensor=self.tensor, drafting=drafting)
        return blocks_of(cache, context, self.engine.passes(self.device)[0])

    @property
    def held(self) -> float:
        """Bytes of weights on one accelerator: of the model, the layers that draft, and the vision tower in bf16."""
        return (
            self.weights.held
            + draft_bytes(self.spec, self.weights.kind, self.tensor, self.engine.draft)
            + 2 * self.engine.vision / self.tensor
        )

    @property
    def activations(self) -> float:
        """Peak activations of the profiling pass on one accelerator."""
        return activation_bytes(**self._activations)

    @property
    def _layers(self) -> dict[str, float]:
        s, width = self.weights.spec, 0.0
        if s.dense_layers:
            width = float(s.ffn)
        if moe := s.experts:
            width = max(width, moe.per_token * moe.width + moe.shared * (moe.shared_width or moe.width))
        return {"tokens": self.engine.passes(self.device)[0], "hidden": s.hidden, "width": width / self.tensor}

    @property
    def _sampler(self) -> dict[str, float]:
        (tokens, requests), s = self.engine.passes(self.device), self.spec
        sizes = {"requests": requests, "vocab": s.vocab, "tokens": tokens, "hidden": s.hidden}
        sorts = self.engine.version == "before 0.17"
        return {**sizes, "each": PER_LOGIT_SORTED if sorts else PER_LOGIT, "buffers": 0.0 if sorts else SAMPLER_BUFFERS}

    @property
    def _activations(self) -> dict[str, float]:
        encoder = 2.0 * self.engine.passes(self.device)[0] * self.spec.hidden if self.engine.vision else 0.0
        fullest = max(layer_bytes(**self._layers), sampler_bytes(**self._sampler))
        return {"encoder": encoder, "fullest": fullest}

    @property
    def memory(self) -> float:
        """Bytes of one accelerator as CUDA reports them."""
        return self.device.memory_bytes - (DRIVER if self.device.vendor == "NVIDIA" else 0.0)

    @property
    def room(self) -> float:
        """Bytes for KV caches on one accelerator; negative where weights do not fit, NaN where memory is unknown."""
        return cache_room(**self._room(1))

    @property
    def room_range(self) -> tuple[float, float]:
        """The same where printed logs show most (P90) and least (P10) outside weights and activations."""
        return cache_room(**self._room(2)), cache_room(**self._room(0))

    def _room(self, quantile: int) -> dict[str, float]:
        outside = overhead(self.tensor > 1)
        return {
            "share": self.engine.utilization,
            "memory": self.memory,
            "weights": self.held,
            "activations": self.activations,
            "outside": outside.outside[quantile],
            "graphs": outside.graphs[quantile] if self.engine.version == "0.21 or later" else 0.0,
        }

    @property
    def sglang_tokens(self) -> float:
        """Tokens of SGLang’s pool under its defaults; NaN where nothing grows with the tokens or memory is unknown."""
        room = sglang_room(self.memory, self.held, self.tensor, self.engine.draft != "none")
        each = self.cache.per_token
        return math.floor(max(room, 0.0) / each) if each and math.isfinite(room) else math.nan

    @property
    def users_that_fit(self) -> float:
        """Users at the full context; NaN where the memory is unknown."""
        return float(users_at_once.over(room=max(self.room, 0.0), cache=self.blocks.request * self.blocks.block))

    @property
    def copies(self) -> int:
        """Copies of the model that the users need, each on accelerators of its own; 1 where not even one user fits."""
        fit = self.users_that_fit
        return math.ceil(self.users / fit) if fit >= 1 else 1

    @property
    def cards(self) -> int:
        """Accelerators of all copies."""
        return self.copies * self.tensor

    @property
    def busiest(self) -> int:
        """Users of the fullest copy."""
        return math.ceil(self.users / self.copies)

    def longest(self, users: int) -> int:
        """Tokens of the longest context that so many users can have at once; `LONGEST` where nothing grows any more."""
        each = self.room / users

        def exceeds(tokens: int) -> bool:
            blocks = self._blocks(tokens)
            return not blocks.request * blocks.block <= each

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
        room, cache = self.room, self.blocks.request * self.blocks.block
        fits = [users_at_once.explain(room=room, cache=cache)] if room > 0 and math.isfinite(room) else []
        steps: list[Explanation | str] = ["Weights and cache", *self.weights.explain(self.users)]
        steps += [*self.cache.explain(self.context), layer_bytes.explain(**self._layers)]
        steps += [sampler_bytes.explain(**self._sampler), activation_bytes.explain(**self._activations)]
        steps += [cache_room.explain(**self._room(1))] if math.isfinite(room) else []
        steps += fits
        steps += ["One token for every user", *self._explain_decode()]
        steps += [f"A prompt of {self.context:,} tokens", *self._explain_prefill()]
        return steps

    def _explain_decode(self) -> list[Explanation]:
        read = self.weights.read(self.busiest)
        return [
            *(part.explain() for part in _decode_count(self.weights.spec, self.context).parts),
            pass_flop.explain(users=self.busiest, forward=self.decode_flop, accelerators=self.tensor),
            decode_bytes.explain(weights=read, users=self.busiest, cache=self.user_bytes),
            *(_times(self.decode(self.busiest))),
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
    engine: Engine | None = None,
) -> Serving:
    """``spec`` served on copies of ``tensor`` accelerators; None takes those of `DEGREES` that need the fewest in all.

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
        engine=engine or Engine(),
        products=weights.products if known_products else device.usable("bf16"),
    )
    if tensor is not None:
        return made
    tried = [replace(made, tensor=degree, weights=weights_of(spec, weights, tensor=degree)) for degree in can]
    fitting = [one for one in tried if not one.users_that_fit < 1]
    return min(fitting, key=lambda one: (one.cards, one.copies)) if fitting else tried[-1]
