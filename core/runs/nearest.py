"""Published whole runs as neighbours of a plan: how near each is, and the level that they agree on.

A level is the logarithm of a run's utilisation, as a share of what its accelerator's best matmul reaches, with the
usual effect of tokens per parameter and of narrow products taken out. Near rows weigh more; the level that a plan is
expected at is where the rows' pulls balance. All of it is continuous, and nothing is searched for: between two
neighbouring knots the sum of the pulls is a straight line.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from core.formula import Source, Symbol, formula
from core.hardware.accelerators import find
from core.hardware.matmul import best_matmul
from core.runs.utilisation import Evidence, Width, base_peak, evidence

Array = npt.NDArray[np.float64]

HUBER = Source(
    "Huber 1964, Robust Estimation of a Location Parameter", "section 1", "https://doi.org/10.1214/aoms/1177703732"
)
WATSON = Source("Watson 1964, Smooth Regression Analysis", "Sankhyā A 26, pages 359–372")

LENGTH_PARAMS = 4.0
LENGTH_RATIO = 1.5
LENGTH_GENERATION = 0.7
LENGTH_KIND = 1.0
_LENGTHS = np.array([LENGTH_PARAMS, LENGTH_RATIO])[:, None, None]
"""How far apart two runs are one step: e⁴ in parameters, e^1.5 in tokens per parameter, 0.7 of a chip generation, and
another family of chip, another width of products, or a mixture beside a dense model. Size matters least: on one chip
the same team's runs of 7 and 70 billion parameters differ less than two teams' runs of one size."""

FLOOR = 0.02
"""Weight that even the farthest row keeps, so that a plan far from all rows is expected at the level of all."""

DELTA = 0.25
"""Logarithm of utilisation up to which a row pulls in proportion to its distance, beyond it no harder: about half of
the spread between runs of one kind. A mistaken row then moves the level no further than a mildly unusual one."""

SLACK = 0.02
"""Pull that still grows beyond `DELTA`, as a share of the one within: where rows fall into two groups the level then
moves across the gap, fast but without a jump."""

STRETCH = 2.0
"""Spread is read from a wider circle than the level: a tenth on either side takes more rows than a middle does."""

RATIO_POWER = 0.1
"""Utilisation falls with the tenth power of tokens per parameter: of two runs of the same compute the one with more
tokens trains the smaller model, in shorter steps. 0.05 to 0.15 predict about equally well."""

USUAL_RATIO = 100.0
"""Tokens per parameter at which the power is 1; only a matter of how levels read."""

SOFT = 0.5
"""Softness, in logarithms, of the ends of the published range, beyond which size and ratio change nothing more."""

RECENT, AGEING = 2022, 0.5
"""Runs published before this year count half as much for each year: software and practice were others."""


@formula(
    f"{FLOOR}" + r" + \exp(-\frac{\v{distance}^{2}}{2})",
    result=Symbol("w", "weight of a published run", "number"),
    symbols={"distance": Symbol("d", "distance of the run from the plan, in steps", "number")},
    sources=(WATSON,),
)
def similarity(distance: float) -> float:
    """Weight of a published run.

    Distance adds up, as squares, over parameters (a factor of 55 is one step), tokens per parameter (a factor of 4.5),
    chip generation (0.7 of one), family of chip, mixture or dense, and width. A lab's runs share the root of their sum,
    and each year before 2022 halves the weight.
    """
    return FLOOR + np.exp(-(distance**2) / 2)


def soft_clamp(values: Array, low: Array, high: Array) -> Array:
    """``values`` within ``low`` and ``high``, level beyond them, without a corner. All broadcast."""
    above = np.logaddexp(0.0, (values - low) / SOFT)
    return low + SOFT * (above - np.logaddexp(0.0, (values - high) / SOFT))


@dataclass(frozen=True, slots=True, eq=False)
class Balance:
    """Where weighted pulls of some values balance: their Huber location, and its like for other shares than a half.

    knots: where the sum of pulls bends. pulls: of each value (columns) at each knot (rows).
    """

    knots: Array
    pulls: Array

    @staticmethod
    def of(values: Array) -> Balance:
        """The balance of ``values``."""
        knots = np.sort(np.concatenate([values - DELTA, values + DELTA]))
        gap = (knots[:, None] - values[None, :]) / DELTA
        return Balance(knots, np.clip(gap, -1.0, 1.0) + SLACK * gap)

    def at(self, weights: Array, *shares: float) -> Array:
        """The points that these ``shares`` (rows) of the weight lie below, for each row of ``weights`` (columns).

        The sum of pulls rises through every knot and is linear between two, so this is exact.
        """
        sums = weights @ self.pulls.T
        goal = (2 * np.array(shares)[:, None] - 1) * weights.sum(axis=1)
        above = (sums < goal[..., None]).sum(axis=-1)
        above = np.minimum(np.maximum(above, 1), len(self.knots) - 1)
        each = np.arange(len(weights))
        left, right = sums[each, above - 1], sums[each, above]
        start, end = self.knots[above - 1], self.knots[above]
        return start + (end - start) * (goal - left) / (right - left)


@dataclass(frozen=True, slots=True)
class Kind:
    """What a plan or a row is, beside its size: the traits that do not vary continuously."""

    family: str
    generation: int
    mixture: bool
    narrow: bool


@lru_cache(maxsize=256)
def best_16bit(accelerator: str) -> float:
    """The best 16-bit matmul as a share of the dense 16-bit peak."""
    return best_matmul(accelerator, find(accelerator).usable("bf16")).rate / base_peak(accelerator)


@lru_cache(maxsize=256)
def best_8bit(accelerator: str) -> float:
    """The best 8-bit matmul as a share of the dense 16-bit peak; NaN where the accelerator has no fp8 rate."""
    return best_matmul(accelerator, "fp8").rate / base_peak(accelerator)


@lru_cache(maxsize=1)
def narrow_gain() -> float:
    """How much faster steps are with 8-bit products: the median of what sources measured of one model in both widths.

    Not twice, as the peaks say: only the matrix products are faster.
    """
    measured: dict[tuple[str, float, bool, str], dict[Width, list[float]]] = {}
    for row in evidence("steady"):
        key = (row.run.source.split()[0], float(f"{row.run.params:.2g}"), row.experts, row.run.accelerator)
        measured.setdefault(key, {}).setdefault(row.width, []).append(row.utilisation)
    pairs = [widths for widths in measured.values() if {"16-bit", "8-bit"} <= widths.keys()]
    return statistics.median(statistics.median(pair["8-bit"]) / statistics.median(pair["16-bit"]) for pair in pairs)


def is_narrow(accelerator: str, width: Width) -> bool:
    """Whether products run faster than in 16 bits: 8 bits or fewer, on an accelerator that has a rate for them.

    4-bit products count as 8-bit ones: no published whole run used them.
    """
    return width != "16-bit" and not math.isnan(best_8bit(accelerator))


@lru_cache(maxsize=512)
def gain_of(accelerator: str, *, narrow: bool) -> float:
    """`narrow_gain`, at most what the accelerator's own matmuls gain; 1 in 16 bits."""
    return min(narrow_gain(), max(1.0, best_8bit(accelerator) / best_16bit(accelerator))) if narrow else 1.0


