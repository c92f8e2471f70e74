"""The budget of a training run: from its compute and a cluster to time, accelerator-hours and dollars."""

from __future__ import annotations

from core.formula import Source, Symbol, formula
from core.sources import DEEPSEEK_V3, PALM

_PALM = PALM.at("section 4.1 and appendix B")
_NARAYANAN = Source("Narayanan et al. 2021, Megatron-LM", "section 5.1, eq. 4", "https://arxiv.org/abs/2104.04473")
_DEEPSEEK_V3 = DEEPSEEK_V3.at("table 1")

_COMPUTE = Symbol("C", "training compute", "flop")
_COUNT = Symbol("n", "accelerators", "count")
_PEAK = Symbol("P", "dense peak of one accelerator", "flop_per_s")
_MFU = Symbol("u", "MFU, the share of the peak that model FLOPs use", "ratio")
_HOURS = Symbol("H", "accelerator-hours", "accelerator_hours")
_SECONDS = Symbol("t", "training time", "seconds")
_TOKENS = Symbol("D", "training tokens", "count")


@formula(
    r"\frac{\v{flop}}{\v{accelerators} \cdot \v{peak} \cdot \v{mfu}}",
    result=_SECONDS,
    symbols={"flop": _COMPUTE, "accelerators": _COUNT, "peak": _PEAK, "mfu": _MFU},
    sources=(_PALM, _NARAYANAN),
)
def training_seconds(flop: float, accelerators: float, peak: float, mfu: float) -> float:
    """Training time at an MFU.

    With the MFU over all hours it is the time on the wall; with that of the steps alone, the time of the steps.
    """
    return flop / (accelerators * peak * mfu)


@formula(
    r"\frac{\v{accelerators} \cdot \v{seconds}}{3600}",
    result=_HOURS,
    symbols={"accelerators": _COUNT, "seconds": _SECONDS},
    sources=(_DEEPSEEK_V3,),
)
def accelerator_hours(accelerators: float, seconds: float) -> float:
    """Accelerator-hours.

    Every accelerator of the cluster counts for the whole time.
    """
    return accelerators * seconds / 3600


@formula(
    r"\v{hours} \cdot \v{price}",
    result=Symbol(r"\text{cost}", "rent of the accelerators", "usd"),
    symbols={"hours": _HOURS, "price": Symbol("p", "price per accelerator-hour", "usd_per_hour")},
    sources=(_DEEPSEEK_V3,),
)
def rent(hours: float, price: float) -> float:
    """Rent of the accelerators.

    Storage, network, staff and failed experiments are not in it.
    """
    return hours * price


@formula(
    r"\frac{\v{tokens}}{\v{seconds}}",
    result=Symbol("r", "tokens per second, whole cluster", "tokens_per_s"),
    symbols={"tokens": _TOKENS, "seconds": _SECONDS},
    sources=(_PALM,),
)
def tokens_per_second(tokens: float, seconds: float) -> float:
    """Tokens per second of the whole cluster."""
    return tokens / seconds


@formula(
    r"\frac{\v{flop}}{\v{hours} \cdot 3600 \cdot \v{peak}}",
    result=Symbol("u", "effective utilisation", "ratio"),
    symbols={"flop": _COMPUTE, "hours": _HOURS, "peak": _PEAK},
    sources=(_PALM,),
)
def effective_utilisation(flop: float, hours: float, peak: float) -> float:
    """Effective utilisation of a whole run.

    Its compute over what the billed hours could have done at peak. Lower than the MFU of a steady step, because
    the hours also hold restarts, evaluation, other stages and waiting.
    """
    return flop / (hours * 3600 * peak)
