"""Where the days of compared plans go, as bars on top of each other and as sentences."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from core.planning.comparison.comparison import ComparedPlan
from core.planning.comparison.time_parts import BESIDE, PARTS, Shortfall, TimeParts, known_parts, shortfall
from core.units import format_duration, significant
from core.views.common.chart import Figure, as_typed, axis, figure, label, legend_above, lying_bars, rows_axis
from core.views.common.palette import Palette
from core.views.comparison.text import plan_name
from core.views.plan.charts import scale_for
from core.views.search.names import short
from core.wording import listed, percent_of_whole

_NAMED: dict[str, tuple[str, str]] = {
    "computing": ("matrix products", "fraction"),
    "memory": ("element-wise work and optimizer", "gradients"),
    "recomputing": ("recomputing", "activations"),
    "communication": ("communication", "master"),
    "waiting": ("pipeline’s wait, launches and contention", "optimizer"),
    BESIDE: ("outside its layout’s steps", "buffers"),
}
"""Part → its name, and the role whose colour it wears."""

_ROW = 54
_ALIKE = 0.02
"""Share of the days below which a difference is not worth a word."""


def _days(days: float) -> str:
    return format_duration(86400 * days, 3)


def why_not_faster(plans: Sequence[ComparedPlan], parts: Sequence[TimeParts | str], base: int) -> list[str]:
    """Of every plan beside the baseline how much faster it is than its accelerators let expect, and what that goes to;
    and of which plans nobody knows."""
    lines: list[str] = []
    first = parts[base]
    for i, (plan, part) in enumerate(zip(plans, parts, strict=True)):
        if isinstance(part, str):
            lines.append(f"**{plan_name(plan)}**: what its days go to is unknown. {part}")
        elif i == base or isinstance(first, str):
            most = max(PARTS, key=lambda name, part=part: part.days[name] if name != "computing" else 0.0)
            lines.append(
                f"**{plan_name(plan)}**, as {short(part.layout)}: of **{_days(part.total)}**, matrix products "
                f"take {percent_of_whole(part.days['computing'] / part.total)}, {_NAMED[most][0]} "
                f"{percent_of_whole(part.days[most] / part.total)}, and what lies outside its layout’s steps "
                f"{percent_of_whole(part.days[BESIDE] / part.total)}."
            )
        else:
            lines.append(_against(plan, part, plans[base], shortfall(first, part)))
    return lines


def _against(plan: ComparedPlan, part: TimeParts, base: ComparedPlan, short_of: Shortfall) -> str:
    more = "" if abs(short_of.peak - 1) < _ALIKE / 4 else f"**{significant(short_of.peak, 3)} times** "
    head = (
        f"**{plan_name(plan)}**, as {short(part.layout)}, has {more}the dense peak of "
        f"{plan_name(base)} for its work, and is **{significant(short_of.faster, 3)} times** as fast"
    )
    expected = part.total - sum(short_of.over.values())
    changes = {"more": _named(short_of, part, 1), "less": _named(short_of, part, -1)}
    parts = listed([f"{named} {how}" for how, named in changes.items() if named])
    if not parts:
        return f"{head}, as that lets expect."
    return (
        f"{head}. By the peak alone it would take **{_days(expected)}**, and it takes **{_days(part.total)}**: {parts}."
    )


def _named(short_of: Shortfall, part: TimeParts, sign: int) -> str:
    """The parts that take more (or less) than the peak lets expect, the largest first."""
    worth = {name: sign * over for name, over in short_of.over.items() if sign * over > _ALIKE / 2 * part.total}
    largest = sorted(worth, key=lambda name: -worth[name])[:3]
    return listed([f"{_NAMED[name][0]} **{_days(worth[name])}**" for name in largest])


def parts_bars(plans: Sequence[ComparedPlan], parts: Sequence[TimeParts | str], palette: Palette) -> Figure:
    """A bar of days a plan, the first on top, cut into what they go to; each colour is named once, over the bars."""
    known = known_parts(parts)
    rows = {i: len(known) - 1 - at for at, i in enumerate(known)}
    shown = {i: part for i in known if isinstance(part := parts[i], TimeParts)}
    most = max(part.total for part in shown.values())
    scale = scale_for("time", most)
    data: list[Figure] = []
    for name, (title, role) in _NAMED.items():
        data.append(
            lying_bars(
                [part.days[name] / scale.size for part in shown.values()],
                [rows[i] for i in shown],
                "%{customdata}",
                name=title,
                width=0.5,
                marker={"color": palette.role(role), "line": {"color": palette.background, "width": 1}},
                customdata=[f"{title}: {_days(part.days[name])}" for part in shown.values()],
            )
        )
    names = ["<br>".join(map(as_typed, textwrap.wrap(plans[i].short_name, 28, max_lines=2) or [""])) for i in shown]
    return figure(
        palette,
        data,
        height=_ROW * len(shown) + 110,
        margin={"l": 8, "r": 8, "t": 48, "b": 8},
        barmode="stack",
        showlegend=True,
        legend=legend_above(1.02),
        xaxis=axis(palette, scale.title, range=[0, 1.14 * most / scale.size], tickformat=",~r"),
        yaxis=rows_axis(palette, [rows[i] for i in shown], names, 12, range=[-0.6, len(shown) - 0.4]),
        annotations=[
            label(palette, _days(part.total), x=part.total / scale.size, y=rows[i], xanchor="left", xshift=6)
            for i, part in shown.items()
        ],
    )
