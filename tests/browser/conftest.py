"""A real server and a real browser for the browser tests."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from core.planning.form.plan_form import PLAN_FORM
from pages.common.registry import GROUPS, PageSpec
from tests.patience import PATIENCE_S, until
from tests.ports import free_port

ROOT = Path(__file__).parents[2]

expect.set_options(timeout=PATIENCE_S * 1000)


FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def running_server(log: Path, script: str = "app.py", module: str = "streamlit") -> Iterator[str]:
    """A fresh server of the app, or of another script, on a free port; gives its base URL without trailing slash."""
    with free_port() as port, log.open("w") as out:
        command = [sys.executable, "-m", module, "run", script, "--server.port", str(port)]
        command += ["--server.address", "127.0.0.1"]
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, env=os.environ.copy())
        try:
            _wait_until_healthy(process, port, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE_S)


def _wait_until_healthy(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    def healthy() -> bool:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}:\n{log.read_text()}")
        health = f"http://127.0.0.1:{port}/_stcore/health"
        with suppress(OSError), urllib.request.urlopen(health, timeout=PATIENCE_S) as answer:
            return answer.status == 200
        return False

    until(healthy, "a healthy server")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Base URL of one server shared by the tests of this session."""
    with running_server(tmp_path_factory.mktemp("server") / "log.txt") as url:
        yield url


@pytest.fixture
def fresh_server(tmp_path: Path) -> Callable[[], object]:
    """Call it as a context manager for a server that no browser has touched yet."""
    return lambda: running_server(tmp_path / "fresh.txt")


TRAFFIC = """{
window.traffic = { begun: 0, wanted: 0, crossed: false, heard: 0, late: 0, held: null, underway: 0 }
const numbers = bytes => {
  const found = {}
  let at = 0
  const number = () => { for (let n = 0, by = 1; ; by *= 128) {
    n += (bytes[at] & 127) * by
    if (bytes[at++] < 128) return n
  } }
  while (at < bytes.length) {
    const tag = number()
    found[tag >> 3] = number()
    if (tag & 7) at += found[tag >> 3]
  }
  return found
}
const [NEW_SESSION, SCRIPT_FINISHED, EARLY_FOR_RERUN, RERUN_SCRIPT] = [4, 6, 2, 11]
window.WebSocket = class extends WebSocket {
  constructor(...address) {
    super(...address)
    this.addEventListener('message', event => {
      if (event.late || !(traffic.late || traffic.held)) {
        const said = numbers(new Uint8Array(event.data))
        if (NEW_SESSION in said) traffic.begun++
        if (said[SCRIPT_FINISHED] === EARLY_FOR_RERUN) traffic.wanted = traffic.begun + 1
        return traffic.heard++
      }
      event.stopImmediatePropagation()
      const again = Object.assign(new MessageEvent('message', { data: event.data }), { late: true })
      traffic.underway++
      const hear = () => { traffic.underway--; this.dispatchEvent(again) }
      traffic.held ? traffic.held.push(hear) : setTimeout(hear, traffic.late)
    })
  }
  send(data) {
    if (data[0] >> 3 === RERUN_SCRIPT) {
      traffic.crossed = traffic.begun < traffic.wanted
      traffic.wanted = traffic.begun + 1
    }
    super.send(data)
  }
}}"""
"""Counts the runs whose beginning a page hears of, and how many it is to hear of before it is at rest.

A run answers what was sent, or the run before it that ended early. ``crossed``: something was sent before the run for
what was sent earlier had begun; one run may answer both, or each has its own. Messages are protobuf: of each part
there is its number, and its value or length.

``late``: milliseconds by which the page hears everything later, as from a server that is far away or busy. ``held``: a
list that keeps what it would hear until somebody calls all that is in it.
"""

SETTLED = """async (patience) => {
  const drawn = () => new Promise(done => requestAnimationFrame(() => setTimeout(done, 25)))
  const missing = () => {
    const { begun, wanted, underway } = window.traffic ?? { begun: 0, wanted: 0 }
    const shadows = [...document.querySelectorAll('*')].map(e => e.shadowRoot).filter(root => root)
    return begun < wanted || underway ? 'an answer of the server'
      : !document.querySelector('[data-testid="stApp"][data-test-script-state="notRunning"]') ? 'the end of a run'
      : document.querySelector('[data-testid="stSkeleton"]') ? 'the code that draws an element'
      : document.querySelector('[data-stale="true"]') ? 'what a run has left of the page before'
      : !document.querySelector('h1') || !shadows.some(root => root.querySelector('button[data-link]')) ? 'the page'
      : null
  }
  const end = performance.now() + patience
  for (let quiet = 0, before = -1; quiet < (window.traffic?.crossed ? 16 : 4);) {
    await drawn()
    const lacks = missing(), heard = window.traffic?.heard ?? 0
    quiet = lacks || heard !== before ? 0 : quiet + 1
    before = heard
    if (performance.now() > end) throw new Error(`after ${patience} ms the page still waits for ${lacks ?? 'silence'}`)
  }
}"""
"""Four frames in a row, the first of which has handled the events before, found nothing missing and heard nothing new;
sixteen where one more run may be to come.

Kinds of elements are loaded one by one on the first visit, and a skeleton stands for each until its code is there:
until then the first field in the document need not be the first one of the page.
"""

STILL = """async (patience) => {
  const pause = () => new Promise(done => setTimeout(() => requestAnimationFrame(() => setTimeout(done)), 50))
  const boxes = (root) => [...root.querySelectorAll('*')].map(e => {
    const b = e.getBoundingClientRect()
    return [b.x, b.y, b.width, b.height].map(Math.round) + (e.shadowRoot ? boxes(e.shadowRoot) : '')
  }).join()
  let before = null
  for (const end = performance.now() + patience; performance.now() < end;) {
    await document.fonts.ready
    const now = boxes(document.querySelector('.stApp'))
    if (now === before) return
    before = now
    await pause()
  }
  throw new Error('the layout never comes to rest')
}"""
"""Fonts are there and two readings, some frames apart, find every box of the page at the same place."""


