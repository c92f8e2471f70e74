"""Core's figures as static SVG: bars, points, lines and labels, crisp on paper and without a script.

The same dicts that a page hands to its chart library are drawn here as they stand. What moves with a mouse there, such
as a hover text, is a title here.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from core.units import significant
from core.views.common.chart import MONO, Figure
from core.views.common.palette import Palette
from core.views.report.axes import Axis, names_along, range_along

INK = Palette(**{field.name: f"var(--np-{field.name})" for field in fields(Palette)})
"""The palette for figures that `svg` draws: names of the document's colours, light, dark or on paper."""

WIDTH = 720
_TICK, _TITLE, _PAD = 22, 24, 6
_WIDE, _BOLDER = 0.61, 1.1
"""Width of a letter in parts of its size, in whatever face a reader has for ours; and how much wider a bold one is."""

_BREAK = re.compile(r"<br\s*/?>")
_TAG = re.compile(r"<[^>]*>")
_ANCHOR = {"left": "start", "center": "middle", "right": "end"}
_LIFT = {"top": 0.85, "middle": 0.35, "bottom": -0.25}
"""How far under its place a text's baseline lies, in parts of its size."""

_DASH = {"dash": "6 4", "dot": "2 3", "dashdot": "6 3 2 3"}


def svg(figure: Figure, alt: str) -> str:
    """``figure``, made with `INK`, as an SVG element that says ``alt`` to who cannot see it."""
    result = _Drawing(figure)
    size = f'viewBox="0 0 {WIDTH} {result.height:g}" width="{WIDTH}" height="{result.height:g}"'
    return f'<svg {size} role="img" aria-label="{html.escape(alt, quote=True)}">{"".join(result.parts())}</svg>'


class _Drawing:
    """A figure with its place for everything."""

    def __init__(self, figure: Figure) -> None:
        self.data: Sequence[Figure] = figure["data"]
        given: Figure = figure["layout"]
        self.given = given
        self.height = float(given["height"])
        margin = given.get("margin", {})
        y = {**given.get("yaxis", {}), "side": "y"}
        names = names_along(y, self.data)
        labels = [str(text) for text in y.get("ticktext", names)]
        widest = max((_measure(line, _size(y)) for text in labels for line in _BREAK.split(text)), default=30)
        left = max(float(margin.get("l", 0)), widest + 2 * _PAD + (_TITLE if _titled(y) else 0))
        self.left, self.right = left, WIDTH - max(float(margin.get("r", 0)), 16.0)
        across = {name.replace("axis", ""): axis for name, axis in given.items() if name.startswith("xaxis")}
        self.across = {name: self._along(name, axis) for name, axis in across.items()}
        bottom = max(float(margin.get("b", 0)), _TICK + _PAD + (_TITLE if any(map(_titled, across.values())) else 0))
        self.top, self.bottom = float(margin.get("t", 0)), self.height - bottom
        low, high = (-0.5, len(names) - 0.5) if names else range_along(y, self.data, "y")
        ends = (self.top, self.bottom) if y.get("autorange") == "reversed" else (self.bottom, self.top)
        self.y = Axis(y, names, low, high, *ends)

    def _along(self, name: str, axis: Figure) -> Axis:
        """An axis from left to right, over its part of the width."""
        data = [trace for trace in self.data if trace.get("xaxis", "x") == name]
        given = {**axis, "side": "x"}
        low, high = range_along(given, data, "x")
        start, end = (self.left + share * (self.right - self.left) for share in axis.get("domain", (0.0, 1.0)))
        return Axis(given, names_along(given, data), low, high, start, end)

    def _x(self, figure: Figure, name: str) -> Axis:
        """The axis from left to right that a trace or an annotation names."""
        return self.across.get(figure.get(name, "x"), next(iter(self.across.values())))

    def parts(self) -> Iterator[str]:
        """Everything in the order in which it is painted."""
        shapes: Sequence[Figure] = self.given.get("shapes", ())
        yield from (self._shape(shape) for shape in shapes if shape.get("layer") == "below")
        yield from self._axes()
        stacked: dict[str, float] = {}
        for trace in self.data:
            yield from self._bars(trace, stacked) if trace["type"] == "bar" else self._points(trace)
        yield from (self._shape(shape) for shape in shapes if shape.get("layer") != "below")
        yield from (self._note(item) for item in self.given.get("annotations", ()))

    def _axes(self) -> Iterator[str]:
        for axis in (*self.across.values(), self.y):
            across = axis is not self.y
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
            title, middle = axis.given.get("title", {}).get("text", ""), axis.paper(0.5)
            if title and across:
                yield _text(middle, self.bottom + 37, "middle", title, 13, False, INK.muted)
            elif title:
                turned = f' transform="rotate(-90 14 {middle:g})"'
                yield _text(14, middle, "middle", title, 13, False, INK.muted, more=turned)

    def _bars(self, trace: Figure, stacked: dict[str, float]) -> Iterator[str]:
        flat = trace.get("orientation") == "h"
        x = self._x(trace, "xaxis")
        along, across = (x, self.y) if flat else (self.y, x)
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
            if flat and "error_x" in trace:
                yield _range_of(trace["error_x"], along, i, number, middle)

    def _points(self, trace: Figure) -> Iterator[str]:
        mode = str(trace.get("mode", "markers"))
        along = self._x(trace, "xaxis")
        places = [(along.at(x), self.y.at(y)) for x, y in zip(trace["x"], trace["y"], strict=True)]
        seen = [(i, x, y) for i, (x, y) in enumerate(places) if math.isfinite(x) and math.isfinite(y)]
        if "lines" in mode and seen:
            path = " ".join(f"{x:.1f},{y:.1f}" for _, x, y in seen)
            yield f'<polyline points="{path}" style="fill:none;{_stroke(trace.get("line", {}))}"/>'
        marker = trace.get("marker", {})
        for i, x, y in seen if "markers" in mode else ():
            colour, hollow = _nth(marker.get("color", INK.parameters), i), "open" in _nth(marker.get("symbol", ""), i)
            line = {"color": colour, **marker.get("line", {})}
            paint = f"fill:{'none' if hollow else colour};opacity:{marker.get('opacity', 1)};{_stroke(line)}"
            radius = float(_nth(marker.get("size", 8), i)) / 2
            if marker.get("sizemode") == "area":
                radius = math.sqrt(2 * radius / float(marker["sizeref"]))
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" style="{paint}">{_title(trace, i, None)}</circle>'

    def _shape(self, figure: Figure) -> str:
        x0, x1 = (self._place(figure, "x", name) for name in ("x0", "x1"))
        y0, y1 = (self._place(figure, "y", name) for name in ("y0", "y1"))
        if figure["type"] == "line":
            return _line(x0, y0, x1, y1, _stroke(figure.get("line", {})))
        fill = f"fill:{figure.get('fillcolor', 'none')};opacity:{figure.get('opacity', 1)}"
        paint = f"{fill};{_stroke(figure.get('line', {}))}"
        return _rect(min(x0, x1), min(y0, y1), abs(x1 - x0), abs(y1 - y0), paint, "")

    def _place(self, figure: Figure, side: str, name: str) -> float:
        axis = self._x(figure, "xref") if side == "x" else self.y
        value = figure[name]
        return axis.paper(float(value)) if figure.get(f"{side}ref") == "paper" else axis.at(value)

    def _note(self, figure: Figure) -> str:
        """A text beside the data. What would leave the picture stands on the other side of its place, or is moved."""
        font = figure.get("font", {})
        size, mono = float(font.get("size", 12)), font.get("family") == MONO
        text = str(figure["text"])
        wide = _measure(text, size)
        anchor, shift = figure.get("xanchor", "center"), float(figure.get("xshift", 0))
        x = self._place(figure, "x", "x")
        if anchor == "left" and shift and x + shift + wide > WIDTH:
            anchor, shift = "right", -shift
        x += shift
        y = self._place(figure, "y", "y") - float(figure.get("yshift", 0))
        left = x - wide * {"left": 0.0, "center": 0.5, "right": 1.0}[anchor]
        x += max(0.0, 2 - left) - max(0.0, left + wide - (WIDTH - 2))
        behind = ""
        if figure.get("bgcolor"):
            behind = _rect(left - 2, y - 0.65 * size, wide + 4, 1.3 * size, f"fill:{figure['bgcolor']}", "")
        down = y + _LIFT[figure.get("yanchor", "middle")] * size
        return behind + _text(x, down, _ANCHOR[anchor], text, size, mono, font.get("color", INK.text))


