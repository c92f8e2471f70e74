"""A random walk over addresses: every step opens one as a new visitor does who was sent a link.

An address has fields of its page, often those of others, plans to compare, a saved plan, a stop of a tour, a version.
The next one follows a link that a page has drawn, takes the plan to another page, or changes some fields: to other
choices, to what a preset of any page says there, to that with a character changed, to any number, or to nonsense. Now
and then everything folded is opened, and every file is made that the page offers.

``python -m tests.perf addresses --steps 20000 --seed 1`` walks in rounds that see every page once. A fault is told once
of its kind, with an address that shows it.
"""

from __future__ import annotations

import html
import importlib
import logging
import random
import re
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from unittest.mock import patch
from urllib.parse import parse_qs, urlencode, urlsplit

import streamlit as st
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest

from core.exercises.path import path
from core.fields import LINK_VERSION, VERSION, Field, Form, Link
from core.lecture.catalogue import CLAIMS
from core.limits import limit
from core.planning.comparison.comparison import with_saved_results
from core.planning.comparison.entry import Entry, entry_of, pack
from core.planning.form.plan_form import PLAN_FIELDS
from core.planning.presets import MEMORY_PRESETS, PRESETS, SEARCH_PRESETS
from core.store.locations import plan_store
from pages.common import guard
from pages.common.comparison_list import IN_LINK
from pages.common.links import LANDS_AT
from pages.common.registry import PAGES, PageSpec
from pages.common.theme import PROJECTOR
from pages.common.tours import TOUR, TOURS
from tests.perf.options import FULL, Options
from tests.perf.walk import ROOT, TEXTS, faults, observed, sent, whole

Address = dict[str, list[str]]

ALL_STORIES = {**PRESETS, **MEMORY_PRESETS, **SEARCH_PRESETS}
LINKS = [
    Link("exercises", {"how": "follow the path", "topics": "lecture", "sheet": "2", "check": "true"}),
    Link("glossary", {"q": "float"}),
    *(claim.link for claim in CLAIMS.values() if claim.link),
    *(one.shown for one in path().exercises),
]
_PLAN = {field.id for field in PLAN_FIELDS}
_AT = {page.url_path: page for page in PAGES}
_HREF = re.compile(r'href="([^"#]*)"')
_OWN_LINK = re.compile(r"\bv=\d+&[^\"\\\s]+")
_RAISED_AT = re.compile(r'File "(.*?", line \d+)')


@cache
def fields_of(page: PageSpec) -> Mapping[str, Field | None]:
    """The fields of a page's form by id; of a page without one, those that its tour and links to it name."""
    path = ROOT / page.path.replace("page.py", "form.py")
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    form: Form | None = getattr(importlib.import_module(name), "FORM", None) if path.exists() else None
    if form:
        return {item.id: item for item in form.fields}
    links = [*(stop.fields for stop in TOURS[page.id]), *(link.fields for link in LINKS if link.page == page.id)]
    return dict.fromkeys(name for fields in links for name in fields)


@cache
def good_texts(name: str) -> Sequence[str]:
    """What presets and tours of any page say in the fields of this id, and their defaults."""
    results = [*ALL_STORIES.values(), *(stop.fields for stops in TOURS.values() for stop in stops)]
    fields = [fields_of(page).get(name) for page in PAGES]
    texts = [*(texts[name] for texts in results if name in texts), *(item.default for item in fields if item)]
    return list(dict.fromkeys(texts))


