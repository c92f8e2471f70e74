"""Accelerators: their peaks, memory and links, the names that libraries give them, and their best matmul.

Peaks are dense rates in FLOP/s (int8: operations per second); a rate the sources do not give is NaN. The unit of the
datasheet's memory is a column, GB (10⁹ bytes) or GiB. The bandwidth of a link counts both directions.
"""

from __future__ import annotations

import difflib
import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from core.limits import cached
from core.rows import number, read_record, read_rows
from core.units import Kind

DTYPES: tuple[str, ...] = ("bf16", "fp16", "fp8", "tf32", "fp32", "fp64", "fp64_tensor", "int8", "fp6", "fp4")
"""The dtypes a peak may be given for; the usual ones of training first."""


def rate_kind(dtype: str) -> Kind:
    """Return the kind of a rate in ``dtype``: operations per second of integers, FLOP/s of all else."""
    return "op_per_s" if dtype == "int8" else "flop_per_s"


_UNIT_BYTES: Mapping[str, float] = {"GB": 1e9, "GiB": 2.0**30}


@dataclass(frozen=True, slots=True)
class Clock:
    """Clock and units of a chip, from which its peak follows: ``2 · clock · FMA per clock and unit · units``."""

    dtype: str
    hertz: float
    fma_per_clock: int
    units: int
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator as one orders it: chip, form factor and memory.

    ``name`` is unique and never changes meaning (links carry it); ``id`` is the same in lower case with hyphens. Prices
    are US dollars per accelerator and hour; ``price_low`` equals ``price_high`` where one price is known. ``family``
    joins accelerators on which the same software reaches about the same share of peak; ``missing`` are the dtypes that
    its architecture has no matrix units for, as far as the catalog says. ``generation`` counts contemporaries across
    vendors: 0 with V100 and TPU v3, 1 with A100, TPU v4 and MI250X, 2 with H100, TPU v5 and v6, MI300X, Gaudi 2 and 3,
    3 with B200, TPU7x and MI355X. ``node_size`` is how many come as one unit, joined by the fastest links they have: a
    server (8 cards or modules as a rule), the rack of an NVL72, the host of TPUs, which are cut to slices of any number
    of hosts. ``pcie`` is the slot, the link of cards that have no other. ``memory_bytes`` is the memory capacity on
    every page: the driver's figure, ``reported_mib``, or where that is NaN, the figure of the datasheet,
    ``sheet_bytes``. ``network`` is the bandwidth to other nodes, one way, of one accelerator in the system that it
    usually comes in, which ``network_source`` names; ``network_confidence`` may also be "assumed", where no such system
    is known.
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
        """Return dense peak in FLOP/s for ``dtype`` (see `DTYPES`); NaN when unknown or not supported."""
        if dtype not in DTYPES:
            raise KeyError(dtype)
        return dict(self.peaks).get(dtype, math.nan)

    def lacks(self, dtype: str) -> bool:
        """Return whether the catalog says that no matrix unit takes ``dtype``; False if it does not say."""
        return dtype in self.missing

    def usable(self, dtype: str) -> str:
        """Return ``dtype`` where its peak is known, else the first dtype of `DTYPES` whose peak is."""
        return next(name for name in (dtype, *DTYPES) if not math.isnan(self.peak(name)))

    def best_measured(self, dtype: str) -> float:
        """Return the best published matmul rate in FLOP/s; NaN if none is known."""
        return dict(self.measured).get(dtype, math.nan)


def _interval(cell: str) -> tuple[float, float]:
    low, _, high = cell.partition("-")
    return number(low), number(high or low)


def _watts(cell: str) -> float:
    """Return the leading number of a power cell; NaN for a range, which is not one power."""
    match = re.match(r"(\d+)(?!\d*-)", cell)
    return float(match[1]) if match else math.nan


def slug(name: str) -> str:
    """Return ``name`` in lower case with hyphens between its words: "H100 SXM" → "h100-sxm"."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _clocks() -> Mapping[str, Clock]:
    rows = read_rows("accelerator_clocks")
    return {row["label"]: read_record(Clock, row, hertz=float(row["clock_mhz"]) * 1e6) for row in rows}


def _known(row: Mapping[str, str], columns: Mapping[str, str]) -> tuple[tuple[str, float], ...]:
    return tuple((dtype, float(row[column]) * 1e12) for dtype, column in columns.items() if row[column])


_COLUMNS: Mapping[str, str] = {
    "name": "label", "tdp_note": "tdp_w", "price_source": "cloud_price_source", "sparsity": "sparse_is_2x_dense",
}  # fmt: skip
"""Field → its column, where that has another name."""


def _accelerator(row: Mapping[str, str], clock: Clock | None) -> Accelerator:
    low, high = _interval(row["cloud_usd_per_h"])
    sheet, reported = number(row["memory"]) * _UNIT_BYTES[row["memory_unit"]], number(row["reported_mib"])
    return read_record(
        Accelerator,
        row,
        _COLUMNS,
        id=slug(row["label"]),
        peaks=_known(row, {dtype: dtype for dtype in DTYPES}),
        measured=_known(row, {"bf16": "measured_mamf_bf16", "fp8": "measured_mamf_fp8"}),
        memory_bytes=sheet if math.isnan(reported) else reported * 2**20,
        sheet_bytes=sheet,
        bandwidth=number(row["mem_bw_gb_s"]) * 1e9,
        interconnect_bandwidth=number(row["interconnect_gb_s_bidir_per_gpu"]) * 1e9,
        network=number(row["network_gbit_s"]) * 1e9 / 8,
        tdp_watts=_watts(row["tdp_w"]),
        price_low=low,
        price_high=high,
        missing=tuple(row["lacks"].split()),
        clock=clock,
    )


@cached("tables_kept")
def accelerators() -> tuple[Accelerator, ...]:
    """Return every accelerator of the catalog, in its order."""
    clocks = _clocks()
    return tuple(_accelerator(row, clocks.get(row["label"])) for row in read_rows("accelerators"))


@cached("tables_kept")
def _by_slug() -> Mapping[str, Accelerator]:
    return {accelerator.id: accelerator for accelerator in accelerators()}


@cached("results_kept")
def find(name: str) -> Accelerator:
    """Return the accelerator of this name or id, whatever its case and punctuation.

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
    """Return the accelerator of this name where ``size`` of them come as one unit."""
    return replace(find(name), node_size=size)


