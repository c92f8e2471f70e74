"""Handing a figure to Streamlit without building plotly's object tree, which costs more than the rest of a rerun.

``st.plotly_chart`` validates a dict by turning it into a ``go.Figure`` and back, 7 ms for one figure with two panels.
Our figures are made by our own functions and a test validates each of them, so they travel as they are.
"""

from __future__ import annotations

import base64
import importlib
import re
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from core.limits import cached

_TYPED = {
    "int8": "i1",
    "uint8": "u1",
    "int16": "i2",
    "uint16": "u2",
    "int32": "i4",
    "uint32": "u4",
    "float32": "f4",
    "float64": "f8",
}
"""numpy's names of the array types that plotly.js reads in binary, with plotly's names for them."""


def ready(figure: Mapping[str, Any], theme: str | None = None) -> Any:
    """Return ``figure`` as an object that ``st.plotly_chart`` takes for a validated figure and sends unchanged.

    theme: whose colors the front end fills in; it draws again what says another one. A figure that a page keeps becomes
    one object for each theme.
    """
    figures: dict[str | None, Any] = vars(figure).setdefault("ready", {}) if isinstance(figure, Wired) else {}
    if theme not in figures:
        result = _figure_class()()
        result.__dict__["spec"] = wire({**figure, "layout": {**figure["layout"], "meta": {"theme": theme}}})
        figures[theme] = result
    return figures[theme]


@cached("tables_kept")
def _figure_class() -> Any:
    # By name, because plotly must not be imported before the first page has shown its header.
    base = importlib.import_module("plotly.basedatatypes").BaseFigure
    ways = {"__init__": lambda self: None, "to_dict": lambda self: self.__dict__["spec"]}
    # plotly's own comparison goes through both figures; one that is shown again is the same object.
    return type("ReadyFigure", (base,), {**ways, "__eq__": object.__eq__, "__hash__": object.__hash__})


class Wired(dict[str, Any]):
    """A part of a figure that has been through `wire`."""


@cached("arrays_kept")
def kept(figure: Callable[..., dict[str, Any]], *given: Hashable) -> dict[str, Any]:
    """Return the figure that ``figure`` makes of ``given``, as it is sent. Users who ask for the same figure share
    it."""
    return wire(figure(*given))


_PLAIN = frozenset((int, float, bool, type(None)))
"""What most of a figure is made of; asking for the type itself first halves the time."""

_FOREIGN = re.compile(r"<(?!/?(?:b|br|extra|span|sup)>|(?:b|span) style='[^<>()&/\\\\]*'>)")
"""A tag that no figure of ours has. plotly.js makes links of some, and fetches what the style of others names."""


def wire(value: Any) -> Any:
    """Return a copy of ``value`` in which numpy arrays have become plotly's base64 arrays, or lists where it has none,
    and in whose texts only the tags of our own figures are tags."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is str:
        return _FOREIGN.sub("&lt;", value) if "<" in value else value
    if kind is dict:
        return Wired((key, item if type(item) in _PLAIN else wire(item)) for key, item in value.items())
    if kind is list or kind is tuple:
        return [item if type(item) in _PLAIN else wire(item) for item in value]
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, Wired):
        return value
    if isinstance(value, Mapping):
        return Wired((key, wire(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return [wire(item) for item in value]
    return value


def _array(values: np.ndarray) -> Any:
    if values.dtype == np.int64 and values.size and np.abs(values).max() < 2**31:
        values = values.astype(np.int32)
    name = _TYPED.get(str(values.dtype))
    if name is None or not values.size:
        return wire(values.tolist())
    sent: dict[str, Any] = {"dtype": name, "bdata": base64.b64encode(np.ascontiguousarray(values).data).decode("ascii")}
    if values.ndim > 1:
        sent["shape"] = ", ".join(map(str, values.shape))
    return sent


SCALE = 2
"""By how much type, marks and lines of a figure are larger on a projector."""

LEAST = 27
"""Pixels of the smallest type there on 1280 × 720, which is 40 on 1920 × 1080."""

_LENGTHS = frozenset(("standoff", "ticklen", "xshift", "yshift", "borderpad", "borderwidth"))
_RAISED = re.compile(r"<sup>([\d+−-]+)</sup>")
_SUPERSCRIPTS = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_IN_FONT = re.compile(r"(?<=font-size:)\s*(\d+)(?=px)")


def enlarged(figure: Mapping[str, Any], *, room: int) -> dict[str, Any]:
    """Return a copy of a figure for the last row of a lecture hall: all that is measured in pixels larger, data as it
    is.

    room: pixels that it may be high.
    """
    grown, height = _grown(figure, ""), figure["layout"]["height"]
    grown["layout"]["height"] = min(SCALE * height, room)
    for name, axis in grown["layout"].items():
        if name[1:].startswith("axis") and "ticktext" in axis:  # raised digits of a full size's type
            axis["ticktext"] = [
                _RAISED.sub(lambda found: found[1].translate(_SUPERSCRIPTS), text) for text in axis["ticktext"]
            ]
    if SCALE * height > room:  # rows move together, and names of two lines would run into one another
        for name, axis in grown["layout"].items():
            if name.startswith("yaxis") and "ticktext" in axis:
                axis["ticktext"] = [text.partition("<br>")[0] for text in axis["ticktext"]]
    return grown


def _grown(value: Any, of: str) -> Any:
    """Return ``value``, which stands under the name ``of``, with what is in pixels by its own or its parent's name
    larger."""
    if isinstance(value, Mapping):
        return {name: _grown_in(of, name, item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_grown(item, of) for item in value]
    if isinstance(value, str) and "font-size" in value:
        return _IN_FONT.sub(lambda match: str(max(LEAST, SCALE * int(match[1]))), value)
    return value


def _grown_in(parent: str, name: str, value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if parent.endswith("font") and name == "size":
            return max(LEAST, round(SCALE * value))
        in_pixels = name in _LENGTHS or parent == "margin" or (parent, name) in (("marker", "size"), ("line", "width"))
        return SCALE * value if in_pixels else value
    return _grown(value, name)