def choose(page: Page, name: str) -> None:
    """Click a preset, or one of the options that stand side by side."""
    option = page.get_by_role("radio", name=name, exact=True)
    option.or_(page.get_by_role("button", name=name, exact=True)).first.click()


def enter(page: Page, key: str, text: str) -> None:
    """Make ``text`` what the field of this key holds, as a person does: choose it, or type it and press Enter."""
    field = page.locator(f".st-key-{key}")
    option = field.get_by_role("radio", name=text, exact=True)
    if option.count():
        option.click()
        return
    box = field.locator("input, textarea").first
    box.fill(text)
    if box.get_attribute("role") == "combobox":
        page.get_by_role("option", name=text, exact=True).click()
    else:
        box.press("Control+Enter")


def option_shown(field: str, option: str) -> str:
    """Return the label under which a plan's field shows a stored option; other texts as they are."""
    shown = PLAN_FORM[field] if field in {one.id for one in PLAN_FORM.fields} else None
    return dict(zip(shown.options, shown.short, strict=True)).get(option, option) if shown and shown.short else option


def select(page: Page, label: str, option: str) -> None:
    """Choose an option of a list."""
    box = page.get_by_label(label, exact=True).first
    box.click()
    box.fill(option)
    page.get_by_role("option", name=option, exact=True).click()
    settle(page)


def open_from_menu(page: Page, spec: PageSpec) -> None:
    """Open a page by the menu, where another group is open by way of its own."""
    links = page.locator(".st-key-np-menu")
    group, members = next((group, members) for group, members in GROUPS.items() if spec in members)
    link = links.get_by_role("link", name=spec.title, exact=True)
    if not link.count():  # a link that is not seen has no role
        links.get_by_role("link", name=group, exact=True).click()
        page.wait_for_url(f"**/{members[0].url_path}*")
        settle(page)
    if spec != members[0] or link.count():
        link.click()
        settle(page)


def open_preset(page: Page, name: str) -> None:
    """Take a preset from the box “Examples”, which closes by itself when it is answered."""
    if not page.get_by_text(name, exact=True).is_visible():
        page.get_by_test_id("stPopoverButton").filter(has_text="Examples").click()
    choose(page, name)


def settle(page: Page) -> None:
    """Wait until the script run that the last action caused has ended and its elements are drawn.

    An action that comes before the server has heard of the one before it would be told to forget that one.
    """
    page.evaluate(SETTLED, PATIENCE_S * 1000)


def still(page: Page) -> None:
    """Wait until nothing on the page moves any more: before boxes are read, and before a mouse goes to one."""
    page.evaluate(STILL, PATIENCE_S * 1000)


def watch(page: Page, problems: list[str], warnings: list[str]) -> None:
    """Collect what goes wrong in ``page``: console errors and uncaught exceptions, and what the console warns of.

    That a picture drawn by WebGL waits for a machine without a graphics card is its driver's remark, not the page's.
    Streamlit's client probes its health and host-config endpoints relative to a deep link before it falls back to
    the root, and the browser logs those 404s; they are no fault of a page.
    """

    def on_console(message: ConsoleMessage) -> None:
        probe = "_stcore/" in (message.location or {}).get("url", "")
        if message.type == "error" and not probe:
            problems.append(f"console: {message.text}")
        if message.type == "warning" and "GL Driver Message (OpenGL, Performance" not in message.text:
            warnings.append(message.text)

    page.on("console", on_console)
    page.on("pageerror", lambda error: problems.append(f"exception: {error}"))


class Tabs:
    """Browser tabs that tests borrow one after the other: a used tab opens a page twice as fast as a new one.

    What a test may leave behind is undone when the tab is borrowed again: storage is emptied, the size and the list of
    problems are set anew, and every navigation is a new session on the server.
    """

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.idle: dict[str, list[Page]] = {}

    def borrow(self, theme: str, width: int) -> Page:
        idle = self.idle.setdefault(theme, [])
        page = idle.pop() if idle else self._new(theme)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="no-preference")
        page.evaluate("location.protocol.startsWith('http') && (localStorage.clear(), sessionStorage.clear())")
        page.problems.clear()  # type: ignore[attr-defined]
        page.warnings.clear()  # type: ignore[attr-defined]
        return page

    def give_back(self, theme: str, page: Page) -> None:
        if not page.is_closed():
            self.idle[theme].append(page)

    def _new(self, theme: str) -> Page:
        context = self.browser.new_context(
            color_scheme="dark" if theme == "dark" else "light", permissions=["clipboard-read", "clipboard-write"]
        )
        context.add_init_script(TRAFFIC)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_S * 1000)
        page.problems = []  # type: ignore[attr-defined]
        page.warnings = []  # type: ignore[attr-defined]
        watch(page, page.problems, page.warnings)  # type: ignore[attr-defined]
        return page


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(tabs: Tabs, server: str) -> Iterator[OpenPage]:
    """``open_page(path, theme="light", width=1280, base=None)``: a settled page with ``page.problems`` collected.

    Every call in one test gives another tab.
    """
    borrowed: list[tuple[str, Page]] = []

    def open_(path: str = "", theme: str = "light", width: int = 1280, base: str | None = None) -> Page:
        page = tabs.borrow(theme, width)
        borrowed.append((theme, page))
        page.goto(f"{base or server}/{path.lstrip('/')}")
        settle(page)
        return page

    yield open_
    for theme, page in borrowed:
        tabs.give_back(theme, page)
