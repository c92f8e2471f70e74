"""What serving a model takes, as sentences and rows: users that fit, bytes of a token, and minimum times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from core.hardware.operations import Placed
from core.messages import Message, message, messages, pick_message
from core.serving.cache import CACHE_TYPES, TRANSFORMERS, cache_of
from core.serving.engine import MTP_FAMILIES, overhead
from core.serving.serving import LONGEST, Serving
from core.serving.weights import WEIGHT_TYPES, weights_of
from core.units import format_bytes, format_count, format_duration, format_exact
from core.views.plan.text_memory import where_text
from core.wording import span

Rows = tuple[Sequence[Message], list[tuple[str, ...]], int | None]
"""Headings, rows, and the place of the row in force."""

_MONTH_HOURS = 365.25 * 24 / 12


def _gib(value: float) -> str:
    return format_bytes(value, system="binary", digits=3)


def _time(work: Placed) -> str:
    return format_duration(float(work.seconds), 3)


def fitting_text(s: Serving, name: str) -> Message:
    """Return how many users fit on one copy of the model ``name``."""
    fit = s.users_that_fit
    kind = "unknown" if math.isnan(s.room) else "over" if s.room < 0 else "no_user" if fit < 1 else "users"
    return pick_message(
        f"serving.fits.{kind}",
        model=name,
        format=s.weights.kind.name,
        where=where_text(s.tensor, s.device.name),
        weights=s.held,
        engine=s.engine.utilization * s.memory,
        context=float(s.context),
        left=s.room,
        user=s.blocks.request * s.blocks.block,
        fit=fit,
    )


def fleet_text(s: Serving, price: tuple[float, float]) -> list[Message]:
    """Return the accelerators that all users need and what they cost a month. price: dollars an hour of one."""
    if not s.users_that_fit >= 1:
        return []
    said = message(
        "serving.fleet", users=float(s.users), where=where_text(s.cards, s.device.name), copies=float(s.copies)
    )
    if math.isnan(price[1]):
        return [said]
    month = (price[0] * s.cards * _MONTH_HOURS, price[1] * s.cards * _MONTH_HOURS)
    return [said, message("serving.fleet.cost", month=month, price=price)]


def times_text(s: Serving) -> Message:
    """Return the minimum time of a token for the users that were entered, and of a prompt."""
    token, prompt = s.decode(s.busiest), float(s.prefill(s.context).seconds)
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


def contradictions(s: Serving, family: str) -> list[Message]:
    """Return settings that contradict each other, each with the label of its field. family: of the model."""
    tokens, requests, found = s.engine.tokens, s.engine.requests or 0, list[Message]()
    most = s.engine.passes(s.device)[0]
    if tokens and tokens > s.context:
        found.append(message("serving.error.tokens", tokens=float(tokens), context=float(s.context)))
    if requests > most:
        found.append(message("serving.error.requests", requests=float(requests), tokens=float(most)))
    if s.engine.draft == "MTP" and not s.spec.mtp_modules and not family.startswith(MTP_FAMILIES):
        found.append(message("serving.error.draft"))
    return found


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
            _gib(row.blocks.request * row.blocks.block),
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
                _gib(row.held),
                message("serving.cell.over") if row.room < 0 else _gib(row.room),
                _fit(row),
                _time(row.decode(1)),
                _time(row.prefill(row.context)),
                kind.note,
            )
        )
    return headings, rows, list(WEIGHT_TYPES).index(s.weights.kind.name)


def engine_rows(s: Serving) -> Rows:
    """Return the memory of one accelerator as vLLM counts it, and what vLLM and SGLang print, with their ranges."""
    outside, room, blocks = overhead(s.tensor > 1), s.room_range, s.blocks
    graphs = outside.graphs if s.engine.version == "0.21 or later" else (0.0, 0.0, 0.0)
    sizes: list[tuple[str, float, tuple[float, float] | None]] = [
        ("weights", s.weights.held, None),
        ("further", s.held - s.weights.held, None),
        ("activations", s.activations, None),
        ("outside", outside.outside[1], (outside.outside[0], outside.outside[2])),
        ("graphs", graphs[1], (graphs[0], graphs[2])),
        ("room", s.room, room),
    ]
    rows = [
        (pick_message(f"serving.engine.{name}"), _gib(size), span(_gib(ends[0]), _gib(ends[1])) if ends else "–")
        for name, size, ends in sizes
        if size or ends
    ]
    if s.room > 0:
        spans = [blocks.cache_tokens(max(0.0, end), s.context) for end in (room[0], s.room, room[1])]
        low, middle, high = (format_exact(tokens) for tokens in spans)
        rows.append((message("serving.engine.tokens"), middle, span(low, high)))
        low, middle, high = (f"{blocks.concurrency(max(0.0, end)):.2f}x" for end in (room[0], s.room, room[1]))
        rows.append((message("serving.engine.concurrency", context=float(s.context)), middle, span(low, high)))
    if math.isfinite(s.sglang_tokens):
        rows.append((message("serving.engine.sglang"), format_exact(int(s.sglang_tokens)), "–"))
    return messages("serving.table", "engine value range"), rows, None
