"""A random walk over every page: presets, fields, switches, panels and the menu, found in what a page draws.

``python -m tests.perf walk --steps 20000 --seed 1`` walks in rounds, each a new visitor with a seed of its own, who
turns to every page before coming back to one; the first is that of the seed, so that thirteen rounds see all. A round
that fails prints its seed and all that it did; ``--seed <that seed> --steps 60`` walks it again. Components draw
themselves in a browser and are left out.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import random
import re
import shutil
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from unittest.mock import patch

import streamlit as st
from streamlit import config
from streamlit.proto.Block_pb2 import Block as BlockProto
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block, Widget

from core.benchmark.programme import METHOD, Programme
from core.benchmark.running.events import DeviceFound, Done, Event, Started, Tried, encode
from core.benchmark.running.jobs import Runner
from core.benchmark.timing import kinds
from core.experiments.runner import ExperimentRunner
from pages.common.experiments import panel
from pages.common.registry import PAGES, PageSpec
from pages.common.theme import PROJECTOR
from pages.measure import running
from tests.core.measured_cases import CPU, point
from tests.perf.options import FULL, Options

ROOT = Path(__file__).parents[2]

TEXTS = (
    *("", " ", "0", "1", "-1", "2.5", "0.1", "1e-400", "1e999", "nan", "inf", "0x1p-3", "1/3", "9" * 64, "W" * 64),
    *("70B", "1.5T", "16", "1,024", "1e16", "40%", "35-45%", "100%", "$2M", "20 min", "90 days", "2 years", "512 GB"),
    *("x", "2, 3", "1, 1, 1, 1", "x.t()", "y = x[::2]\ny += 1", "x.view(torch.int32)", "x @ x.t()", "x*" + "9" * 309),
    *(
        "{}",
        '{"a": "\ud800"}',
        "null",
        "[" * 50,
        "<b>&amp;",
        "**bold** `code`",
        "$x^2$",
        "“quoted”",
        "'; DROP",
        "é\u0301\0",
    ),
)
"""Good, boundary and bad things to type into any field."""


_FOLDERS: list[str] = []
"""Where visitors save plans, each in a folder of their own."""


def measuring(programme: Programme) -> Sequence[str]:
    """A process that says at once what a measurement does, or begins and hangs until cancelled where sizes are odd."""
    odd = sum(programme.sizes) % 2
    items = kinds.items(programme)[: 1 if odd else 100]  # as many as fit into a command
    events: list[Event] = [Started(method=METHOD, torch="2.13.0"), DeviceFound(facts=CPU)]
    events += [Tried(outcome=point(item, 1e-3 * at, flop=2.0 * 128**3)) for at, item in enumerate(items, 1)]
    events += [] if odd else [Done(elapsed_s=1.0)]
    text = "\n".join(map(encode, events))
    code = f"import sys; print({text!r}, flush=True); {'sys.stdin.read()' if odd else ''}"
    return [sys.executable, "-S", "-c", code]


experiments = functools.cache(ExperimentRunner)
"""The one runner of this process, since each experiment takes seconds; it stays where caches are cleared."""


@contextmanager
def observed() -> Iterator[None]:
    """What fails says why, nothing real is measured, and an experiment runs once however often it is opened."""
    runner, details = Runner(measuring), config.get_option("client.showErrorDetails")
    config.set_option("client.showErrorDetails", "full")
    outside = logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context")
    outside.disabled = True  # it remarks that an AppTest is made outside of a session
    st.cache_resource.clear()
    try:
        with (
            patch.dict(os.environ),
            patch.object(running, "shared_runner", lambda: runner),
            patch.object(panel, "shared_runner", experiments),
        ):
            yield
    finally:
        while _FOLDERS:
            shutil.rmtree(_FOLDERS.pop())
        config.set_option("client.showErrorDetails", details)
        outside.disabled = False
        st.cache_resource.clear()
        if (latest := runner.latest()) and latest.running:
            runner.cancel(latest.id)


def faults(app: AppTest) -> list[str]:
    """What a page never shows: an exception, a panel that says that it failed, or no title."""
    raised = [f"{box.message}\n{''.join(box.stack_trace)}" for box in app.exception]
    bodies = [block.proto.body for block in app.get("html")]
    failed = [body for body in bodies if re.search(r'class="[^"]*\bnp-failed\b', body)]
    titled = len(app.title) == 1 or "true" in app.query_params.get(PROJECTOR, "")  # whose bar stands in its place
    return [*raised, *failed, *([] if titled else ["no title"])]


class Walk:
    """One visitor, whose every choice follows from the seed. app: another than Napkin."""

    def __init__(self, seed: int, app: AppTest | None = None) -> None:
        self.rng = random.Random(seed)
        self.pages: list[PageSpec] = [PAGES[seed % len(PAGES)]]
        """Those to turn to next, the first of them last."""
        self.actions: list[str] = [f"seed {seed}"]
        self.kinds: Counter[str] = Counter()
        self.visited: Counter[str] = Counter()
        self.typed: dict[str, list[str]] = {}
        self.open: dict[str, bool | str] = {}
        # What one visitor saves is not there for the next, whose walk would be another then.
        _FOLDERS.append(mkdtemp())
        os.environ["NAPKIN_DATA"] = _FOLDERS[-1]
        self.app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300) if app is None else app
        self._run("open Home")

    def walk(self, steps: int) -> None:
        """Take so many steps; raises `AssertionError`, with all that was done, at the first that fails."""
        self._switch()
        for _ in range(steps):
            self._step()

    def _step(self) -> None:
        widgets = [
            node
            for node in self._nodes()
            if isinstance(node, Widget) and not getattr(node, "disabled", False) and node.key != PROJECTOR
        ]
        panels = [panel for node in self._nodes() if isinstance(node, Block) and (panel := _panel(node)).id]
        where = self.rng.random()
        if where < 0.1:
            self._switch()
        elif where < 0.3 and panels:
            self._fold(self.rng.choice(panels))
        elif widgets:
            self._use(self.rng.choice(widgets))
        else:
            self._switch()

    def _nodes(self) -> list[Any]:
        return [*self.app.main, *self.app.sidebar]

    def _switch(self) -> None:
        """Go to a page by the menu, or by a link that sets some fields seen in this walk or elsewhere."""
        page = self.pages.pop()
        self.pages = self.pages or self.rng.sample(PAGES, len(PAGES))
        self.visited[page.id] += 1
        self.app.switch_page(page.path)
        self.open.clear()
        fields: dict[str, str] = {}
        keys = [
            key for key in self.typed if key.startswith((f"{page.prefix}_", "p_" if page.plans else f"{page.prefix}_"))
        ]
        if keys and self.rng.random() < 0.3:
            for key in self.rng.sample(keys, min(3, len(keys))):
                fields[key] = self.rng.choice((*self.typed[key], "true", self._text(key)))
        self.app.query_params.clear()
        for key, text in fields.items():
            self.app.query_params[key] = sent(text)
        self._run(f"go to {page.id} {fields or ''}")

    def _fold(self, panel: _Panel) -> None:
        """Open or close a panel, or choose a tab."""
        key = panel.id
        if isinstance(panel.now, bool):
            self.open[key] = not self.open.get(key, panel.now)
        else:
            self.open[key] = self.rng.choice(panel.tabs)
        self._run(f"panel {panel.label or key}: {self.open[key]}")

    def _use(self, widget: Any) -> None:
        """Give a widget another value, as its kind of widget takes one."""
        kind, name = widget.type, widget.key or getattr(widget, "label", "")
        if "click" in vars(type(widget)) and "options" not in vars(widget):
            widget.click()
            return self._run(f"{kind} {name}: click")
        value = self._value(name, widget)
        widget.set_value(value)
        return self._run(f"{kind} {name}: {value!r}")

    def _value(self, name: str, widget: Any) -> Any:
        rng, now, has = self.rng, widget.value, vars(widget)
        if options := has.get("options"):
            return (
                rng.sample(options, rng.randint(0, min(3, len(options))))
                if isinstance(now, list)
                else rng.choice(options)
            )
        if isinstance(now, bool):
            return not now
        if isinstance(now, int | float):
            step, low, high = (has.get(bound) for bound in ("step", "min", "max"))
            wanted = rng.choice(
                [now + (step or 1), now - (step or 1), 2 * now, 0, *(v for v in (low, high) if v is not None)]
            )
            wanted = wanted if low is None else max(wanted, low)
            return type(now)(wanted if high is None else min(wanted, high))
        text = sent(self._text(name))
        if widget.type == "file_uploader":
            return (f"visitor.{(list(widget.proto.type) or ['txt'])[0].lstrip('.')}", text.encode(), "text/plain")
        return text[: widget.proto.max_chars or None]

    def _text(self, name: str) -> str:
        """Something seen in this field or another, that with a character changed, or one of `TEXTS`."""
        here, elsewhere = self.typed.get(name, []), [text for texts in self.typed.values() for text in texts]
        way = self.rng.random()
        if way < 0.35 or not elsewhere:
            return self.rng.choice(TEXTS)
        text = self.rng.choice(here if here and way < 0.9 else elsewhere)
        if way < 0.6:
            return text
        at = self.rng.randint(0, len(text))
        return text[:at] + self.rng.choice(("", "0", "9", "-", ".", ",", " ", "(", "e", "“")) + text[at + 1 :]

    def _run(self, action: str) -> None:
        """Note the action, run the page with it, and look at what was drawn."""
        self.actions.append(action)
        self.kinds[action.split(" ", 1)[0]] += 1
        try:
            states = self.app._tree.get_widget_states() if len(self.actions) > 2 else None
            if states is not None:
                states.widgets.extend(_state(key, value) for key, value in self.open.items())
            self.app._run(states)
        except Exception as problem:
            raise AssertionError(self._told(f"{type(problem).__name__}: {problem}")) from problem
        wrong = faults(self.app)
        if wrong:
            raise AssertionError(self._told("\n".join(wrong)))
        for node in self._nodes():
            if isinstance(node, Widget) and isinstance(value := getattr(node, "value", None), str) and node.key:
                seen = self.typed.setdefault(node.key, [])
                if value not in seen and len(seen) < 20:
                    seen.append(value)

    def _told(self, problem: str) -> str:
        return "\n".join((*self.actions, problem))


@dataclass(frozen=True)
class _Panel:
    """What opens and closes, or shows one of its tabs. id: empty where the server does not hear of it."""

    id: str = ""
    label: str = ""
    now: bool | str = False
    tabs: tuple[str, ...] = ()


def _panel(node: Block) -> _Panel:
    proto = node.proto
    kind = proto.WhichOneof("type") if isinstance(proto, BlockProto) else ""
    if isinstance(proto, BlockProto.Expandable):
        return _Panel(proto.id, proto.label, proto.expanded)
    if kind == "popover":
        return _Panel(proto.popover.id, proto.popover.label, proto.popover.open)
    if kind == "tab_container":
        tabs = tuple(tab.proto.label for tab in node.children.values())
        return _Panel(proto.tab_container.id, "", tabs[0], tabs)
    return _Panel()


def sent(text: str) -> str:
    """``text`` as a browser can send it: without lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _state(key: str, value: bool | str) -> WidgetState:
    return WidgetState(id=key, string_value=value) if isinstance(value, str) else WidgetState(id=key, bool_value=value)


