"""What a person may have meant by a name that is not there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence


def suggestions(text: str, names: Sequence[str], most: int = 3) -> list[str]:
    """Return up to ``most`` of ``names`` that ``text`` may mean, the most likely first; empty if no name is similar.

    Case and punctuation do not count. If names are part of the text, or contain it, names with only a similar spelling
    are left out: "B200 SXM" is B200 and not H200 SXM.
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
