"""An operation as a column addition, and one number in several formats: rows of bits, one column a power of two.

Plain text and a role for each character; what draws them gives the roles their colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from core.floats.arithmetic.operations import GUARDS, Cut, FloatOperation, Operand, Register
from core.floats.formats import FloatFormat
from core.messages import message

ROLES: Mapping[str, str] = {
    "f": "kept",
    "g": "guard",
    "r": "round",
    "y": "sticky",
    "z": "filler",
    "s": "sign",
    "e": "exponent",
    "o": "operator",
    "n": "name",
}
"""The role of a character of a row, by its letter; a space has none. filler: zeros that shifting brings in."""

_LONG_MULTIPLICATION = 8
"""Significands up to so many bits are multiplied in writing, a row for each bit."""

_ALIKE, _ENDS = 12, 3
"""More columns alike than this in every row are drawn as their first and last few."""

GAP = "…"


@dataclass(frozen=True, slots=True)
class ArithmeticRow:
    """One line: what it is called, its characters, their `ROLES`, and a remark behind it."""

    label: str
    text: str
    roles: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class CharacterGrid:
    """Rows of equal length under each other. stage: which of the operation's stages it shows, or what it is.

    sums: rows under a rule, as in a sum on paper.
    """

    stage: str
    rows: tuple[ArithmeticRow, ...]
    sums: frozenset[int] = frozenset()


class _Line:
    """A row while it is made: a character and a role at powers of two."""

    def __init__(self, label: str, remark: str = "", sign: str = "") -> None:
        self.label, self.remark, self.sign = label, remark, sign
        self.cells: dict[int, tuple[str, str]] = {}

    def bits(self, number: int, low: int, top: int, role: str = "f") -> _Line:
        """Return the bits of ``number`` from 2^``top`` down to 2^``low``, zeros in front included."""
        for place in range(low, top + 1):
            self.cells[place] = str(number >> place - low & 1), role
        return self

    def mark(self, places: Iterable[int], role: str) -> _Line:
        """Give the cells at these powers, where there are any, another role."""
        self.cells |= {place: (self.cells[place][0], role) for place in places if place in self.cells}
        return self

    def put(self, place: int, text: str, role: str) -> _Line:
        self.cells[place] = text, role
        return self


def _grid(stage: str, lines: Sequence[_Line], *, point: int | None = None, sums: Iterable[int] = ()) -> CharacterGrid:
    """Return lines in one frame; a point behind the power ``point``, in lines that have bits on both sides of it."""
    places = sorted({place for line in lines for place in line.cells}, reverse=True)
    frame = range(places[0], places[-1] - 1, -1)
    columns = [[line.cells.get(place, (" ", " ")) for line in lines] for place in frame]
    if point is not None and point in frame and point - 1 in frame:
        dots = [(".", "n") if {point, point - 1} <= line.cells.keys() and _bits(line) else (" ", " ") for line in lines]
        columns.insert(frame.index(point) + 1, dots)
    columns = _squeezed(columns)
    signed = any(line.sign for line in lines)
    rows = tuple(
        ArithmeticRow(
            line.label,
            (line.sign or " ") * signed + "".join(column[i][0] for column in columns),
            ("o" if line.sign else " ") * signed + "".join(column[i][1] for column in columns),
            line.remark,
        )
        for i, line in enumerate(lines)
    )
    return CharacterGrid(stage, rows, frozenset(sums))


def _bits(line: _Line) -> bool:
    return any(text in "01" for text, _ in line.cells.values())


def _squeezed(columns: list[list[tuple[str, str]]]) -> list[list[tuple[str, str]]]:
    """Return the runs of columns that are alike in every row, cut to their ends with a mark between."""
    rows: list[list[tuple[str, str]]] = []
    start = 0
    for at in range(1, len(columns) + 1):
        if at < len(columns) and columns[at] == columns[start]:
            continue
        run = columns[start:at]
        if len(run) > _ALIKE:
            gap = [(GAP if text != " " else " ", role) for text, role in run[0]]
            run = [*run[:_ENDS], gap, *run[-_ENDS:]]
        rows += run
        start = at
    return rows


def stages(operation: FloatOperation) -> tuple[CharacterGrid, ...]:
    """Return the grids of an operation: codes first and last, between them, of all but special cases, how bits were
    added."""
    fmt = operation.fmt
    operands = tuple(_code("abc"[at], operand.code, fmt) for at, operand in enumerate(operation.operands))
    grids = [CharacterGrid("Stored", operands)]
    written = operation.operator == "multiply" or operation.fmt.fraction_bits < _LONG_MULTIPLICATION
    if operation.product is not None and written and not operation.special:
        grids.append(_multiplication(operation, operation.product))
    if operation.register is not None:
        grids.append(_addition(operation, operation.register))
    if operation.cut is not None:
        grids.append(_rounding(operation, operation.cut))
    return (*grids, CharacterGrid("Result", (_code("", operation.code, fmt),)))


def _code(label: str, code: int, fmt: FloatFormat) -> ArithmeticRow:
    """Return the bits of a code, a gap between its fields."""
    widths = {"s": int(fmt.signed), "e": fmt.exponent_bits, "f": fmt.fraction_bits}
    roles = " ".join(letter * width for letter, width in widths.items() if width)
    bits = iter(f"{code:0{fmt.bits}b}")
    text = "".join(" " if role == " " else next(bits) for role in roles)
    return ArithmeticRow(label, text, roles, f"0x{code:0{fmt.hex_digits}x}")


def _minus(negative: bool) -> str:
    return "−" if negative else "+"


def _multiplication(operation: FloatOperation, product: Operand) -> CharacterGrid:
    """Return significands as whole numbers, a row for each bit of the second that is 1, and their product."""
    a, b = operation.operands[:2]
    width = operation.fmt.fraction_bits + 1
    lines = [
        _Line("a").bits(a.significand, 0, width - 1),
        _Line("b", sign="×").bits(b.significand, 0, width - 1),
    ]
    sums = [2]
    if width <= _LONG_MULTIPLICATION:
        lines += [
            _Line("", message("arithmetic.row.moved", places=float(place))).bits(
                a.significand, place, place + width - 1
            )
            for place in range(width)
            if b.significand >> place & 1
        ]
        sums.append(len(lines))
    top = max(2 * width - 1, product.significand.bit_length()) - 1
    lines.append(_Line("a × b", message("arithmetic.row.product", bits=2.0 * width)).bits(product.significand, 0, top))
    return _grid("Multiply", lines, sums=sums)


def _addition(operation: FloatOperation, register: Register) -> CharacterGrid:
    """Return both addends as they lie in the register, and their sum."""
    fused, low = operation.operator == "fma", register.low
    names = ("a × b", "c") if fused else ("a", "b")
    addends = operation.addends or operation.operands[:2]
    widths = [operation.fmt.fraction_bits + 1] * 2
    if fused:
        widths[0] = max(2 * widths[0] - 1, addends[0].significand.bit_length())
    tops = [addend.exponent + width - 1 for addend, width in zip(addends, widths, strict=True) if addend.significand]
    top = max(*tops, low + register.total.bit_length() - 1, low + GUARDS)
    mover = 0 if register.swapped else 1
    head = _Line("")
    if not fused:
        for place, name in zip(range(low + GUARDS - 1, low - 1, -1), "GRS", strict=True):
            head.put(place, name, {"G": "g", "R": "r", "S": "y"}[name])
    lines = [head] if not fused else []
    for at, (name, operand, lying) in enumerate(zip(names, addends, (register.first, register.second), strict=True)):
        line = _Line(name, sign=_minus(operand.negative))
        own = min(operand.exponent + widths[at] - 1, top)
        line.bits(lying, low, top).mark(range(own + 1, top + 1), "z").mark(range(low, operand.exponent), "z")
        lines.append(_guards(line, low) if not fused and register.moved and at == mover else line)
    total = _Line(message("arithmetic.row.sum"), sign=_minus(register.negative)).bits(register.total, low, top)
    lines.append(total if fused else _guards(total, low))
    stays = addends[1 - mover].exponent + widths[1 - mover] - 1
    return _grid("Subtract" if operation.subtracts else "Add", lines, point=stays, sums=[len(lines) - 1])


def _guards(line: _Line, low: int) -> _Line:
    """Return the three last places of a register in their colors."""
    return line.mark([low + 2], "g").mark([low + 1], "r").mark([low], "y")


def _rounding(operation: FloatOperation, cut: Cut) -> CharacterGrid:
    """Return the exact magnitude with the format's last place and the three bits after it, and what becomes of it."""
    fmt, register = operation.fmt, operation.register
    total, low = (
        (register.total, register.low)
        if register is not None
        else (operation.product.significand, operation.product.exponent)
        if operation.product is not None
        else (0, cut.last)
    )
    if cut.last < low:  # leading bits cancelled: zeros come in from the right
        total, filled, low = total << low - cut.last, range(cut.last, low), cut.last
    else:
        filled = range(0)
    after = cut.kept + cut.up
    top = max(cut.last + max(fmt.fraction_bits, after.bit_length() - 1), low + total.bit_length() - 1)
    head, line = _Line(""), _Line(message("arithmetic.row.normalized")).bits(total, low, top)
    for name, role, place in zip("GRS", "gry", range(cut.last - 1, cut.last - GUARDS - 1, -1), strict=True):
        head.put(place, name, role)
        if place < low:
            line.put(place, "0", role)
    line.mark([cut.last - 1], "g").mark([cut.last - 2], "r").mark(range(low, cut.last - 2), "y").mark(filled, "z")
    step = _Line(message("arithmetic.row.up" if cut.up else "arithmetic.row.down"), sign="+").put(
        cut.last, str(int(cut.up)), "o"
    )
    result = _Line(message("arithmetic.row.result"), _ending(operation, cut)).bits(after, cut.last, top)
    return _grid("Round", [head, line, step, result], point=cut.last + fmt.fraction_bits, sums=[3])


def _ending(operation: FloatOperation, cut: Cut) -> str:
    if operation.overflowed:
        return message("arithmetic.row.overflow")
    return message("arithmetic.row.carry") if cut.carried else ""
