"""Plans for reports: every preset, plans without an answer or a layout, and names that somebody means harm with."""

from __future__ import annotations

from datetime import date

from core.planning.comparison.comparison import compare_plans
from core.planning.comparison.entry import Entry, entry_of
from core.planning.estimate import timed_estimate
from core.planning.form.links import texts_as_given
from core.planning.form.plan_form import plan_of
from core.planning.presets import MEMORY_PRESETS, PRESETS, SEARCH_PRESETS
from core.views.report.report import Report

LINK = "https://napkin.example/compute-budget?v=3&c_n=70B&c_tokens=15T"
DAY = date(2026, 11, 22)

PAGE_PRESETS = {
    f"{name} ({kind})": entry_of(name, texts)
    for kind, texts_of in (("compute", PRESETS), ("memory", MEMORY_PRESETS), ("search", SEARCH_PRESETS))
    for name, texts in texts_of.items()
}

ODD = {
    "no answer": entry_of("Owned", {"find": "tokens", "within": "$5M", "gpu": "V100 SXM 32 GB"}),
    "no layout": entry_of("Split", {"model": "Llama 3.1 8B", "tp": "7"}),
    "impossible": entry_of("Fast", {"mfu": "99%"}),
    "unreadable": entry_of("Typed", {"n": "lots of <b>**", "tokens": "=1+1", "gpu": "H1000"}),
    "long": entry_of("Long", {"seq": "1,048,576", "mfu": "35-45%"}),
}
"""Plans with something wrong, each with an answer or a reason."""

HOSTILE = (
    '<script>alert(1)</script><img src="https://evil.example/x.png" onerror=alert(1)>',
    "=cmd|' /C calc'!A1",
    "+1",
    "-1+2",
    "@SUM(1)",
    "\tx",
    "`|`\n# heading | cell",
    '"""\nimport os\n"""',
    "'}); __import__('os').system('x') #",
    "\\",
    "{0} {name} %s",
    "]] --> </style></title></main>",
    "@everyone **bold** [x](javascript:alert(1))",
    "\u202egnp.exe",
    "名前 é ½",
)


def about_a_layout(preset: str, **texts: str) -> Report:
    """A report of Parallel plan on one of its presets, or on these texts."""
    entry = entry_of(preset, texts or texts_as_given(SEARCH_PRESETS[preset]))
    return Report(compare_plans([entry]), LINK, DAY, layout=timed_estimate(plan_of(entry.reading)))


def report(*entries: Entry, link: str = LINK) -> Report:
    """A report on these, of a fixed day."""
    return Report(compare_plans(entries), link, DAY)
