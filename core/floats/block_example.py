"""A block to play with: values to start from, values typed, and what every block format makes of the same values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from core.floats.blocks import BLOCK_FORMATS, SCALE_RULES, BlockFormat, QuantizedBlock, Rule, quantize_block
from core.floats.formats import FormatError
from core.floats.integer_blocks import WHOLE
from core.floats.value_tables import ValueTable
from core.formula import Explanation, Source, Symbol, formula
from core.limits import cached, limit
from core.units import QuantityText, significant

Distribution: TypeAlias = Literal["normal", "heavy-tailed", "one outlier", "uniform"]
DISTRIBUTIONS: tuple[Distribution, ...] = ("normal", "heavy-tailed", "one outlier", "uniform")

BLOCK_VALUES = 32
"""Values of the workbench: one block of MX, two of NVFP4, a short one of NF4."""

OUTLIER = 21.3
"""The outlier to begin with, in σ. No element format holds it exactly, so that every format errs on it about as much as
on outliers of this size on average; 24, which nearly all hold, would flatter the few significant bits of most."""

_SEED, _OUTLIER_AT = 32, 11
_LARGEST = 3e38

_MX = Source(
    "OCP Microscaling Formats (MX) Specification 1.0",
    "section 5",
    "https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf",
)
_GRAY = Source("Gray and Neuhoff 1998, Quantization", "section I", "https://doi.org/10.1109/18.720541")


@formula(
    r"\v{element_bits} + \frac{\v{scale_bits}}{\v{size}}",
    result=Symbol("b", "bits per element, its share of the scale included", "number"),
    symbols={
        "element_bits": Symbol("b_e", "bits of an element", "number"),
        "scale_bits": Symbol("b_s", "bits of the block's scale", "number"),
        "size": Symbol("n", "elements in a block", "count"),
    },
    sources=(_MX,),
)
def bits_per_element(element_bits: float, scale_bits: float, size: float) -> float:
    """Bits per element of a block format.

    A scale for the whole tensor adds nothing that counts.
    """
    return element_bits + scale_bits / size


@formula(
    r"10 \cdot \log_{10}{\frac{\v{signal}}{\v{noise}}}",
    result=Symbol(r"\mathrm{SQNR}", "signal to quantisation noise, in decibels", "number"),
    symbols={
        "signal": Symbol(r"\overline{x^2}", "mean square of the values", "number"),
        "noise": Symbol(r"\mathrm{MSE}", "mean squared error", "number"),
    },
    sources=(_GRAY,),
)
def sqnr(signal: float, noise: float) -> float:
    """Signal to quantisation noise ratio.

    Six decibels are one bit of precision.
    """
    return 10 * np.log10(signal / noise)


@dataclass(frozen=True, slots=True)
class BlockScore:
    """How one block format does on the values under one scale rule."""

    block_format: BlockFormat
    rule: Rule
    clipped: int
    mse: float
    sqnr_db: float


@cached("results_kept")
def example(distribution: Distribution, outlier: float) -> tuple[float, ...]:
    """`BLOCK_VALUES` seeded values to three digits. ``outlier``: the size of the one in "one outlier", in σ."""
    draw = np.random.default_rng(_SEED)
    if distribution == "uniform":
        values = draw.uniform(-1, 1, BLOCK_VALUES)
    elif distribution == "heavy-tailed":
        values = draw.standard_t(2, BLOCK_VALUES)
    else:
        values = draw.standard_normal(BLOCK_VALUES)
    if distribution == "one outlier":
        values[_OUTLIER_AT] = outlier
    return tuple(float(f"{value:.3g}") for value in values)


def read_block(text: str) -> tuple[float, ...]:
    """Typed values, separated by commas or spaces; fewer than `BLOCK_VALUES` are filled up with zeros.

    Raises `FormatError` with the reason and an example.
    """
    cap = limit("block_chars")
    example_text = "For example 0.5, -1.25, 30."
    if len(text) > cap:
        raise FormatError(f"That is {len(text):,} characters long; a block has at most {cap}. {example_text}")
    parts = text.replace("−", "-").replace(",", " ").replace(";", " ").split()
    if not parts or len(parts) > BLOCK_VALUES:
        raise FormatError(f"{len(parts)} values: a block has 1 to {BLOCK_VALUES}. {example_text}")
    values: list[float] = []
    for part in parts:
        try:
            value = float(part) if part.isascii() and "_" not in part else math.nan
        except ValueError:
            value = math.nan
        if not abs(value) <= _LARGEST:
            clipped = part if len(part) <= 20 else f"{part[:16]}…"
            raise FormatError(f"“{clipped}” is not a finite number up to 3e38. {example_text}")
        values.append(value)
    return tuple(values + [0.0] * (BLOCK_VALUES - len(values)))


def write_block(values: tuple[float, ...]) -> str:
    """The text that `read_block` reads as ``values``, in fewer digits only where it would grow beyond its cap."""
    whole = [repr(value).removesuffix(".0") for value in values]
    for digits in range(17, 3, -1):
        text = ", ".join(w if len(w) <= digits else f"{v:.{digits}g}" for v, w in zip(values, whole, strict=True))
        if len(text) <= limit("block_chars"):
            return text
    return ", ".join(f"{value:.4g}" for value in values)


@cached("results_kept")
def quantize(values: tuple[float, ...], name: str, rule: Rule) -> QuantizedBlock:
    """The values in one block format."""
    return quantize_block(np.array(values), BLOCK_FORMATS[name], rule)


@cached("results_kept")
def scores(values: tuple[float, ...]) -> tuple[BlockScore, ...]:
    """Every block format under every rule it may follow."""
    return tuple(
        BlockScore(fmt, rule, int(done.clipped.sum()), done.mse, done.sqnr_db)
        for fmt in BLOCK_FORMATS.values()
        for rule in fmt.scale_rules
        for done in (quantize(values, fmt.name, rule),)
    )


def takeaway(values: tuple[float, ...], done: QuantizedBlock) -> str:
    """One sentence: what the shared scale costs these values."""
    fmt, back = done.block_format, done.values
    lost = sum(1 for v, b in zip(values, back.tolist(), strict=True) if v and not b)
    clipped = int(done.clipped.sum())
    text = f"at **{decibel(done.sqnr_db)}**" if math.isfinite(done.sqnr_db) else "**exactly**"
    head = f"{fmt.title} keeps these values {text} in {fmt.bits_per_element:.4g} bits per element"
    tail: list[str] = []
    if lost:
        tail.append(f"**{lost}** of {len(values)} become zero under the scale that the largest one asks for")
    if clipped:
        tail.append(f"**{clipped}** clipped")
    return f"{head}: {', '.join(tail)}." if tail else f"{head}, none lost and none clipped."


def decibel(value: float) -> str:
    """A ratio in decibels for reading."""
    if math.isnan(value):
        return "no signal"
    return "exact" if math.isinf(value) else QuantityText(f"{value:.1f} dB", value, "dB")


@cached("results_kept")
def table(values: tuple[float, ...]) -> tuple[tuple[tuple[str, str], ...], ...]:
    """A row per block format: its bits, then SQNR and errors under each of `SCALE_RULES`, empty where not its own."""
    rows: list[tuple[tuple[str, str], ...]] = []
    for fmt in BLOCK_FORMATS.values():
        by_name = {s.rule: _score(s) for s in scores(values) if s.block_format is fmt}
        cells = [by_name.get(rule.name, ("", "")) for rule in SCALE_RULES.values()]
        rows.append(((fmt.title, f"{fmt.size:,} values"), (significant(fmt.bits_per_element), ""), *cells))
    return tuple(rows)


def _score(score: BlockScore) -> tuple[str, str]:
    small = [f"MSE {score.mse:.2g}" if score.mse else "MSE 0"]
    if score.clipped:
        small.append(f"{score.clipped} clipped")
    return decibel(score.sqnr_db), ", ".join(small)


def scale_line(done: QuantizedBlock) -> str:
    """The scale, its code and its rule in a sentence."""
    fmt, rule = done.block_format, SCALE_RULES[done.rule]
    if isinstance(fmt.element, ValueTable) and fmt.name not in WHOLE:
        return _table_line(done, fmt.element)
    scales = " and ".join(
        f"**{_signed(scale / done.tensor_scale)}** (`0x{code:0{fmt.scale.hex_digits}x}`)"
        for scale, code in zip(done.scales.tolist(), done.scale_codes.tolist(), strict=True)
    )
    tensor = f", each times the tensor’s scale of {done.tensor_scale:.4g}" if done.tensor_scale != 1 else ""
    many = "s" * (done.scales.size > 1)
    short = f" A block has {fmt.size:,} values; these {done.values.size} are a part of one." * (
        fmt.size > done.values.size
    )
    return (
        f"{fmt.scale.title} scale{many} {scales}{tensor}.{short} Rule **{rule.title}**: {rule.meaning} {rule.used_by}."
    )


def _signed(value: float) -> str:
    return f"{value:g}".replace("-", "−", 1) if value < 0 else f"{value:g}"


def _table_line(done: QuantizedBlock, element: ValueTable) -> str:
    """The scale of a block whose elements are a table of values, and that table."""
    fmt, rule = done.block_format, SCALE_RULES[done.rule]
    values = ", ".join(f"{value:.3g}".replace("-", "−") for value in element.values)
    kept = "kept in float32"
    if fmt.scale_group:
        kept = f"kept in 8 bits: exact for a single block, {_double_cost():.2g} dB lost over a tensor of normal values"
    return (
        f"Scale **{float(done.scales[0]):g}**, {kept}. A block has {fmt.size} values; these {done.values.size} are a "
        f"short one. Its {len(element.values)} codes stand for quantiles of a normal distribution: {values}. "
        f"Rule **{rule.title}**: {rule.meaning} {rule.used_by}."
    )


@cached("tables_kept")
def _double_cost() -> float:
    """Decibels that quantised scales cost a tensor of normal values."""
    values = np.random.default_rng(_SEED).standard_normal(256 * 64)
    plain, double = (quantize_block(values, BLOCK_FORMATS[name]).sqnr_db for name in ("nf4", "nf4_double"))
    return plain - double


@cached("tables_kept")
def rule_notes() -> tuple[str, ...]:
    """A sentence per scale rule: what it does and who uses it."""
    return tuple(f"**{r.title}**: {r.meaning} {r.used_by}." for r in SCALE_RULES.values())


def explain(values: tuple[float, ...], done: QuantizedBlock) -> tuple[Explanation, ...]:
    """How bits per element and SQNR are computed."""
    fmt = done.block_format
    explanations = [
        bits_per_element.explain(
            element_bits=float(fmt.element.bits), scale_bits=float(fmt.scale_bits), size=float(fmt.size)
        )
    ]
    if math.isfinite(done.sqnr_db):
        explanations.append(sqnr.explain(signal=float(np.mean(np.square(values))), noise=done.mse))
    return tuple(explanations)
