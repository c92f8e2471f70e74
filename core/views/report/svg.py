"""Core's figures as static SVG: bars that lie, points, lines and labels, crisp on paper and without a script.

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

from core.units import significant
from core.views.common.chart import MONO, Figure
from core.views.common.palette import Palette

INK = Palette(**{field.name: f"var(--np-{field.name})" for field in fields(Palette)})
"""The palette for figures that `svg` draws: names of the document's colours, light, dark or on paper."""

WIDTH = 720
_LINES = 8
"""About so many grid lines an axis has where its figure names none."""
_TICK, _TITLE, _PAD = 22, 24, 6
_WIDE, _BOLDER = 0.61, 1.1
"""Width of a letter in parts of its size, in whatever face a reader has for ours; and how much wider a bold one is."""

_BREAK = re.compile(r"<br\s*/?>")
_TAG = re.compile(r"<[^>]*>")
_ANCHOR = {"left": ("start", 0.0), "center": ("middle", 0.5), "right": ("end", 1.0)}
_LIFT = {"top": 0.85, "middle": 0.35, "bottom": -0.25}
"""How far under its place a text's baseline lies, in parts of its size."""

_DASH = {"dash": "6 4", "dot": "2 3"}


@dataclass(frozen=True, slots=True)
class _Axis:
    """One direction of the plot. start, end: pixels of its two ends of the range low to high."""

    given: Figure
    names: Sequence[str]
    low: float
    high: float
    start: float
    end: float

    def at(self, value: Any) -> float:
        """The pixel of a value, of a name, or of a place that is numbered as names are."""
        number = float(self.names.index(value) if isinstance(value, str) else value)
        return self.start + (number - self.low) / ((self.high - self.low) or 1.0) * (self.end - self.start)

    def share(self, part: float, *, across: bool) -> float:
        """The pixel of a share of the plot, from left or from the bottom."""
        low, high = sorted((self.start, self.end))
        return low + part * (high - low) if across else high - part * (high - low)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Pixels and texts."""
        values = self.given.get("tickvals")
        if values is not None:
            texts = self.given.get("ticktext", values)
            yield from ((self.at(value), str(text)) for value, text in zip(values, texts, strict=False))
            return
        wide = (self.high - self.low) / _LINES
        base = 10.0 ** math.floor(math.log10(wide)) if wide > 0 else 1.0
        step = next(m * base for m in (1, 2, 5, 10) if m * base >= wide * (1 - 1e-9))
        for i in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1):
            yield self.at(i * step), significant(i * step, 6)


def svg(figure: Figure, alt: str) -> str:
    """``figure``, made with `INK`, as an SVG element that says ``alt`` to who cannot see it."""
    result = _Drawing(figure)
    size = {"viewBox": f"0 0 {WIDTH} {result.height:g}", "width": WIDTH, "height": result.height}
    return _element("svg", "".join(result.parts()), **size, role="img", aria_label=html.escape(alt, quote=True))


class _Drawing:
    """A figure with its place for everything."""

    def __init__(self, figure: Figure) -> None:
        self.data: Sequence[Figure] = figure["data"]
        given: Figure = figure["layout"]
        self.given = given
        self.height = float(given["height"])
        margin, y = given["margin"], given["yaxis"]
        across = {name.replace("axis", ""): axis for name, axis in given.items() if name.startswith("xaxis")}
        named = [value for trace in self.data for value in trace["y"] if isinstance(value, str)]
        names = list(dict.fromkeys((*y.get("categoryarray", ()), *named)))
        texts = [line for text in y.get("ticktext", names) for line in _BREAK.split(str(text))]
        widest = max((_measure(line, _font(y)[0]) for line in texts), default=30)
        left = max(margin["l"], widest + 2 * _PAD + (_TITLE if _title_of(y) else 0))
        right = WIDTH - max(margin["r"], 16.0)
        bottom = max(margin["b"], _TICK + _PAD + (_TITLE if any(map(_title_of, across.values())) else 0))
        self.left, self.right, self.top, self.bottom = left, right, float(margin["t"]), self.height - bottom
        self.across: dict[str, _Axis] = {}
        for name, axis in across.items():
            ends = (left + share * (right - left) for share in axis.get("domain", (0.0, 1.0)))
            self.across[name] = _Axis(axis, (), *axis["range"], *ends)
        low, high = (-0.5, len(names) - 0.5) if names else y["range"]
        ends = (self.top, self.bottom) if y.get("autorange") == "reversed" else (self.bottom, self.top)
        self.y = _Axis(y, names, low, high, *ends)

    def _x(self, figure: Figure, name: str) -> _Axis:
        """The axis from left to right that a trace or an annotation names."""
        return self.across.get(figure.get(name, "x"), self.across["x"])

    def parts(self) -> Iterator[str]:
        """Everything in the order in which it is painted."""
        shapes: Sequence[Figure] = self.given.get("shapes", ())
        yield from (self._shape(shape) for shape in shapes if shape.get("layer") == "below")
        for axis in (*self.across.values(), self.y):
            yield from self._axis(axis, across=axis is not self.y)
        stacked: dict[str, float] = {}
        for trace in self.data:
            yield from self._bars(trace, stacked) if trace["type"] == "bar" else self._points(trace)
        yield from (self._shape(shape) for shape in shapes if shape.get("layer") != "below")
        yield from (self._note(item) for item in self.given.get("annotations", ()))

    def _axis(self, axis: _Axis, *, across: bool) -> Iterator[str]:
        rule = _stroke({"color": axis.given.get("gridcolor", "none"), "width": 1})
        suffix = str(axis.given.get("ticksuffix", "")).rstrip()
        colour = axis.given.get("tickfont", {}).get("color", INK.muted)
        for at, text in axis.ticks():
            if axis.given.get("showgrid", True):
                yield _line(*((at, self.top, at, self.bottom) if across else (self.left, at, self.right, at)), rule)
            place = (at, self.bottom + 16, "middle") if across else (self.left - _PAD, at, "end")
            yield _text(*place, text + suffix, *_font(axis.given), colour, middle=not across)
        if title := _title_of(axis.given):
            middle = axis.share(0.5, across=across)
            turned = "" if across else f"rotate(-90 14 {middle:g})"
            place = (middle, self.bottom + 37) if across else (14.0, middle)
            yield _text(*place, "middle", title, 13, False, INK.muted, turned=turned)

    def _bars(self, trace: Figure, stacked: dict[str, float]) -> Iterator[str]:
        along, marker, error = self._x(trace, "xaxis"), trace["marker"], trace.get("error_x")
        wide = abs(self.y.at(0) - self.y.at(1)) * float(trace.get("width", 0.7))
        for i, (place, number) in enumerate(zip(trace["y"], map(float, trace["x"]), strict=True)):
            if not math.isfinite(number) or not number:
                continue
            start = stacked.get(str(place), 0.0) if self.given.get("barmode") == "stack" else 0.0
            stacked[str(place)] = start + number
            near, far = sorted((along.at(start), along.at(start + number)))
            middle = self.y.at(place)
            paint = f"fill:{_nth(marker.get('color', INK.parameters), i)};{_stroke(marker.get('line', {}))}"
            yield _rect(near, middle - wide / 2, far - near, wide, paint, _tooltip(trace, i, significant(number, 4)))
            if error:
                low, high = along.at(number - error["arrayminus"][i]), along.at(number + error["array"][i])
                up, whole = f"{middle - error['width']:.1f}v{2 * error['width']:g}", f"{middle:.1f}H{high:.1f}"
                if high - low >= 1:
                    look = f"fill:none;{_stroke({'color': error['color'], 'width': error['thickness']})}"
                    yield _element("path", d=f"M{low:.1f} {up}M{high:.1f} {up}M{low:.1f} {whole}", style=look)

    def _points(self, trace: Figure) -> Iterator[str]:
        along = self._x(trace, "xaxis")
        places = [(along.at(x), self.y.at(y)) for x, y in zip(trace["x"], trace["y"], strict=True)]
        seen = [(i, x, y) for i, (x, y) in enumerate(places) if math.isfinite(x) and math.isfinite(y)]
        if "lines" in trace["mode"] and seen:
            path = " ".join(f"{x:.1f},{y:.1f}" for _, x, y in seen)
            yield _element("polyline", points=path, style=f"fill:none;{_stroke(trace.get('line', {}))}")
        marker = trace.get("marker", {})
        for i, x, y in seen if "markers" in trace["mode"] else ():
            colour, hollow = _nth(marker.get("color", INK.parameters), i), "open" in _nth(marker.get("symbol", ""), i)
            paint = f"fill:{'none' if hollow else colour};{_stroke({'color': colour, **marker.get('line', {})})}"
            radius = float(_nth(marker.get("size", 8), i)) / 2
            if marker.get("sizemode") == "area":
                radius = math.sqrt(2 * radius / float(marker["sizeref"]))
            yield _element("circle", _tooltip(trace, i), cx=x, cy=y, r=radius, style=paint)

    def _shape(self, figure: Figure) -> str:
        x0, x1, y0, y1 = (self._place(figure, name) for name in ("x0", "x1", "y0", "y1"))
        line = _stroke(figure.get("line", {}))
        if figure["type"] == "line":
            return _line(x0, y0, x1, y1, line)
        paint = f"fill:{figure.get('fillcolor', 'none')};{line}"
        return _rect(min(x0, x1), min(y0, y1), abs(x1 - x0), abs(y1 - y0), paint)

    def _place(self, figure: Figure, name: str) -> float:
        axis = self._x(figure, "xref") if name[0] == "x" else self.y
        paper = figure.get(f"{name[0]}ref") == "paper"
        return axis.share(float(figure[name]), across=name[0] == "x") if paper else axis.at(figure[name])

    def _note(self, figure: Figure) -> str:
        """A text beside the data. What would leave the picture stands on the other side of its place, or is moved."""
        font, text = figure.get("font", {}), str(figure["text"])
        size = float(font.get("size", 12))
        wide = _measure(text, size)
        side, shift = figure.get("xanchor", "center"), float(figure.get("xshift", 0))
        x = self._place(figure, "x")
        if side == "left" and shift and x + shift + wide > WIDTH:
            side, shift = "right", -shift
        anchor, part = _ANCHOR[side]
        x += shift
        y = self._place(figure, "y") - float(figure.get("yshift", 0))
        left = x - wide * part
        x += max(0.0, 2 - left) - max(0.0, left + wide - (WIDTH - 2))
        behind = figure.get("bgcolor", "")
        if behind:
            behind = _rect(left - 2, y - 0.65 * size, wide + 4, 1.3 * size, f"fill:{behind}")
        down = y + _LIFT[figure.get("yanchor", "middle")] * size
        mono = font.get("family") == MONO
        return behind + _text(x, down, anchor, text, size, mono, font.get("color", INK.text))


def _title_of(axis: Mapping[str, Any]) -> str:
    return axis.get("title", {}).get("text", "")


def _font(axis: Mapping[str, Any]) -> tuple[float, bool]:
    """Size of an axis's texts, and whether they are in the figures' face."""
    font = axis.get("tickfont", {})
    return float(font.get("size", 12)), font.get("family") == MONO


def _nth(values: Any, i: int) -> Any:
    """One of several values, or the one that all share."""
    return values if isinstance(values, str | int | float) else values[i]


def _measure(text: str, size: float) -> float:
    return len(html.unescape(_TAG.sub("", text))) * size * _WIDE * (_BOLDER if "<b>" in text else 1)


def _tooltip(trace: Figure, i: int, number: str = "") -> str:
    """What a mouse that rests on a mark is told: its name, and what is known of it."""
    values = [trace.get(name, ()) for name in ("text", "customdata")]
    texts = [str(trace.get("name", "")), *(str(_nth(item, i)) for item in values if len(item)), number]
    return _element("title", html.escape(" · ".join(dict.fromkeys(filter(None, texts)))))


def _stroke(line: Mapping[str, Any]) -> str:
    if not line.get("width"):
        return "stroke:none"
    dash = f";stroke-dasharray:{_DASH[line['dash']]}" if line.get("dash") in _DASH else ""
    return f"stroke:{line.get('color', INK.text)};stroke-width:{line['width']}{dash}"


def _element(tag: str, inside: str = "", **given: object) -> str:
    """An element of SVG; texts in it are safe."""
    values = {name: f"{value:.1f}" if isinstance(value, float) else value for name, value in given.items()}
    attributes = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in values.items() if value != "")
    return f"<{tag}{attributes}>{inside}</{tag}>"


def _line(x0: float, y0: float, x1: float, y1: float, style: str) -> str:
    return _element("line", x1=x0, y1=y0, x2=x1, y2=y1, style=style)


def _rect(x: float, y: float, width: float, height: float, style: str, inside: str = "") -> str:
    return _element("rect", inside, x=x, y=y, width=width, height=height, style=style)


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
    turned: str = "",
) -> str:
    """One text, with its lines under each other. middle: ``y`` is its middle, not its baseline."""
    lines = _BREAK.split(text)
    look = f"fill:{colour};font-size:{size:g}px" + (";font-weight:600" if "<b>" in text else "")
    if middle:
        y += 0.35 * size - 0.6 * size * (len(lines) - 1)
    given = {"text_anchor": anchor, "class": "m" * mono, "transform": turned, "style": look}
    return "".join(
        _element("text", html.escape(html.unescape(_TAG.sub("", line))), x=float(x), y=y + 1.2 * size * i, **given)
        for i, line in enumerate(lines)
    )
