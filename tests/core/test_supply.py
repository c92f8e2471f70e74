"""What the image installs: every distribution pinned to the bytes that were tried, under a licence that is named."""

from __future__ import annotations

import csv
import re
from importlib.metadata import distribution, metadata, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
_LINE = re.compile(r"^([\w.\-]+)(?:\[[^\]]*\])?==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)
LOCK = {
    canonicalize_name(name): version
    for name, version, _ in _LINE.findall((ROOT / "deploy/requirements.lock").read_text())
}
OF_ITS_INDEX = "torch"
"""The image takes it from the index of its platform, by version alone."""


def direct() -> dict[str, Requirement]:
    lines = [
        line
        for path in ("requirements.txt", "deploy/requirements.txt")
        for line in (ROOT / path).read_text(encoding="utf-8").splitlines()
        if line and not line.startswith(("#", "-r"))
    ]
    return {canonicalize_name(item.name): item for item in map(Requirement, lines)}


def as_locked() -> list[str]:
    """Distributions that are installed here as the lock has them: what others ask for or say is of another version."""
    return [name for name in LOCK if version(name) == LOCK[name]]


def licence_of(name: str) -> str:
    """As the distribution's own metadata say it, a few ways of saying so told as one."""
    of = metadata(name)
    kinds = [text.rpartition(" :: ")[2] for text in of.get_all("Classifier") or [] if text.startswith("License ::")]
    return of.get("License-Expression") or "; ".join(kinds) or (of.get("License") or "").splitlines()[0]


def licences() -> dict[str, str]:
    with (ROOT / "deploy/licences.csv").open(encoding="utf-8") as file:
        return {row["what"]: row["licence"] for row in csv.DictReader(file)}


def test_every_line_of_the_lock_has_a_version_and_hashes() -> None:
    text = (ROOT / "deploy/requirements.lock").read_text(encoding="utf-8")
    assert _LINE.sub("", text).strip() == ""
    assert len(LOCK) > 90


def test_what_is_required_is_locked_at_the_same_version() -> None:
    wanted = {name: str(item.specifier).removeprefix("==") for name, item in direct().items()}
    assert wanted.pop(OF_ITS_INDEX)
    assert {name: LOCK.get(name) for name in wanted} == wanted


def test_the_lock_is_whole() -> None:
    """What its distributions ask for is in it: it is installed without looking for more."""
    extras = {name: item.extras for name, item in direct().items()}
    for name in (*as_locked(), OF_ITS_INDEX):
        for item in map(Requirement, distribution(name).requires or ()):
            asked = item.marker is None or any(
                item.marker.evaluate({"extra": extra}) for extra in ("", *extras.get(name, ()))
            )
            needed = canonicalize_name(item.name)
            if asked and not needed.startswith(("nvidia-", "cuda-", "triton", OF_ITS_INDEX)):
                assert needed in LOCK, (name, str(item))


def test_every_licence_is_named() -> None:
    named = licences()
    fonts = {path.stem.removeprefix("LICENSE-") for path in (ROOT / "assets/static/fonts").glob("LICENSE-*")}
    assert set(named) == {*LOCK, OF_ITS_INDEX, *(f"font {name}" for name in fonts)}
    assert len(as_locked()) > 15
    assert all(licence_of(name) == named[name] for name in as_locked())
    assert all(named.values())
