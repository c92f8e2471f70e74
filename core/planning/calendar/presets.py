"""Calendars worth telling, as texts of the plan's fields and the calendar's."""

from __future__ import annotations

from collections.abc import Mapping

from core.formula import Source
from core.planning.calendar.form import (
    CLOSED,
    CLUSTER_POOL,
    COUNTED,
    DUE,
    FIRST,
    MONTHLY,
    MOST,
    POOLS,
    RUN_FIELDS,
    SPARE,
    START,
)
from core.planning.plan import TYPED
from core.sources import DEEPSEEK_V3

LLAMA = Source("Grattafiori et al. 2024, The Llama 3 Herd of Models", url="https://arxiv.org/abs/2407.21783")

SOURCES: Mapping[str, tuple[Source, ...]] = {
    "Llama 3 405B: 8k, then 128k": (
        LLAMA.at("sections 3.4.1 and 3.4.2: 15.6T tokens in all, 800B to extend the context; table 4: MFU 38–43%"),
    ),
    "DeepSeek-V3: 4k, 32k, 128k": (
        DEEPSEEK_V3.at("table 1; section 4.3: two phases of 1,000 steps, of 1,920 sequences of 32k and 480 of 128k"),
    ),
}
"""Where the figures of a preset are from; the others are made up."""


def _preset(runs: tuple[Mapping[str, str], ...], plan: Mapping[str, str], **calendar: str) -> Mapping[str, str]:
    """The plan and the calendar, every field of both that it shows; runs by what their fields are."""
    usual = {START.id: START.default, SPARE.id: "0", MONTHLY.id: "0"}
    usual |= {field.id: "" for field in (DUE, CLOSED, POOLS, CLUSTER_POOL, MOST)}
    usual["gb"] = "16M tokens"
    texts = {**usual, "find": "time", "pace": "all hours", "dtype": "bf16", "price": "", **plan, **calendar}
    texts[COUNTED.id] = str(len(runs))
    for k, run in enumerate(runs, 1):
        texts |= {field.id: run.get(name, field.default) for name, field in RUN_FIELDS[k].items()}
    return texts


_LLAMA = {
    "model": "Llama 3.1 405B",
    "tokens": "14.8T",
    "seq": "8,192",
    "gpu": "H100 SXM",
    "count": "16,384",
    "mfu": "38-43%",
    "pace": "steady steps",
}
_DEEPSEEK = {
    "model": "DeepSeek-V3",
    "tokens": "14.8T",
    "seq": "4,096",
    "gpu": "H800 SXM",
    "count": "2,048",
    "mfu": "published",
    "dtype": "fp8",
    "gb": "62.9M tokens",
}
_YEAR = {
    "model": TYPED,
    "n": "70B",
    "tokens": "10T",
    "seq": "8,192",
    "gpu": "H100 SXM",
    "count": "1,024",
    "mfu": "published",
}

PRESETS: Mapping[str, Mapping[str, str]] = {
    "Llama 3 405B: 8k, then 128k": _preset(
        ({"name": "8k"}, {"name": "128k", "tokens": "800B", "seq": "131,072", "after": "run 1"}),
        _LLAMA,
        due="2027-04-15",
        closed="2027-02-15 to 2027-02-16",
    ),
    "DeepSeek-V3: 4k, 32k, 128k": _preset(
        (
            {"name": "4k"},
            {"name": "32k", "tokens": "62.9B", "seq": "32,768", "after": "run 1"},
            {"name": "128k", "tokens": "62.9B", "seq": "131,072", "after": "run 2"},
        ),
        _DEEPSEEK,
    ),
    "A year’s fleet with experiments": _preset(
        (
            {"name": "70B", "count": "75%", "after": "run 3", "earliest": "2027-03-01"},
            {"name": "70B, long context", "count": "75%", "tokens": "500B", "seq": "65,536", "after": "run 1"},
            {"name": "8B, first data", "model": "8B", "tokens": "2T", "count": "12.5%", "after": FIRST},
            {"name": "8B, second data", "model": "8B", "tokens": "2T", "count": "12.5%", "after": "run 3"},
            {"name": "3B, to overtrain", "model": "3B", "tokens": "6T", "count": "12.5%", "after": FIRST},
        ),
        _YEAR,
        due="2027-12-31",
        spare="4",
        closed="2027-07-05 to 2027-07-09",
        mhours="8",
    ),
    "8B and 70B, one after the other": _preset(
        ({"name": "8B", "model": "8B"}, {"name": "70B", "after": "run 1"}), {**_YEAR, "tokens": "15T"}
    ),
}
"""The presets."""
