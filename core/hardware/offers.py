"""Hardware that somebody owns or is offered, in a line of text: ``512 rented H200 at $2.8/h``.

A number of accelerators is all that there are, unless the line says *at least* or *or more*. What a line does not say
stays unknown.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal, TypeAlias, get_args

from core.dates import parse_day
from core.hardware.accelerators import accelerators, find, find_accelerator_name
from core.limits import limit
from core.number_text import QuantityError
from core.quantities import parse_quantity
from core.suggest import suggestions
from core.wording import cleaned

Contract: TypeAlias = Literal["owned", "rented", "reserved", "spot"]
CONTRACTS: tuple[Contract, ...] = get_args(Contract)

PriceUnit: TypeAlias = Literal["accelerator", "node"]
Period: TypeAlias = Literal["hour", "day", "month", "year"]

_PERIODS: tuple[Period, ...] = get_args(Period)
_HOURS: Mapping[Period, float] = {"hour": 1.0, "day": 24.0, "month": 365.25 * 2, "year": 365.25 * 24}

EXAMPLES = ("ours: 512 H100 SXM owned, $30,000 over 4 years", "burst: 1,024 H200 rented, $2.60/h")

_HOURLY, _CAPITAL = 100.0, 1_000.0
"""Dollars up to which a price without a period is for an hour, and from which on it is what an accelerator cost."""


class OfferError(QuantityError):
    """A line that cannot be read. reason: what is wrong with it. remedy: what to write instead."""

    def __init__(self, line: str, reason: str, remedy: str = "") -> None:
        self.line, self.reason = line, reason
        self.remedy = remedy or ("" if "For example" in reason else f"Write a line such as “{EXAMPLES[1]}”.")
        super().__init__(f"{quoted_line(line)}: {self.reason} {self.remedy}".rstrip())


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars, low and high, for a period of an accelerator or of a node."""

    low: float
    high: float
    unit: PriceUnit = "accelerator"
    period: Period = "hour"


@dataclass(frozen=True, slots=True)
class OfferTerms:
    """Accelerators of one kind on the same terms; None for what the line does not say.

    accelerator: its name in the catalogue. count: None for any number. is_ceiling: whether there are no more than that.
    capital: dollars of one accelerator that is owned, used up over ``years``. per_node: accelerators of a node.
    interruptions: an hour. days: of the term.
    """

    accelerator: str
    count: int | None = None
    is_ceiling: bool = False
    contract: Contract | None = None
    price: Price | None = None
    capital: float | None = None
    years: float | None = None
    per_node: int | None = None
    spare_nodes: int = 0
    interruptions: float | None = None
    first: date | None = None
    last: date | None = None
    days: int | None = None
    name: str = ""

    @property
    def node_size(self) -> int:
        """Accelerators of a node, as the line says or as they usually come."""
        return self.per_node or find(self.accelerator).node_size

    @property
    def hourly(self) -> tuple[float, float] | None:
        """Dollars per accelerator-hour, low and high."""
        if self.price is None:
            return None
        hours = _HOURS[self.price.period] * (self.node_size if self.price.unit == "node" else 1)
        return self.price.low / hours, self.price.high / hours


def quoted_line(line: str) -> str:
    """A line in quotation marks, as much of it as a message has room for."""
    most = limit("number_chars")
    return f"“{line if len(line) <= most else f'{line[: most - 1].rstrip()}…'}”"


# ------------------------------------------------------------------------------------------ patterns
# Every repetition has a bound and no number begins inside another, so that a line is read in linear time.