_USUAL = ("V100 SXM 32 GB", "A100 SXM 80 GB", "H100 SXM", "H200 SXM", "GH200 96 GB", "RTX PRO 6000 Server")
"""What a name means that several variants have, if it says neither form factor nor memory."""

_WORD = re.compile(r"[A-Za-z0-9]+")
_MEMORY = re.compile(r"(\d{1,3})[ -]?G(?:i?B)?\b", re.IGNORECASE)
_IN_NAME = re.compile(r"\d+ GB|[()]")
_FORM = re.compile(r"(SXM|PCIe|NVL)\d?", re.IGNORECASE)
_RACK = re.compile(r"NVL(\d{1,4})", re.IGNORECASE)
_NOISE = re.compile(
    r"nvidia|amd|intel|google|aws|apple|tesla|instinct|geforce|oam|superchip|hbm\d\w?|gddr\d\w?", re.IGNORECASE
)
_BOARD = re.compile(r"[HD]GX", re.IGNORECASE)
"""Boards and servers whose accelerators are SXM modules."""

_GLUED = re.compile(r"(?<=sxm)\d$")
"""The generation of a module that is written in one word with its chip."""

_LONGEST = 4
"""Words of the longest name without its variant, ``RTX PRO 6000``, and one more."""
_NEAR = 0.08
"""Share by which a written memory size may differ from the datasheet's: B200 are sold with 192 GB and have 180."""


@dataclass(frozen=True, slots=True)
class NamedAccelerator:
    """An accelerator that a text names. name: empty if the catalog has the chip, but not in the form or with the memory
    that the text says. start, end: where in the text. per_node: of the rack or board if it is named."""

    name: str
    start: int
    end: int
    per_node: int | None = None


@dataclass(frozen=True, slots=True)
class _Variant:
    """An accelerator by the words that tell it from others of the same chip. extras: those that its own name has."""

    device: Accelerator
    words: frozenset[str]
    extras: frozenset[str]


def _variant(device: Accelerator) -> tuple[str, _Variant]:
    """Return the chip of an accelerator as one word, and the accelerator as a variant of it."""
    words = _WORD.findall(_IN_NAME.sub(" ", device.name))
    extras = [word for word in words if _FORM.fullmatch(word) or word in ("OCP", "Server", "Workstation")]
    chip = "".join(word for word in words if word not in extras).lower()
    form = _FORM.match(device.form_factor)
    own = frozenset(word.lower() for word in extras)
    forms = frozenset({form[1].lower()} if form else ())
    return chip, _Variant(device, own | forms, own - {"sxm", "pcie"})


@cached("tables_kept")
def _chips() -> Mapping[str, tuple[frozenset[str], tuple[_Variant, ...]]]:
    """Return chip as one word in lower case → words that this writing of it says, and its variants."""
    variants: dict[str, list[_Variant]] = {}
    for chip, variant in map(_variant, accelerators()):
        variants.setdefault(chip, []).append(variant)
    chips: dict[str, tuple[frozenset[str], tuple[_Variant, ...]]] = {}
    for chip, some in variants.items():
        short = [chip.removeprefix(family) for family in ("tpu", "rtx")]
        for name in (chip, *(name for name in short if not name.isdecimal()), chip.removesuffix("x")):
            chips.setdefault(name, (frozenset(), tuple(some)))
        for form in ("sxm", "pcie"):
            chips.setdefault(chip + form, (frozenset({form}), tuple(some)))
    return chips


def find_accelerator_name(text: str) -> NamedAccelerator | None:
    """Return the first accelerator that a text names, or None if it names none.

    If the text does not name a variant, this is the most common one. A space or a mark may separate the words of a
    name.
    """
    words = list(_WORD.finditer(text))
    for first in range(len(words)):
        for count in range(min(_LONGEST, len(words) - first), 0, -1):
            some = words[first : first + count]
            if any(len(text[a.end() : b.start()]) > 1 for a, b in pairwise(some)):
                continue
            key = _GLUED.sub("", "".join(word.group() for word in some).lower())
            known = _chips().get(key) or _chips().get(key.removesuffix("s"))
            if known:
                return _named(text, words, first, first + count, *known)
    return None


