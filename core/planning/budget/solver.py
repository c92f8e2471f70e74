"""The budget equation solved for any one of its quantities: tokens, parameters, accelerators, days, MFU or dollars.

One equation joins five of them, FLOPs needed = FLOPs delivered: D · F = n · P · u · t · g, with D tokens, F training
FLOPs per token (6 N by the rule), n accelerators of dense peak P, MFU u, t seconds on the wall and goodput g, the
share of the wall time that trains. A second one prices the accelerator-hours. Every inverse is a formula of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from core.formula import Explanation, Formula
from core.planning.budget.equations import (
    accelerators_needed,
    accelerators_of,
    days_of,
    flop_of_a_run,
    flop_of_a_token,
    hours_affordable,
    mfu_needed,
    parameters_trainable,
    productive_seconds,
    tokens_trainable,
    wall_seconds,
)
from core.planning.budget.rule import accelerator_hours, rent, tokens_per_second, training_seconds
from core.units import Kind, format_quantity

Value: TypeAlias = "float | npt.NDArray[np.float64]"
"""A number, or an array of them; arrays broadcast against each other."""

Unknown: TypeAlias = Literal["tokens", "parameters", "accelerators", "days", "mfu", "dollars"]
"""What the budget can be solved for."""


class BudgetError(ValueError):
    """A budget that cannot be worked out. ``field`` names the quantity at fault; the message says why."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class SolvedBudget:
    """A budget with every quantity filled in; ``solved`` names the one that was asked for.

    Numbers, or numpy arrays of one common shape where any input was an array. NaN is unknown: the price and the
    dollars without a price, the parameters where only FLOPs per token were given, accelerators and days where only
    their product is fixed (by dollars), and an array's entries that no MFU up to 1 can meet.

    days: on the wall. seconds: spent training, days times goodput. hours: accelerators times days on the wall.
    per_token: training FLOPs per token. per_parameter: the same per parameter. tokens_per_second: of the whole
    cluster while it trains.
    """

    solved: Unknown
    tokens: Value
    parameters: Value
    accelerators: Value
    days: Value
    mfu: Value
    dollars: Value
    price: Value
    peak: Value
    goodput: Value
    per_token: Value
    per_parameter: Value
    flop: Value
    seconds: Value
    hours: Value
    tokens_per_second: Value

    def at(self, index: int | tuple[int, ...]) -> SolvedBudget:
        """One element of an array budget, as a budget of plain numbers."""
        picked = {
            field.name: float(np.asarray(getattr(self, field.name))[index])
            for field in fields(self)
            if field.name != "solved"
        }
        return replace(self, **cast("dict[str, Any]", picked))

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """Every step from the inputs to the answer, with its formula. Take ``at`` of an array first.

        Raises ``TypeError`` for arrays.
        """
        return tuple(rule.explain(**values) for rule, values in self._steps())

    def _steps(self) -> list[tuple[Formula[...], dict[str, float]]]:
        v = {field.name: float(getattr(self, field.name)) for field in fields(self) if field.name != "solved"}

        def step(rule: Formula[...], *same: str, **others: float) -> tuple[Formula[...], dict[str, float]]:
            return rule, {name: v[name] for name in same} | others

        spread = not math.isnan(v["accelerators"])
        cluster = {"accelerators": v["accelerators"] if spread else 1.0, "peak": v["peak"], "seconds": v["seconds"]}
        found: list[tuple[Formula[...], dict[str, float]]] = []
        if self.solved in ("tokens", "parameters", "mfu") and not spread:
            found.append(step(hours_affordable, "dollars", "price"))
        if self.solved != "parameters" and not math.isnan(v["parameters"]):
            found.append(step(flop_of_a_token, "per_parameter", "parameters"))
        if self.solved not in ("tokens", "parameters"):
            found.append(step(flop_of_a_run, "per_token", "tokens"))
        if self.solved not in ("days", "dollars") and spread:
            found.append(step(productive_seconds, "days", "goodput"))
        match self.solved:
            case "tokens":
                found.append(step(tokens_trainable, "mfu", "per_token", **cluster))
            case "parameters":
                found.append(step(parameters_trainable, "mfu", "per_parameter", "tokens", **cluster))
            case "accelerators":
                found.append(step(accelerators_needed, "flop", "peak", "mfu", "seconds"))
            case "mfu":
                found.append(step(mfu_needed, "flop", **cluster))
            case _:
                work = {key: cluster[key] for key in ("accelerators", "peak")}
                found.append(step(training_seconds, "flop", "mfu", **work))
                found.append(step(wall_seconds, "seconds", "goodput"))
        if spread:
            found.append(step(accelerator_hours, "accelerators", seconds=86400 * v["days"]))
            found.append(step(tokens_per_second, "tokens", "seconds"))
        if not math.isnan(v["dollars"]):
            found.append(step(rent, "hours", "price"))
        return found


