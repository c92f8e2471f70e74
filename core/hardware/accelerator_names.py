"""Names of accelerators as people write them: ``H100``, ``NVIDIA A100-SXM4-80GB``, ``GB200 NVL72``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from core.hardware.accelerators import Accelerator, accelerators
from core.limits import cached

_USUAL = ("V100 SXM 32 GB", "A100 SXM 80 GB", "H100 SXM", "H200 SXM", "GH200 96 GB", "RTX PRO 6000 Server")
"""What a name means that several variants have, if it says neither form factor nor memory."""

_WORD = re.compile(r"[A-Za-z0-9]+")
_MEMORY = re.compile(r"(\d{1,3})[ -]?G(?:i?B)?\b", re.IGNORECASE)
_IN_NAME = re.compile(r"\d+ GB|[()]")
_FORM = re.compile(r"(SXM|PCIe|NVL)\d?", re.IGNORECASE)
_RACK = re.compile(r"NVL(\d{1,4})", re.IGNORECASE)
_NOISE = re.compile(
    r"nvidia|amd|intel|google|aws|apple|tesla|instinct|geforce|oam|superchip|hbm\d\w?|gddr\d\w?", re.IGNORECASE
)
_BOARD = re.compile(r"[HD]GX", re.IGNORECASE)
"""Boards and servers whose accelerators are SXM modules."""

_GLUED = re.compile(r"(?<=sxm)\d$")
"""The generation of a module that is written in one word with its chip."""

_LONGEST = 4
"""Words of the longest name without its variant, ``RTX PRO 6000``, and one more."""
_NEAR = 0.08
"""Share by which a written memory size may differ from the datasheet's: B200 are sold with 192 GB and have 180."""


@dataclass(frozen=True, slots=True)
class NamedAccelerator:
    """An accelerator that a text names. name: empty if the catalogue has the chip, but not in the form or with the
    memory that the text says. start, end: where in the text. per_node: of the rack or board if it is named."""

    name: str
    start: int
    end: int
    per_node: int | None = None


@dataclass(frozen=True, slots=True)
class _Variant:
    """An accelerator by the words that tell it from others of the same chip. extras: those that its own name has."""

    device: Accelerator
    words: frozenset[str]
    extras: frozenset[str]


def _variant(device: Accelerator) -> tuple[str, _Variant]:
    """The chip of an accelerator as one word, and the accelerator as a variant of it."""
    words = _WORD.findall(_IN_NAME.sub(" ", device.name))
    extras = [word for word in words if _FORM.fullmatch(word) or word in ("OCP", "Server", "Workstation")]
    chip = "".join(word for word in words if word not in extras).lower()
    form = _FORM.match(device.form_factor)
    own = frozenset(word.lower() for word in extras)
    forms = frozenset({form[1].lower()} if form else ())
    return chip, _Variant(device, own | forms, own - {"sxm", "pcie"})


@cached("tables_kept")
def _chips() -> Mapping[str, tuple[frozenset[str], tuple[_Variant, ...]]]:
    """Chip as one word in lower case → words that this writing of it says, and its variants."""
    variants: dict[str, list[_Variant]] = {}
    for chip, variant in map(_variant, accelerators()):
        variants.setdefault(chip, []).append(variant)
    chips: dict[str, tuple[frozenset[str], tuple[_Variant, ...]]] = {}
    for chip, some in variants.items():
        short = [chip.removeprefix(family) for family in ("tpu", "rtx")]
        for name in (chip, *(name for name in short if not name.isdecimal()), chip.removesuffix("x")):
            chips.setdefault(name, (frozenset(), tuple(some)))
        for form in ("sxm", "pcie"):
            chips.setdefault(chip + form, (frozenset({form}), tuple(some)))
    return chips


def find_accelerator_name(text: str) -> NamedAccelerator | None:
    """The first accelerator that a text names, in its usual variant if the text does not say which.

    The words of a name may be apart by a space or a mark. Returns None if there is none.
    """
    words = list(_WORD.finditer(text))
    for first in range(len(words)):
        for count in range(min(_LONGEST, len(words) - first), 0, -1):
            some = words[first : first + count]
            if any(len(text[a.end() : b.start()]) > 1 for a, b in pairwise(some)):
                continue
            key = _GLUED.sub("", "".join(word.group() for word in some).lower())
            known = _chips().get(key) or _chips().get(key.removesuffix("s"))
            if known:
                return _named(text, words, first, first + count, *known)
    return None


def _named(
    text: str, words: list[re.Match[str]], first: int, end: int, said: frozenset[str], variants: tuple[_Variant, ...]
) -> NamedAccelerator:
    """The variant that the words around a chip's name say, which are part of the name."""
    every = frozenset(word for variant in variants for word in variant.words)
    wanted, per_node, gigabytes = set(said), None, 0
    while first and _adjoins(text, words[first - 1], words[first]):
        word = words[first - 1].group()
        if not (_NOISE.fullmatch(word) or _BOARD.fullmatch(word)):
            break
        wanted |= {"sxm"} if _BOARD.fullmatch(word) else set()
        first -= 1
    start, stop = words[first].start(), words[end - 1].end()
    while end < len(words) and _adjoins(text, words[end - 1], words[end]):
        word = words[end].group()
        form, rack, memory = _FORM.fullmatch(word), _RACK.fullmatch(word), _MEMORY.match(text, words[end].start())
        if memory and not gigabytes:
            gigabytes, stop = int(memory[1]), memory.end()
            end += sum(word.start() < stop for word in words[end:])
            continue
        if rack:
            per_node = int(rack[1])
        elif form or word.lower() in every:
            wanted.add(form[1].lower() if form else word.lower())
        elif not _NOISE.fullmatch(word):
            break
        stop, end = words[end].end(), end + 1
    stop += text[stop : stop + 1] == ")" and "(" in text[start:stop]
    fitting = [variant for variant in variants if wanted <= variant.words]
    if gigabytes:
        fitting = [v for v in fitting if abs(gigabytes * 1e9 / v.device.sheet_bytes - 1) <= _NEAR]
    if not fitting or per_node == 0:
        return NamedAccelerator("", start, stop)

    def unlike(variant: _Variant) -> tuple[float, int, bool, float]:
        off = abs(gigabytes * 1e9 / variant.device.sheet_bytes - 1) if gigabytes else 0.0
        others = variant.extras - wanted
        return off, len(others - {"server"}), variant.device.name not in _USUAL, -variant.device.sheet_bytes

    return NamedAccelerator(min(fitting, key=unlike).device.name, start, stop, per_node)


def _adjoins(text: str, before: re.Match[str], after: re.Match[str]) -> bool:
    """Whether only a space or a mark of a name is between two words."""
    return text[before.end() : after.start()].strip(" ") in ("", "-", "_", "/", "(")