class _Kept(logging.Handler):
    """The tracebacks of what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.told.append("".join(traceback.format_exception(*record.exc_info)))


@contextmanager
def tracebacks() -> Iterator[list[str]]:
    """Why parts of pages fail inside, each time they do."""
    selected, filters = _Kept(), guard.LOG.filters[:]
    guard.LOG.addHandler(selected)
    guard.LOG.filters.clear()
    try:
        yield selected.told
    finally:
        guard.LOG.filters[:] = filters
        guard.LOG.removeHandler(selected)


class AddressWalk:
    """A visitor of addresses, whose every choice follows from the seed. saved: ids of saved plans."""

    def __init__(self, seed: int, saved: Sequence[str] = ()) -> None:
        self.rng = random.Random(seed)
        self.saved = saved
        self.visited: Counter[str] = Counter()
        self._pages: list[PageSpec] = []
        self._address: Address = {}
        self._links: dict[str, list[Address]] = {}
        """Page id → addresses of it that were drawn, the last ones."""
        self._seen: dict[str, list[str]] = {}
        """Key of a widget → what it held or offered, the first ones."""
        self._files: list[Callable[[], bytes]] = []

    def step(self) -> tuple[str, str]:
        """Open one more address; gives it, and what is wrong there, empty where nothing is."""
        self._pages = self._pages or self.rng.sample(PAGES, len(PAGES))
        page = self._pages.pop()
        self.visited[page.id] += 1
        self._address = self._next(page)
        return f"{page.url_path}?{urlencode(self._address, doseq=True)}", self._wrong(page)

    # ------------------------------------------------------------------------------------------ the next address

    def _next(self, page: PageSpec) -> Address:
        """A link to ``page`` that was drawn, a stop of a tour, or what is here taken there; then changed."""
        rng, way = self.rng, self.rng.random()
        if way < 0.35 and page.id in self._links:
            address = dict(rng.choice(self._links[page.id]))
        elif way < 0.55:
            stop = rng.choice([stop for stops in TOURS.values() for stop in stops])
            address = {f"{page.prefix}_{name}": [text] for name, text in stop.fields.items()}
        else:
            address = dict(self._address)
            here = {name.partition("_")[2]: texts for name, texts in address.items()}
            address |= {f"{page.prefix}_{name}": texts for name, texts in here.items() if name in _PLAN}
        self._change(page, address, rng.choice((0, 1, 1, 2, 3, 5, 8, 13)))
        if rng.random() < 0.2:
            self._change(rng.choice(PAGES), address, 8)
        self._beside(address)
        return {sent(name): [sent(text) for text in texts] for name, texts in list(address.items())[-200:]}

    def _change(self, page: PageSpec, address: Address, count: int) -> None:
        """Change so many fields of ``page``."""
        seen = (key.partition("_")[2] for key in self._seen if key.startswith(f"{page.prefix}_"))
        fields = fields_of(page) | dict.fromkeys(name for name in seen if name not in fields_of(page))
        for name in self.rng.sample(sorted(fields), min(count, len(fields))):
            key = f"{page.prefix}_{name}"
            address[key] = [self._text(name, fields[name], self._seen.get(key, ()))]

    def _beside(self, address: Address) -> None:
        """What an address has beside fields, each now and then."""
        rng = self.rng
        for name in (VERSION, TOUR, LANDS_AT, PROJECTOR):
            address.pop(name, None)
        if rng.random() < 0.6:
            address[VERSION] = [rng.choice((*4 * [str(LINK_VERSION)], "1", "2", "99", "x"))]
        if rng.random() < 0.25:
            plans = pack([self._plan(address) for _ in range(rng.randint(1, limit("compared_plans") + 1))])
            address[IN_LINK] = [plans if rng.random() < 0.8 else self._slip(plans)]
        if rng.random() < 0.2:
            address |= {"r_plan": [rng.choice((*self.saved, "0", "x" * 40))], "r_rev": [rng.choice(("1", "2", "x"))]}
        for name, texts in ((TOUR, "1 2 5 6 x"), (PROJECTOR, "true"), (LANDS_AT, "np-answer c_whole <b>")):
            if rng.random() < 0.1:
                address[name] = [rng.choice(texts.split())]
        if address and rng.random() < 0.05:
            name = rng.choice(sorted(address))
            address[name] = [*address[name], rng.choice(TEXTS)]

    def _plan(self, address: Address) -> Entry:
        """A plan of a preset or of this address, some fields changed."""
        rng = self.rng
        name, preset = rng.choice(list(ALL_STORIES.items()))
        here = {key.partition("_")[2]: texts[-1] for key, texts in address.items() if texts}
        texts = dict(preset if rng.random() < 0.5 else here)
        for item in rng.sample(PLAN_FIELDS, rng.choice((0, 1, 2, 5))):
            texts[item.id] = self._text(item.id, item)
        return entry_of(rng.choice((name, name, "", "a~b.c_d!", rng.choice(TEXTS))), texts)

    def _text(self, name: str, field: Field | None, seen: Sequence[str] = ()) -> str:
        """A text for a field, which can mostly be read."""
        rng, way = self.rng, self.rng.random()
        if way < 0.08:
            return rng.choice(TEXTS)
        if field and field.options:
            return rng.choice(field.options)
        if field and field.kind == "switch":
            return rng.choice(("true", "false"))
        if field and field.kind == "slider":
            return str(rng.randint(field.low, field.high))
        known = [*good_texts(name), *seen]
        if way < 0.2 or not known:
            return rng.choice(
                (f"{10 ** rng.uniform(-2, 7):,.2f}", f"{10 ** rng.uniform(0, 7):,.0f}", str(2 ** rng.randint(0, 14)))
            )
        return self._slip(rng.choice(known)) if way < 0.3 else rng.choice(known)

    def _slip(self, text: str) -> str:
        at = self.rng.randint(0, len(text))
        return text[:at] + self.rng.choice(("", "0", "9", "-", ".", ",", " ", "~", "e", "“")) + text[at + 1 :]

    # ------------------------------------------------------------------------------------------ opening it

    def _wrong(self, page: PageSpec) -> str:
        """Open the address; what is wrong with what is drawn."""
        self._files.clear()
        with tracebacks() as parts, patch.object(st, "download_button", self._offered):
            try:
                app = new_visitor(page, self._address)
                wrong = faults(app)
                if not wrong and self.rng.random() < 0.2:
                    states = app._tree.get_widget_states()
                    folded = [
                        expander.proto.id
                        for expander in app.expander
                        if expander.proto.id and not expander.proto.expanded
                    ]
                    states.widgets.extend(WidgetState(id=text, bool_value=True) for text in folded)
                    app._run(states)
                    wrong = faults(app)
                    for file in self._files:
                        file()
            except Exception:
                return traceback.format_exc()
        self._look(page, app)
        return "\n".join(parts or wrong)

    def _offered(self, _: str, data: object, *__: object, **___: object) -> bool:
        if callable(data):
            self._files.append(data)
        return False

    def _look(self, page: PageSpec, app: AppTest) -> None:
        """Note the links that are drawn, and what widgets hold and offer."""
        links = [html.unescape(link) for block in app.get("html") for link in _HREF.findall(block.proto.body)]
        own = [link for block in app.get("bidi_component") for link in _OWN_LINK.findall(str(block.proto))]
        for link in (*links, *(f"{page.url_path}?{item}" for item in own)):
            parts = urlsplit(link)
            if not parts.scheme and parts.path in _AT:
                drawn = self._links.setdefault(_AT[parts.path].id, [])
                drawn.append(parse_qs(parts.query, keep_blank_values=True))
                del drawn[:-50]
        for kind in ("text_input", "text_area", "selectbox", "button_group", "toggle", "slider"):
            for node in app.get(kind):
                if (node.key or "").startswith(f"{page.prefix}_"):
                    content = self._seen.setdefault(node.key, [])
                    offered = map(str, getattr(node, "options", None) or (node.value,))
                    content += [text for text in offered if text not in content][: 40 - len(content)]


@cache
def _home() -> AppTest:
    """A visit from which others know the pages."""
    return AppTest.from_file(str(ROOT / "app.py"), default_timeout=300).run()


def new_visitor(page: PageSpec, address: Address) -> AppTest:
    """What somebody sees who opens an address of ``page``."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
    app._registered_pages, app._bidi_component_manager = _home()._registered_pages, _home()._bidi_component_manager
    app.switch_page(page.path)
    app.query_params.update(address)
    return app.run()


