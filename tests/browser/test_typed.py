"""Whatever people typed, a browser asks no other host for anything, links to none, and draws it as it was typed.

The policy that a browser is given is left aside here, so that a page is safe by itself; and tried by itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from unittest.mock import patch
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route

from core.limits import limit
from core.planning.comparison.entry import entry_of, pack
from core.store import locations
from pages.common.comparison_list import IN_LINK
from pages.common.registry import COMPARE, DECIDE, HOME, SAVED
from tests.browser.conftest import PATIENCE_S, TRAFFIC, running_server, settle
from tests.core.typed_cases import HOST, KINDS, plans, tags

pytestmark = pytest.mark.browser

LONG = "W" * 200
"""Cut wherever it is kept, and never broken by a blank."""

OUTSIDE = f"""() => {{
  const within = (root) => [...root.querySelectorAll("*")].flatMap((element) => [
    ...[...element.attributes].filter(({{ name, value }}) => {{
      const address = name === "href" || name === "xlink:href" ? value.split("?")[0] : value
      return !/^(aria-label|title|value|placeholder|data-.*)$/.test(name) && address.includes("{HOST}")
    }}).map(({{ name, value }}) => `${{element.tagName}} ${{name}}=${{value}}`),
    ...(element.shadowRoot ? within(element.shadowRoot) : []),
  ])
  return within(document)
}}"""
"""Attributes that name the host, but where they are read out, and behind the mark of a link of ours."""

WIDER = "element => element.scrollWidth - element.clientWidth"

DRAWN = """() => [...document.querySelectorAll('[data-testid="stMarkdownContainer"], .stHtml, .js-plotly-plot text')]
  .map((element) => element.textContent).join("\\n")"""


@pytest.fixture(scope="module")
def server_with_plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server in whose database others have left such texts."""
    folder = tmp_path_factory.mktemp("typed")
    with patch.dict(os.environ, {"NAPKIN_DATA": str(folder)}):
        store = locations.plan_store()
        for kind, one in zip(KINDS, (*plans(), *plans()), strict=False):
            store.save(one, kind, tags(), kind)
        store.save(entry_of(LONG, plans()[0].texts), LONG, (LONG,), LONG)
        with running_server(folder / "log.txt") as url:
            yield url
        locations._stores.pop(locations.address()).close()


@pytest.fixture
def watched(browser: Browser, server_with_plans: str) -> Iterator[Callable[[str], Page]]:
    """``watched(path)``: a settled page that the policy does not protect, and that asked no other host by its end."""
    context = browser.new_context(bypass_csp=True, viewport={"width": 1280, "height": 900})
    context.add_init_script(TRAFFIC)
    asked: list[str] = []

    def away(route: Route) -> None:
        asked.append(route.request.url)
        route.abort()

    context.route(lambda url: urlsplit(url).netloc not in ("", urlsplit(server_with_plans).netloc), away)

    def open_(path: str) -> Page:
        page = context.new_page()
        page.set_default_timeout(PATIENCE_S * 1000)
        page.goto(f"{server_with_plans}/{path}")
        settle(page)
        return page

    yield open_
    context.close()
    assert asked == []


def open_all(page: Page) -> None:
    """Open every panel, and those in panels."""
    closed = page.locator('[data-testid="stExpander"] > details:not([open]) > summary')
    while closed.count():
        closed.evaluate_all("all => all.forEach(one => one.click())")
        settle(page)


def unfold(page: Page, name: str) -> None:
    """Open the list of a field; a page that is drawn anew meanwhile shuts it."""
    for _ in range(100):
        if page.get_by_role("option").count():
            return
        page.get_by_role("combobox", name=name).press("ArrowDown")
        page.wait_for_timeout(300)
    raise AssertionError(f"the list of {name} does not open")


def drawn(text: str) -> str:
    """Letters alone: names may be broken over lines, and joiners and spaces are not seen."""
    return re.sub(r"[\s\u2060]+", "", text)


def checked(page: Page, *texts: str) -> None:
    """Nothing on the page leads to the host, and these stand on it letter by letter."""
    open_all(page)
    assert page.evaluate(OUTSIDE) == []
    said = drawn(page.evaluate(DRAWN))
    assert [text for text in texts if drawn(text) not in said] == []


def test_saved_plans(watched: Callable[[str], Page]) -> None:
    page = watched(SAVED.url_path)
    checked(page, *(one.name for one in plans()), *tags())
    unfold(page, "Selected plan")
    page.get_by_role("option").nth(1).wait_for()
    checked(page)
    assert page.locator(".st-key-saved_list .np-scroll").evaluate(WIDER) <= 1


def test_plans_that_a_link_carries(watched: Callable[[str], Page]) -> None:
    path = f"{COMPARE.url_path}?{urlencode({'v': '3', IN_LINK: pack(plans())})}"
    checked(watched(path), *(one.name for one in plans()))


def test_runs_and_offers_of_a_decision(watched: Callable[[str], Page]) -> None:
    names = [" ".join(kind[: limit("run_name")].split()) for kind in KINDS]
    texts = {"y_train": "\n".join(names), "y_offers": "\n".join(f"{name}\tH100\t512" for name in names[:8])}
    checked(watched(f"{DECIDE.url_path}?{urlencode(texts)}"))


def test_the_policy_holds_without_a_proxy(browser: Browser, server_with_plans: str) -> None:
    """A page that had something of another host in it all the same would not get it."""
    context = browser.new_context()
    page = context.new_page()
    answer = page.goto(f"{server_with_plans}/{HOME.url_path}")
    assert answer
    assert answer.headers["x-frame-options"] == "DENY"
    blocked = page.evaluate(
        """host => new Promise(done => {
          document.addEventListener('securitypolicyviolation', event => done(event.effectiveDirective))
          document.body.append(Object.assign(new Image(), { src: `http://${host}/y` }))
          setTimeout(() => done('nothing'), 5000)
        })""",
        HOST,
    )
    assert blocked == "img-src"
    context.close()
