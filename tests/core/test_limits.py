"""The table of caps is complete and in use."""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from functools import _lru_cache_wrapper, cache
from pathlib import Path

from core.fields import query_of
from core.limits import LIMITS, limit
from tests.every import every

ROOT = Path(__file__).parents[2]


@cache
def used() -> set[str]:
    """The caps that the product's code asks for."""
    paths = (path for folder in ("core", "pages") for path in (ROOT / folder).rglob("*.py"))
    texts = (path.read_text(encoding="utf-8") for path in paths if path.name != "limits.py")
    return {name for text in texts for name in re.findall(r'\b(?:limit|cached)\("(\w+)"\)', text)}


@every("name", LIMITS)
def test_every_cap_has_a_reason_and_a_use(name: str) -> None:
    row = LIMITS[name]
    assert row.value > 0
    assert row.unit
    assert len(row.reason) > 15
    assert name in used(), f"nothing enforces {name}"


def test_every_cap_asked_for_exists() -> None:
    assert set(LIMITS) >= used()


def caches() -> dict[str, _lru_cache_wrapper[object]]:
    """Every cache of a function in the product, by the function's name; a page itself, which runs, has none."""
    paths = (path for folder in ("core", "pages") for path in (ROOT / folder).rglob("*.py") if path.name != "page.py")
    some = (path.relative_to(ROOT).with_suffix("") for path in paths if "cache" in path.read_text(encoding="utf-8"))
    modules = [vars(importlib.import_module(".".join(path.parts))) for path in some]
    owners = [*modules, *(vars(one) for module in modules for one in module.values() if isinstance(one, type))]
    found = (one for owner in owners for one in owner.values() if isinstance(one, _lru_cache_wrapper))
    return {name: one for one in found if (name := f"{one.__module__}.{one.__qualname__}")[:5] in ("core.", "pages")}


def test_caches_hold_as_many_results_as_their_cap() -> None:
    for name, each in caches().items():
        row = re.match(r'@cached\("(\w+)"\)', inspect.getsource(each.__wrapped__))
        assert row, f"{name} has no row"
        assert each.cache_parameters()["maxsize"] == limit(row[1]), name
        assert row[1] != "tables_kept" or not inspect.signature(each.__wrapped__).parameters, name


def test_cache_stays_within_its_cap_and_leaves_long_texts_out() -> None:
    kept = caches()["core.fields._short_pair"]
    for number in range(limit("texts_kept") + 9):
        query_of({"x": str(number)})
    assert kept.cache_info().currsize == limit("texts_kept")
    misses = kept.cache_info().misses
    query_of({"x": "a" * (limit("spec_chars") + 1)})
    assert kept.cache_info().misses == misses


def test_server_and_proxy_take_the_files_that_pages_ask_for() -> None:
    """The server counts in MiB and lets a form around the file have one more; the proxy must not cut in before."""
    most = LIMITS["config_file_bytes"].value
    server = tomllib.loads((ROOT / ".streamlit/config.toml").read_text(encoding="utf-8"))["server"]
    assert server["maxUploadSize"] << 20 == most
    proxy = re.findall(
        r"client_max_body_size (\d+)m;", (ROOT / "deploy/nginx.conf.template").read_text(encoding="utf-8")
    )
    assert [int(one) << 20 for one in proxy] == [most + (1 << 20)]
    assert 4 * LIMITS["config_chars"].value <= LIMITS["upload_bytes"].value <= most
    pasted = 4 * LIMITS["upload_bytes"].value  # of a box that takes as many characters as a file has bytes
    assert pasted < server["maxWidgetStateSize"] * 1_000_000 < LIMITS["waiting_bytes"].value
