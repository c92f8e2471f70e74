"""The widget of a field: how it is drawn, and what it holds for a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core.fields import Field
from core.limits import limit


def drawn(field: Field, *, label: str = "", placeholder: str = "", **same: Any) -> object:
    """Draw the widget of a field, and return its content.

    label, placeholder: replace the field's own. same: options that every kind of widget has, such as ``key``.
    """
    label, same["help"] = label or field.label, field.help or None
    if field.short:
        same["format_func"] = dict(zip(field.options, field.short, strict=True)).__getitem__
    if field.kind in ("text", "lines"):
        same["placeholder"] = placeholder or field.placeholder or None
    match field.kind:
        case "choice":
            return st.selectbox(label, field.options, index=field.options.index(field.default), **same)
        case "segments":
            return st.segmented_control(label, field.options, default=field.default, required=True, **same)
        case "switch":
            return st.toggle(label, value=field.default == "true", **same)
        case "slider":
            return st.slider(label, field.low, field.high, int(field.default), **same)
        case "lines":
            # With a cap it would drop a longer paste without a word; who reads it refuses it, and says how long it is.
            return st.text_area(label, value=field.default, height="content", **same)
        case "text":
            # More than it may have, which the browser would drop without a word: who reads it refuses it.
            most = max(field.max_chars, limit("box_chars"))
            return st.text_input(label, value=field.default, max_chars=most, **same)


def bring_text(
    paste: str,
    choose: str,
    kinds: Sequence[str],
    take: Callable[[str], None],
    *,
    key: str,
    placeholder: str = "",
) -> None:
    """Draw a box to paste a text, and one to upload a file. take: called with the text, in a callback."""
    most, pasted, chosen = limit("upload_bytes"), f"{key}:text", f"{key}:file"

    def uploaded() -> None:
        if (file := st.session_state.get(chosen)) is not None:
            take(file.getvalue().decode("utf-8", "replace"))

    st.text_area(
        paste,
        key=pasted,
        height=120,
        max_chars=most,
        placeholder=placeholder or None,
        on_change=lambda: take(st.session_state.get(pasted) or ""),
    )
    st.file_uploader(choose, type=list(kinds), max_upload_size=most >> 20, key=chosen, on_change=uploaded)


def cut(key: str) -> None:
    """Cut a pasted text to the length that can be handled (callback)."""
    st.session_state[key] = (st.session_state[key] or "")[: limit("pasted_chars")]


def content(field: Field, text: str) -> object:
    """Return the content of a field's widget for a text."""
    if field.kind == "slider":
        return field.parse(text)
    return text == "true" if field.kind == "switch" else text


def text_of(field: Field, content: object) -> str:
    """Return what a widget holds, as the text of its field."""
    if isinstance(content, bool):
        return "true" if content else "false"
    return field.default if content is None else str(content)
