"""What a person may have meant by a name that is not there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence


def suggestions(text: str, names: Sequence[str], most: int = 3) -> list[str]:
    """Up to ``most`` of ``names`` that ``text`` may stand for, the likeliest first; none where nothing is like it.

    Case and punctuation do not count. Names that are a part of the text, or have it as a part, come before names
    that are spelt alike: "B200 SXM" is B200 before it is H200 SXM.
    """
    wanted = _key(text)
    keys = {name: _key(name) for name in names}
    inside = [
        name for name, key in keys.items() if len(min(key, wanted, key=len)) >= 3 and (key in wanted or wanted in key)
    ]
    inside.sort(key=lambda name: abs(len(keys[name]) - len(wanted)))
    alike = difflib.get_close_matches(wanted, list(keys.values()), n=most, cutoff=0.6)
    found = [*inside, *(name for key in alike for name in names if keys[name] == key)]
    return list(dict.fromkeys(found))[:most]


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.lower())
