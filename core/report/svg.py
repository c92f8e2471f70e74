"""Core's figures as static SVG: bars, points, lines and labels, crisp on paper and without a script.

The same dicts that a page hands to its chart library are drawn here as they stand. What moves with a mouse there, such
as a hover text, is a title here.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from core.figure import MONO, Figure
from core.palette import Palette
from core.units import significant

INK = Palette(**{one.name: f"var(--np-{one.name})" for one in fields(Palette)})
"""The palette for figures that `svg` draws: names of the document's colours, light, dark or on paper."""

WIDTH = 720
_TICK, _TITLE, _PAD = 22, 24, 6
_WIDE = {True: 0.61, False: 0.56}
"""Width of a letter in parts of its size: of the monospaced face, and of the other."""

_BREAK = re.compile(r"<br\s*/?>")
_TAG = re.compile(r"<[^>]*>")
_ANCHOR = {"left": "start", "center": "middle", "right": "end"}
_LIFT = {"top": 0.85, "middle": 0.35, "bottom": -0.25}
"""How far under its place a text's baseline lies, in parts of its size."""

_DASH = {"dash": "6 4", "dot": "2 3", "dashdot": "6 3 2 3"}
_LINES = 8
"""About so many grid lines an axis has where its figure names none."""


@dataclass(frozen=True, slots=True)
class _Axis:
    """One direction of the plot. start, end: pixels of its two ends of the range low to high."""

    given: Mapping[str, Any]
    names: Sequence[str]
    low: float
    high: float
    start: float
    end: float

    @property
    def log(self) -> bool:
        return self.given.get("type") == "log"

    def at(self, value: Any) -> float:
        """The pixel of a value, of a name, or of a place that is numbered as names are."""
        if isinstance(value, str):
            value = self.names.index(value)
        number = float(value)
        if self.log:
            number = math.log10(number) if number > 0 else math.nan
        return self.start + (number - self.low) / ((self.high - self.low) or 1.0) * (self.end - self.start)

    def paper(self, share: float) -> float:
        """The pixel of a share of the plot, from left or from the bottom."""
        low, high = sorted((self.start, self.end))
        return low + share * (high - low) if self.given["side"] == "x" else high - share * (high - low)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Pixels and texts."""
        values = self.given.get("tickvals")
        if values is not None:
            for value, text in zip(values, self.given.get("ticktext", values), strict=False):
                yield self.at(value), str(text)
            return
        step = _step((self.high - self.low) / _LINES)
        first = math.ceil(self.low / step - 1e-9)
        for i in range(first, math.floor(self.high / step + 1e-9) + 1):
            yield self.at(10.0 ** (i * step) if self.log else i * step), _number(i * step, self.log)


def _step(wide: float) -> float:
    """The round number next above ``wide``."""
    base = 10.0 ** math.floor(math.log10(wide)) if wide > 0 else 1.0
    return next(m * base for m in (1, 2, 5, 10) if m * base >= wide * (1 - 1e-9))


def _number(value: float, log: bool) -> str:
    return significant(10.0**value if log else value, 6)


def svg(figure: Figure, alt: str) -> str:
    """``figure``, made with `INK`, as an SVG element that says ``alt`` to who cannot see it."""
    made = _Drawing(figure)
    size = f'viewBox="0 0 {WIDTH} {made.height:g}" width="{WIDTH}" height="{made.height:g}"'
    return f'<svg {size} role="img" aria-label="{html.escape(alt, quote=True)}">{"".join(made.parts())}</svg>'


class _Drawing:
    """A figure with its place for everything."""

    def __init__(self, figure: Figure) -> None:
        self.data: Sequence[Figure] = figure["data"]
        given: Figure = figure["layout"]
        self.given = given
        self.height = float(given["height"])
        x, y = {**given.get("xaxis", {}), "side": "x"}, {**given.get("yaxis", {}), "side": "y"}
        margin = given.get("margin", {})
        names = _names(y, self.data)
        labels = [str(text) for text in y.get("ticktext", names)]
        widest = max((_measure(line, _size(y), _mono(y)) for text in labels for line in _BREAK.split(text)), default=30)
        left = max(float(margin.get("l", 0)), widest + 2 * _PAD + (_TITLE if _titled(y) else 0))
        bottom = max(float(margin.get("b", 0)), _TICK + (_TITLE if _titled(x) else 0) + _PAD)
        self.left, self.right = left, WIDTH - max(float(margin.get("r", 0)), 16.0)
        self.top, self.bottom = float(margin.get("t", 0)), self.height - bottom
        low, high = _range(x, self.data, "x")
        self.x = _Axis(x, _names(x, self.data), low, high, self.left, self.right)
        low, high = (-0.5, len(names) - 0.5) if names else _range(y, self.data, "y")
        ends = (self.top, self.bottom) if y.get("autorange") == "reversed" else (self.bottom, self.top)
        self.y = _Axis(y, names, low, high, *ends)

    def parts(self) -> Iterator[str]:
        """Everything in the order in which it is painted."""
        shapes: Sequence[Figure] = self.given.get("shapes", ())
        yield from (self._shape(one) for one in shapes if one.get("layer") == "below")
        yield from self._axes()
        stacked: dict[str, float] = {}
        for trace in self.data:
            yield from self._bars(trace, stacked) if trace["type"] == "bar" else self._points(trace)
        yield from (self._shape(one) for one in shapes if one.get("layer") != "below")
        yield from (self._note(one) for one in self.given.get("annotations", ()))

    def _axes(self) -> Iterator[str]:
        for axis, across in ((self.x, True), (self.y, False)):
            rule = _stroke({"color": axis.given.get("gridcolor", "none"), "width": 1})
            size, mono = _size(axis.given), _mono(axis.given)
            suffix = str(axis.given.get("ticksuffix", "")).rstrip()
            for at, text in axis.ticks():
                if axis.given.get("showgrid", True):
                    ends = (at, self.top, at, self.bottom) if across else (self.left, at, self.right, at)
                    yield _line(*ends, rule)
                place = (at, self.bottom + 16, "middle") if across else (self.left - _PAD, at, "end")
                colour = axis.given.get("tickfont", {}).get("color", INK.muted)
                yield _text(*place, text + suffix, size, mono, colour, middle=not across)
            title = axis.given.get("title", {}).get("text", "")
            if title and across:
                yield _text(self.x.paper(0.5), self.bottom + 37, "middle", title, 13, False, INK.muted)
            elif title:
                turned = f' transform="rotate(-90 14 {self.y.paper(0.5):g})"'
                yield _text(14, self.y.paper(0.5), "middle", title, 13, False, INK.muted, more=turned)

    def _bars(self, trace: Figure, stacked: dict[str, float]) -> Iterator[str]:
        flat = trace.get("orientation") == "h"
        along, across = (self.x, self.y) if flat else (self.y, self.x)
        values, places = (trace["x"], trace["y"]) if flat else (trace["y"], trace["x"])
        wide = abs(across.at(0) - across.at(1)) * float(trace.get("width", 0.7))
        for i, (place, value) in enumerate(zip(places, values, strict=True)):
            number = float(value)
            key = str(place)
            start = stacked.get(key, 0.0) if self.given.get("barmode") == "stack" else 0.0
            if not math.isfinite(number) or not number:
                continue
            stacked[key] = start + number
            near, far = sorted((along.at(start), along.at(start + number)))
            middle = across.at(place)
            box = (near, middle - wide / 2, far - near, wide) if flat else (middle - wide / 2, near, wide, far - near)
            marker = trace.get("marker", {})
            paint = f"fill:{_nth(marker.get('color', INK.parameters), i)};{_stroke(marker.get('line', {}))}"
            yield _rect(*box, paint, _title(trace, i, number))

    def _points(self, trace: Figure) -> Iterator[str]:
        mode = str(trace.get("mode", "markers"))
        places = [(self.x.at(x), self.y.at(y)) for x, y in zip(trace["x"], trace["y"], strict=True)]
        seen = [(i, x, y) for i, (x, y) in enumerate(places) if math.isfinite(x) and math.isfinite(y)]
        if "lines" in mode and seen:
            path = " ".join(f"{x:.1f},{y:.1f}" for _, x, y in seen)
            yield f'<polyline points="{path}" style="fill:none;{_stroke(trace.get("line", {}))}"/>'
        marker = trace.get("marker", {})
        for i, x, y in seen if "markers" in mode else ():
            colour, hollow = _nth(marker.get("color", INK.parameters), i), "open" in str(marker.get("symbol", ""))
            line = {"color": colour, **marker.get("line", {})} if hollow else marker.get("line", {})
            paint = f"fill:{'none' if hollow else colour};opacity:{marker.get('opacity', 1)};{_stroke(line)}"
            radius = float(_nth(marker.get("size", 8), i)) / 2
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" style="{paint}">{_title(trace, i, None)}</circle>'

    def _shape(self, one: Figure) -> str:
        x0, x1 = (self._place(one, "x", name) for name in ("x0", "x1"))
        y0, y1 = (self._place(one, "y", name) for name in ("y0", "y1"))
        if one["type"] == "line":
            return _line(x0, y0, x1, y1, _stroke(one.get("line", {})))
        paint = f"fill:{one.get('fillcolor', 'none')};opacity:{one.get('opacity', 1)};{_stroke(one.get('line', {}))}"
        return _rect(min(x0, x1), min(y0, y1), abs(x1 - x0), abs(y1 - y0), paint, "")

    def _place(self, one: Figure, side: str, name: str) -> float:
        axis = self.x if side == "x" else self.y
        value = one[name]
        return axis.paper(float(value)) if one.get(f"{side}ref") == "paper" else axis.at(value)

    def _note(self, one: Figure) -> str:
        """A text beside the data. What would leave the picture is moved back into it."""
        font = one.get("font", {})
        size, mono = float(font.get("size", 12)), font.get("family") == MONO
        text = str(one["text"])
        wide = _measure(text, size, mono)
        anchor = one.get("xanchor", "center")
        x = self._place(one, "x", "x") + float(one.get("xshift", 0))
        y = self._place(one, "y", "y") - float(one.get("yshift", 0))
        left = x - wide * {"left": 0.0, "center": 0.5, "right": 1.0}[anchor]
        x += max(0.0, 2 - left) - max(0.0, left + wide - (WIDTH - 2))
        behind = ""
        if one.get("bgcolor"):
            behind = _rect(left - 2, y - 0.65 * size, wide + 4, 1.3 * size, f"fill:{one['bgcolor']}", "")
        down = y + _LIFT[one.get("yanchor", "middle")] * size
        return behind + _text(x, down, _ANCHOR[anchor], text, size, mono, font.get("color", INK.text))


def _names(axis: Mapping[str, Any], data: Sequence[Figure]) -> list[str]:
    """The names along an axis of names, in their order; none where it has numbers."""
    found = [str(value) for trace in data for value in trace[axis["side"]] if isinstance(value, str)]
    return list(dict.fromkeys(found))


def _range(axis: Mapping[str, Any], data: Sequence[Figure], side: str) -> tuple[float, float]:
    """The range that an axis is given, or that of its data with 0 and some room."""
    given = axis.get("range")
    if given is not None:
        return float(given[0]), float(given[1])
    values = np.concatenate([np.asarray(trace[side], dtype=np.float64) for trace in data] or [np.zeros(1)])
    values = values[np.isfinite(values)]
    high = float(values.max(initial=0.0))
    return min(0.0, float(values.min(initial=0.0))), 1.06 * high or 1.0


def _titled(axis: Mapping[str, Any]) -> bool:
    return bool(axis.get("title", {}).get("text"))


def _size(axis: Mapping[str, Any]) -> float:
    return float(axis.get("tickfont", {}).get("size", 12))


def _mono(axis: Mapping[str, Any]) -> bool:
    return bool(axis.get("tickfont", {}).get("family") == MONO)


def _nth(values: Any, i: int) -> Any:
    """One of several values, or the one that all share."""
    return values if isinstance(values, str | int | float) else values[i]


def _measure(text: str, size: float, mono: bool) -> float:
    return len(html.unescape(_TAG.sub("", text))) * size * _WIDE[mono]


def _title(trace: Figure, i: int, value: float | None) -> str:
    """What a mouse that rests on a mark is told: its name, and what is known of it."""
    number = "" if value is None else significant(value, 4)
    said = [trace.get(name, ()) for name in ("text", "customdata")]
    texts = [str(trace.get("name", "")), *(str(_nth(one, i)) for one in said if len(one)), number]
    return f"<title>{html.escape(' · '.join(dict.fromkeys(filter(None, texts))))}</title>"


def _stroke(line: Mapping[str, Any]) -> str:
    if not line.get("width"):
        return "stroke:none"
    dash = f";stroke-dasharray:{_DASH[line['dash']]}" if line.get("dash") in _DASH else ""
    return f"stroke:{line.get('color', INK.text)};stroke-width:{line['width']}{dash}"


def _line(x0: float, y0: float, x1: float, y1: float, paint: str) -> str:
    return f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" style="{paint}"/>'


def _rect(x: float, y: float, wide: float, high: float, paint: str, inside: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" style="{paint}">{inside}</rect>'


def _text(
    x: float,
    y: float,
    anchor: str,
    text: str,
    size: float,
    mono: bool,
    colour: str,
    *,
    middle: bool = False,
    more: str = "",
) -> str:
    """One text, with its lines under each other. middle: ``y`` is its middle, not its baseline."""
    lines = _BREAK.split(text)
    weight = ";font-weight:600" if "<b>" in text else ""
    first = y + 0.35 * size - 0.6 * size * (len(lines) - 1) if middle else y
    kind = ' class="m"' if mono else ""
    return "".join(
        f'<text x="{x:.1f}" y="{first + 1.2 * size * i:.1f}" text-anchor="{anchor}"{kind}{more} '
        f'style="fill:{colour};font-size:{size:g}px{weight}">{html.escape(html.unescape(_TAG.sub("", line)))}</text>'
        for i, line in enumerate(lines)
    )
