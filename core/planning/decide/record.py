"""A decision as texts: in a link without a database, and as calendars of older links and rows had it."""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Mapping
from contextlib import suppress

from core.dates import is_day, parse_day
from core.fields import LINK_VERSION, VERSION
from core.hardware.offers import OfferError, read_offer
from core.limits import limit
from core.messages import message
from core.number_text import QuantityError
from core.planning.decide.offers import OFFER_COLUMNS, offer_cells, write_table
from core.planning.decide.runs import RUN_COLUMNS
from core.planning.form.layout import PER_NODE
from core.planning.form.plan_form import ACCELERATOR, COUNT, PRICE
from core.planning.form.whole_run import BUDGET, DEADLINE
from core.planning.form.whole_run import SPOT_INTERRUPTIONS as SPOT

PREFIX = "1."
"""Of a packed decision: no id of a saved one has a point."""


class RecordError(ValueError):
    """A packed decision that cannot be read."""


def pack(texts: Mapping[str, str]) -> str:
    """Return texts by id as one text of letters, digits, and ``-_.`` for a link."""
    plain = json.dumps({VERSION: str(LINK_VERSION), **texts}, ensure_ascii=False, separators=(",", ":"))
    return PREFIX + base64.urlsafe_b64encode(zlib.compress(plain.encode("utf-8", "replace"), 9)).decode().rstrip("=")


def is_packed(text: str) -> bool:
    """Return whether a text is a packed decision, readable or not, and no id."""
    return text.startswith(PREFIX)


def unpack(text: str) -> dict[str, str]:
    """Return the texts by id of a packed decision, the version of their form among them.

    Raises:
        RecordError: For a text that is too long, damaged, or not a mapping of texts.
    """
    from pydantic import TypeAdapter  # 0.14 s, which pages without such a link do without

    try:
        if not is_packed(text) or len(text) > limit("decision_link_chars"):
            raise ValueError
        packed = text.removeprefix(PREFIX)
        stream, most = zlib.decompressobj(), limit("decision_bytes")
        plain = stream.decompress(base64.b64decode(packed + "=" * (-len(packed) % 4), "-_", validate=True), most)
        return TypeAdapter(dict[str, str]).validate_json(plain if stream.eof else b"")
    except (ValueError, binascii.Error, zlib.error):
        raise RecordError(message("decision.link")) from None


# ------------------------------------------------------------------------------------------ older calendars

_NAMES = {"n": "name", "m": "model", "t": "tokens", "s": "seq", "d": "first"}
"""Letter of a calendar's field of a run to the column of its table."""

_RUNS = range(1, limit("calendar_runs") + 1)

_FLEET = "runs due spare closed mhours pools cpool most held rprice term capital years staff space"
CALENDAR_GONE = frozenset((*_FLEET.split(), *(f"r{k}{letter}" for k in _RUNS for letter in "nmtscadp")))
"""Ids of a calendar's fields: read by `from_calendar`, named by `dropped_parts`, or without a meaning by themselves."""

_NEXT = re.compile(r"\s*;\s*(?=[^:;]+:\s*\d)")


def from_calendar(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the tables and limits of a calendar's texts by id; nothing for other texts.

    How many accelerators of which pool a run was given is left out: that is what is decided.
    """
    if "train" in texts or not texts.keys() & {"runs", "pools", "r1n"}:
        return {}
    texts = {"start": "2027-01-15", **texts}
    count = int(texts["runs"]) if texts.get("runs", "1") in map(str, _RUNS) else 1
    rows: list[dict[str, str]] = []
    for k in range(1, count + 1):
        row = {column: texts.get(f"r{k}{letter}", "") for letter, column in _NAMES.items()}
        after = texts.get(f"r{k}a", "").removeprefix("run ")
        rows.append({**row, "name": row["name"] or f"Run {k}", "after": after if after.isdigit() else ""})
    lines = [line.strip() for text in texts.get("pools", "").splitlines() for line in _NEXT.split(text)]
    offers = [_pool(line, texts) for line in lines if line]
    if not texts.get("cpool") and not (offers and all(texts.get(f"r{k}p") for k in range(1, count + 1))):
        offers.insert(0, cluster(texts))
    hours = texts.get("mhours", "")
    offers = [{**offer, "maintenance": hours if hours != "0" else ""} for offer in offers]
    return {
        "offers": write_table(offers, OFFER_COLUMNS),
        "train": write_table(rows, RUN_COLUMNS),
        **{name: text for name, text in ((DEADLINE.id, _due(texts)), (BUDGET.id, texts.get("most"))) if text},
    }


def dropped_parts(texts: Mapping[str, str]) -> str:
    """Return what a calendar's texts say that a decision does not have, as one notice. Empty for nothing."""
    pools = texts.get("pools", "")
    given = {
        "accelerators": any(texts.get(f"r{k}{letter}") for k in _RUNS for letter in "cp"),
        "closed": texts.get("closed"),
        "outages": re.search(r"\d (?:nodes? )?out (?:from|on)\b", pools),
        "idle": re.search(r"\bidle\b", pools),
        "held": texts.get("held") == "true",
        "reserved": texts.get("rprice"),
        "staff": texts.get("staff"),
        "space": texts.get("space"),
    }
    parts = [message(f"decision.dropped.{name}") for name, is_given in given.items() if is_given]
    return message("decision.dropped", parts=parts) if parts else ""


def cluster(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the accelerators of a plan's texts as a row of offers, without a calendar's spare nodes."""
    own = {field.id: texts.get(field.id, field.default) for field in (ACCELERATOR, COUNT, PRICE, PER_NODE, SPOT)}
    count = own[COUNT.id]
    price, contract = own[PRICE.id], "spot" if own[SPOT.id] else ""
    with suppress(QuantityError, ValueError):
        usable = read_offer(f"{count} {own[ACCELERATOR.id]}")
        left = (usable.count or 1) - int(texts.get("spare") or 0) * usable.node_size
        count = f"{max(1, left):,}"
    with suppress(QuantityError):
        if price and PRICE.parse(price) == (0.0, 0.0):
            years = texts.get("years", "")
            price = f"{texts['capital']}{f' over {years} years' if years else ''}" if texts.get("capital") else ""
            contract = "owned"
    cells = {"accelerator": own[ACCELERATOR.id], "count": count, "unit": own[PER_NODE.id]}
    return {**cells, "contract": contract, "price": price, "interruptions": own[SPOT.id]}


def _pool(line: str, texts: Mapping[str, str]) -> dict[str, str]:
    """The row of a pool's line; the line itself where it cannot be read, which its row then says."""
    with suppress(OfferError, QuantityError):
        count = int(COUNT.parse(texts.get(COUNT.id, COUNT.default)))
        return offer_cells(read_offer(line), parse_day(texts["start"]), count)
    return {"accelerator": line}


def _due(texts: Mapping[str, str]) -> str:
    """A calendar's deadline as a plan has it, in days from its start."""
    due, start = texts.get("due", "").strip(), texts["start"]
    with suppress(QuantityError):
        if is_day(due):
            return f"{(parse_day(due) - parse_day(start)).days + 1} days"
    return due
