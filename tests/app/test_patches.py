"""What is replaced in Streamlit: all of it, in the one version it was written for, unless it is switched off."""

from __future__ import annotations

import logging
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
import streamlit

from pages import streamlit_patches

FOLDER = Path(streamlit_patches.__file__).parent


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the patches that a call of ``apply`` has put in place; none of them really is."""
    names: list[str] = []
    monkeypatch.setattr(streamlit_patches, "applied", [])
    monkeypatch.delenv(streamlit_patches.SWITCH, raising=False)

    def imported(name: str) -> SimpleNamespace:
        return SimpleNamespace(patch=lambda: names.append(name.rpartition(".")[2]))

    monkeypatch.setattr(streamlit_patches, "import_module", imported)
    return names


def test_all_are_put_in_place_once(done: list[str]) -> None:
    streamlit_patches.apply()
    streamlit_patches.apply()
    assert done == streamlit_patches.PATCHES == streamlit_patches.applied


def test_switched_off_streamlit_stays_as_it_is(done: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(streamlit_patches.SWITCH, "off")
    streamlit_patches.apply()
    assert done == streamlit_patches.applied == []
    assert streamlit_patches.answered() == 0


def test_another_version_stays_as_it_is(
    done: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(streamlit, "__version__", "1.67.1")
    with caplog.at_level(logging.WARNING):
        streamlit_patches.apply()
    assert done == []
    assert "1.67.1" in caplog.text


def test_the_version_is_the_one_that_is_installed() -> None:
    assert streamlit.__version__ == streamlit_patches.VERSION


def test_every_module_of_the_folder_is_a_patch_and_explained() -> None:
    modules = sorted(file.stem for file in FOLDER.glob("*.py") if file.stem != "__init__")
    assert modules == sorted(streamlit_patches.PATCHES)
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in modules:
        assert callable(import_module(f"pages.streamlit_patches.{name}").patch)
        assert f"## {name}" in page, name
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in FOLDER.glob("*.py"))
    assert lines <= 429, lines