def main(options: Options = FULL) -> None:
    """Walk so many steps; fails where a round does, or a page was not visited."""
    kinds: Counter[str] = Counter()
    visited: Counter[str] = Counter()
    start, taken, failed, seed = time.perf_counter(), 0, 0, options.seed
    with observed(), warnings.catch_warnings(action="error"):
        while taken < options.steps:
            steps = min(options.round, options.steps - taken)
            try:
                walk = Walk(seed)
                try:
                    walk.walk(steps)
                finally:
                    kinds += walk.kinds
                    visited += walk.visited
            except AssertionError as problem:
                failed += 1
                print(problem, flush=True)
            taken, seed = taken + steps, seed + 1
    spent = time.perf_counter() - start
    print(
        f"{taken:,} steps by {seed - options.seed:,} visitors in {spent:.0f} s, {1000 * spent / taken:.0f} ms each; "
        f"{failed} failed. {json.dumps(kinds)}"
    )
    whole(visited, options, failed)


def whole(visited: Counter[str], options: Options, failed: int) -> None:
    """Fail a walk with faults, or one that should have seen all pages and has not."""
    missed = [page.title for page in PAGES if not visited[page.id]]
    if failed or (missed and options.steps >= len(PAGES) * options.round):
        raise SystemExit(f"{failed} failed; not visited: {', '.join(missed) or 'none'}")
