"""Decisions worth telling, as texts of the plan's fields and the decision's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.formula import Source
from core.planning.decide.decision import DECISION_FIELDS, OFFERS, RUNS
from core.planning.decide.offers import OFFER_COLUMNS, write_table
from core.planning.decide.runs import RUN_COLUMNS
from core.planning.form.whole_run import BUDGET, DEADLINE, POWER_LIMIT
from core.planning.plan import TYPED
from core.sources import DEEPSEEK_V3

_LLAMA = Source("Grattafiori et al. 2024, The Llama 3 Herd of Models", url="https://arxiv.org/abs/2407.21783")

SOURCES: Mapping[str, tuple[Source, ...]] = {
    "Llama 3 405B: 8k, then 128k": (
        _LLAMA.at("sections 3.4.1 and 3.4.2: 15.6T tokens in all, 800B to extend the context; table 4: MFU 38–43%"),
    ),
    "DeepSeek-V3: 4k, 32k, 128k": (
        DEEPSEEK_V3.at("table 1; section 4.3: two phases of 1,000 steps, of 1,920 sequences of 32k and 480 of 128k"),
    ),
}
"""Where the figures of a preset are from; the others are made up."""


def _preset(
    plan: Mapping[str, str], runs: Sequence[Mapping[str, str]], offers: Sequence[Mapping[str, str]] = ()
) -> Mapping[str, str]:
    """Return the plan and the decision, every field of both that it shows."""
    usual = {field.id: field.default for field in DECISION_FIELDS}
    usual |= {field.id: "" for field in (DEADLINE, BUDGET, POWER_LIMIT)}
    usual |= {"find": "time", "pace": "all hours", "dtype": "bf16", "price": "", "gb": "16M tokens", "mfu": "published"}
    tables = {OFFERS.id: write_table(offers, OFFER_COLUMNS), RUNS.id: write_table(runs, RUN_COLUMNS)}
    return {**usual, **plan, **tables}


_H100 = {"gpu": "H100 SXM", "count": "1,024", "seq": "8,192"}

PRESETS: Mapping[str, Mapping[str, str]] = {
    "Two models, four offers": _preset(
        {
            **_H100,
            "model": TYPED,
            "n": "32B",
            "tokens": "8T",
            DEADLINE.id: "90 days",
            BUDGET.id: "6M",
            POWER_LIMIT.id: "1.2 MW",
        },
        ({"name": "32B"}, {"name": "120B-A13B", "model": "120B-A13B", "tokens": "12T"}),
        (
            {"accelerator": "H100 SXM", "count": "256", "contract": "owned", "price": "$30,000 over 4 years"},
            {"accelerator": "H200 SXM", "count": "512", "contract": "rented", "price": "$2.80"},
            {"accelerator": "GB200 NVL72", "count": "256"},
            {"accelerator": "MI355X", "count": "512"},
        ),
    ),
    "Llama 3 405B: 8k, then 128k": _preset(
        {
            **_H100,
            "model": "Llama 3.1 405B",
            "tokens": "14.8T",
            "count": "16,384",
            "mfu": "38-43%",
            "pace": "steady steps",
            DEADLINE.id: "90 days",
        },
        ({"name": "8k"}, {"name": "128k", "tokens": "800B", "seq": "131,072", "after": "8k"}),
    ),
    "DeepSeek-V3: 4k, 32k, 128k": _preset(
        {
            "model": "DeepSeek-V3",
            "goal": "soonest",
            "tokens": "14.8T",
            "seq": "4,096",
            "gpu": "H800 SXM",
            "count": "2,048",
            "dtype": "fp8",
            "gb": "62.9M tokens",
        },
        (
            {"name": "4k"},
            {"name": "32k", "tokens": "62.9B", "seq": "32,768", "after": "4k"},
            {"name": "128k", "tokens": "62.9B", "seq": "131,072", "after": "32k"},
        ),
    ),
    "A year’s fleet with experiments": _preset(
        {**_H100, "model": TYPED, "n": "70B", "tokens": "10T", DEADLINE.id: "350 days"},
        (
            {"name": "70B", "first": "2027-03-01"},
            {"name": "70B, long context", "tokens": "500B", "seq": "65,536", "after": "70B"},
            {"name": "8B, first data", "model": "8B", "tokens": "2T"},
            {"name": "8B, second data", "model": "8B", "tokens": "2T", "after": "8B, first data"},
            {"name": "3B, to overtrain", "model": "3B", "tokens": "6T"},
        ),
        ({"name": "fleet", "accelerator": "H100 SXM", "count": "992", "maintenance": "8"},),
    ),
}
"""The presets."""
