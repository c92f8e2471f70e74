"""The small markup of the product's sentences as safe HTML, on a page as in a document; typed text as Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from core.limits import cached, limit
from core.wording import isolated

_BOLD = re.compile(r"\*\*(.+?)\*\*")
_KEPT = "\0"
"""Stands for a piece of code while the text around it is marked up."""

_CARET = re.compile(r"(?<=[\w)])\^(\([^()]*\)|⌊[^⌋]*⌋|[−-]?\w+)")
_CODE = re.compile(r"`(?!\u2060)([^`]+)`")
_SUPERSCRIPTS = re.compile(r"[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_UNIT_GAP = re.compile(r"(?<=\d) (?=%|[kMGTPEZ]?(?:FLOP|B/s|B\b|h\b|W\b)|[KMBTQ]\b)")  # kept from breaking lines
_MARKS = re.compile(r"(^\d{1,9}(?=[.)]))|([\\`*_{}\[\]<>&#|~$]|^[-+=])")
_TURNS = re.compile("[\u202a-\u202e\u2066\u2067]")
"""Characters that turn the direction of writing, of ours behind them too."""

_READ_AGAIN = re.compile(r"(?<=[:@#])(?=[\w/+-])|(?<=www)(?=\.)|(?<=[-<>~])(?=[-=>])", re.IGNORECASE)
"""Where plain text has an address, a mention, an :emoji: or an arrow for who reads it again after its marks."""

_PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "−0123456789")


def rich(text: str) -> str:
    """Return our small markup as safe HTML: ``**bold**``, `` `code` ``, powers such as ``2^k``, and Unicode
    superscripts.

    Everything else is escaped, and code is not changed.
    """
    return (_rich if len(text) <= limit("spec_chars") else _rich.__wrapped__)(text)


@cached("texts_kept")
def _rich(text: str) -> str:
    *pieces, last = _pieces(text)
    safe = _BOLD.sub(r"<b>\1</b>", _KEPT.join([*pieces[::2], last]))
    safe = _CARET.sub(lambda m: f"<sup>{m[1].strip('()')}</sup>", safe)
    codes = iter(pieces[1::2])
    return re.sub(_KEPT, lambda _: f'<code class="np-mono">{next(codes)}</code>', safe)


def literal(text: str) -> str:
    """Return ``text`` that may quote a user as safe HTML: only `` `code` `` outside “quotation marks” is markup."""
    return around_quotation(text, _coded)


def around_quotation(text: str, marked: Callable[[str], str]) -> str:
    """Return all from the first “ to the last ” as entered, and the text around it as ``marked`` makes it."""
    before, opening, rest = text.partition("“")
    quoted, closing, after = rest.rpartition("”")
    if not closing:
        quoted, after = after, ""
    return marked(before) + safe_text(opening + quoted + closing) + marked(after)


def _coded(text: str) -> str:
    pieces = _pieces(text)
    return "".join(f'<code class="np-mono">{piece}</code>' if i % 2 else piece for i, piece in enumerate(pieces))


def _pieces(text: str) -> list[str]:
    """Return text and code by turns, text first and last, each as safe HTML."""
    return [safe_text(piece) for piece in _CODE.split(text.replace(_KEPT, ""))]


def remarked(text: str, remark: str = "") -> str:
    """Return our markup as a cell of a table, with a quieter ``remark`` under it."""
    return rich(text) + (f"<small>{rich(remark)}</small>" if remark else "")


def typed(text: str, remark: str = "") -> str:
    """Return a text that a user entered as a table cell, without markup, with a quieter ``remark``."""
    return safe_text(text) + (f"<small>{safe_text(remark)}</small>" if remark else "")


def safe_text(text: str) -> str:
    """Return ``text`` as HTML that says just that, with real superscripts and units that stay with their numbers."""
    # Half of a surrogate pair, which JSON can spell, cannot be sent.
    sent = _TURNS.sub("", text).encode("utf-8", "replace").decode("utf-8")
    safe = _UNIT_GAP.sub("\u00a0", html.escape(sent, quote=False))
    return _SUPERSCRIPTS.sub(lambda m: f"<sup>{m.group().translate(_PLAIN)}</sup>", safe)


def markdown_text(text: str) -> str:
    """Return ``text`` as Markdown that shows the same text on one line, without links, pictures, formulas, or
    directives.

    Escapes do not stop addresses from becoming links, so invisible word joiners separate their parts.
    """
    return isolated(_MARKS.sub(r"\1\\\2", unlinked(" ".join(text.split()))))


def unlinked(text: str) -> str:
    """Return Markdown without an address or a mention that a reader of plain text would make a link of."""
    return _READ_AGAIN.sub("\u2060", text)
