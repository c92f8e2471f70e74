"""LaTeX of a formula as plain text that prints anywhere."""

from __future__ import annotations

import re

_SIGNS = {
    "cdot": "·", "times": "×", "approx": "≈", "infty": "∞", "sum": "Σ", "lceil": "⌈", "rceil": "⌉", "lfloor": "⌊",
    "rfloor": "⌋", "uparrow": "↑", "downarrow": "↓", "ell": "ℓ", "left": "", "right": "", "textdollar": "$",
    "alpha": "α", "beta": "β", "delta": "δ", "Delta": "Δ", "epsilon": "ε", "eta": "η", "theta": "θ", "kappa": "κ",
    "lambda": "λ", "mu": "μ", "rho": "ρ", "sigma": "σ", "Sigma": "Σ", "tau": "τ", ",": "\u00a0",
}  # fmt: skip
"""Commands without an argument. Any other command is written as its name."""

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|.", re.DOTALL)
_POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_ATOM = re.compile(r"[\w.,\u00a0$%'²]*")
_BLANKS = re.compile(r" +")


def formula_text(latex: str) -> str:
    """Return ``latex`` as text: fractions with a slash, numeric powers as raised digits, indices after “_”."""
    tokens = _TOKEN.findall(latex.replace("{,}", ","))[::-1]
    return _BLANKS.sub(" ", _sequence(tokens)).strip().replace("-", "−")


def _sequence(tokens: list[str]) -> str:
    """Return the text up to the end or an unmatched closing brace. tokens: the next one is the last."""
    text = ""
    while tokens and (part := tokens.pop()) != "}":
        text += _text(part, tokens)
    return text


def _argument(tokens: list[str]) -> str:
    """Return the text of one argument: a group in braces, or one token."""
    while tokens and tokens[-1] == " ":
        tokens.pop()
    return _text(tokens.pop(), tokens) if tokens else ""


def _text(part: str, tokens: list[str]) -> str:
    if part == "{":
        return _sequence(tokens)
    if part == "^":
        power = _argument(tokens)
        return power.translate(_POWERS) if re.fullmatch(r"-?\d+", power) else f"^{_grouped(power)}"
    if part == "_":
        return f"_{_grouped(_argument(tokens))}"
    name = part[1:]
    if name == "frac":
        over, under = _grouped(_argument(tokens)), _grouped(_argument(tokens))
        return f"{over} / {under}"
    if name in ("sqrt", "hat", "overline"):
        return f"{'√' if name == 'sqrt' else name}({_argument(tokens)})"
    if name in ("text", "mathrm"):
        return _argument(tokens)
    return _SIGNS.get(name, name) if name else part


def _grouped(text: str) -> str:
    """Return ``text`` in parentheses, unless it is one number or symbol."""
    return text if _ATOM.fullmatch(text) else f"({text})"