_DIGITS = r"\d(?:[\d.,]{0,18}\d)?(?: ?[kKmMbB]\b)?"
_NUMBER = rf"(?<![\w.,]){_DIGITS}"
_DOLLARS = rf"(?:(?:\bUS ?)?\$ ?{_DIGITS}|\bUSD ?{_DIGITS}|{_NUMBER}(?: ?(?:USD\b|dollars?\b|\$(?! ?\d)))?)"
_CHIP = r"(?:gpu|accelerator|chip|card)s?"
_NODE = r"(?:node|server|machine|host|instance|rack|system)s?"
_TIME = r"(?:h(?:(?:ou)?rs?)?|d(?:ays?)?|mo(?:nths?)?|y(?:(?:ea)?rs?)?)"
_OF = rf"(?:(?:{_CHIP}|{_NODE})(?:[- ]?{_TIME})?|{_TIME})\b"
_PER = rf"(?: ?(?:/|\bper |\ban? |\beach ) ?{_OF}(?: ?(?:/|per |an? |-)? ?{_OF})?| hourly\b)"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DAY = (
    rf"(?:\d{{4}}-\d{{1,2}}-\d{{1,2}}|\d{{1,2}}\. ?\d{{1,2}}\. ?\d{{4}}|\d{{1,2}} {_MONTH} \d{{4}}"
    rf"|{_MONTH} \d{{1,2}},? \d{{4}})\b"
)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.ASCII)


_FOREIGN = re.compile(r"[€£¥₹]|\b(?:EUR|GBP|CNY|RMB|JPY|CHF|INR)\b", re.IGNORECASE)
_MACHINE = _pattern(r"\b(?:[a-z]\w{0,30}\.\w{0,30}(?:large|metal)\b|[a-z]\d\w{0,9}-(?:\w{1,20}-)?\d+g\b|standard_\w+)")
_NAME = re.compile(r"([^:]{1,200}): ?(.*)")
_BULLET = re.compile(r"[-*•] ")
_TIMES = _pattern(r"(?<![\w.,])(\d[\d.,]{0,18}) ?[x*×] ?(?=[a-z0-9])")
_TIMES_AFTER = _pattern(r"(?: [x*] ?| ?× ?)(?=\d)")
_CONTRACT = _pattern(
    r"\b(?:(?P<owned>owned|own|ours|bought|purchased|on[- ]prem(?:ises?)?)|(?P<rented>rent(?:ed|ing|al)?|on[- ]demand)"
    r"|(?P<reserved>reserv(?:ed|e|ation)|commit(?:ted|ment))|(?P<spot>spot|pre-?empti?[ai]ble|interruptible))\b"
)
_FLOOR = _pattern(r"\bat least\b|\bmin(?:imum)?\b\.?|≥|>=|\b(?:or|and) more\b|(?<=\d)\+")
_CEILING = _pattern(r"\bup to\b|\bat most\b|\bno more than\b|\bmax(?:imum)?\b\.?|≤|<=|\bonly\b|\bexactly\b")
_ANY = _pattern(r"\bany (?:number|count|amount)\b|\bunlimited\b|\bas many as needed\b")
_FILLER = _pattern(
    r"\b(?:we|have|has|got|can|get|use|for|with|and|of|at|the|an?|in total|total|all|each|our|per|price|units?|devices?"
    rf"|{_CHIP}|{_NODE})\b|[@,;|()×/¤-]"
)
_MARK = "¤"
"""What is in the place of the accelerator's name once that is read."""

_OF_EACH = rf"(?P<each>{_NUMBER}) ?×? ?{_MARK}"
_IN_NODES = (
    _pattern(rf"(?P<nodes>{_NUMBER})(?: ×)? {_NODE}(?: (?:of|with|at|having|×))? (?:{_OF_EACH}|{_MARK})"),
    _pattern(rf"(?P<nodes>{_NUMBER}) × {_OF_EACH}"),
    _pattern(rf"(?P<nodes>{_NUMBER}) {_MARK} {_NODE}\b"),
)
_UNCLEAR = _pattern(rf"× {_MARK} {_NODE}\b")
_COUNT = _pattern(_NUMBER)


# ------------------------------------------------------------------------------------------ terms

_Said: TypeAlias = dict[str, Any]


def _whole(text: str) -> int:
    return int(parse_quantity(text, "count", low=1, high=limit("accelerators"), whole=True, example="512"))


def _dollars(text: str, most: str = "dollars") -> float:
    return parse_quantity(text, "usd", high=float(limit(most)), example="$2.60/h or $30,000 over 4 years")


def _nothing(_: re.Match[str], __: _Said) -> _Said:
    """What lines of older links say, and nothing here depends on: accelerators that are out, and a price of idling."""
    return {}


def _interruptions(match: re.Match[str], _: _Said) -> _Said:
    rate = parse_quantity(match["rate"], "number", high=float(limit("interruptions")), example="0.05 interruptions/h")
    return {"interruptions": rate / (24 if match["per"].lower().startswith("d") else 1)}


