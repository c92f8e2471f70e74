"""What a person may have meant by a name that is not there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence


def suggestions(text: str, names: Sequence[str], most: int = 3) -> list[str]:
    """Return up to ``most`` of ``names`` that ``text`` may stand for, the likeliest first; none where nothing is like
    it.

    Case and punctuation do not count. Where names are a part of the text, or have it as a part, those that are only
    spelt alike are left out: "B200 SXM" is B200 and not H200 SXM.
    """
    wanted = _key(text)
    keys = {name: _key(name) for name in names}
    inside = [
        name for name, key in keys.items() if len(min(key, wanted, key=len)) >= 3 and (key in wanted or wanted in key)
    ]
    inside.sort(key=lambda name: abs(len(keys[name]) - len(wanted)))
    if inside:
        return inside[:most]
    alike = difflib.get_close_matches(wanted, list(keys.values()), n=most, cutoff=0.6)
    return list(dict.fromkeys(name for key in alike for name in names if keys[name] == key))[:most]


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.lower())
