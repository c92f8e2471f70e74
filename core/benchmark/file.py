"""JSON of something measured, in a stranger's file: an object that says what it is, and each thing once."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NoReturn, cast

from core.fields import quoted
from core.limits import limit
from core.wording import cleaned


def read_object(data: bytes, what: str, format: str) -> dict[str, Any]:
    """The object in a file of ``format``; what: as messages call it, "measurement".

    Beside what JSON readers ask for, a key may stand once, a number must be one, and nothing is too long. Raises
    ``ValueError`` for anything else, and nothing but it.
    """
    most = limit("upload_bytes")
    if len(data) > most:
        raise ValueError(f"The file has {len(data):,} bytes; a {what} has at most {most:,}.")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        by_name = dict(pairs)
        if len(by_name) < len(pairs):
            twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
            raise ValueError(f"This is no {what}: {quoted([cleaned(twice, 40)])} stands in it twice.")
        return by_name

    def constant(name: str) -> NoReturn:
        raise ValueError(f"This is no {what}: {name} is no JSON number.")

    def whole(digits: str) -> int:
        if len(digits) > limit("number_chars"):
            raise ValueError(f"This is no {what}: it has a number of {len(digits):,} digits.")
        return int(digits)

    try:
        result: object = json.loads(
            data.decode("utf-8-sig"), parse_constant=constant, parse_int=whole, object_pairs_hook=unique
        )
    except RecursionError:
        raise too_deep(what) from None
    except UnicodeDecodeError:
        raise ValueError(f"This is no {what}: the file is no text in UTF-8.") from None
    except json.JSONDecodeError as problem:
        raise ValueError(f"This is no JSON: {problem.msg} at line {problem.lineno}.") from None
    if not isinstance(result, dict) or cast("dict[str, Any]", result).get("format") != format:
        raise ValueError(f"This is no {what} of Napkin: such a file says “format”: “{format}”.")
    return cast("dict[str, Any]", result)


def too_deep(what: str) -> ValueError:
    """What is said of brackets that no reader follows."""
    return ValueError(f"This is no {what}: its brackets are nested too deep.")
