"""A shape as one line of text, ``layers=32 hidden=4096 heads=32 …``: short enough for a link, plain enough to edit.

Fields are those of `TransformerSpec`; parts of the experts, of latent attention, of the window and of the mixer carry
their part's name, ``experts.count=8``. Kinds of layers follow each other, ``networks=10x8192,2x0``: sizes in the order
of their fields. Fields at their defaults are left out.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from core.limits import cached, limit
from core.messages import Message, message, pick_message
from core.models.spec import SpecError, TransformerSpec
from core.number_text import QuantityError

EXAMPLE = "layers=32 hidden=4096 heads=32 kv_heads=8 head_dim=128 ffn=14336 vocab=128256 glu=yes tied_head=no"
"""The shape of an 8B model, as every message shows it."""

_HINTS = {name: hint for name, hint in get_type_hints(TransformerSpec).items() if is_dataclass((*get_args(hint), 0)[0])}
_PARTS: Mapping[str, type[Any]] = {n: get_args(hint)[0] for n, hint in _HINTS.items() if get_origin(hint) is not tuple}
_KINDS: Mapping[str, type[Any]] = {n: get_args(hint)[0] for n, hint in _HINTS.items() if get_origin(hint) is tuple}
"""Fields that hold a part, and those that hold kinds of layers, any number of them."""

_MOST_KINDS = 64
_WORDS = {"yes": True, "true": True, "no": False, "false": False}
_ITEM = re.compile(r"[a-z_]+(?:\.[a-z_]+)?=[A-Za-z0-9_,]+")


class SpecTextError(QuantityError):
    """A text that is no shape; the message says why and shows one that is."""

    def __init__(self, problem: Message) -> None:
        super().__init__(message("spec.text", problem=problem, example=EXAMPLE))


def write_spec(spec: TransformerSpec) -> str:
    """``spec`` as text that `read_spec` reads back to the same shape."""
    items: list[str] = []
    for name, value, default in _values(spec):
        if name in _PARTS:
            items += [f"{name}.{part}={_word(v)}" for part, v, usual in _values(value) if v != usual]
        elif value != default:
            items.append(f"{name}={_word(value)}")
    return " ".join(items)


def _values(owner: Any) -> list[tuple[str, Any, Any]]:
    """Name, value and default of each field; nothing for a part that is not there."""
    return [(f.name, getattr(owner, f.name), f.default) for f in fields(owner)] if owner is not None else []


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if is_dataclass(value):
        words = [_word(v) for _, v, _ in _values(value)]
        last = max(i for i, (_, v, usual) in enumerate(_values(value)) if v != usual)
        return "x".join(words[: last + 1])
    if isinstance(value, tuple) and value and not isinstance(value[0], bool):
        return ",".join(_word(kind) for kind in cast("tuple[object, ...]", value))
    if isinstance(value, tuple):
        return "".join("1" if windowed else "0" for windowed in cast("tuple[bool, ...]", value))
    return str(value)


def read_items(text: str, item: re.Pattern[str]) -> dict[str, str]:
    """Return ``name=value …`` as a mapping.

    Args:
        item: What one of them looks like.

    Raises:
        SpecTextError: For text that is too long, an item that looks otherwise, or a name that is there twice.
    """
    cap = limit("spec_chars")
    if len(text) > cap:
        raise SpecTextError(message("spec.text_long", length=float(len(text)), most=float(cap)))
    items: dict[str, str] = {}
    for word in text.split():
        if item.fullmatch(word) is None:
            raise SpecTextError(message("spec.text_item", text=word[:40]))
        name, _, value = word.partition("=")
        if name in items:
            raise SpecTextError(message("spec.text_twice", text=name))
        items[name] = value
    return items


def read_spec(text: str) -> TransformerSpec:
    """The shape that ``text`` describes.

    Raises `SpecTextError` for text that is too long, a field that is unknown, missing, twice there or no such value,
    and for a shape that no transformer can have.
    """
    own: dict[str, str] = {}
    parts: dict[str, dict[str, str]] = {}
    for name, value in read_items(text.replace(";", " "), _ITEM).items():
        part, _, field = name.rpartition(".")
        if part and part not in _PARTS:
            raise SpecTextError(message("spec.text_part", text=part, parts=list(_PARTS)))
        (parts.setdefault(part, {}) if part else own)[field] = value
    try:
        by_name = {part: _made(_PARTS[part], values, f"{part}.") for part, values in parts.items()}
        return _made(TransformerSpec, own, "", **by_name)
    except SpecError as problem:
        raise SpecTextError(message("spec.text_shape", problem=problem.args[0])) from None


@cached("results_kept")
def _hints(kind: type[Any]) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _made(kind: type[Any], values: Mapping[str, str], prefix: str, **ready: Any) -> Any:
    hints = _hints(kind)
    known = [f.name for f in fields(kind) if kind is not TransformerSpec or f.name not in _PARTS]
    for name in values:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            text, near = prefix + name, [prefix + field for field in close or known]
            says = "spec.text_near" if close else "spec.text_field"
            raise SpecTextError(pick_message(says, text=text, near=near))
    missing = [f.name for f in fields(kind) if f.default is MISSING and f.name not in values]
    if missing:
        raise SpecTextError(message("spec.text_missing", fields=[prefix + name for name in missing]))
    return kind(**{name: _read(prefix + name, text, hints[name]) for name, text in values.items()}, **ready)


def _read_kinds(name: str, text: str) -> tuple[Any, ...]:
    """Read kinds of layers, ``10x8192,2x0``."""
    kind, kinds = _KINDS[name], text.split(",")
    names = [f.name for f in fields(kind)]
    if len(kinds) > _MOST_KINDS or any(len(words.split("x")) > len(names) for words in kinds):
        raise SpecTextError(message("spec.text_kinds", field=name, most=float(_MOST_KINDS), form="x".join(names)))
    return tuple(_made(kind, dict(zip(names, words.split("x"), strict=False)), f"{name}.") for words in kinds)


def _read(name: str, text: str, hint: Any) -> Any:
    if hint is bool:
        if text.lower() not in _WORDS:
            raise SpecTextError(message("spec.text_switch", field=name, text=text))
        return _WORDS[text.lower()]
    if hint is int:
        digits = text.replace("_", "").replace(",", "")
        if not digits.isdigit() or len(digits) > 12:
            raise SpecTextError(message("spec.text_whole", field=name, text=text[:40]))
        return int(digits)
    if name in _KINDS:
        return _read_kinds(name, text)
    if get_origin(hint) is tuple:
        if not re.fullmatch("[01]{1,200}", text):
            raise SpecTextError(message("spec.text_pattern", field=name, text=text[:40]))
        return tuple(digit == "1" for digit in text)
    options = _options(hint)
    if text not in options:
        named = list(filter(None, options))
        raise SpecTextError(message("spec.text_option", field=name, options=named, text=text[:40]))
    return text


def _options(hint: Any) -> list[str]:
    """The words that a field of choices takes, from its type: a ``Literal`` or a union of them."""
    if get_origin(hint) is Literal:
        return [str(option) for option in get_args(hint)]
    return [option for part in get_args(hint) for option in _options(part)]
