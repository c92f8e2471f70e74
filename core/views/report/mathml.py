"""LaTeX of a formula as MathML, which browsers draw and print by themselves: no script, no font to load.

It reads what `core.formula` and `core.units_latex` write: letters, numbers with ``{,}``, ``\\frac``, ``\\sqrt``,
accents, scripts, upright names, Greek, and units as text.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:(?:\{,\}|\.)?\d+)*|\s+|.", re.DOTALL)
_LETTERS = {
    "alpha": "α",
    "sigma": "σ",
    "beta": "β",
    "delta": "δ",
    "epsilon": "ϵ",
    "eta": "η",
    "theta": "θ",
    "kappa": "κ",
    "lambda": "λ",
    "mu": "μ",
    "rho": "ρ",
    "tau": "τ",
    "Delta": "Δ",
    "Sigma": "Σ",
    "ell": "ℓ",
    "infty": "∞",
}
_SIGNS = {
    "cdot": "·",
    "times": "×",
    "approx": "≈",
    "sum": "∑",
    "downarrow": "↓",
    "uparrow": "↑",
    "lfloor": "⌊",
    "rfloor": "⌋",
}
_NAMES = frozenset(("exp", "log", "max"))
_OVER = {"hat": "^", "overline": "¯"}
_RELATIONS, _BETWEEN = frozenset("=≈"), frozenset("+−·×")
_OPENS = frozenset("(=≈·×")
"""Signs after which a minus belongs to the number behind it."""

_FENCES = {"(": 1, ")": -1}

_LINE = 26
"""Signs after which a sum may go on in the next line."""


class LatexError(ValueError):
    """LaTeX that no formula of the product writes."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A piece of MathML. sign: of an operator that stands alone; wide: its signs side by side."""

    xml: str
    wide: float
    sign: str = ""


def mathml(latex: str) -> str:
    """``latex`` as inline MathML. A line may break before an equals sign, and in a long sum before an operator.

    Raises `LatexError` for what is not in the subset.
    """
    nodes = _Reader(latex).all()
    runs: list[list[_Node]] = [[]]
    depth = 0
    for node in nodes:
        before = runs[-1]
        long = node.sign in _BETWEEN and sum(item.wide for item in before) > _LINE
        if before and not depth and (long or node.sign in _RELATIONS):
            runs.append([])
        runs[-1].append(node)
        depth += _FENCES.get(node.sign, 0)
    return " ".join(f'<math displaystyle="true">{_row(run)}</math>' for run in runs)


def _row(nodes: list[_Node]) -> str:
    return f"<mrow>{''.join(node.xml for node in nodes)}</mrow>"


def _operator(sign: str, form: str = "") -> _Node:
    form = form or ("infix" if sign in _RELATIONS | _BETWEEN else "")
    text = f' form="{form}"' if form else ""
    still = ' stretchy="false"' if sign in "()|" else ""
    return _Node(f"<mo{text}{still}>{html.escape(sign)}</mo>", 1, sign)


