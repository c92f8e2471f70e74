"""Sentences as data: each is an entry of ``assets/text/*.po``, and code fills in its values.

The files are gettext catalogs. ``msgid`` is the id, whose first part is the name of the file, and ``msgstr`` the
template. A placeholder names its value and its format, one of `core.wording.FORMATS` or of `TEXT_FORMATS`:
``{days:days}``. Where an entry has plural forms, ``msgid_plural`` is the name of the value that decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from string import Formatter
from typing import Any, cast

from core.limits import cached
from core.wording import format_value, listed, plural, unmarked

_FOLDER = Path(__file__).parents[1] / "assets" / "text"


class MessageError(ValueError):
    """A message that the catalog does not have, or that is called with other values than its template names."""


class Message(str):
    """Sentence of the catalog, filled in, with our small markup (`core.views.common.markup`).

    id, values: the entry and the values that it was made of, which tests look at.
    """

    id: str
    values: Mapping[str, Any]

    def __new__(cls, text: str, id: str, values: Mapping[str, Any]) -> Message:
        result = super().__new__(cls, text)
        result.id, result.values = id, values
        return result

    def __getnewargs_ex__(self) -> tuple[tuple[str, str, Mapping[str, Any]], dict[str, Any]]:  # a copy is made of these
        return (str(self), self.id, self.values), {}


def _safe(value: object) -> str:
    """Return a name, or a text that a user typed, without markup; a message, which has its own, as it is."""
    return value if isinstance(value, Message) else unmarked(str(value))


def _listed(value: object, last: str) -> str:
    return listed([_safe(item) for item in cast("Sequence[object]", value)], last)


_CODE_CHARS, _CODES = 48, 4
"""Characters of code, and names of a list, that a sentence shows."""


def _code(value: object) -> str:
    text = " ".join(str(value).replace("`", "'").split())
    return f"`{text if len(text) <= _CODE_CHARS else f'{text[: _CODE_CHARS - 1]}…'}`"


def _codes(value: object) -> str:
    items = [_code(item) for item in cast("Sequence[object]", value)]
    return listed(items if len(items) <= _CODES else [*items[:_CODES], "…"])


TEXT_FORMATS: Mapping[str, Callable[[Any], str]] = {
    "text": _safe,
    "typed": str,
    "amount": lambda amount: format_value(*amount),
    "code": _code,
    "codes": _codes,
    "shape": lambda sizes: str(tuple(sizes)),
    "and": partial(_listed, last="and"),
    "or": partial(_listed, last="or"),
    "quoted": lambda names: listed([f"“{_safe(name)}”" for name in names]),
    "dots": lambda items: " · ".join(map(_safe, items)),
}
"""Formats of values that are no numbers: a name, an `Amount`, code, sizes of a tensor, or a list of names. ``typed`` is
what a user typed, between the quotation marks of an error, where nothing is markup."""


@dataclass(frozen=True, slots=True)
class Template:
    """A text with placeholders, each as the text before it, its name, and its format; ``end`` follows the last."""

    parts: tuple[tuple[str, str, str], ...]
    end: str

    def filled(self, values: Mapping[str, Any]) -> str:
        """Return the text with the values in their places."""
        return "".join([before + _written(values[name], kind) for before, name, kind in self.parts]) + self.end


def _written(value: Any, kind: str) -> str:
    write = TEXT_FORMATS.get(kind)
    return write(value) if write else format_value(value, kind)


@dataclass(frozen=True, slots=True)
class MessageEntry:
    """An entry of the catalog. many: its template unless the value ``decides`` is one; names: of all its values."""

    one: Template
    many: Template
    decides: str
    names: frozenset[str]


def template(text: str) -> Template:
    """Return a template from its text. Raises `MessageError` for a placeholder without a name or a format."""
    parts, end = list[tuple[str, str, str]](), ""
    for before, name, kind, conversion in Formatter().parse(text):
        if name is None:
            end = before
        elif not name.isidentifier() or not kind or conversion:
            raise MessageError(f"{{{name}:{kind}}} in “{text}” is not a name with a format.")
        else:
            parts.append((before, name, kind))
    return Template(tuple(parts), end)


@cached("results_kept")
def topic_entries(topic: str) -> Mapping[str, MessageEntry]:
    """Return the entries of ``assets/text/<topic>.po`` by id.

    Raises `MessageError` for an id that appears twice or in the file of another topic.
    """
    from babel.messages.pofile import read_po  # where the first sentence is needed and not before

    path = _FOLDER / f"{topic}.po"
    if topic not in catalog_topics():
        return {}
    entries: dict[str, MessageEntry] = {}
    with path.open("rb") as file:
        messages = read_po(file, abort_invalid=True)
    for row in messages:
        key, decides = (row.id[0], row.id[1]) if isinstance(row.id, (tuple, list)) else (row.id, "")
        if not key:  # the header
            continue
        texts = (row.string,) if isinstance(row.string, str) else tuple(row.string or ())
        forms = [template(text) for text in texts]
        names = frozenset(name for form in forms for _, name, _ in form.parts) | ({decides} - {""})
        if key in entries or key.partition(".")[0] != topic:
            raise MessageError(f"{path.name}: {key} stands twice, or in the wrong file.")
        entries[key] = MessageEntry(forms[0], forms[-1], decides, names)
    return entries


def browser_texts(topic: str) -> dict[str, str]:
    """Return the templates of a topic whose values a component fills in, ``{name}``, by the rest of their ids."""
    return {
        key.partition(".")[2]: "".join(f"{before}{{{name}}}" for before, name, _ in entry.one.parts) + entry.one.end
        for key, entry in topic_entries(topic).items()
    }


@cached("tables_kept")
def catalog_topics() -> tuple[str, ...]:
    """Return the names of the catalog's files."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.po")))


def catalog_entries() -> Mapping[str, MessageEntry]:
    """Return every entry by id."""
    return {key: entry for topic in catalog_topics() for key, entry in topic_entries(topic).items()}


def _entry(id: str) -> MessageEntry:
    entry = topic_entries(id.partition(".")[0]).get(id)
    if entry is None:
        raise MessageError(f"There is no message {id}.")
    return entry


def message(id: str, /, **values: Any) -> Message:
    """Return the sentence ``id`` with these values.

    The value of a number's format is a float, or a tuple of low and high for a range. Names and texts that users
    entered are escaped. Raises `MessageError` for an unknown id, and for missing or unknown values.
    """
    entry = _entry(id)
    if entry.names != values.keys():
        raise MessageError(f"{id} takes {sorted(entry.names)}, not {sorted(values)}.")
    one = entry.decides and plural(values[entry.decides], "x") == "x"
    return Message((entry.one if one else entry.many).filled(values), id, values)


def messages(prefix: str, names: str) -> tuple[Message, ...]:
    """Return the sentences ``prefix.name`` of names with blanks between them, such as the headings of a table; none has
    values."""
    return tuple(message(f"{prefix}.{name}") for name in names.split())


def find_message(id: str) -> Message | None:
    """Return the sentence ``id``, which has no values; None if the catalog does not have it."""
    return message(id) if id in topic_entries(id.partition(".")[0]) else None


def pick_message(id: str, /, **values: Any) -> Message:
    """Return the sentence ``id`` of a table whose templates use only some of these values.

    Raises `MessageError` for an unknown id, and for missing values.
    """
    names = _entry(id).names
    return message(id, **{name: value for name, value in values.items() if name in names})
