"""Numbers as people write them, brought into the one writing that `core.units` reads: 90,0 is 90.0, 320亿 is 320e8."""

from __future__ import annotations

import re
import unicodedata

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


class AmbiguousNumberError(ValueError):
    """A number that is read in two ways; ``readings`` are the whole text with either."""

    def __init__(self, text: str, readings: tuple[str, str]) -> None:
        super().__init__(text)
        self.readings = readings


def keyed(text: str) -> str:
    """``text`` as one would key it in: points before decimals, no separators of thousands, powers of ten as e8.

    A single comma before three digits separates thousands, as numbers are shown here; any other one is a decimal comma.
    Full-width digits and pasted spaces are ordinary ones, 10²⁴ is 10^24; subscripts stay as they are, since 10₂ is not
    102. Raises `AmbiguousNumberError` for 30.000.
    """
    powers = _SUPERSCRIPT_RUN.sub(lambda m: "^" + m.group().translate(FROM_SUPERSCRIPT), text).replace("−", "-")
    plain = "".join(c if "₀" <= c <= "₉" else unicodedata.normalize("NFKC", c) for c in powers)
    plain = _EAST_ASIAN.sub(lambda m: f"e{_TENS[m[1]] + _MYRIADS[m[2]]}", plain)
    for word, meant in _WORDS.items():
        plain = plain.replace(word, meant)
    plain = _ABBREVIATED.sub("", plain)
    return _DIGITS.sub(lambda m: _number(m, plain), plain)


def _number(found: re.Match[str], text: str) -> str:
    """One number with a point before its decimals and nothing else between its digits."""
    digits = found.group()
    if _GROUPED.fullmatch(digits):
        digits = re.sub(r"[ _'’]", "", digits)
    if _EITHER.fullmatch(digits) and not _POWER_OF_TEN.match(text, found.end()):
        around = text[: found.start()], text[found.end() :]
        whole = f"{digits.rstrip('0').rstrip('.')}", digits.replace(".", ",")
        raise AmbiguousNumberError(text, (whole[0].join(around), whole[1].join(around)))
    separators = [c for c in digits if c in ".,"]
    if len(set(separators)) == 2 and separators.count(separators[-1]) == 1:
        whole_part, _, decimals = digits.rpartition(separators[-1])
        return f"{_ungrouped(whole_part)}.{decimals}"
    if separators == [","] and not _THOUSANDS.fullmatch(digits):
        return digits.replace(",", ".")
    return digits if separators == ["."] else _ungrouped(digits)


def _ungrouped(digits: str) -> str:
    """Without the separators of thousands; as it is where its groups are not of three."""
    return digits.replace(",", "").replace(".", "") if _THOUSANDS.fullmatch(digits) else digits
