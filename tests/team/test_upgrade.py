"""The second replica is of the next version, which migrates the database, while people work at the first."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import create_engine, text

from core.store.tables import HEAD
from pages.common.registry import COMPUTE
from tests.browser.conftest import Tabs, settle
from tests.ports import free_port
from tests.team.topology import ROOT, Replica, nginx, postgres

pytestmark = pytest.mark.browser

NEXT = f"{int(HEAD) + 1:04}"
_MIGRATION = f"""
import sqlalchemy as sa
from alembic import op

revision = "{NEXT}"
down_revision = "{HEAD}"


def upgrade() -> None:
    op.add_column("plans", sa.Column("colour", sa.Text))
"""


def next_version(folder: Path) -> Path:
    """A copy of the program with one migration more."""
    for name in ("core", "pages", "assets", ".streamlit"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "secrets.toml"))
    shutil.copy(ROOT / "app.py", folder)
    (folder / "static").symlink_to("assets/static")
    (folder / "core/store/migrations/versions" / f"r{NEXT}_next.py").write_text(_MIGRATION, encoding="utf-8")
    tables = folder / "core/store/tables.py"
    written = tables.read_text(encoding="utf-8")
    tables.write_text(written.replace(f'HEAD = "{HEAD}"', f'HEAD = "{NEXT}"'), encoding="utf-8")
    return folder


@pytest.fixture
def page(tabs: Tabs) -> Iterator[Page]:
    tab = tabs.borrow("light", 1280)
    yield tab
    tabs.give_back("light", tab)


def answers_with(page: Page, tokens: str) -> None:
    """Type tokens, and wait for their answer."""
    field = page.get_by_role("textbox", name="Tokens", exact=True)
    field.fill(tokens)
    field.press("Enter")
    expect(page.locator(".np-answer")).to_contain_text(f"on {tokens} tokens")


def saved(page: Page, name: str = "") -> None:
    """Save the plan, for the first time under a name."""
    page.get_by_test_id("stPopoverButton").filter(has_text="Save").click()
    box = page.get_by_test_id("stPopoverBody")
    if name:
        box.get_by_role("textbox", name="Name", exact=True).fill(name)
        box.get_by_role("textbox", name="Name", exact=True).press("Enter")
        settle(page)
    box.get_by_role("button", name=re.compile("^Save( changes)?$")).click()
    settle(page)
    page.keyboard.press("Escape")


def test_people_go_on_while_the_next_version_comes(page: Page, tmp_path: Path) -> None:
    revision = "SELECT revision FROM plans WHERE name = 'Before'"
    with postgres() as address, free_port() as port, free_port() as other, ExitStack() as running:
        environment = {"DATABASE_URL": address}
        old = Replica(tmp_path, port, environment)
        new = Replica(tmp_path, other, environment, next_version(tmp_path / "next"))
        running.callback(old.kill)
        running.callback(new.kill)
        old.start()
        old.until_healthy()
        url = running.enter_context(nginx(tmp_path, [port, other]))
        engine = create_engine(address)

        def database(query: str) -> list[tuple[Any, ...]]:
            with engine.connect() as connection:
                return [tuple(row) for row in connection.execute(text(query))]

        page.goto(f"{url}/{COMPUTE.url_path}?p_n=8B")
        settle(page)
        answers_with(page, "13T")
        saved(page, "Before")
        assert database("SELECT version_num FROM alembic_version") == [(HEAD,)]
        [(first,)] = database(revision)

        new.start()
        new.until_healthy()
        visited = page.context.new_page()
        visited.goto(f"http://127.0.0.1:{other}/{COMPUTE.url_path}")  # whoever comes first has the database migrated
        settle(visited)
        visited.goto(f"http://127.0.0.1:{other}/saved-plans")
        settle(visited)
        expect(visited.get_by_test_id("stMain")).to_contain_text("Before")
        assert database("SELECT version_num FROM alembic_version") == [(NEXT,)]
        visited.close()  # a tab in the background does not look for another server

        answers_with(page, "12T")  # the session of the version before goes on, and saves
        saved(page)
        [(second,)] = database(revision)
        assert second > first
        link = page.url
        old.kill()
        page.reload()  # the other program lies in another folder here, by which Streamlit tells pages apart
        settle(page)
        expect(page.locator(".np-answer")).to_contain_text("on 12T tokens")
        answers_with(page, "11T")  # at the next version, with all that was typed
        saved(page)
        [(third,)] = database(revision)
        assert third > second
        page.goto(link)
        settle(page)
        expect(page.locator(".np-answer")).to_contain_text("on 12T tokens")
        engine.dispose()
