"""Texts of a measurement that came in a file, free of what sentences would take for their own marks."""

from __future__ import annotations

from typing import TypeVar, cast

from pydantic import BaseModel

from core.views.common.markup import unmarked

_Model = TypeVar("_Model", bound=BaseModel)


def in_sentences(text: _Model) -> _Model:
    """What a file tells, with nothing in its texts that sentences would take for their own marks."""

    def plain(value: object) -> object:
        if isinstance(value, str):
            return unmarked(value)
        if isinstance(value, tuple):
            return tuple(map(plain, cast("tuple[object, ...]", value)))
        return in_sentences(value) if isinstance(value, BaseModel) else value

    return text.model_copy(update={name: plain(getattr(text, name)) for name in type(text).model_fields})
