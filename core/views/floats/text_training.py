"""Sentences and tables on rounding in training: sums, loss scaling, and blocks under one scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from core.floats.arithmetic.accumulation import (
    DETERMINISTIC,
    SHOWN,
    TABLE_BITS,
    SummationRun,
    add_up,
    is_stored_coarsely,
    master_copy,
    spread,
)
from core.floats.block_example import outlier_effect, quantize
from core.floats.blocks import BLOCK_FORMATS, SCALE_RULES, BlockFormat, QuantizedBlock, Rule
from core.floats.decimals import raised, rounded
from core.floats.formats import FORMATS, FloatFormat
from core.floats.scaling.loss_scaling import Followed, best_power
from core.limits import cached
from core.messages import Message, message
from core.units import QuantityText, significant

# ------------------------------------------------------------------------------------------ one number many times


@cached("results_kept")
def sum_texts(start: float, addend: float, steps: int, fmt: FloatFormat) -> list[Message]:
    """Return what the sum should be, what it is, and the reason for the difference."""
    run = add_up(start, addend, steps, fmt)
    target = start + steps * addend
    result = _sum_result(run, target)
    exact, size = _number(target, 9), float(steps)
    said = [message("sums.target", steps=size, addend=_number(addend), start=_number(start), sum=exact), result]
    for value, stored in ((start, float(run.sums[0])), (addend, run.addend)):
        if is_stored_coarsely(value, stored):
            said.append(message("sums.stored", fmt=fmt.title, value=_number(value), stored=_number(stored, 4)))
    if run.stalled is not None and fmt.bits < FORMATS["fp32"].bits and run.addend:
        copy = master_copy(start, addend, steps, fmt)
        said.append(message("sums.master", sum=_number(copy.final)))
    return said


def _sum_result(run: SummationRun, target: float) -> Message:
    fmt, end = run.fmt.title, _number(run.final)
    if run.overflowed is not None:
        return message("sums.overflows", fmt=fmt, sum=end, steps=float(run.overflowed))
    if run.stalled == 0:
        return message("sums.never", fmt=fmt, sum=end)
    if run.stalled is not None:
        return message("sums.stalls", fmt=fmt, sum=end, steps=float(run.stalled))
    if run.final == target or not target:
        return message("sums.exact", fmt=fmt, sum=end)
    return message("sums.reaches", fmt=fmt, sum=end, error=(run.final - target) / target)


@cached("arrays_kept")
def sum_rows(start: float, addend: float, steps: int) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Return a row per format of `SHOWN`: the last sum and its outcome in every rounding mode, then the stochastic
    mean."""
    rows: list[tuple[tuple[str, str], ...]] = []
    for fmt in (FORMATS[name] for name in SHOWN):
        runs = [add_up(start, addend, steps, fmt, mode) for mode in DETERMINISTIC]
        stochastic = ("—", "")
        if fmt.bits <= TABLE_BITS:
            drawn = spread(start, addend, steps, fmt)
            stochastic = (_short(float(drawn.mean[-1]), 5), f"± {_short(float(drawn.deviation[-1]), 3)}")
        rows.append(((fmt.title, ""), *((_short(run.final, 5), _fate(run)) for run in runs), stochastic))
    return tuple(rows)


def _fate(run: SummationRun) -> Message | str:
    if run.overflowed is not None:
        return message("sums.cell.overflows", steps=float(run.overflowed))
    if run.stalled == 0:
        return message("sums.cell.never")
    return "" if run.stalled is None else message("sums.cell.stalls", steps=float(run.stalled))


def _short(value: float, digits: int) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"
    return QuantityText(f"{value:.{digits}g}".replace("e+", "e").replace("-", "−"), value)


def _number(value: float, digits: int = 6) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "infinity" if value > 0 else "−infinity"
    return rounded(Fraction(value), digits).removeprefix("1 × ")


# ------------------------------------------------------------------------------------------ loss scaling


def scaling_texts(run: Followed) -> list[Message]:
    """Return what the scale saves, and how it moved over the run."""
    skips, low, high = int(run.skipped.sum()), float(run.powers.min()), float(run.powers.max())
    said = [
        message(
            "scaling.takeaway.lost",
            fmt=run.fmt.title,
            unscaled=run.unscaled,
            lost=run.lost,
        )
    ]
    if low == high:
        said.append(message("scaling.takeaway.constant", scale=scale_text(low)))
    else:
        said.append(message("scaling.takeaway.moves", low=scale_text(low), high=scale_text(high)))
    return [*said, message("scaling.takeaway.skips", skips=float(skips), steps=float(run.skipped.size))]


