"""Text that a reader of Markdown, of HTML or of a figure would take for more than text, wherever somebody can put it.

All of it names one host, of which nothing may be asked or linked.
"""

from __future__ import annotations

import re

from core.limits import limit
from core.planning.comparison.entry import Entry, entry_of, examples

HOST = "a.example"

KINDS = (
    f"![x](//{HOST}) [y](//{HOST})",
    f"<img src=//{HOST}> <a href=//{HOST}>x</a>",
    f"http://{HOST} www.{HOST} x@{HOST}",
    f"<i style=fill:url(//{HOST}/)>x</i>",
    f"<b style='cursor:url(//{HOST}/x),auto'>x</b>",
    f":red[{HOST}] :material/home: :tada:",
    f"$\\href{{//{HOST}}}{{q}}$ **b** `c`",
)
"""Each short enough to be a run's name or, cut, a tag's."""


def plans() -> tuple[Entry, ...]:
    """A comparison of as many plans as it holds, each under such a name."""
    texts = [one.texts for one in examples()]
    return tuple(entry_of(kind, texts[i % len(texts)]) for i, kind in enumerate(KINDS[: limit("compared_plans")]))


def tags() -> tuple[str, ...]:
    """Tags, which have no commas, such as they can be."""
    return (f"![](//{HOST})", f"[t](//{HOST})", f"<img src=//{HOST}>", f"http://{HOST}", f"x@{HOST}", f":red[{HOST}]")


_LIVE = re.compile(
    rf"://{HOST}|www\.{HOST}|@{HOST}|(?<!\\)\]\(//{HOST}|:red|:material|:tada|(?<!\\)\$\\href|(?<!\\)<|(?<!\\)\*\*b|(?<!\\)`c"
)


def live(markdown: str) -> list[str]:
    """What of such a text is more than text in Markdown."""
    return _LIVE.findall(markdown)
