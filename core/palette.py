"""The product's colours, each with one meaning, for light paper and for the dark board.

Hues start from Okabe and Ito's set (colour-blind safe), darkened on paper and lightened on the board until
every role has a contrast of at least 3:1 against its background (WCAG 2.2, 1.4.11); ``text`` and ``muted``
have at least 4.5:1 (1.4.3). Colour is never the only signal: figures label directly as well.
"""

from __future__ import annotations

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
    """One theme's colours as CSS hex strings.

    The ten data roles come first. Compute-bound things wear ``fraction``'s blue and memory-bound things
    ``gradients``' vermillion, on every page, through ``compute_bound`` and ``memory_bound``.
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
        """The colour of the data role ``name``; raises ``KeyError`` for a name that is no role."""
        if name not in ROLES:
            raise KeyError(name)
        return str(getattr(self, name))

    def as_dict(self) -> dict[str, str]:
        """Every colour by name."""
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


def relative_luminance(colour: str) -> float:
    """WCAG relative luminance of ``#rrggbb``, 0 (black) to 1 (white). Source: WCAG 2.2, relative luminance."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """WCAG contrast ratio of two ``#rrggbb`` colours, 1 to 21. Source: WCAG 2.2, contrast ratio."""
    high, low = sorted((relative_luminance(first), relative_luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)
