"""Which code runs at once, which waits for its user, and which never runs: by where it came from, and what holds it.

With a seal, all code may run; what a link brought waits for a click. Without one, only what users type on their own
computer, and the programs of Napkin itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.fields import read_link
from core.limits import cached
from core.messages import message
from core.rows import read_rows

Verdict: TypeAlias = Literal["run", "wait", "refuse"]

_PROGRAMS = {
    "tensor_presets": "source",
    "tensor_lecture": "source",
    "tensor_quiz": "expression",
    "tensor_operations": "example",
}
_EXERCISES = ("x.to(torch.bfloat16)", "x.to(torch.float8_e4m3fn)")
_LINKS = {"lecture_claims": "fields", "lecture_deck": "fields", "glossary": "shown"}
"""Tables with code, and with links that set code, and in which column; and what exercises on
memory set."""

_HERE = frozenset(("localhost", "127.0.0.1", "::1"))


@dataclass(frozen=True, slots=True)
class Site:
    """What holds code on a server. sealed: whether programs are sealed there, as on Linux. why: why none can be sealed
    although they should be, or empty. local: whether server and browser are on one computer, and no others reach it."""

    sealed: bool
    why: str = ""
    local: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What happens to code, and a sentence on it, which may be empty."""

    verdict: Verdict
    message: str = ""


def decide(source: str, site: Site, *, linked: str = "", approved: str = "") -> Decision:
    """Decide whether code runs.

    Args:
        source: The code.
        site: Where it would run.
        linked: Code that a link contains, empty without a link.
        approved: Code for which the user selected Run.
    """
    if site.sealed and site.why:
        return Decision("refuse", site.why)
    if _tidied(source) in known_programs():
        return Decision("run")
    came = linked and _tidied(linked) not in known_programs()
    if site.sealed:
        waits = came and _tidied(source) == _tidied(linked) != _tidied(approved)
        return Decision("wait", message("sealed.trust.waits")) if waits else Decision("run")
    if not site.local:
        return Decision("refuse", message("sealed.trust.elsewhere"))
    if came and set(_lines(source)) & set(_lines(linked)):  # what was added to it does not make it one's own
        return Decision("refuse", message("sealed.trust.link"))
    return Decision("run", message("sealed.trust.unsealed"))


def is_local(address: str | None, host: str, client: str | None) -> bool:
    """Return whether a browser is on the computer of a server that no other reaches.

    Args:
        address: What the server listens on; None for all addresses.
        host: What the browser calls the server, with or without its port.
        client: The address of the browser, None if unknown.
    """
    name = host.rpartition("]")[0].removeprefix("[") or host.partition(":")[0]
    return address in _HERE and name in _HERE and (client is None or client in _HERE)


@cached("tables_kept")
def known_programs() -> frozenset[str]:
    """Return the code of Napkin’s tables: presets, quiz, lecture, and what links of claims and the glossary set."""
    programs = [row[column] for table, column in _PROGRAMS.items() for row in read_rows(table)]
    rows = [(row.get("page", ""), row[column]) for table, column in _LINKS.items() for row in read_rows(table)]
    links = [read_link(f"{page}?{fields}" if page else fields) for page, fields in rows]
    linked = [link.fields["x"] for link in links if link.page == "tensors" and "x" in link.fields]
    return frozenset(map(_tidied, (*programs, *linked, *_EXERCISES)))


def _tidied(source: str) -> str:
    return "\n".join(line.rstrip() for line in source.strip().splitlines())


def _lines(source: str) -> Iterator[str]:
    return (line.strip() for line in source.splitlines() if line.strip())
