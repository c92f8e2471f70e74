"""A page of the plan as a visitor with a link sees it: what it says, what it offers for download, and its own link."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from unittest.mock import PropertyMock, patch
from urllib.parse import parse_qsl

import streamlit as st
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest

from core.fields import LINK_VERSION, VERSION, Form
from core.messages import topic_entries
from core.planning.decide.decision import DECIDE_FORM
from core.planning.decide.record import unpack
from pages.common import show
from pages.common.inputs import PACKED
from pages.common.registry import PageSpec
from pages.compute.form import PANELS
from tests.app.test_pages import APP
from tests.patience import PATIENCE_S

OPEN, CLOSED = dict.fromkeys(PANELS, "true"), dict.fromkeys(PANELS, "false")


CONFIG = (
    '{"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, '
    '"intermediate_size": 128, "vocab_size": 100}'
)
"""A config.json of a small model, all of which is read."""


def opened(page: PageSpec, texts: Mapping[str, str], *, version: int = LINK_VERSION) -> AppTest:
    """``page`` by a link with these fields."""
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S)
    if not page.default:
        app.run().switch_page(page.path)
    app.query_params[VERSION] = str(version)
    for name, text in texts.items():
        app.query_params[f"{page.prefix}_{name}"] = text
    app.run()
    assert not app.exception
    return app


def bodies(app: AppTest, kind: str) -> list[str]:
    """The HTML of every block of the class ``kind``."""
    return [block.proto.body for block in app.get("html") if f'class="{kind}"' in block.proto.body]


def words(app: AppTest) -> str:
    """Everything said in HTML, with ordinary spaces, without the stylesheet and the definitions of terms."""
    found = [block.proto.body for block in app.get("html") if 'class="np-terms"' not in block.proto.body]
    return html.unescape("\n".join(body for body in found if not body.startswith("<style>")).replace("\u00a0", " "))


def said_by(app: AppTest, id: str) -> str:
    """The first block that has the entry ``id`` of the catalog in it, whatever its values; empty without one."""
    entry = topic_entries(id.partition(".")[0])[id]
    parts = [
        [re.escape(text.replace("**", "")) for text in (*(p[0] for p in f.parts), f.end)]
        for f in (entry.one, entry.many)
    ]
    wanted = re.compile("|".join(".{1,80}?".join(texts) for texts in parts))
    return next((said for said in map(stripped, words(app).splitlines()) if wanted.search(said)), "")


def stripped(text: str) -> str:
    """Text without tags, as `format_day` has it."""
    return html.unescape(re.sub(r"<[^>]+>", "", text)).replace("\u00a0", " ")


def shown(text: str) -> str:
    """What the page makes of a sentence in core's markup."""
    return stripped(show.rich(text))


def linked(app: AppTest) -> dict[str, str]:
    """The fields of the page's own link."""
    (query,) = {
        found for block in app.get("bidi_component") for found in re.findall(r"\bv=\d+&[^\"\\]+", str(block.proto))
    }
    return fields_of(query)


def fields_of(query: str) -> dict[str, str]:
    """The fields of an address, those that it packs spelled out."""
    fields = dict(parse_qsl(query, keep_blank_values=True))
    if packed := fields.pop(PACKED, ""):
        fields |= DECIDE_FORM.address_texts(DECIDE_FORM.parse(unpack(packed)).texts)
    return fields


def next_pages(app: AppTest, page: PageSpec) -> list[dict[str, str]]:
    """The fields, without prefix, of every link to ``page`` in the text."""
    links = re.findall(rf'href="{page.url_path}\?([^"]+)"', "\n".join(bodies(app, "np-next-page")))
    found = [dict(parse_qsl(html.unescape(link), keep_blank_values=True)) for link in links]
    return [{n.partition("_")[2] or n: t for n, t in one.items() if n != VERSION} for one in found]


def take_preset(app: AppTest, row: str, name: str) -> None:
    """Click a preset. row: the prefix of its page and the key of its row."""
    app.button(key=f"{row}:{name}").click().run()
    assert not app.exception


def current_preset(app: AppTest, row: str) -> str | None:
    """The name of the preset that the page marks as its own."""
    marked = [one.label for one in app.button if (one.key or "").startswith(f"{row}:") and one.proto.type == "primary"]
    return marked[0] if marked else None


def fold(app: AppTest, key: str, *, open: bool) -> None:
    """Open or close a panel or a box over the page, as a click does."""
    ids = (*(panel.proto.id for panel in app.expander), *(box.proto.popover.id for box in app.get("popover")))
    (widget,) = (name for name in ids if name.endswith(f"-{key}"))
    states = app._tree.get_widget_states()
    states.widgets.append(WidgetState(id=widget, bool_value=open))
    app._run(states)
    assert not app.exception


@contextmanager
def downloads() -> Iterator[dict[str, Callable[[], bytes]]]:
    """What the pages run inside offer for download, by the ending of its name; a file is made when it is asked for."""
    made: dict[str, Callable[[], bytes]] = {}

    def keep(_: str, data: Callable[[], bytes], name: str, *__: object, **___: object) -> None:
        made[name.rpartition(".")[2]] = data

    address = PropertyMock(return_value="http://napkin.example/a-page?v=1")
    with patch.object(st, "download_button", keep), patch.object(type(st.context), "url", address):
        yield made


def opens_to_itself(page: PageSpec, form: Form, texts: Mapping[str, str]) -> None:
    """The page's link names every field of its form, and opens to the same link and answer."""
    app = opened(page, texts)
    link = linked(app)
    assert set(link) == {"v", *(form.key(field.id) for field in form.fields if not field.omit_if_empty)}
    again = opened(page, {name.partition("_")[2]: text for name, text in link.items() if name != "v"})
    assert linked(again) == link
    assert bodies(again, "np-answer") == bodies(app, "np-answer")
