"""What serving a model takes, as sentences and rows: users that fit, bytes of a token, and minimum times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from core.hardware.operations import Placed
from core.messages import Message, message, messages, pick_message
from core.models.catalog import CATALOG
from core.serving.cache import CACHE_TYPES, TRANSFORMERS, cache_of, kind_of
from core.serving.serving import LONGEST, Serving
from core.serving.weights import WEIGHT_TYPES, weights_of
from core.units import format_bytes, format_count, format_duration, format_exact
from core.views.plan.text_memory import where_text

_KINDS = (
    "Llama 2 7B",
    "Llama 3.1 8B",
    "Falcon 7B",
    "Gemma 3 12B text decoder",
    "DeepSeek-V3",
    "Nemotron 3 Nano 30B-A3B",
)
"""A model of the catalog for each kind of attention."""

Rows = tuple[Sequence[Message], list[tuple[str, ...]], int | None]
"""Headings, rows, and the place of the row in force."""


def _gib(value: float) -> str:
    return format_bytes(value, system="binary", digits=3)


def _time(work: Placed) -> str:
    return format_duration(float(work.seconds), 3)


def fitting_text(s: Serving, name: str) -> list[Message]:
    """Return how many users fit with the weights of the model ``name``, and whether those that were entered do."""
    fit = s.users_that_fit
    kind = "unknown" if math.isnan(s.room) else "over" if s.room < 0 else "no_user" if fit < 1 else "users"
    said = pick_message(
        f"serving.fits.{kind}",
        model=name,
        format=s.weights.kind.name,
        where=where_text(s.tensor, s.device.name),
        weights=s.weights.held,
        engine=s.share * s.device.memory_bytes,
        context=float(s.context),
        left=s.room,
        user=s.user_bytes,
        fit=fit,
    )
    if fit >= 1 and s.users > fit:
        return [said, message("serving.fits.entered_over", users=float(s.users))]
    return [said]


def times_text(s: Serving) -> Message:
    """Return the minimum time of a token for the users that were entered, and of a prompt."""
    token, prompt = s.decode(s.users), float(s.prefill(s.context).seconds)
    seconds = float(token.seconds)
    if math.isnan(seconds) or math.isnan(prompt):
        return message("serving.times.unknown", device=s.device.name)
    return message(
        "serving.times.memory" if token.bound == "memory" else "serving.times.compute",
        token=seconds,
        users=float(s.users),
        rate=s.users / seconds,
        context=float(s.context),
        prompt=prompt,
    )


def notices(s: Serving, most_seen: int | None, *, adapters: bool = False) -> list[Message]:
    """Return what to know about the answer. most_seen: tokens of the longest sequence that the model supports."""
    spec, lines = s.weights.spec, list[Message]()
    if most_seen and s.context > most_seen:
        lines.append(message("serving.notice.too_long", context=float(s.context), most=float(most_seen)))
    if s.cache.fixed:
        lines.append(message("serving.notice.fixed", fixed=s.cache.fixed))
    if spec.latent:
        expanded = cache_of(spec, s.stored, convention=replace(TRANSFORMERS, latent="expanded"))
        lines.append(message("serving.notice.latent", factor=expanded.per_token / cache_of(spec, s.stored).per_token))
    if s.tensor > spec.kv_heads > 0 and spec.attention_layers and not spec.latent:
        lines.append(message("serving.notice.kv_heads", heads=float(spec.kv_heads), tensor=float(s.tensor)))
    if s.products != s.weights.kind.products:
        wanted = s.weights.kind.products
        lines.append(message("serving.notice.peak", device=s.device.name, wanted=wanted, used=s.products))
    tokens = float(s.pass_tokens)
    lines.append(message("serving.notice.engine", share=s.share, tokens=tokens, workspace=s.workspace))
    return [*lines, *([message("serving.notice.adapters")] if adapters else [])]


def _fit(s: Serving) -> str:
    fit = s.users_that_fit
    return message("serving.cell.unknown") if math.isnan(fit) else format_count(fit)


def _longest(s: Serving) -> str:
    if math.isnan(s.room):
        return message("serving.cell.unknown")
    longest = s.longest(1)
    if longest >= LONGEST:
        return message("serving.cell.unlimited")
    return format_exact(longest) if longest else message("serving.cell.none")


def cache_rows(s: Serving) -> Rows:
    """Return a row for each format of the KV cache."""
    headings = messages("serving.table", "cache per_token per_user users longest token_all")
    rows = [
        (
            row.stored.name,
            _gib(row.cache.per_token),
            _gib(row.user_bytes),
            _fit(row),
            _longest(row),
            _time(row.decode(row.users_that_fit)) if row.users_that_fit >= 1 else "–",
        )
        for row in (replace(s, stored=kind) for kind in CACHE_TYPES.values())
    ]
    return headings, rows, list(CACHE_TYPES).index(s.stored.name)


def weight_rows(s: Serving) -> Rows:
    """Return a row for each format of the weights, on as many accelerators."""
    headings = messages("serving.table", "weights held left users token_one prompt about")
    rows: list[tuple[str, ...]] = []
    for kind in WEIGHT_TYPES.values():
        usable = not math.isnan(s.device.peak(kind.products))
        products = kind.products if usable else s.device.usable("bf16")
        row = replace(s, weights=weights_of(s.spec, kind, tensor=s.tensor), products=products)
        rows.append(
            (
                kind.name,
                _gib(row.weights.held),
                message("serving.cell.over") if row.room < 0 else _gib(row.room),
                _fit(row),
                _time(row.decode(1)),
                _time(row.prefill(row.context)),
                kind.note,
            )
        )
    return headings, rows, list(WEIGHT_TYPES).index(s.weights.kind.name)


def kind_rows(s: Serving) -> Rows:
    """Return a model for each kind of attention, on one accelerator, with the cache's format and context in force."""
    headings = messages("serving.table", "model kind per_token fixed per_user")
    rows: list[tuple[str, ...]] = []
    for name in _KINDS:
        spec = CATALOG[name].spec
        cache = cache_of(spec, s.stored)
        fixed = _gib(cache.fixed) if cache.fixed else "–"
        rows.append((name, kind_of(spec), _gib(cache.per_token), fixed, _gib(float(cache.bytes(s.context)))))
    return headings, rows, None