_KINDS: Mapping[str, tuple[str, Kind, str]] = {
    "tokens": ("Tokens", "count", "15T"),
    "parameters": ("Parameters", "count", "70B"),
    "accelerators": ("The number of accelerators", "count", "1024"),
    "days": ("Days", "number", "30"),
    "mfu": ("MFU", "ratio", "0.4 or 40%"),
    "dollars": ("Dollars", "usd", "$5M"),
    "price": ("The price per accelerator-hour", "usd_per_hour", "2.50"),
    "peak": ("The peak", "flop_per_s", "989.4 TFLOP/s"),
    "goodput": ("Goodput", "ratio", "0.9 or 90%"),
    "flop_per_token": ("FLOPs per token", "flop", "4.2e11"),
    "flop_per_parameter": ("FLOPs per token and parameter", "number", "6"),
}
_SHARES = {"mfu", "goodput"}


def _checked(name: str, value: object) -> Value:
    """``value`` as a float or a float array; raises `BudgetError` unless all of it is finite, above 0, shares ≤ 1."""
    label, kind, example = _KINDS[name]
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise BudgetError(name, f"{label}: {value!r:.60} is not a number. For example: {example}.") from None
    if not array.size:
        raise BudgetError(name, f"{label}: an empty array has nothing to solve. For example: {example}.")
    none = np.zeros(array.shape, dtype=bool)
    share, whole = name in _SHARES, name == "accelerators"
    for bad, rule in (
        (~np.isfinite(array), "must be a finite number"),
        (array <= 0, "must be more than zero"),
        (array > 1 if share else none, "cannot be above 100 %"),
        (array < 1 if whole else none, "must be at least 1"),
    ):
        if bad.any():
            worst = float(array[bad].flat[0])
            shown = "infinite" if math.isinf(worst) else format_quantity(worst, kind)
            meant = f" Did you mean {worst:g}%?" if share and 1 < worst <= 100 else ""
            raise BudgetError(name, f"{label} {rule}; this is {shown}. For example: {example}.{meant}")
    return float(array) if array.ndim == 0 else array


def _check_shapes(given: Mapping[str, Value]) -> None:
    arrays = {name: np.shape(value) for name, value in given.items() if np.ndim(value)}
    try:
        np.broadcast_shapes(*arrays.values())
    except ValueError:
        shapes = ", ".join(f"{name} {shape}" for name, shape in arrays.items())
        raise BudgetError(next(iter(arrays)), f"The arrays have shapes that do not fit together: {shapes}.") from None


def _use(rule: Formula[...], **values: Value) -> Value:
    """``rule`` on numbers or arrays alike; overflow is found by the caller, not warned of."""
    with np.errstate(all="ignore"):
        if any(isinstance(value, np.ndarray) for value in values.values()):
            return rule.over(**values)
        try:
            return float(rule(**values))
        except (OverflowError, ZeroDivisionError):
            return math.inf


def _same(left: Value, right: Value) -> bool:
    return bool(np.allclose(left, right, rtol=1e-6, atol=0))


