"""Numbers as people write them, in the one form that `core.quantities` reads: 90,0 is 90.0, 320亿 is 320e8."""

from __future__ import annotations

import re
import unicodedata

from core.messages import message


class QuantityError(ValueError):
    """A typed quantity that cannot be used; the message says why and gives an example."""

    def about(self, field: str) -> str:
        """Return the message with the name of the ``field`` that it is about."""
        return message("error.field", field=field, problem=self.args[0])


FROM_SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_SUPERSCRIPT_RUN = re.compile(r"[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
"""The way powers are shown, so that a shown number can be typed again."""

_WORDS = {
    "млрд": "B",
    "млн": "M",
    "трлн": "T",
    "тыс": "K",
    "美元": "$",
    "參數": " parameters",
    "参数": " parameters",
    "词元": " tokens",
    "天": " days",
}
_ONES: tuple[str, ...] = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_TENS_SPELLED: tuple[str, ...] = ("ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SPELLED = {word: 10 * n for n, word in enumerate(_TENS_SPELLED, 1)} | {word: n for n, word in enumerate(_ONES, 1)}
_SPELLED_BEFORE = re.compile(rf"^\s*({'|'.join(_SPELLED)}|half an?|an?)\s+(?=[a-z])", re.IGNORECASE)
_FRACTION = re.compile(r"(\d*)\s?([¼½¾⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])")
_TIMES_X = re.compile(r"(?<=\d)(?<!\b0)\s*x\s*(?=\d)", re.IGNORECASE)
_EAST_ASIAN = re.compile(r"\s*([十百千]?)(万亿|萬億|[亿億万萬])")
_TENS = {"": 0, "十": 1, "百": 2, "千": 3}
_MYRIADS = {"万亿": 12, "萬億": 12, "亿": 8, "億": 8, "万": 4, "萬": 4}

_ABBREVIATED = re.compile(r"(?<=[A-Za-z])\.(?=\s|$)")
_DIGITS = re.compile(r"(?<![\d.])\d[\d.,_'’ ]*(?<=[\d.])")
"""A number with whatever separates its groups and its decimals."""
_GROUPED = re.compile(r"\d{1,3}(?:([ _'’])\d{3})(?:\1\d{3})*(?:[.,]\d*)?")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:([.,])\d{3})(?:\1\d{3})*")
_EITHER = re.compile(r"[1-9]\d{0,2}\.\d\d0")
"""Three decimals that end in a zero, as nobody writes decimals: 30.000 is thirty, or thirty thousand in Berlin."""
_POWER_OF_TEN = re.compile(r"\s*(?:e[-+]?\d|[*×]\s*10\s*\^)", re.IGNORECASE)


def keyed(text: str) -> str:
    """Return ``text`` as one would key it in: points before decimals, no separators of thousands, powers of ten as e8.

    A single comma before three digits separates thousands, as numbers are shown here; any other one is a decimal comma.
    Full-width digits and pasted spaces are ordinary ones, 10²⁴ is 10^24; subscripts stay as they are, since 10₂ is not
    102. Raises `QuantityError` for 30.000.
    """
    text = _SPELLED_BEFORE.sub(lambda m: f"{_spelled(m[1].lower())} ", text)
    text = _FRACTION.sub(lambda m: f"{int(m[1] or 0) + unicodedata.numeric(m[2]):.6g}", text)
    text = _TIMES_X.sub("×", text)
    powers = _SUPERSCRIPT_RUN.sub(lambda m: "^" + m.group().translate(FROM_SUPERSCRIPT), text).replace("−", "-")
    plain = "".join(c if "₀" <= c <= "₉" else unicodedata.normalize("NFKC", c) for c in powers)
    plain = _EAST_ASIAN.sub(lambda m: f"e{_TENS[m[1]] + _MYRIADS[m[2]]}", plain)
    for word, meant in _WORDS.items():
        plain = plain.replace(word, meant)
    plain = _ABBREVIATED.sub("", plain)
    return _DIGITS.sub(lambda m: _number(m, plain), plain).removeprefix("~").removeprefix("≈")


def _spelled(word: str) -> float:
    """Return a number's word, or that of one or of half a thing."""
    return _SPELLED.get(word, 0.5 if word.startswith("half") else 1)


def _number(found: re.Match[str], text: str) -> str:
    """Return one number with a point before its decimals and nothing else between its digits."""
    digits = found.group()
    if _GROUPED.fullmatch(digits):
        digits = re.sub(r"[ _'’]", "", digits)
    if _EITHER.fullmatch(digits) and not _POWER_OF_TEN.match(text, found.end()):
        around = text[: found.start()], text[found.end() :]
        first, second = (f"{digits.rstrip('0').rstrip('.')}".join(around), digits.replace(".", ",").join(around))
        raise QuantityError(
            message("quantity.ambiguous", entered=text.strip(), first=first.strip(), second=second.strip())
        )
    separators = [c for c in digits if c in ".,"]
    if len(set(separators)) == 2 and separators.count(separators[-1]) == 1:
        whole_part, _, decimals = digits.rpartition(separators[-1])
        return f"{_ungrouped(whole_part)}.{decimals}"
    if separators == [","] and not _THOUSANDS.fullmatch(digits):
        return digits.replace(",", ".")
    return digits if separators == ["."] else _ungrouped(digits)


def _ungrouped(digits: str) -> str:
    """Return the without the separators of thousands; as it is where its groups are not of three."""
    return digits.replace(",", "").replace(".", "") if _THOUSANDS.fullmatch(digits) else digits


_DOLLARS = re.compile(r"\bUS\s?\$|\bUSD\b|(?:\bUS )?\bdollars?\b", re.IGNORECASE)
_OTHER_MONEY = re.compile(r"[€£¥₹]|\b(?:EUR|GBP|CNY|RMB|JPY|CHF|INR)\b", re.IGNORECASE)
_PER_HOUR = re.compile(r"\s*(?:\bper\b|/)\s*(?:(?:gpu|accelerator|chip)[- ]?)?h(?:(?:ou)?rs?)?\b", re.IGNORECASE)


_LARGE = re.compile(r"\d\s*(?:mio|mln|mm|mrd|thousand|millions?|billions?|trillions?)\b", re.IGNORECASE)


def is_money(text: str) -> bool:
    """Return whether ``text`` can only be an amount of money: it names a currency, or millions of nothing."""
    text = _SPELLED_BEFORE.sub("1 ", text)
    plain = "$" in text or _DOLLARS.search(text) or _OTHER_MONEY.search(text)
    return bool(plain or _LARGE.search(text))


def in_dollars(text: str) -> str:
    """Return an amount as `keyed` gives it without its currency, and with /h for every way to say that it is for an
    hour.

    Raises `QuantityError` for another currency.
    """
    if _OTHER_MONEY.search(text):
        raise QuantityError(message("quantity.currency", entered=text.strip()))
    plain = _PER_HOUR.sub("/h", _DOLLARS.sub("$", text))
    return plain.replace("$", " ") if plain.count("$") == 1 else plain