def _price(match: re.Match[str], said: _Said) -> _Said:
    """Dollars for a time; without a period those of an hour, or of an accelerator that is owned."""
    ends = [_dollars(end) for end in re.split(r" ?[-–] ?", match["amount"])]
    low, high = min(ends), max(ends)
    per = (match["per"] or "").lower()
    times = _times_of(per)
    time: Period | None = next((each for each in _PERIODS if re.search(rf"(?<![a-z]){each[0]}|{each}", times)), None)
    if time is None and (said.get("contract") == "owned" or (not said.get("contract") and low >= _CAPITAL)):
        return {"capital": high}
    if time is None and high > _HOURLY:
        raise QuantityError(f"“{match['amount'].strip()}” has no period. For example: $2.60/h or $1,500/month.")
    unit: PriceUnit = "node" if re.search(_NODE, per) else "accelerator"
    return {"price": Price(low, high, unit, time or "hour")}


def _times_of(per: str) -> str:
    """What remains of a price's unit without its accelerators and nodes."""
    return re.sub(rf"{_CHIP}|{_NODE}|per |each |an? ", " ", f"{per} ")


def _term(match: re.Match[str], _: _Said) -> _Said:
    seconds = parse_quantity(f"{match['term']} {match['unit']}", "seconds", low=86400.0, high=3.2e9, example="90 days")
    return {"days": round(seconds / 86400)}


_Reader: TypeAlias = Callable[[re.Match[str], _Said], _Said]

_TEXTS: tuple[tuple[str, _Reader], ...] = (
    (
        rf"(?P<count>{_NUMBER})(?: ?(?P<nodes>nodes?))? out (?:from|on) (?P<first>{_DAY})"
        rf"(?: (?:to|until) (?P<last>{_DAY})| for (?P<days>\d{{1,9}}) days?)?",
        _nothing,
    ),
    (
        r"(?P<rate>(?<![\w.])[\d.]{1,20}) interruptions? ?(?:/|per|an?) ?(?P<per>h(?:our)?|d(?:ay)?)\b",
        _interruptions,
    ),
    (rf"(?P<count>{_NUMBER}) spare nodes?\b", lambda found, _: {"spare_nodes": _whole(found["count"])}),
    (rf"\bidle {_DOLLARS} ?(?:/|per|an) ?h(?:our)?\b", _nothing),
    (
        rf"(?P<capital>{_DOLLARS})(?: each)? over (?P<years>\d[\d.]{{0,9}}) years?\b",
        lambda found, _: {
            "capital": _dollars(found["capital"]),
            "years": parse_quantity(found["years"], "number", low=0.1, high=50, example="4 years"),
        },
    ),
    (
        rf"(?<!\$)(?P<each>{_NUMBER})(?:[ -]{_CHIP} {_NODE}| ?(?:{_CHIP} )?(?:per|/|a) ?{_NODE}\b"
        rf"(?![- ]?(?:/|per )? ?{_TIME}\b))",
        lambda found, _: {"per_node": _whole(found["each"])},
    ),
    (
        rf"(?P<at>(?:@|\bat\b|\bfor\b|\bprice\b|\bcosts?\b) ?)?"
        rf"(?P<amount>{_DOLLARS}(?: ?[-–] ?(?:\$ ?)?{_DIGITS})?)(?P<per>{_PER})?",
        _price,
    ),
    (rf"(?:\bfor )?(?P<term>{_NUMBER})[ -](?P<unit>days?|weeks?|months?|years?)\b", _term),
    (rf"\b(?:from|starting) (?P<day>{_DAY})", lambda found, _: {"first": parse_day(found["day"])}),
    (rf"\b(?:to|until|through) (?P<day>{_DAY})", lambda found, _: {"last": parse_day(found["day"])}),
)
_TERMS = tuple((_pattern(text), reader) for text, reader in _TEXTS)
"""What a line may say of its accelerators, and what reads it."""

_PLACE = _pattern(r"\bin (?!total\b)[a-z][^,;|¤]*")


