"""Accelerators: one row of ``assets/data/accelerators.csv`` each, with source, confidence and known traps.

Peaks are dense rates in FLOP/s (int8: operations per second); a rate the sources do not give is NaN. The unit of the
datasheet's memory is a column, GB (10⁹ bytes) or GiB. The bandwidth of a link counts both directions.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from core.limits import cached
from core.rows import number, read_rows
from core.units import Kind

DTYPES: tuple[str, ...] = ("bf16", "fp16", "fp8", "tf32", "fp32", "fp64", "fp64_tensor", "int8", "fp6", "fp4")
"""The dtypes a peak may be given for; the usual ones of training first."""


def rate_kind(dtype: str) -> Kind:
    """Return the kind of a rate in ``dtype``: operations per second of integers, FLOP/s of all else."""
    return "op_per_s" if dtype == "int8" else "flop_per_s"


_UNIT_BYTES: Mapping[str, float] = {"GB": 1e9, "GiB": 2.0**30}


@dataclass(frozen=True, slots=True)
class Clock:
    """How a peak follows from the chip: ``2 · clock · FMA per clock and unit · units``."""

    dtype: str
    hertz: float
    fma_per_clock: int
    units: int
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator as one orders it: chip, form factor and memory.

    ``name`` is unique and never changes meaning (links carry it); ``id`` is the same in lower case with hyphens.
    Prices are US dollars per accelerator and hour; ``price_low`` equals ``price_high`` where one price is known.
    ``family`` joins accelerators on which the same software reaches about the same share of peak; ``missing`` are the
    dtypes that its architecture has no matrix units for, as far as the catalogue says.
    ``generation`` counts contemporaries across vendors: 0 with V100 and TPU v3, 1 with A100, TPU v4 and MI250X, 2 with
    H100, TPU v5 and v6, MI300X, Gaudi 2 and 3, 3 with B200, TPU7x and MI355X. ``node_size`` is how many come as one
    unit, joined by the fastest links they have: a server (8 cards or modules as a rule), the rack of an NVL72, the host
    of TPUs, which are cut to slices of any number of hosts. ``pcie`` is the slot, the link of cards that have no other.
    ``memory_bytes`` is the memory capacity on every page: the driver's figure, ``reported_mib``, or where that is NaN,
    the figure of the datasheet, ``sheet_bytes``.
    ``network`` is the bandwidth to other nodes, one way, of one accelerator in the system that it usually comes in,
    which ``network_source`` names; ``network_confidence`` may also be "assumed", where no such system is known.
    """

    id: str
    name: str
    vendor: str
    family: str
    form_factor: str
    year: int
    peaks: tuple[tuple[str, float], ...]
    measured: tuple[tuple[str, float], ...]
    memory_bytes: float
    sheet_bytes: float
    memory_type: str
    memory_unit: str
    memory_note: str
    bandwidth: float
    interconnect: str
    interconnect_bandwidth: float
    scaleup_domain: str
    pcie: str
    network: float
    network_confidence: str
    network_source: str
    tdp_watts: float
    tdp_note: str
    price_low: float
    price_high: float
    price_source: str
    sparsity: str
    source: str
    confidence: str
    traps: str
    missing: tuple[str, ...]
    generation: int
    node_size: int
    clock: Clock | None
    reported_mib: float

    @property
    def half_rate(self) -> bool:
        """Whether 16-bit products with sums in fp32 run at half the rate of the matrix units, as on GeForce cards: int8
        is four times as fast there, elsewhere twice."""
        return self.peak("int8") >= 3 * self.peak("bf16")

    def peak(self, dtype: str) -> float:
        """Dense peak in FLOP/s for ``dtype`` (see `DTYPES`); NaN when unknown or not supported."""
        if dtype not in DTYPES:
            raise KeyError(dtype)
        return dict(self.peaks).get(dtype, math.nan)

    def lacks(self, dtype: str) -> bool:
        """Whether the catalogue says that no matrix unit takes ``dtype``; False where it does not say."""
        return dtype in self.missing

    def usable(self, dtype: str) -> str:
        """``dtype`` where its peak is known, else the first dtype of `DTYPES` whose peak is."""
        return next(name for name in (dtype, *DTYPES) if not math.isnan(self.peak(name)))

    def best_measured(self, dtype: str) -> float:
        """The best matmul rate others measured, in FLOP/s; NaN when nobody's figure is at hand."""
        return dict(self.measured).get(dtype, math.nan)


