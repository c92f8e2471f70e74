"""The product's colours, each with one meaning, for light paper and for the dark board.

Hues start from Okabe and Ito's set (colour-blind safe), darkened on paper and lightened on the board until
every role has a contrast of at least 3:1 against its background (WCAG 2.2, 1.4.11); ``text`` and ``muted``
have at least 4.5:1 (1.4.3). Colour is never the only signal: figures label directly as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

ROLES: tuple[str, ...] = (
    "parameters",
    "gradients",
    "optimizer",
    "master",
    "activations",
    "buffers",
    "accent",
    "sign",
    "exponent",
    "fraction",
)
"""The ten data roles, in the order in which they stand in Streamlit's categorical palette."""


@dataclass(frozen=True, slots=True)
class Palette:
    """One theme's colors as CSS hex strings.

    The ten data roles come first. Compute-bound things wear ``fraction``'s blue and memory-bound things ``gradients``'
    vermillion, on every page, through ``compute_bound`` and ``memory_bound``.
    """

    parameters: str
    gradients: str
    optimizer: str
    master: str
    activations: str
    buffers: str
    accent: str
    sign: str
    exponent: str
    fraction: str
    background: str
    surface: str
    border: str
    text: str
    muted: str

    @property
    def compute_bound(self) -> str:
        return self.fraction

    @property
    def memory_bound(self) -> str:
        return self.gradients

    def role(self, name: str) -> str:
        """Return the color of the data role ``name``; raises ``KeyError`` for a name that is no role."""
        if name not in ROLES:
            raise KeyError(name)
        return str(getattr(self, name))

    def as_dict(self) -> dict[str, str]:
        """Return every color by name."""
        return {field.name: str(getattr(self, field.name)) for field in fields(self)}


LIGHT = Palette(
    parameters="#0072b2",
    gradients="#c04a00",
    optimizer="#007a58",
    master="#a34f86",
    activations="#8a6200",
    buffers="#6d6a63",
    accent="#1f4fa3",
    sign="#c04a00",
    exponent="#007a58",
    fraction="#0072b2",
    background="#fbf7ee",
    surface="#f3ecdc",
    border="#d8cdb6",
    text="#221f1a",
    muted="#625c50",
)

DARK = Palette(
    parameters="#56b4e9",
    gradients="#f28b50",
    optimizer="#35c79c",
    master="#dd98c0",
    activations="#edb83d",
    buffers="#a9b3bb",
    accent="#8db9ff",
    sign="#f28b50",
    exponent="#35c79c",
    fraction="#56b4e9",
    background="#17222c",
    surface="#1f2d39",
    border="#3a4d5d",
    text="#ece7da",
    muted="#a9b4bc",
)


def _linear(colour: str) -> list[float]:
    """Return red, green and blue of ``#rrggbb`` in proportion to light."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def relative_luminance(colour: str) -> float:
    """Return WCAG relative luminance of ``#rrggbb``, 0 (black) to 1 (white). Source: WCAG 2.2, relative luminance."""
    linear = _linear(colour)
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Return WCAG contrast ratio of two ``#rrggbb`` colors, 1 to 21. Source: WCAG 2.2, contrast ratio."""
    high, low = sorted((relative_luminance(first), relative_luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


SHADE_SPAN = 0.5
"""How far shades go from the background to compute's blue: text stays readable on all of them."""


def shade(palette: Palette, share: float) -> str:
    """Return a color for a share from 0 to 1, from the background to blue, with perceptually even steps of lightness.

    Lightness alone carries the order, so that color blindness does not hide it. Mixed in Oklab. Source: Ottosson 2020,
    A perceptual color space for image processing.
    """
    start, end = _oklab(palette.background), _oklab(palette.fraction)
    at = SHADE_SPAN * min(max(share, 0.0), 1.0)
    return _hex([(1 - at) * low + at * high for low, high in zip(start, end, strict=True)])


_TO_CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_TO_LAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)
_FROM_LAB = (
    (1.0, 0.3963377774, 0.2158037573),
    (1.0, -0.1055613458, -0.0638541728),
    (1.0, -0.0894841775, -1.2914855480),
)
_FROM_CONES = (
    (4.0767416621, -3.3077115913, 0.2309699292),
    (-1.2684380046, 2.6097574011, -0.3413193965),
    (-0.0041960863, -0.7034186147, 1.7076147010),
)


def _times(matrix: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, values, strict=True)) for row in matrix]


def _oklab(colour: str) -> list[float]:
    return _times(_TO_LAB, [cone ** (1 / 3) for cone in _times(_TO_CONES, _linear(colour))])


def _hex(lab: Sequence[float]) -> str:
    light = _times(_FROM_CONES, [cone**3 for cone in _times(_FROM_LAB, lab)])
    sent = [12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055 for c in light]
    return "#" + "".join(f"{round(255 * min(max(c, 0.0), 1.0)):02x}" for c in sent)