@lru_cache(maxsize=512)
def kind_of(accelerator: str, *, mixture: bool, width: Width) -> Kind:
    """The kind of a plan or row on ``accelerator``."""
    device = find(accelerator)
    return Kind(device.family, device.generation, mixture, is_narrow(accelerator, width))


def share_of_matmul(row: Evidence) -> float:
    """Utilisation of a row over what its accelerator's best matmul reaches, with the gain of narrower products."""
    name = row.run.accelerator
    return row.utilisation / (best_16bit(name) * gain_of(name, narrow=is_narrow(name, row.width)))


@lru_cache(maxsize=1)
def best_share() -> float:
    """The largest such share of any published whole run. One that is left out to be predicted counts too: a cap at the
    most of all leaves none of them outside its range that would be inside without it."""
    return max(map(share_of_matmul, evidence("whole")))


def ratio_factor(ln_ratio: Array) -> Array:
    """What tokens per parameter do to the logarithm of utilisation."""
    return -RATIO_POWER * (ln_ratio - math.log(USUAL_RATIO))


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Published rows, ready to be asked. Arrays have one entry a row; ``labs`` one column a lab.

    sizes: logarithms of active parameters (first row) and of tokens per parameter; ``soft`` the same softly clamped to
    ``spans``, their least and their most. level: of each row. residual: by how much it lies above the level that the
    other labs' rows put it at.
    """

    rows: tuple[Evidence, ...]
    sizes: Array
    spans: tuple[Array, Array]
    soft: Array
    families: npt.NDArray[np.str_]
    generation: Array
    mixture: npt.NDArray[np.bool_]
    narrow: npt.NDArray[np.bool_]
    age: Array
    labs: Array
    level: Balance
    residual: Balance

    def apart(self, kind: Kind) -> Array:
        """Squared distance of each row by all that is not size."""
        steps = (self.generation - kind.generation) / LENGTH_GENERATION
        others = (
            (self.families != kind.family).astype(float) + (self.mixture != kind.mixture) + (self.narrow != kind.narrow)
        )
        return steps**2 + others / LENGTH_KIND**2

    def relatives(self, kind: Kind) -> Array:
        """Weight of each row among those on the same family of chip: by age, 0 for other families."""
        return self.age * (self.families == kind.family)

    def softened(self, sizes: Array) -> Array:
        """Logarithms of parameters and of tokens per parameter, level outside the rows' range."""
        return soft_clamp(sizes, *self.spans)

    def weights(self, squared: Array, stretch: float | Array = 1.0) -> Array:
        """Weights of the rows at these squared distances, each lab's divided by the root of their sum."""
        return shared_by_lab(similarity.over(distance=np.sqrt(squared) / stretch) * self.age, self.labs)


