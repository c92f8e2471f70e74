"""What the worker says: one JSON object per line, each an event. Anything else on its output is not an event."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NoReturn, TypeAlias, cast

from core.limits import limit
from core.measure.formulas import achieved_rate
from core.measure.spec import DTYPES
from core.products import matmul_flop

TEXT_CHARS = 4_000
"""Longest text an event carries; a library's message beyond it is cut with an ellipsis."""

_KNOWN = frozenset(dtype for group in DTYPES.values() for dtype in group)


def clip(text: str, chars: int = TEXT_CHARS) -> str:
    """``text`` cut to ``chars`` characters, saying so with an ellipsis."""
    return text if len(text) <= chars else f"{text[: chars - 1]}…"


@dataclass(frozen=True, slots=True)
class Started:
    """The worker runs: method version and torch version."""

    method: str
    torch: str


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """The device as the library sees it. ``threads`` is 0 where it does not apply, unknown numbers are None."""

    name: str
    detail: str
    threads: int
    memory_bytes: float | None
    power_limit_w: float | None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the dtype being measured is, 0 to 1, and what is being done to it."""

    dtype: str
    phase: str
    fraction: float

    def __post_init__(self) -> None:
        if self.dtype not in _KNOWN or not 0 <= self.fraction <= 1:
            raise ValueError(f"no such progress: {self.dtype} at {self.fraction}")


@dataclass(frozen=True, slots=True)
class Result:
    """One dtype measured: seconds of one matmul of size ``n`` over ``runs`` timed runs.

    relative_error: Frobenius norm of (result − float64 reference) over that of the reference, on a slice.
    note: why ``n`` is smaller than asked, or empty. Clocks and temperatures are None where nothing reports them.
    """

    dtype: str
    n: int
    median_s: float
    best_s: float
    p10_s: float
    p90_s: float
    runs: int
    duration_s: float
    relative_error: float
    note: str = ""
    clock_before_mhz: float | None = None
    clock_after_mhz: float | None = None
    temperature_before_c: float | None = None
    temperature_after_c: float | None = None

    def __post_init__(self) -> None:
        ordered = 0 < self.best_s <= self.p10_s <= self.median_s <= self.p90_s
        if self.dtype not in _KNOWN or not ordered or self.runs < 1 or not 0 < self.n <= limit("matmul_size"):
            raise ValueError(f"no such result: {self}")

    @property
    def flop(self) -> float:
        """Work of one run."""
        return matmul_flop(self.n, self.n, self.n)

    @property
    def rate(self) -> float:
        """The headline: FLOP/s at the median time."""
        return achieved_rate(self.flop, self.median_s)

    @property
    def best_rate(self) -> float:
        """FLOP/s of the fastest run."""
        return achieved_rate(self.flop, self.best_s)

    @property
    def p10_rate(self) -> float:
        """A tenth of the runs were slower than this FLOP/s (the p90 of the times)."""
        return achieved_rate(self.flop, self.p90_s)

    @property
    def p90_rate(self) -> float:
        """A tenth of the runs were faster than this FLOP/s (the p10 of the times)."""
        return achieved_rate(self.flop, self.p10_s)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A dtype without a result: ``refused`` carries the library's own words, ``skipped`` our reason."""

    dtype: str
    kind: str
    text: str

    def __post_init__(self) -> None:
        if self.dtype not in _KNOWN or self.kind not in ("refused", "skipped"):
            raise ValueError(f"no such refusal: {self.kind} {self.dtype}")


@dataclass(frozen=True, slots=True)
class Done:
    """The worker tried every dtype."""

    elapsed_s: float


Event: TypeAlias = Started | DeviceFacts | Progress | Result | Refusal | Done
Outcome: TypeAlias = Result | Refusal

_NAMES: Mapping[str, type[Event]] = {
    "start": Started,
    "device": DeviceFacts,
    "progress": Progress,
    "result": Result,
    "refusal": Refusal,
    "done": Done,
}


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= TEXT_CHARS


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_float(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


_CHECKS: Mapping[str, Callable[[object], bool]] = {
    "str": _is_text,
    "int": _is_int,
    "float": _is_float,
    "float | None": lambda value: value is None or _is_float(value),
}


def encode(event: Event) -> str:
    """``event`` as one line of JSON, without the line end."""
    return written(event, _NAMES)


def written(event: Any, kinds: Mapping[str, type[Any]]) -> str:
    """One of ``kinds`` of events, by name, as one line of JSON; raises ``StopIteration`` for another."""
    name = next(name for name, kind in kinds.items() if kind is type(event))
    return json.dumps({"event": name, **asdict(event)}, allow_nan=False)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def decode(line: bytes) -> Event | None:
    """The event on one line of a worker's output, or None when the line is anything else."""
    return read(line, _NAMES)


def read(line: bytes, kinds: Mapping[str, type[Any]]) -> Any:
    """The event of one of ``kinds``, by name, on one line of a process's output; None when the line is anything else.

    Every field is checked for type and range, because whatever a library prints lands on the same output.
    """
    try:
        values: Any = json.loads(line, parse_constant=_no_constant)
        if not isinstance(values, dict):
            return None
        values = cast(dict[str, Any], values)
        made = kinds[values.pop("event")]
        checks = {field.name: _CHECKS[str(field.type)] for field in fields(made)}
        if values.keys() != checks.keys() or not all(check(values[name]) for name, check in checks.items()):
            return None
        return made(**values)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
