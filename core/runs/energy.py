"""Energy and carbon of a run: accelerator-hours times power, the building's overhead, and the grid's intensity."""

from __future__ import annotations

from dataclasses import dataclass

from core.budget.errors import BudgetError
from core.formula import Explanation, Source, Symbol, formula

_LLAMA1 = Source("Touvron et al. 2023, LLaMA", "section 6, table 15", "https://arxiv.org/abs/2302.13971")
_WU = Source("Wu et al. 2021, Sustainable AI", "section II", "https://arxiv.org/abs/2111.00364")

_HOURS = Symbol("H", "accelerator-hours", "accelerator_hours")
_ENERGY = Symbol("W", "energy", "watt_hours")

US_GRID = 0.385
"""kg of CO₂ equivalent per kWh that LLaMA's table 15 takes for every run: the US average."""

MOST_DRAWN = 3.0
"""Share of the accelerators' power limits that no server draws, with all else that is in it."""

USUAL_PUE = 1.1
"""Power usage effectiveness of the data centres of the same table."""


@formula(
    r"\v{hours} \cdot \v{watts} \cdot \v{share} \cdot \v{pue}",
    result=_ENERGY,
    symbols={
        "hours": _HOURS,
        "watts": Symbol("w", "power limit of one accelerator (TDP)", "watts"),
        "share": Symbol("s", "share of that limit drawn on average", "ratio"),
        "pue": Symbol(r"\text{PUE}", "power usage effectiveness, the building’s power over the machines’", "number"),
    },
    sources=(_LLAMA1, _WU),
)
def energy(hours: float, watts: float, share: float, pue: float) -> float:
    """Energy of the accelerators, cooling and supply included.

    Hosts, network and storage are in it only with a share above 100 %, which counts their power on the accelerators.
    Published tables take the full power limit, an upper bound for the accelerators alone.
    """
    return hours * watts * share * pue


@formula(
    r"\frac{\v{energy}}{1000} \cdot \v{intensity}",
    result=Symbol("M", "carbon dioxide, or the equivalent of other gases", "kg_co2"),
    symbols={"energy": _ENERGY, "intensity": Symbol("i", "carbon intensity of the grid", "kg_per_kwh")},
    sources=(_LLAMA1, _WU),
)
def carbon(energy: float, intensity: float) -> float:
    """Carbon dioxide of the energy.

    The intensity is that of the grid where the machines stand, whatever certificates were bought. Making the machines
    is not in it.
    """
    return energy / 1000 * intensity


@dataclass(frozen=True, slots=True)
class Footprint:
    """Energy in Wh and carbon in kg of a run; NaN where the accelerator's power is unknown. The rest as in `energy`."""

    hours: float
    watts: float
    share: float
    pue: float
    intensity: float

    @property
    def energy(self) -> float:
        return float(energy(hours=self.hours, watts=self.watts, share=self.share, pue=self.pue))

    @property
    def carbon(self) -> float:
        return float(carbon(energy=self.energy, intensity=self.intensity))

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """Both, worked out only where they are read: writing formulas takes far longer than the numbers."""
        used = energy.explain(hours=self.hours, watts=self.watts, share=self.share, pue=self.pue)
        return used, carbon.explain(energy=used.value, intensity=self.intensity)


def footprint(
    hours: float, watts: float, *, share: float = 1.0, pue: float = USUAL_PUE, intensity: float = US_GRID
) -> Footprint:
    """Energy and carbon of ``hours`` accelerator-hours at ``share`` of ``watts`` each.

    Raises `BudgetError` for a negative quantity, a share above `MOST_DRAWN` or a PUE below 1.
    """
    for field, value, low, high in (
        ("hours", hours, 0.0, float("inf")),
        ("watts", watts, 0.0, float("inf")),
        ("share", share, 0.0, MOST_DRAWN),
        ("pue", pue, 1.0, 10.0),
        ("intensity", intensity, 0.0, 10.0),
    ):
        if value < low or value > high:
            raise BudgetError(field, f"{field} is {value:g}; it lies between {low:g} and {high:g}.")
    return Footprint(hours, watts, share, pue, intensity)
