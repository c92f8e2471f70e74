"""What a text may have meant that is no quantity of the kind asked for: what it is instead, and the nearest reading."""

from __future__ import annotations

import re
from contextlib import suppress

from core.units import Kind, QuantityError, parse_quantity

_OTHERS: dict[Kind, str] = {
    "tokens": "Those are tokens.",
    "parameters": "Those are parameters.",
    "seconds": "That is a time.",
    "usd": "That is money.",
    "bytes": "Those are bytes.",
}
"""Kind → that a text is of it."""

_SURELY_OTHER = ("tokens", "parameters", "seconds")
"""Kinds whose numbers are never offered: 8T tokens are no 8T parameters."""

_COUNTED: dict[Kind, str] = {"parameters": "[kmbt]", "tokens": "[kmbt]", "accelerators": "k?", "length": "[km]?"}
"""Kind → the letter with which its numbers are written."""

_OTHER_THINGS = re.compile(r"node|rack|pod|-\s*A?\d", re.IGNORECASE)


def nearest(text: str, kind: Kind) -> str:
    """A sentence or two about ``text`` that is not of ``kind``, a count; empty where nothing is to be said."""
    if kind not in _COUNTED or _is(text, kind):
        return ""
    other = next(filter(lambda one: _is(text, one), _OTHERS), None)
    found = re.match(rf"\$?\s*(\d[\d.,' ]*{_COUNTED[kind]})(?!\d)", text.strip(), re.IGNORECASE)
    meant = found[1].replace(" ", "").upper() if found else ""
    near = _is(meant, kind) and other not in _SURELY_OTHER and not _OTHER_THINGS.search(text)
    return " ".join(filter(None, (_OTHERS[other] if other else "", f"Did you mean {meant}?" if near else "")))


def _is(text: str, kind: Kind) -> bool:
    with suppress(QuantityError):
        parse_quantity(text, kind)
        return True
    return False