def step_text(run: Followed, step: int) -> Message:
    """Return what becomes of the gradients of one step, counted from 1."""
    scaled = run.at(step - 1)
    return message(
        "scaling.step",
        step=float(step),
        scale=scale_text(scaled.power),
        zero=scaled.zero,
        subnormal=scaled.subnormal,
        overflow=scaled.overflow,
    )


def best_scale_text(run: Followed, step: int) -> Message:
    """Return which scale would lose least at one step, counted from 1."""
    best = best_power(float(run.drawn.medians[step - 1]), run.drawn.course.spread, run.fmt)
    return message("scaling.best", step=float(step), scale=scale_text(best))


def scale_text(log: float) -> str:
    """Return a scale from its log2, as a power of two if it is one."""
    return raised(f"2^{log:.4g}") if float(log).is_integer() else significant(2.0**log)


# ------------------------------------------------------------------------------------------ blocks


def block_texts(values: tuple[float, ...], done: QuantizedBlock) -> list[Message]:
    """Return the precision that the shared scale leaves to these values, and what the largest of them costs."""
    fmt = done.block_format
    lost = sum(1 for value, back in zip(values, done.values.tolist(), strict=True) if value and not back)
    if math.isfinite(done.sqnr_db):
        said = [message("blocks.takeaway", fmt=fmt.title, bits=fmt.bits_per_element, sqnr=done.sqnr_db)]
    else:
        said = [message("blocks.takeaway_exact", fmt=fmt.title, bits=fmt.bits_per_element)]
    if lost:
        said.append(message("blocks.zero", lost=float(lost), values=float(len(values))))
    if clipped := int(done.clipped.sum()):
        said.append(message("blocks.clipped", clipped=float(clipped)))
    effect = outlier_effect(values, fmt.name, done.rule)
    if effect.lowers:
        largest = significant(effect.largest, 3)
        if math.isfinite(effect.without_db):
            said.append(message("blocks.outlier", largest=largest, alone=effect.without_db, others=effect.with_db))
        else:
            said.append(message("blocks.outlier_exact", largest=largest, others=effect.with_db))
    return said


def sqnr_text(value: float) -> str:
    """Return a signal-to-noise ratio in decibels for a table."""
    if not math.isfinite(value):
        return "—" if math.isnan(value) else "exact"
    return QuantityText(f"{value:.1f}", value)


def block_rows(values: tuple[float, ...], name: str, rule: Rule) -> list[tuple[str, ...]]:
    """Return a row per block format: name, block size, bits per value, SQNR, and clipped values.

    Each follows its first scale rule, and the format ``name`` the chosen one.
    """
    return [_block_row(values, fmt, rule if fmt.name == name else fmt.scale_rules[0]) for fmt in BLOCK_FORMATS.values()]


def _block_row(values: tuple[float, ...], fmt: BlockFormat, rule: Rule) -> tuple[str, ...]:
    done = quantize(values, fmt.name, rule)
    return (
        fmt.title,
        f"{fmt.size:,}",
        significant(fmt.bits_per_element),
        sqnr_text(done.sqnr_db),
        f"{int(done.clipped.sum())}",
    )


def rule_rows(values: tuple[float, ...], fmt: BlockFormat) -> list[tuple[str, ...]]:
    """Return a row per scale rule of a format: name, SQNR, clipped values, and what the rule does."""
    rows: list[tuple[str, ...]] = []
    for rule in fmt.scale_rules:
        done = quantize(values, fmt.name, rule)
        clipped = f"{int(done.clipped.sum())}"
        rows.append((SCALE_RULES[rule].title, sqnr_text(done.sqnr_db), clipped, message(f"blocks.rule.{rule}")))
    return rows


def scale_note(done: QuantizedBlock) -> Message:
    """Return the scales of the blocks and their codes."""
    fmt = done.block_format
    scales: Sequence[str] = [f"{scale / done.tensor_scale:g}".replace("-", "−", 1) for scale in done.scales.tolist()]
    if done.tensor_scale != 1:
        return message("blocks.scales_tensor", fmt=fmt.scale.title, scales=scales, tensor=f"{done.tensor_scale:.4g}")
    return message("blocks.scales", fmt=fmt.scale.title, scales=scales, count=float(len(scales)))
