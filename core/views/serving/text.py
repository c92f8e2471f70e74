"""What serving a model takes, as sentences and rows: users that fit, bytes of a token, and the least times."""

from __future__ import annotations

import math
from dataclasses import replace

from core.models.catalog import CATALOG
from core.serving.cache import CACHE_TYPES, TRANSFORMERS, cache_of, kind_of
from core.serving.serving import LONGEST, Serving
from core.serving.weights import WEIGHT_TYPES, weights_of
from core.units import QuantityText, format_bytes, format_count, format_duration, format_exact, significant
from core.wording import percent, plural

BOUND = (
    "**A bound, not a forecast:** arithmetic at the dense peak, memory at full bandwidth, one hidden behind the other; "
    "nothing for what accelerators send each other, for sampling and for launching kernels."
)

CACHES = ("Cache in", "A token", "A user", "Users that fit", "One user alone, up to", "A token for all of them")
WEIGHTS = (
    "Weights in",
    "On each",
    "Left for caches",
    "Users that fit",
    "A token for one user",
    "A prompt",
    "What it is",
)
KINDS = ("Model", "Attention", "A token", "Does not grow", "A user")

_KINDS = (
    "Llama 2 7B",
    "Llama 3.1 8B",
    "Falcon 7B",
    "Gemma 3 12B text decoder",
    "DeepSeek-V3",
    "Nemotron 3 Nano 30B-A3B",
)
"""A model of the catalogue for each kind of attention."""


def gib(value: float) -> str:
    """Bytes in GiB, MiB or whatever binary unit they come to, to three digits."""
    return format_bytes(value, system="binary", digits=3)


def _where(s: Serving) -> str:
    return f"**{s.tensor} × {s.device.name}**" if s.tensor > 1 else f"one **{s.device.name}**"


def _each(s: Serving) -> str:
    return " on each" if s.tensor > 1 else ""


def _users(count: float) -> str:
    return f"{format_count(count)} {plural(count, 'user')}"


def answer(s: Serving, name: str) -> str:
    """How many users fit with the weights, and whether the users that were entered do."""
    held = f"{gib(s.weights.held)} of weights{_each(s)}"
    what = f"**{name}** in {s.weights.kind.name}"
    if math.isnan(s.room):
        return f"{what} takes {held}; how much memory {_where(s)} has, is unknown."
    taken = s.share * s.device.memory_bytes
    if s.room < 0:
        return f"{what} does **not fit** on {_where(s)}: {held}, and an engine takes {gib(taken)} of its memory."
    fit = s.users_that_fit
    caches = f"leave {gib(s.room)} for caches of {gib(s.user_bytes)} each"
    if fit < 1:
        return f"{what} fits on {_where(s)}, but **no user of {s.context:,} tokens** does: {held} {caches}."
    entered = f", not the {_users(s.users)} that you entered" if s.users > fit else ""
    return f"{what} serves **{_users(fit)} of {s.context:,} tokens** at once on {_where(s)}{entered}: {held} {caches}."


def times(s: Serving) -> str:
    """The least time of a token for the users that were entered, and of a prompt."""
    one = s.decode(s.users)
    seconds = float(one.seconds)
    prompt = s.prefill(s.context)
    if math.isnan(seconds) or math.isnan(float(prompt.seconds)):
        return f"How fast {s.device.name} is, is not known well enough for a least time."
    who = "one user" if s.users == 1 else f"each of the {s.users:,} users that you entered"
    fit = s.users_that_fit
    unfit = f", only {fit:,.0f} of whom fit" if fit >= 1 else ", for whom no memory is left"
    unfit = unfit if fit < s.users else ""
    limit = "memory" if one.bound == "memory" else "arithmetic"
    return (
        f"**At least {duration(seconds)} a token** for {who}{unfit}, **{rate(s.users / seconds)}** in all, {limit} "
        f"being the limit; a prompt of {s.context:,} tokens takes at least **{duration(float(prompt.seconds))}**."
    )


def duration(seconds: float) -> str:
    """A time to three digits, in ms below a second."""
    if seconds < 1:
        return QuantityText(f"{significant(1000 * seconds, 3)} ms", seconds, "s")
    return format_duration(seconds, 3)


def rate(tokens_per_second: float) -> str:
    """Tokens per second."""
    return f"{format_count(float(f'{tokens_per_second:.3g}'), 3)} tokens/s"


