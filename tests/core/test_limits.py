"""The table of caps is complete and in use."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

from core.limits import LIMITS
from tests.every import every

ROOT = Path(__file__).parents[2]


def asked_for(source: str) -> set[str]:
    """The caps that ``source`` asks the table for: every ``limit("name")`` in its code, none in its text."""
    return {
        str(node.args[0].value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "limit"
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Constant)
    }


@cache
def used() -> set[str]:
    """The caps that the product's code asks for."""
    paths = (path for folder in ("core", "pages") for path in (ROOT / folder).rglob("*.py"))
    texts = (path.read_text(encoding="utf-8") for path in paths if path.name != "limits.py")
    return {name for text in texts if "limit(" in text for name in asked_for(text)}


@every("name", LIMITS)
def test_every_cap_has_a_reason_and_a_use(name: str) -> None:
    row = LIMITS[name]
    assert row.value > 0
    assert row.unit
    assert len(row.reason) > 15
    assert name in used(), f"nothing enforces {name}"


def test_every_cap_asked_for_exists() -> None:
    assert set(LIMITS) >= used()


def test_server_and_proxy_take_the_files_that_pages_ask_for() -> None:
    """The server counts in MiB and lets a form around the file have one more; the proxy must not cut in before."""
    most = LIMITS["upload_bytes"].value
    server = tomllib.loads((ROOT / ".streamlit/config.toml").read_text(encoding="utf-8"))["server"]
    assert server["maxUploadSize"] << 20 == most
    proxy = re.findall(
        r"client_max_body_size (\d+)m;", (ROOT / "deploy/nginx.conf.template").read_text(encoding="utf-8")
    )
    assert [int(one) << 20 for one in proxy] == [most + (1 << 20)]
    assert 4 * LIMITS["config_chars"].value <= most
    pasted = 4 * most  # of a box that takes as many characters as a file has bytes
    assert pasted < server["maxWidgetStateSize"] * 1_000_000 < LIMITS["waiting_bytes"].value