def _is_term(reader: _Reader, match: re.Match[str]) -> bool:
    """Whether a match is a term: a number is a price only with a currency, a unit, or *at*."""
    if reader is not _price:
        return True
    at = (match["at"] or "").strip().lower()
    return bool(match["per"] or re.search(r"\$|USD|dollar", match["amount"], re.IGNORECASE) or (at and at != "for"))


# ------------------------------------------------------------------------------------------ reading


@dataclass(slots=True)
class _OfferLine:
    """A line that is being read. rest: what of it is still to be read. said: fields of the offer that are known."""

    text: str
    rest: str
    said: _Said = field(default_factory=dict[str, Any])

    def fault(self, reason: str, remedy: str = "") -> OfferError:
        return OfferError(self.text, reason, remedy)

    def take(self, match: re.Match[str]) -> None:
        """Remove what was read."""
        self.rest = f"{self.rest[: match.start()]} | {self.rest[match.end() :]}"


def read_offer(text: str) -> OfferTerms:
    """Return what a line offers, such as ``burst: up to 512 H200 rented, $2.60/h, from 2027-03-01``.

    Terms come in any order, and the name may be missing. Raises `OfferError`, which quotes the line and says what to
    write.
    """
    most = limit("offer_chars")
    if len(text) > most:
        raise OfferError(text[:most], f"the line has {len(text):,} characters.", f"At most {most:,} are read.")
    plain = " ".join("".join(c if c.isprintable() else " " for c in unicodedata.normalize("NFKC", text)).split())
    line = _OfferLine(plain, _BULLET.sub("", plain, count=1) if _BULLET.match(plain) else plain)
    try:
        _read_name(line)
        unknown = _read_accelerator(line)
        _read_terms(line)
        _read_count(line)
        return _checked(line, unknown)
    except OfferError:
        raise
    except (QuantityError, OverflowError) as problem:
        raise line.fault(f"{str(problem)[:1].lower()}{str(problem)[1:]}") from None


def _read_name(line: _OfferLine) -> None:
    if _FOREIGN.search(line.rest):
        raise line.fault("prices are in US dollars.", "Convert the price and write it as $2.80/h.")
    if named := _NAME.fullmatch(line.rest):
        line.said["name"], line.rest = cleaned(" ".join(named[1].split()), limit("run_name")), named[2]
        if not line.said["name"]:
            raise line.fault("the name before the colon is empty.")
    if machine := _MACHINE.search(line.rest):
        reason = f"“{machine.group()}” is a type of machine, not an accelerator."
        raise line.fault(reason, "Write its accelerators and how many there are, such as 512 H100.")


def _read_accelerator(line: _OfferLine) -> bool:
    """Put the accelerator's name into what the line says, or return that there is none."""
    line.rest = _TIMES_AFTER.sub(" × ", _TIMES.sub(r"\1 × ", _TIMES.sub(r"\1 × ", line.rest)))
    found = find_accelerator_name(line.rest)
    if found is None:
        return True
    if not found.name:
        raise _no_accelerator(line, line.rest[found.start : found.end])
    line.said |= {"accelerator": found.name, "per_node": found.per_node}
    line.rest = f"{line.rest[: found.start]} {_MARK} {line.rest[found.end :]}"
    if another := find_accelerator_name(line.rest):
        other = line.rest[another.start : another.end]
        raise line.fault(f"it names two accelerators, {found.name} and {other}.", "Write a line for each of them.")
    return False


def _read_terms(line: _OfferLine) -> None:
    """Contract, price, days, and everything else that the line says beside how many there are."""

    def contract(match: re.Match[str]) -> str:
        if line.said.setdefault("contract", match.lastgroup) != match.lastgroup:
            reason = f"it says both {line.said['contract']} and {match.lastgroup}."
            raise line.fault(reason, "Write one of them, or a line for each.")
        return " "

    line.rest = _CONTRACT.sub(contract, line.rest)
    line.said["node_size"] = _node_size(line.said)
    for pattern, reader in _TERMS:

        def term(match: re.Match[str], reader: _Reader = reader) -> str:
            if not _is_term(reader, match):
                return match.group()
            new = reader(match, line.said)
            if twice := next((name for name in new if line.said.get(name) is not None), ""):
                raise line.fault(f"it says two things about {twice.replace('_', ' ')}.", "Write one of them.")
            line.said |= new
            return " | "

        line.rest = pattern.sub(term, line.rest)
    if place := _PLACE.search(line.rest):
        line.take(place)


