"""Sentences on one rounding: where a number lies between its neighbors, every mode, and what libraries do."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from core.floats.decimals import brief, rounded
from core.floats.formats import FloatFormat
from core.floats.oracles import Verdict
from core.floats.rounding import Rounding
from core.floats.rounding_cases import Microscope, ModeResult, shares
from core.messages import Message, message, pick_message
from core.views.floats.text import code_value


def mode_label(rounding: Rounding) -> Message:
    """Return the name of a rounding mode."""
    return message(f"rounding.mode.{rounding}")


def takeaway(scope: Microscope) -> Message:
    """Return where the number is between its neighbors, and which way round-to-nearest goes."""
    up = 2 * scope.position > 1
    code = scope.high_code if up else scope.low_code
    way = "up" if up else "down"
    case = "exact" if scope.exact else "tie" if 2 * scope.position == 1 else "overflow" if code is None else ""
    low, high = (brief(value, scope.fmt.decimal_digits + 3) for value in (scope.low, scope.high))
    share = shares(scope.position)[0]
    return pick_message(f"rounding.takeaway.{case or way}", fmt=scope.fmt.title, low=low, high=high, share=share)


def not_rounded(value: Fraction | None, fmt: FloatFormat) -> Message:
    """Return why a number has no two neighbors in a format. value: None for infinity and NaN."""
    if value is None:
        return message("rounding.takeaway.special")
    high = brief(fmt.max_finite)
    low = f"−{high}" if fmt.signed else "0" if fmt.zero else brief(fmt.min_subnormal)
    return message("rounding.takeaway.outside", fmt=fmt.title, low=low, high=high)


def result_text(choice: ModeResult, scope: Microscope) -> str:
    """Return the result of one rounding mode; for stochastic rounding, both chances."""
    if choice.chance is not None:
        up, down = shares(choice.chance)
        return message("rounding.chances", up=up, down=down)
    if choice.value is None:
        return code_value(choice.code or 0, scope.fmt)
    return brief(choice.value, scope.fmt.decimal_digits + 3)


def asked_text(scope: Microscope) -> str:
    """Return the number to round, in as many digits as tell it from its neighbors and their midpoint."""
    near = {scope.low, scope.high, (scope.low + scope.high) / 2} - {scope.asked}
    least = max(scope.fmt.decimal_digits + 4, 6)
    texts = (rounded(scope.asked, digits) for digits in (least, 2 * least, 4 * least))
    text = next((text for text in texts if all(rounded(value, 40) != text for value in near)), "")
    return text or rounded(scope.asked, 8 * least)


def neighbor_text(value: Fraction, scope: Microscope) -> str:
    """Return a neighbor's value in as many digits as tell it from the other."""
    return brief(value, scope.fmt.decimal_digits + 3)


def libraries_takeaway(verdicts: Sequence[Verdict], fmt: FloatFormat) -> Message:
    """Return how many libraries agree with Napkin, whose verdict comes first."""
    converting = [verdict for verdict in verdicts[1:] if verdict.code is not None]
    differ = sum(not verdict.agrees for verdict in converting)
    name = "oracles.takeaway.differ" if differ else "oracles.takeaway.agree" if converting else "oracles.takeaway.none"
    return pick_message(name, fmt=fmt.title, differ=float(differ), libraries=float(len(converting)))


def library_rows(verdicts: Sequence[Verdict], fmt: FloatFormat) -> list[tuple[str, ...]]:
    """Return a row for each library: its name, its dtype, the code, its value, and a remark."""
    return [
        (
            verdict.library,
            f"`{verdict.dtype}`" if verdict.dtype else "",
            "" if verdict.code is None else f"0x{verdict.code:0{fmt.hex_digits}x}",
            "" if verdict.code is None else code_value(verdict.code, fmt),
            verdict.why,
        )
        for verdict in verdicts
    ]
