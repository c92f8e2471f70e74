"""LaTeX of a formula as MathML, which browsers draw and print by themselves: no script, no font to load."""

from __future__ import annotations

import html
import re
from xml.etree.ElementTree import Element, SubElement, tostring

_OPERATORS = frozenset("=≈+−·×")
_GROUPED = re.compile(r"\d+(?:\{,\}\d+)+(?:\.\d+)?")
_LINE = 26
"""Signs after which a sum may go on in the next line."""


def mathml(latex: str) -> str:
    """``latex`` as inline MathML. A line may break before an equals sign, and in a long sum before an operator."""
    from latex2mathml.converter import convert_to_element  # where a report is made and not before

    # Grouped digits and upright names are text: as numbers and letters they would come apart.
    texts = _GROUPED.sub(lambda m: rf"\text{{{m[0].replace('{,}', ',')}}}", latex)
    whole = convert_to_element(texts.replace(r"\mathrm{", r"\text{"))
    for node in whole.iter():
        _finish(node)
    runs: list[list[Element]] = [[]]
    depth = 0
    for node in whole[0]:
        sign, before = _sign(node), runs[-1]
        long = sign in _OPERATORS and sum(map(_wide, before)) > _LINE
        if before and not depth and (long or sign in ("=", "≈")):
            runs.append([])
        runs[-1].append(node)
        depth += (sign == "(") - (sign == ")")
    return " ".join(_written(run) for run in runs)


def _finish(node: Element) -> None:
    """What the library leaves of TeX's escapes, and whether an operator stands between two or before a number."""
    node.text = re.sub(r"\\(.)", r"\1", html.unescape(node.text or "").replace(r"\textdollar", "$"))
    if node.tag == "mtext" and node.text[:1].isdigit():
        node.tag = "mn"  # text counts as a blank, beside which an operator has no room
    before = "("
    for child in node:
        sign = html.unescape(_sign(child))
        if sign in _OPERATORS:
            alone = sign in ("−", "+") and before in ("(", "=", "≈", "·", "×")
            child.set("form", "prefix" if alone else "infix")
        before = sign


def _sign(node: Element) -> str:
    """The operator that a node is, with scripts or without; empty for anything else."""
    bare = node[0] if node.tag.startswith("msu") else node
    return (bare.text or "") if bare.tag == "mo" else ""


def _wide(node: Element) -> float:
    """About how many signs stand side by side."""
    inner = [_wide(child) for child in node]
    return max(inner) if node.tag == "mfrac" else len(node.text or "") + sum(inner)


def _written(nodes: list[Element]) -> str:
    whole = Element("math", displaystyle="true")
    SubElement(whole, "mrow").extend(nodes)
    return tostring(whole, encoding="unicode")