def _interval(cell: str) -> tuple[float, float]:
    low, _, high = cell.partition("-")
    return number(low), number(high or low)


def _watts(cell: str) -> float:
    """The leading number of a power cell; NaN for a range, which is not one power."""
    match = re.match(r"(\d+)(?!\d*-)", cell)
    return float(match[1]) if match else math.nan


def slug(name: str) -> str:
    """``name`` in lower case with hyphens between its words: "H100 SXM" → "h100-sxm"."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _clocks() -> Mapping[str, Clock]:
    return {
        row["label"]: Clock(
            dtype=row["dtype"],
            hertz=float(row["clock_mhz"]) * 1e6,
            fma_per_clock=int(row["fma_per_clock"]),
            units=int(row["units"]),
            unit=row["unit"],
            source=row["source"],
        )
        for row in read_rows("accelerator_clocks")
    }


def _known(row: Mapping[str, str], columns: Mapping[str, str]) -> tuple[tuple[str, float], ...]:
    return tuple((dtype, float(row[column]) * 1e12) for dtype, column in columns.items() if row[column])


def _accelerator(row: Mapping[str, str], clock: Clock | None) -> Accelerator:
    low, high = _interval(row["cloud_usd_per_h"])
    sheet, reported = number(row["memory"]) * _UNIT_BYTES[row["memory_unit"]], number(row["reported_mib"])
    return Accelerator(
        id=slug(row["label"]),
        name=row["label"],
        vendor=row["vendor"],
        family=row["family"],
        form_factor=row["form_factor"],
        year=int(row["year"]),
        peaks=_known(row, {dtype: dtype for dtype in DTYPES}),
        measured=_known(row, {"bf16": "measured_mamf_bf16", "fp8": "measured_mamf_fp8"}),
        memory_bytes=sheet if math.isnan(reported) else reported * 2**20,
        sheet_bytes=sheet,
        memory_type=row["memory_type"],
        memory_unit=row["memory_unit"],
        memory_note=row["memory_note"],
        bandwidth=number(row["mem_bw_gb_s"]) * 1e9,
        interconnect=row["interconnect"],
        interconnect_bandwidth=number(row["interconnect_gb_s_bidir_per_gpu"]) * 1e9,
        scaleup_domain=row["scaleup_domain"],
        pcie=row["pcie"],
        network=number(row["network_gbit_s"]) * 1e9 / 8,
        network_confidence=row["network_confidence"],
        network_source=row["network_source"],
        tdp_watts=_watts(row["tdp_w"]),
        tdp_note=row["tdp_w"],
        price_low=low,
        price_high=high,
        price_source=row["cloud_price_source"],
        sparsity=row["sparse_is_2x_dense"],
        source=row["source"],
        confidence=row["confidence"],
        traps=row["traps"],
        missing=tuple(row["lacks"].split()),
        generation=int(row["generation"]),
        node_size=int(row["node_size"]),
        clock=clock,
        reported_mib=reported,
    )


@cached("tables_kept")
def accelerators() -> tuple[Accelerator, ...]:
    """Every accelerator of the catalogue, in its order."""
    clocks = _clocks()
    return tuple(_accelerator(row, clocks.get(row["label"])) for row in read_rows("accelerators"))


@cached("tables_kept")
def _by_slug() -> Mapping[str, Accelerator]:
    return {accelerator.id: accelerator for accelerator in accelerators()}


@cached("results_kept")
def find(name: str) -> Accelerator:
    """The accelerator of this name or id, whatever its case and punctuation.

    Raises ``KeyError`` naming the closest ones when there is none.
    """
    accelerator = _by_slug().get(slug(name))
    if accelerator is None:
        close = difflib.get_close_matches(slug(name), list(_by_slug()), n=3, cutoff=0.3)
        hint = f" Did you mean {', '.join(_by_slug()[c].name for c in close)}?" if close else ""
        raise KeyError(f"No accelerator is called {name!r}.{hint}")
    return accelerator


@cached("results_kept")
def find_in_nodes(name: str, size: int) -> Accelerator:
    """The accelerator of this name where ``size`` of them come as one unit."""
    return replace(find(name), node_size=size)