def solve_budget(
    *,
    tokens: object = None,
    parameters: object = None,
    accelerators: object = None,
    days: object = None,
    mfu: object = None,
    dollars: object = None,
    peak: object,
    price: object = None,
    goodput: object = 1.0,
    flop_per_token: object = None,
    flop_per_parameter: object = 6.0,
) -> SolvedBudget:
    """Any one of tokens, parameters, accelerators, days, MFU and dollars from the others.

    Leave exactly one of the five quantities of training out, and it is solved for; dollars follow from ``price``
    (dollars per accelerator-hour). Dollars given with a price fix the accelerator-hours: then give accelerators or
    days (or neither) and leave out one of tokens, parameters and MFU. With accelerators and days both left out and
    everything else given, the dollars are solved for.

    Every argument is a number or a numpy array (they broadcast). peak: dense FLOP/s of one accelerator. goodput:
    share of the days that trains. flop_per_token: training FLOPs per token where they were counted, for a mixture of
    experts or under an attention convention. flop_per_parameter: what takes its place where only parameters are
    known, or are asked for: 6 by the rule, or a model's count divided by its parameters.

    Raises `BudgetError` for nothing or too much left out, for numbers that are not finite or not above 0, shares
    above 1, results that overflow, and plans that no MFU up to 1 can meet.
    """
    arguments = {
        "tokens": tokens,
        "parameters": parameters,
        "accelerators": accelerators,
        "days": days,
        "mfu": mfu,
        "dollars": dollars,
        "price": price,
        "peak": peak,
        "goodput": goodput,
        "flop_per_token": flop_per_token,
        "flop_per_parameter": flop_per_parameter,
    }
    given = {name: _checked(name, value) for name, value in arguments.items() if value is not None}
    _check_shapes(given)
    hours = _hours_of_dollars(given)
    unknown = _unknown(given, hours is not None)
    return _refuse_impossible(_solve(unknown, given, hours))


def _hours_of_dollars(given: dict[str, Value]) -> Value | None:
    """Accelerator-hours fixed by money; fills accelerators or days in where the other one is given."""
    if "dollars" not in given:
        return None
    if "price" not in given:
        raise BudgetError("price", "Dollars buy nothing without a price per accelerator-hour. For example: 2.50.")
    hours = _use(hours_affordable, dollars=given["dollars"], price=given["price"])
    if "accelerators" in given and "days" in given:
        if not _same(hours, np.multiply(given["accelerators"], given["days"]) * 24):
            raise BudgetError(
                "dollars", "Dollars, price, accelerators and days contradict each other: leave one of them out."
            )
    elif "accelerators" in given:
        given["days"] = _use(days_of, hours=hours, accelerators=given["accelerators"])
    elif "days" in given:
        given["accelerators"] = _use(accelerators_of, hours=hours, days=given["days"])
    return hours


_FIVE: tuple[Unknown, ...] = ("tokens", "parameters", "accelerators", "days", "mfu")


def _unknown(given: Mapping[str, Value], priced: bool) -> Unknown:
    """Which quantity is asked for; raises `BudgetError` where that is not exactly one."""
    counted = "flop_per_token" in given  # then the parameters are not needed, and cannot be asked for
    missing = {name for name in _FIVE if name not in given}
    if counted:
        missing -= {"parameters"}
    split = {"accelerators", "days"}
    if priced and split <= missing:
        missing -= split
    if not priced and missing == split:
        if "price" not in given:
            raise BudgetError("price", "Dollars need a price per accelerator-hour. For example: 2.50.")
        return "dollars"
    if len(missing) == 1:
        return cast("Unknown", missing.pop())
    if not missing:
        return "dollars"
    names = ", ".join(sorted(missing))
    raise BudgetError(min(missing), f"One quantity can be solved for, not {len(missing)}: give all but one of {names}.")