class _Reader:
    """A descent over the tokens of one text."""

    def __init__(self, latex: str) -> None:
        self.latex = latex
        self.tokens: list[str] = _TOKEN.findall(latex)
        self.at = 0

    def all(self) -> list[_Node]:
        """Every node up to the end."""
        nodes = self._until(())
        if self.at < len(self.tokens):
            raise self._wrong(self.tokens[self.at])
        return nodes

    def _wrong(self, what: str) -> LatexError:
        return LatexError(f"“{what}” cannot be read in {self.latex}")

    def _peek(self) -> str:
        while self.at < len(self.tokens) and self.tokens[self.at].isspace():
            self.at += 1
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        if not token:
            raise self._wrong("the end")
        self.at += 1
        return token

    def _until(self, ends: tuple[str, ...]) -> list[_Node]:
        """Nodes with their scripts, up to one of ``ends``, which stays."""
        nodes: list[_Node] = []
        while self._peek() and self._peek() not in ends:
            if self._peek() == "}":
                raise self._wrong("}")
            nodes.append(self._scripted(signed=not nodes or nodes[-1].sign in _OPENS))
        return nodes

    def _scripted(self, signed: bool) -> _Node:
        """One node with what is raised and lowered at it. signed: a minus here belongs to what follows."""
        base = self._one(signed)
        scripts: dict[str, _Node] = {}
        primes = 0
        while self._peek() in ("_", "^", "'"):
            sign = self._take()
            if sign == "'":
                primes += 1
            elif sign in scripts:
                raise self._wrong(sign)
            else:
                scripts[sign] = self._argument()
        if primes:
            if "^" in scripts:
                raise self._wrong("'")
            scripts["^"] = _Node(f"<mo>{'′' * primes}</mo>", 1)
        if not scripts:
            return base
        kind = "msub" if "^" not in scripts else "msup" if "_" not in scripts else "msubsup"
        inner = "".join(scripts[sign].xml for sign in "_^" if sign in scripts)
        wide = base.wide + 0.7 * max(script.wide for script in scripts.values())
        return _Node(f"<{kind}>{base.xml}{inner}</{kind}>", wide, base.sign if base.sign == ")" else "")

    def _argument(self) -> _Node:
        """What a command or a script takes: a group, or one token."""
        if self._peek() == "{":
            return self._group()
        return self._one(signed=False)

    def _group(self) -> _Node:
        self._expect("{")
        nodes = self._until(("}",))
        self._expect("}")
        return nodes[0] if len(nodes) == 1 else _Node(_row(nodes), sum(node.wide for node in nodes))

    def _expect(self, token: str) -> None:
        if self._take() != token:
            raise self._wrong(token)

    def _one(self, signed: bool) -> _Node:
        """One node without its scripts."""
        if self._peek() == "{":
            return self._group()
        first = self._take()
        if first.startswith("\\"):
            return self._command(first[1:])
        if first[0].isdigit():
            text = first.replace("{,}", ",")
            return _Node(f"<mn>{text}</mn>", len(text))
        if first.isalpha():
            return _Node(f"<mi>{first}</mi>", 1)
        if first == "-":
            return _operator("−", "prefix" if signed else "infix")
        if first in "+=()|*/,":
            return _operator(first)
        raise self._wrong(first)

    def _command(self, name: str) -> _Node:
        if name == ",":
            return _Node('<mspace width="0.17em"></mspace>', 0.3)
        if name in _LETTERS:
            return _Node(f"<mi>{_LETTERS[name]}</mi>", 1)
        if name in _SIGNS:
            return _operator(_SIGNS[name])
        if name in _NAMES:
            return _Node(f"<mi>{name}</mi>", len(name))
        match name:
            case "frac":
                above, below = self._argument(), self._argument()
                return _Node(f"<mfrac>{above.xml}{below.xml}</mfrac>", max(above.wide, below.wide))
            case "sqrt":
                inner = self._argument()
                return _Node(f"<msqrt>{inner.xml}</msqrt>", inner.wide + 1)
            case "hat" | "overline":
                inner = self._argument()
                return _Node(f'<mover accent="true">{inner.xml}<mo>{_OVER[name]}</mo></mover>', inner.wide)
            case "mathrm":
                text = self._words()
                return _Node(f'<mi mathvariant="normal">{html.escape(text)}</mi>', len(text))
            case "text":
                text = self._words()
                return _Node(f"<mtext>{html.escape(text)}</mtext>", len(text))
            case "left":
                return self._fenced()
            case _:
                raise self._wrong(f"\\{name}")

    def _words(self) -> str:
        """The plain text of a group, blanks included."""
        self._expect("{")
        start = self.at
        while self._peek() not in ("}", ""):
            self.at += 1
        text = "".join(self.tokens[start : self.at])
        self._expect("}")
        return re.sub(r"\\(.)", r"\1", text.replace(r"\textdollar", "$"))

    def _fenced(self) -> _Node:
        opening = self._take()
        nodes = self._until(("\\right",))
        self._expect("\\right")
        closing = self._take()
        if opening != "(" or closing != ")":
            raise self._wrong(opening)
        inner = "".join(node.xml for node in nodes)
        return _Node(f"<mrow><mo>(</mo>{inner}<mo>)</mo></mrow>", sum(node.wide for node in nodes) + 2)