def _range_of(error: Mapping[str, Any], along: Axis, i: int, value: float, y: float) -> str:
    """The line from the low to the high end of a bar's range, with its two ends."""
    low, high = along.at(value - float(error["arrayminus"][i])), along.at(value + float(error["array"][i]))
    if high - low < 1:
        return ""
    half = float(error.get("width", 4))
    path = f"M{low:.1f} {y - half:.1f}v{2 * half:g}M{high:.1f} {y - half:.1f}v{2 * half:g}M{low:.1f} {y:.1f}H{high:.1f}"
    return f'<path d="{path}" style="fill:none;{_stroke({"color": error["color"], "width": error["thickness"]})}"/>'


def _titled(axis: Mapping[str, Any]) -> bool:
    return bool(axis.get("title", {}).get("text"))


def _size(axis: Mapping[str, Any]) -> float:
    return float(axis.get("tickfont", {}).get("size", 12))


def _mono(axis: Mapping[str, Any]) -> bool:
    return bool(axis.get("tickfont", {}).get("family") == MONO)


def _nth(values: Any, i: int) -> Any:
    """One of several values, or the one that all share."""
    return values if isinstance(values, str | int | float) else values[i]


def _measure(text: str, size: float) -> float:
    return len(html.unescape(_TAG.sub("", text))) * size * _WIDE * (_BOLDER if "<b>" in text else 1)


def _title(trace: Figure, i: int, value: float | None) -> str:
    """What a mouse that rests on a mark is told: its name, and what is known of it."""
    number = "" if value is None else significant(value, 4)
    values = [trace.get(name, ()) for name in ("text", "customdata")]
    texts = [str(trace.get("name", "")), *(str(_nth(item, i)) for item in values if len(item)), number]
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