def squared_distances(sizes: Array, rows: Array, apart: Array) -> Array:
    """Squared distances from plans of these ``sizes`` to rows of those, ``apart`` by what is not size.

    Sizes have parameters in the first row of the last two axes and tokens per parameter in the second; what comes back
    has plans in the last axis but one, and rows in the last.
    """
    steps = (sizes[..., None] - rows[..., None, :]) / _LENGTHS
    return (steps * steps).sum(axis=-3) + apart


def shared_by_lab(weights: Array, labs: Array) -> Array:
    """``weights`` divided, lab by lab, by the root of the lab's sum: a lab of many runs speaks louder than one of few,
    but not in proportion."""
    sums = weights @ labs
    return weights * ((1.0 / np.sqrt(np.where(sums > 0, sums, 1.0))) @ labs.T)


def fit_of(rows: Sequence[Evidence]) -> Fit:
    """The fit of ``rows``, at least two labs' of them."""
    sizes = np.log([[row.run.params for row in rows], [row.ratio for row in rows]])
    kinds = [kind_of(row.run.accelerator, mixture=row.experts, width=row.width) for row in rows]
    names = [row.run.lab or row.run.model for row in rows]
    labs = np.array([[name == lab for lab in sorted(set(names))] for name in names], dtype=float)
    spans = (sizes.min(axis=1, keepdims=True), sizes.max(axis=1, keepdims=True))
    soft = soft_clamp(sizes, *spans)
    level = np.log([share_of_matmul(row) for row in rows]) - ratio_factor(soft[1])
    levels = Balance.of(level)
    fit = Fit(
        rows=tuple(rows),
        sizes=sizes,
        spans=spans,
        soft=soft,
        families=np.array([kind.family for kind in kinds]),
        generation=np.array([kind.generation for kind in kinds], dtype=float),
        mixture=np.array([kind.mixture for kind in kinds]),
        narrow=np.array([kind.narrow for kind in kinds]),
        age=np.array([AGEING ** max(0, RECENT - row.run.year) for row in rows]),
        labs=labs,
        level=levels,
        residual=levels,
    )
    apart = squared_distances(soft, soft, np.stack([fit.apart(kind) for kind in kinds]))
    others = similarity.over(distance=np.sqrt(apart)) * fit.age * (1.0 - labs @ labs.T)
    elsewhere = levels.at(shared_by_lab(others, labs), 0.5)[0]
    return replace(fit, residual=Balance.of(level - elsewhere))


@lru_cache(maxsize=1)
def published_fit() -> Fit:
    """The fit of every published whole run that is evidence."""
    return fit_of(evidence("whole"))
