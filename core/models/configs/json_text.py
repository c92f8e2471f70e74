"""JSON from a stranger: a pasted ``config.json``, read without believing it.

Python's own reader takes ``NaN``, ``1e999`` and duplicate keys, and deep nesting exhausts its stack. All four are
refused here, and sizes are capped before anything is parsed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import accumulate
from typing import Any, cast

from core.limits import limit
from core.messages import message

EXAMPLE = (
    '{"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, '
    '"num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256}'
)
"""A config.json that is enough, as messages show it."""

_LONGEST = 60
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
_DEEPER = {"[": 1, "{": 1, "]": -1, "}": -1}
_QUANTIZED = ("quantization_config", "compression_config")


class ConfigError(ValueError):
    """A config.json that describes no model; the message shows the input, the rule and an example.

    field: the key that is wrong, empty where it is the text as a whole. value, rule: what it was, and what it must be.
    example: what would do, as it would stand in the file; for a text as a whole a config that is enough.
    """

    def __init__(self, field: str, value: object, rule: str, example: str = "") -> None:
        self.field = field
        self.value = value
        self.rule = rule
        sentences = [message("config.field", field=sendable(field), value=shown(value), rule=rule) if field else rule]
        if example:
            sentences.append(message("config.use", example=example))
        elif not field:
            sentences.append(message("config.use_text", example=EXAMPLE))
        super().__init__(" ".join(sentences))


class NoClosedFormError(ConfigError):
    """A config that may well be a model's, of a kind that no formula here counts: it can only be built.

    model_type: as the config names it, empty where it names none.
    """

    def __init__(self, model_type: str, field: str, value: object, rule: str, example: str = "") -> None:
        self.model_type = model_type
        super().__init__(field, value, rule, example)


def shown(value: object) -> str:
    """``value`` as JSON would write it, cut to a length that a message can hold."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def sendable(text: str) -> str:
    """``text`` with halves of surrogate pairs, which JSON can spell and UTF-8 cannot, written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def read_object(text: str, what: str = "config.json", most: int = limit("config_chars")) -> dict[str, Any]:
    """The JSON object in ``text``; what: the kind of file that messages take it for. most: characters it may have.

    Raises `ConfigError` for text that is too long, too deep or no JSON object, for duplicate keys, for characters that
    are none, and for numbers that are not finite or too long to be a size. An infinite bound in a list, such as
    Mamba-2's ``time_step_limit`` has, is kept as transformers writes it, ``{"__float__": "Infinity"}``.
    """
    if len(text) > most:
        raise ConfigError("", text, message("config.too_long", length=float(len(text)), what=what, most=float(most)))
    text = text.lstrip("\ufeff")
    if not text.strip():
        raise ConfigError("", text, message("config.no_text"))
    deepest = max(accumulate((_DEEPER[bracket] for bracket in _BRACKET.findall(_STRING.sub("", text))), initial=0))
    allowed = limit("config_depth")
    if deepest > allowed:
        raise ConfigError("", text, message("config.too_deep", depth=float(deepest), what=what, most=float(allowed)))
    try:
        document: object = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_constant, parse_float=_finite, parse_int=_whole
        )
    except json.JSONDecodeError as problem:
        line, column = float(problem.lineno), float(problem.colno)
        rule = message("config.no_json", reason=problem.msg, line=line, column=column)
        raise ConfigError("", text, rule) from None
    if not isinstance(document, dict):
        raise ConfigError("", text, message("config.no_object", what=what, value=shown(document)))
    result = json.dumps(document, ensure_ascii=False)
    if (whole := sendable(result)) != result:
        at = next(place for place, letter in enumerate(result) if "\ud800" <= letter <= "\udfff")
        half = whole[at : at + 6]
        raise ConfigError("", text, message("config.half", half=half))
    return cast("dict[str, Any]", document)


def shorten_config(text: str) -> str:
    """Return a long config.json without what it says of quantization, whose lists of layers may take megabytes.

    Shorter text is returned as it is, and so is text that cannot be read, for `read_object` to say why.
    """
    if len(text) <= limit("config_chars"):
        return text
    try:
        whole = read_object(text, most=limit("config_file_bytes"))
    except ConfigError:
        return text
    parts = (cast("dict[str, Any]", part) for part in (whole, *whole.values()) if isinstance(part, dict))
    for part in [*parts]:
        for key in _QUANTIZED:
            part.pop(key, None)
    return json.dumps(whole)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    for value in unique.values():
        if isinstance(value, _Infinite):
            raise _no_number(value[INFINITE])
    if len(unique) < len(pairs):
        twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise ConfigError(twice[:_LONGEST], [value for key, value in pairs if key == twice], message("config.twice"))
    return unique


INFINITE = "__float__"
"""Key under which transformers writes what JSON has no number for."""


class _Infinite(dict[str, str]):
    """What stood in the text as ``Infinity``, which Python writes and JSON does not know."""


def _constant(name: str) -> _Infinite:
    if name == "NaN":
        raise _no_number(name)
    return _Infinite({INFINITE: name})


def _no_number(name: str) -> ConfigError:
    return ConfigError("", name, message("config.no_number", number=name))


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ConfigError("", digits, message("config.too_large", number=digits[:_LONGEST]))
    return value


def _whole(digits: str) -> int:
    if len(digits) > limit("number_chars"):
        raise ConfigError("", digits, message("config.digits", digits=float(len(digits))))
    return int(digits)
