"""Which code runs at once, which waits, and which never runs."""

from __future__ import annotations

import random

import pytest

from core.exercises import memory
from core.glossary import TERMS
from core.lecture.catalogue import CLAIMS
from core.tensors.examples.presets import PRESETS
from core.tensors.examples.quiz import items
from core.tensors.sealed.trust import Site, decide, is_local, known_programs
from tests.every import every

SEALED, BROKEN = Site(sealed=True), Site(sealed=True, why="No seal.")
OWN, PUBLIC = Site(sealed=False, local=True), Site(sealed=False)
KNOWN, STRANGE = PRESETS[0].source, "import os\nprint(os.environ)"


@every(
    ("site", "source", "linked", "approved", "verdict"),
    [
        (SEALED, STRANGE, "", "", "run"),
        (SEALED, STRANGE, STRANGE, "", "wait"),
        (SEALED, STRANGE + "\n \n", STRANGE, "", "wait"),
        (SEALED, STRANGE, STRANGE, STRANGE, "run"),
        (SEALED, STRANGE + "\nx", STRANGE, "", "run"),
        (SEALED, KNOWN, KNOWN, "", "run"),
        (BROKEN, STRANGE, "", "", "refuse"),
        (BROKEN, KNOWN, "", "", "refuse"),
        (OWN, STRANGE, "", "", "run"),
        (OWN, STRANGE, STRANGE, "", "refuse"),
        (OWN, STRANGE, STRANGE, STRANGE, "refuse"),
        (OWN, STRANGE + "\nx", STRANGE, STRANGE, "refuse"),
        (OWN, "x = 1", STRANGE, "", "run"),
        (OWN, KNOWN, KNOWN, "", "run"),
        (PUBLIC, STRANGE, "", "", "refuse"),
        (PUBLIC, KNOWN, "", "", "run"),
        (PUBLIC, KNOWN + "\nx", "", "", "refuse"),
    ],
)
def test_code_runs_where_it_may(site: Site, source: str, linked: str, approved: str, verdict: str) -> None:
    decision = decide(source, site, linked=linked, approved=approved)
    assert decision.verdict == verdict
    assert bool(decision.message) == (verdict != "run" or (site is OWN and source != KNOWN))


def test_all_code_of_the_product_is_known() -> None:
    links = [claim.link for claim in CLAIMS.values()] + [term.shown for term in TERMS]
    links += [memory.tensor(random.Random(seed)).shown for seed in range(20)]
    shown = [link.fields["x"] for link in links if link and link.page == "tensors" and "x" in link.fields]
    assert len(shown) > 20
    sources = [*(preset.source for preset in PRESETS), *(item.source for item in items()), *shown]
    site = Site(sealed=False)
    assert [source for source in sources if decide(source, site, linked=source).verdict != "run"] == []


def test_nothing_short_of_a_program_is_known() -> None:
    assert not {"", "3", "nan", "tensors"} & known_programs()


@pytest.mark.parametrize(
    ("address", "host", "client", "local"),
    [
        ("127.0.0.1", "localhost:8501", None, True),
        ("localhost", "127.0.0.1:8501", "127.0.0.1", True),
        ("::1", "[::1]:8501", "::1", True),
        (None, "localhost:8501", None, False),
        ("0.0.0.0", "localhost:8501", None, False),
        ("127.0.0.1", "napkin.example.com", None, False),
        ("127.0.0.1", "localhost.example.com:8501", None, False),
        ("127.0.0.1", "localhost:8501", "10.0.0.9", False),
        ("127.0.0.1", "", None, False),
    ],
)
def test_a_browser_is_local_only_where_nobody_else_reaches_the_server(
    address: str | None, host: str, client: str | None, local: bool
) -> None:
    assert is_local(address, host, client) is local