def _solve(unknown: Unknown, given: Mapping[str, Value], hours: Value | None) -> SolvedBudget:
    nan = math.nan
    peak, goodput, per_parameter = given["peak"], given["goodput"], given["flop_per_parameter"]
    parameters, tokens = given.get("parameters", nan), given.get("tokens", nan)
    accelerators, days = given.get("accelerators", nan), given.get("days", nan)
    mfu, price = given.get("mfu", nan), given.get("price", nan)
    per_token = given.get("flop_per_token", nan)
    if "flop_per_token" not in given and unknown != "parameters":
        per_token = _use(flop_of_a_token, per_parameter=per_parameter, parameters=parameters)
    elif "flop_per_token" in given and "parameters" in given:
        per_parameter = np.divide(per_token, parameters)

    whole = "accelerators" in given and "days" in given
    seconds: Value = _use(productive_seconds, days=days, goodput=goodput) if "days" in given else nan
    # Dollars alone fix accelerators times seconds: then one accelerator for all of them stands for any split.
    count: Value = accelerators if "accelerators" in given else 1.0
    if hours is not None and not whole:
        seconds = np.multiply(hours, 3600) * goodput
    work = {"accelerators": count, "peak": peak, "mfu": mfu, "seconds": seconds}

    if unknown == "tokens":
        tokens = _use(tokens_trainable, **work, per_token=per_token)
    elif unknown == "parameters":
        parameters = _use(parameters_trainable, **work, per_parameter=per_parameter, tokens=tokens)
        per_token = _use(flop_of_a_token, per_parameter=per_parameter, parameters=parameters)
    flop = _use(flop_of_a_run, per_token=per_token, tokens=tokens)
    if unknown == "accelerators":
        accelerators = _use(accelerators_needed, flop=flop, peak=peak, mfu=mfu, seconds=seconds)
    elif unknown == "mfu":
        mfu = _use(mfu_needed, flop=flop, accelerators=count, peak=peak, seconds=seconds)
    elif unknown in ("days", "dollars"):
        needed = _use(training_seconds, flop=flop, accelerators=count, peak=peak, mfu=mfu)
        wall = _use(wall_seconds, seconds=needed, goodput=goodput)
        if unknown == "dollars" and (whole or hours is not None):
            _refuse_contradiction(given, seconds, needed)
        if unknown == "days":
            days = np.divide(wall, 86400)
        seconds = needed
        if "accelerators" not in given:
            hours = np.divide(wall, 3600)
    billed = np.multiply(accelerators, days) * 24 if hours is None or whole else hours
    dollars = given.get("dollars", _use(rent, hours=billed, price=price))
    spread = "accelerators" in given or unknown == "accelerators"
    rate: Value = _use(tokens_per_second, tokens=tokens, seconds=seconds) if spread else nan
    return _made(
        unknown,
        tokens=tokens,
        parameters=parameters,
        accelerators=accelerators,
        days=days,
        mfu=mfu,
        dollars=dollars,
        price=price,
        peak=peak,
        goodput=goodput,
        per_token=per_token,
        per_parameter=per_parameter,
        flop=flop,
        seconds=seconds,
        hours=billed,
        tokens_per_second=rate,
    )


def _made(unknown: Unknown, **values: Value) -> SolvedBudget:
    """The result with all arrays of one shape, or all plain numbers."""
    if any(isinstance(value, np.ndarray) and value.ndim for value in values.values()):
        spread = np.broadcast_arrays(*values.values())
        return SolvedBudget(unknown, **dict(zip(values, spread, strict=True)))
    return SolvedBudget(unknown, **{name: float(value) for name, value in values.items()})


def _refuse_contradiction(given: Mapping[str, Value], seconds: Value, needed: Value) -> None:
    if not _same(seconds, needed):
        days = float(np.asarray(needed).flat[0]) / 86400
        raise BudgetError(
            "days" if "days" in given else "dollars",
            "All of tokens, parameters, accelerators, days and MFU are given and contradict each other: "
            f"the work takes {format_quantity(days * 86400, 'seconds')} of training. Leave one of them out.",
        )


def _refuse_impossible(made: SolvedBudget) -> SolvedBudget:
    """``made``; overflow and an MFU above 1 raise, or turn into NaN where an array was solved for MFU."""
    for name in ("flop", "seconds", "hours", made.solved):
        value = np.asarray(getattr(made, name))
        if np.isinf(value).any() or (value == 0).any():
            raise BudgetError(made.solved, f"These numbers go beyond what can be counted: {name} overflows.")
    if made.solved != "mfu":
        return made
    mfu = np.asarray(made.mfu)
    impossible = mfu > 1 + 1e-12
    if not impossible.any():
        return made
    if mfu.ndim:
        return replace(made, mfu=np.where(impossible, math.nan, mfu))
    raise BudgetError(
        "mfu",
        f"Cannot be met: it would take an MFU of {format_quantity(float(mfu), 'ratio')}, more than the whole peak. "
        "Allow more days or accelerators, or fewer tokens or parameters.",
    )