def kept(s: Serving) -> str:
    """What is kept of a token, and what does not grow with their number."""
    cache, spec = s.cache, s.weights.spec
    kind = kind_of(spec)
    token = (
        f"**{gib(cache.per_token)} of each token**" if cache.per_token else "**nothing that grows with every token**"
    )
    who = (
        kind
        if not spec.attention_layers
        else kind.replace("latent", "multi-head latent").partition(",")[0] + " attention"
    )
    sentence = f"{who[0].upper()}{who[1:]} keeps {token}{_each(s)}"
    more: list[str] = []
    if spec.window:
        more.append(f"windows of the last {spec.window.size:,} tokens")
    if spec.mixer:
        more.append("states that are the same for every length")
    if more:
        sentence += f", and {gib(cache.fixed)} of {' and '.join(more)}"
    return f"{sentence}, in {s.stored.name}."


def remarks(s: Serving, most_seen: int | None, *, adapters: bool = False) -> list[str]:
    """What else is to be said. most_seen: tokens of the longest sequence that the model was made for, where known."""
    spec, lines = s.weights.spec, list[str]()
    if most_seen and s.context > most_seen:
        lines.append(f"**{s.context:,} tokens are more** than the {most_seen:,} that this model was made for.")
    if spec.latent:
        expanded = cache_of(spec, s.stored, convention=replace(TRANSFORMERS, latent="expanded"))
        lines.append(
            "The latent itself is stored, whole on each accelerator. A program that stores keys and values expanded "
            f"from it keeps {gib(expanded.per_token)} of each token, "
            f"{significant(expanded.per_token / cache_of(spec, s.stored).per_token, 3)} times as much."
        )
    if s.tensor > spec.kv_heads > 0 and spec.attention_layers and not spec.latent:
        lines.append(
            f"The model has {spec.kv_heads} key/value {plural(spec.kv_heads, 'head')} for {s.tensor} accelerators, so "
            "several accelerators store the same one."
        )
    if spec.mixer:
        lines.append("States are kept in fp32, whatever the cache is in.")
    if s.products != s.weights.kind.products:
        lines.append(
            f"{s.device.name} has no peak for {s.weights.kind.products} products here; times are by {s.products}."
        )
    lines.append(
        f"An engine takes {percent(s.share)} of an accelerator, vLLM’s default, and a pass of {s.pass_tokens:,} tokens "
        f"{gib(s.workspace)} of it.{' Adapters are merged into the weights.' if adapters else ''}"
    )
    return lines


def _fit(s: Serving) -> str:
    fit = s.users_that_fit
    return format_count(fit) if not math.isnan(fit) else "unknown"


def _longest(s: Serving) -> str:
    if math.isnan(s.room):
        return "unknown"
    longest = s.longest(1)
    return "without end" if longest >= LONGEST else format_exact(longest) if longest else "none"


def cache_rows(s: Serving) -> tuple[list[tuple[str, ...]], int]:
    """A row for each format of the cache, and the place of the one in force."""
    rows = [replace(s, stored=kind) for kind in CACHE_TYPES.values()]
    return [
        (
            row.stored.name,
            gib(row.cache.per_token),
            gib(row.user_bytes),
            _fit(row),
            _longest(row),
            _token_for_all(row),
        )
        for row in rows
    ], list(CACHE_TYPES).index(s.stored.name)


def _token_for_all(s: Serving) -> str:
    fit = s.users_that_fit
    return duration(float(s.decode(fit).seconds)) if fit >= 1 else "–"


def weight_rows(s: Serving) -> tuple[list[tuple[str, ...]], int]:
    """A row for each format of the weights, on as many accelerators, and the place of the one in force."""
    rows: list[tuple[str, ...]] = []
    for kind in WEIGHT_TYPES.values():
        usable = not math.isnan(s.device.peak(kind.products))
        products = kind.products if usable else s.device.usable("bf16")
        row = replace(s, weights=weights_of(s.spec, kind, tensor=s.tensor), products=products)
        rows.append(
            (
                kind.name,
                gib(row.weights.held),
                gib(row.room) if not row.room < 0 else "does not fit",
                _fit(row),
                duration(float(row.decode(1).seconds)),
                duration(float(row.prefill(row.context).seconds)),
                kind.note,
            )
        )
    return rows, list(WEIGHT_TYPES).index(s.weights.kind.name)


def kind_rows(s: Serving) -> list[tuple[str, ...]]:
    """A model for each kind of attention, on one accelerator, with the cache's format and context in force."""
    rows: list[tuple[str, ...]] = []
    for name in _KINDS:
        spec = CATALOG[name].spec
        cache = cache_of(spec, s.stored)
        fixed = gib(cache.fixed) if cache.fixed else "–"
        rows.append((name, kind_of(spec), gib(cache.per_token), fixed, gib(float(cache.bytes(s.context)))))
    return rows