def _named(
    text: str, words: list[re.Match[str]], first: int, end: int, said: frozenset[str], variants: tuple[_Variant, ...]
) -> NamedAccelerator:
    """Return the variant that the words around a chip's name say, which are part of the name."""
    every = frozenset(word for variant in variants for word in variant.words)
    wanted, per_node, gigabytes = set(said), None, 0
    while first and _adjoins(text, words[first - 1], words[first]):
        word = words[first - 1].group()
        if not (_NOISE.fullmatch(word) or _BOARD.fullmatch(word)):
            break
        wanted |= {"sxm"} if _BOARD.fullmatch(word) else set()
        first -= 1
    start, stop = words[first].start(), words[end - 1].end()
    while end < len(words) and _adjoins(text, words[end - 1], words[end]):
        word = words[end].group()
        form, rack, memory = _FORM.fullmatch(word), _RACK.fullmatch(word), _MEMORY.match(text, words[end].start())
        if memory and not gigabytes:
            gigabytes, stop = int(memory[1]), memory.end()
            end += sum(word.start() < stop for word in words[end:])
            continue
        if rack:
            per_node = int(rack[1])
        elif form or word.lower() in every:
            wanted.add(form[1].lower() if form else word.lower())
        elif not _NOISE.fullmatch(word):
            break
        stop, end = words[end].end(), end + 1
    stop += text[stop : stop + 1] == ")" and "(" in text[start:stop]
    fitting = [variant for variant in variants if wanted <= variant.words]
    if gigabytes:
        fitting = [v for v in fitting if abs(gigabytes * 1e9 / v.device.sheet_bytes - 1) <= _NEAR]
    if not fitting or per_node == 0:
        return NamedAccelerator("", start, stop)

    def unlike(variant: _Variant) -> tuple[float, int, bool, float]:
        off = abs(gigabytes * 1e9 / variant.device.sheet_bytes - 1) if gigabytes else 0.0
        others = variant.extras - wanted
        return off, len(others - {"server"}), variant.device.name not in _USUAL, -variant.device.sheet_bytes

    return NamedAccelerator(min(fitting, key=unlike).device.name, start, stop, per_node)


def _adjoins(text: str, before: re.Match[str], after: re.Match[str]) -> bool:
    """Return whether only a space or a mark of a name is between two words."""
    return text[before.end() : after.start()].strip(" ") in ("", "-", "_", "/", "(")


@dataclass(frozen=True, slots=True)
class BestMatmul:
    """The fastest matmul that is known, or to be expected, of an accelerator in one dtype.

    share: of the dense peak of that dtype. rate: FLOP/s. measured: whether a user measured this very accelerator. of:
    whose measurements it follows from.
    """

    share: float
    rate: float
    measured: bool
    of: str


def _share(device: Accelerator, dtype: str) -> float:
    return device.best_measured(dtype) / device.peak(dtype)


def _measured(dtype: str, like: Callable[[Accelerator], bool]) -> Sequence[float]:
    shares = (_share(device, dtype) for device in accelerators() if like(device))
    return [share for share in shares if not math.isnan(share)]


@cached("results_kept")
def best_matmul(name: str, dtype: str) -> BestMatmul:
    """Return the best matmul rate of accelerator ``name`` in ``dtype``, in FLOP/s.

    If no measurement is known, this is the peak times the median measured share of the peak: of its family, else of its
    vendor, else its own share in bf16, and for bf16 the median of all. The share depends on clocks under load and on
    the vendor's library, which a vendor's accelerators have in common. The median keeps one outlier from deciding. fp16
    follows bf16. NaN if the accelerator has no such peak, or if no accelerator was measured in this dtype.
    """
    device = find(name)
    peak, base = device.peak(dtype), "bf16" if dtype == "fp16" else dtype
    own = _share(device, base)
    if not math.isnan(own):
        return BestMatmul(own, own * peak, measured=True, of=device.name)
    pools = (
        (device.family, _measured(base, lambda other: other.family == device.family)),
        (device.vendor, _measured(base, lambda other: other.vendor == device.vendor)),
        ("all accelerators", _measured(base, lambda _: True)) if base == "bf16" else _own_bf16(device),
    )
    of, shares = next(((of, shares) for of, shares in pools if shares), ("", (math.nan,)))
    share = statistics.median(shares)
    return BestMatmul(share, share * peak, measured=False, of=of)


def _own_bf16(device: Accelerator) -> tuple[str, Sequence[float]]:
    return f"{device.name} in 16 bits", [best_matmul(device.name, device.usable("bf16")).share]


def ceiling_of(device: Accelerator, dtype: str) -> float:
    """Return the best matmul rate of an accelerator as a share of its peak; 1 if no measurement is known."""
    share = best_matmul(device.name, dtype).share
    return 1.0 if math.isnan(share) else min(share, 1.0)