def save_stories() -> list[str]:
    """Save a plan of every preset; their ids."""
    return [plan_store().save(with_saved_results(entry_of(name, texts))).id for name, texts in ALL_STORIES.items()]


def main(options: Options = FULL) -> None:
    """Walk so many steps; fails where an address does, or a page was not visited."""
    start, slowest = time.perf_counter(), (0.0, "")
    kinds: Counter[str] = Counter()
    with observed(), warnings.catch_warnings(action="error"):
        walk = AddressWalk(options.seed, save_stories())
        for number in range(options.steps):
            began = time.perf_counter()
            address, wrong = walk.step()
            slowest = max(slowest, (time.perf_counter() - began, address))
            if wrong:
                kind = " ".join([*_RAISED_AT.findall(wrong)[-1:], wrong.strip().rpartition("\n")[2]])
                kinds[kind] += 1
                if kinds[kind] == 1:
                    print(f"step {number}: {address}\n{wrong}", flush=True)
    spent = time.perf_counter() - start
    print(
        f"{options.steps:,} addresses in {spent:.0f} s, {1000 * spent / options.steps:.0f} ms each, the slowest "
        f"{slowest[0]:.1f} s: {slowest[1][:200]}"
    )
    for kind, count in kinds.most_common():
        print(f"{count:>6} × {kind}")
    whole(walk.visited, options, kinds.total())