def _node_size(said: _Said) -> int:
    name = said.get("accelerator")
    return said.get("per_node") or (find(name).node_size if name else 1)


def _read_count(line: _OfferLine) -> None:
    """How many accelerators there are, one by one or in nodes, and whether there may be more."""
    line.rest = " ".join(line.rest.split())
    if _UNCLEAR.search(line.rest):
        raise line.fault("it may be a number of nodes or of accelerators.", "Write it as 64 nodes of 8 H100.")
    any_number, floor, ceiling = (pattern.search(line.rest) for pattern in (_ANY, _FLOOR, _CEILING))
    for pattern in (_ANY, _FLOOR, _CEILING):
        line.rest = " ".join(pattern.sub(" ", line.rest).split())
    count = None
    if nodes := next(filter(None, (pattern.search(line.rest) for pattern in _IN_NODES)), None):
        each = nodes.groupdict().get("each")
        if each and line.said.get("per_node") not in (None, _whole(each)):
            raise line.fault("it gives two sizes of a node.", "Write one of them.")
        line.said["per_node"] = _whole(each) if each else line.said.get("per_node")
        count = _whole(nodes["nodes"]) * _node_size(line.said)
        line.take(nodes)
    numbers = list(_COUNT.finditer(line.rest))
    if len(numbers) + bool(count) > 1:
        reason = "it gives more than one number of accelerators."
        raise line.fault(reason, "Write one number, or nodes and their size, such as 64 nodes of 8 H100.")
    for number in numbers:
        count = _whole(number.group())
        line.take(number)
    if count is not None and not 1 <= count <= limit("accelerators"):
        raise line.fault(f"{count:,} accelerators are too many.", f"At most {limit('accelerators'):,} are read.")
    if any_number and (count or ceiling):
        raise line.fault("it says any number and also how many.", "Write one of them.")
    if floor and ceiling:
        raise line.fault("it says both a least and a most number.", "Write one of them.")
    line.said |= {"count": count, "is_ceiling": count is not None and not floor}


def _no_accelerator(line: _OfferLine, name: str) -> OfferError:
    close = suggestions(name, [device.name for device in accelerators()])
    remedy = f"Did you mean {' or '.join(close)}?" if close else "Write a name such as H100, A100 80GB or TPU v5p."
    return line.fault(f"no accelerator is called “{name}”.", remedy)


def _checked(line: _OfferLine, no_accelerator: bool) -> OfferTerms:
    """The offer, unless something of the line was not read, or what it says does not go together."""
    left = " ".join(_FILLER.sub(" ", line.rest).split())[: limit("number_chars")]
    if no_accelerator and left:
        raise _no_accelerator(line, left)
    if no_accelerator:
        raise line.fault("it names no accelerator.")
    if left:
        raise line.fault(f"“{left}” cannot be read.")
    said = {name: value for name, value in line.said.items() if name != "node_size"}
    if said.get("capital") is not None:
        said.setdefault("contract", "owned")
    offer = OfferTerms(**said)
    low, high = offer.hourly or (0.0, 0.0)
    if high > limit("price_per_hour"):
        raise line.fault(f"${low:,.0f} an hour is too much.", f"At most ${limit('price_per_hour'):,} an hour is read.")
    if offer.contract == "owned" and offer.price:
        remedy = "Write what one accelerator cost, such as $30,000 over 4 years, or write rented."
        raise line.fault("owned accelerators have no price for a time.", remedy)
    if offer.contract != "owned" and offer.capital is not None:
        remedy = "Write a price such as $2.60/h, or write owned."
        raise line.fault(f"{offer.contract} accelerators have no purchase price.", remedy)
    if offer.count is not None:
        spares = offer.spare_nodes * offer.node_size
        if spares >= offer.count:
            raise line.fault(f"{spares:,} spares leave none of {offer.count:,}.", "Write fewer spare nodes.")
    if offer.first and offer.last and offer.last < offer.first:
        raise line.fault(f"it ends on {offer.last}, before it begins on {offer.first}.", "Write a later end.")
    return offer
