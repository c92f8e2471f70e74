"""Signing in with a real provider, two replicas behind nginx: who gets in, who does not, and whose plans are whose."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from pages.common.registry import COMPUTE, SAVED
from tests.browser.conftest import settle
from tests.team.conftest import Team

pytestmark = pytest.mark.browser

NAME = "Ada *Lovelace* [x](y)"
"""A name that would be markup if it were taken for it."""
CALLBACK = "/oauth2callback?"


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Callable[[], Page]]:
    """A tab of a visitor whom nobody knows, at each call another one's."""
    contexts = []

    def made() -> Page:
        contexts.append(browser.new_context())
        return contexts[-1].new_page()

    yield made
    for context in contexts:
        context.close()


def entry(page: Page, label: str) -> None:
    """The menu comes to say this of who is signed in."""
    expect(page.get_by_role("button", name=label)).to_be_visible()


def asks_to_sign_in(page: Page, team: Team, path: str = "") -> None:
    page.goto(f"{team.url}/{path}")
    settle(page)
    page.get_by_role("button", name="Sign in", exact=True).click()


def as_(page: Page, name: str, button: str = "Continue") -> None:
    """Answer the provider's question."""
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name=button).click()


def signed_in(page: Page, team: Team) -> None:
    asks_to_sign_in(page, team)
    as_(page, NAME)
    entry(page, f"Sign out · {NAME}")
    settle(page)


def is_nobody(page: Page, team: Team) -> None:
    """Nobody is signed in, and the app answers as it does without."""
    page.wait_for_url(f"{team.url}/**")
    settle(page)
    entry(page, "Sign in")
    expect(page.locator(".np-answer").first).to_be_visible()


def test_a_visitor_signs_in_and_out_there_too(visitor: Callable[[], Page], team: Team) -> None:
    page = visitor()
    signed_in(page, team)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Yes, sign me out").click()  # the provider asks
    is_nobody(page, team)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_label("Name")).to_be_visible()


def test_who_has_only_an_address_is_called_by_it(visitor: Callable[[], Page], team: Team) -> None:
    page = visitor()
    asks_to_sign_in(page, team)
    as_(page, "ada@example.org")
    leave = page.get_by_role("button", name="Sign out")
    expect(leave).to_have_text(re.compile(r"Sign out · ada@\u2060?example\.org$"))  # joined, so that it is no link


def test_one_sign_in_holds_in_every_tab_at_the_other_replica(visitor: Callable[[], Page], team: Team) -> None:
    """Where the one that the provider's answer went to is no more."""
    first, seen = visitor(), len(team.answers())
    signed_in(first, team)
    replica = team.serves(CALLBACK.removesuffix("?"), seen)
    replica.kill()
    try:
        tab = first.context.new_page()
        tab.goto(f"{team.url}/{COMPUTE.url_path}")
        entry(tab, f"Sign out · {NAME}")
    finally:
        replica.start()
        replica.until_healthy()


def test_who_cancels_is_nobody_and_can_try_again(visitor: Callable[[], Page], team: Team) -> None:
    page = visitor()
    asks_to_sign_in(page, team)
    as_(page, "", button="Cancel")
    is_nobody(page, team)
    signed_in(page, team)


@pytest.mark.parametrize(
    "claims",
    [{"aud": "another"}, {"exp": int(time.time()) - 3600}, {"iss": "http://127.0.0.1:1"}, {"nonce": "another"}],
    ids=lambda claims: next(iter(claims)),
)
def test_a_token_that_is_not_for_us_now_lets_nobody_in(
    visitor: Callable[[], Page], team: Team, claims: dict[str, object]
) -> None:
    page = visitor()
    team.provider.forge(**claims)
    try:
        asks_to_sign_in(page, team)
        as_(page, NAME)
        is_nobody(page, team)
    finally:
        team.provider.forge()
    signed_in(page, team)


def test_an_answer_counts_once_and_for_who_asked(visitor: Callable[[], Page], team: Team) -> None:
    """The address that the provider sends a browser back to, opened again later and in another browser."""
    page, other = visitor(), visitor()
    callbacks: list[str] = []
    page.on("request", lambda request: callbacks.append(request.url) if CALLBACK in request.url else None)
    signed_in(page, team)
    page.context.clear_cookies()
    for tab in (page, other):
        tab.goto(callbacks[0])
        is_nobody(tab, team)


def test_a_cookie_that_was_changed_is_nobodys(visitor: Callable[[], Page], team: Team) -> None:
    page = visitor()
    signed_in(page, team)
    cookies = [cookie for cookie in page.context.cookies() if cookie["name"].startswith("_streamlit_user")]
    assert cookies
    assert all(cookie["httpOnly"] and cookie["sameSite"] == "Lax" for cookie in cookies)
    for cookie in cookies:
        middle = len(cookie["value"]) // 2
        changed = "B" if cookie["value"][middle] == "A" else "A"
        value = cookie["value"][:middle] + changed + cookie["value"][middle + 1 :]
        page.context.add_cookies([{**cookie, "value": value}])
    page.reload()
    is_nobody(page, team)


def test_a_sign_in_outlives_its_provider_and_nobody_new_gets_in_without(
    visitor: Callable[[], Page], team: Team
) -> None:
    """Also one whose token the provider has forgotten, as after a revocation: nobody asks it again."""
    page, late = visitor(), visitor()
    signed_in(page, team)
    with team.provider.away():
        page.reload()
        entry(page, f"Sign out · {NAME}")
        late.goto(team.url)
        settle(late)
        late.get_by_role("button", name="Sign in", exact=True).click()
        expect(late.get_by_role("alert")).to_contain_text("not responding")
        expect(late.locator(".np-answer").first).to_be_visible()
    page.reload()
    entry(page, f"Sign out · {NAME}")
    signed_in(late, team)


def test_who_saved_what_is_who_signed_in(visitor: Callable[[], Page], team: Team) -> None:
    """Nobody is asked for a name then, and another visitor reads whose plan it is."""
    page, other = visitor(), visitor()
    signed_in(page, team)
    page.goto(f"{team.url}/{COMPUTE.url_path}?p_n=8B")
    settle(page)
    page.get_by_test_id("stPopoverButton").filter(has_text="Save").click()
    box = page.get_by_test_id("stPopoverBody")
    assert box.get_by_label("Your name, if any").count() == 0
    box.get_by_role("textbox", name="Name").fill("Signed")
    box.get_by_role("textbox", name="Name").press("Enter")
    settle(page)
    box.get_by_role("button", name="Save").first.click()
    settle(page)
    other.goto(f"{team.url}/{SAVED.url_path}")
    settle(other)
    expect(other.get_by_test_id("stMain")).to_contain_text("Signed")
    expect(other.get_by_test_id("stMain")).to_contain_text(NAME)
