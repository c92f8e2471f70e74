"""The fields and presets of a sweep."""

from __future__ import annotations

from collections.abc import Mapping

from core.fields import Field, choice, optional
from core.limits import limit
from core.messages import message, messages
from core.number_text import QuantityError
from core.planning.form.whole_run import OWN_DEADLINE
from core.planning.plan import TYPED, parse_within
from core.planning.sweep.axes import AXES
from core.planning.sweep.sweep import RESULTS
from core.training.precision import USUAL_POLICY

_PART = "sweep"


def _list(text: str) -> str:
    """Return the values of one side as one line; `core.planning.sweep.axes.parse_values` reads them."""
    if len(text) > limit("sweep_chars"):
        most = float(limit("sweep_chars"))
        raise QuantityError(message("sweep.error.long", characters=float(len(text)), most=most))
    return " ".join(text.split())


def _values(id: str, label: str) -> Field:
    return Field(
        id,
        label,
        "",
        _list,
        part=_PART,
        placeholder=message("sweep.field.near"),
        max_chars=limit("sweep_chars"),
        help=message("sweep.field.values_help", most=float(limit("sweep_values"))),
    )


_NAMES = [axis.field.label for axis in AXES.values()]
X = choice("x", message("sweep.field.x"), tuple(AXES), "accelerators", short=_NAMES, part=_PART)
Y = choice("y", message("sweep.field.y"), tuple(AXES), "parameters", short=_NAMES, part=_PART)
X_VALUES = _values("xs", message("sweep.field.x_values"))
Y_VALUES = _values("ys", message("sweep.field.y_values"))
_RESULTS = messages("sweep.show", "days dollars memory mfu rate hours goodput energy power carbon")
RESULT = choice("res", message("sweep.field.result"), tuple(RESULTS), "days", short=_RESULTS, part=_PART)
DUE = optional(
    OWN_DEADLINE,
    message("sweep.field.limit"),
    parse_within,
    nothing=None,
    part=_PART,
    help=message("sweep.field.limit_help"),
)

SWEEP_FIELDS = (X, X_VALUES, Y, Y_VALUES, RESULT, DUE)


_PLAN = {
    "gpu": "H100 SXM",
    "mfu": "45%",
    "pace": "all hours",
    "dtype": "bf16",
    "price": "",
    "opt": "AdamW",
    "prec": USUAL_POLICY,
    "zero": "3",
    "rc": "full",
    **dict.fromkeys(("mbs", "tp", "pp", "cp", "ep"), "1"),
}


def _preset(model: str, tokens: str, count: str, seq: str, x: str, y: str, res: str, **more: str) -> Mapping[str, str]:
    sweep = {"x": x, "y": y, "xs": "", "ys": "", "res": res, "due": "90 days"}
    return {**_PLAN, "model": model, "tokens": tokens, "count": count, "seq": seq, **sweep, **more}


SWEEP_PRESETS: Mapping[str, Mapping[str, str]] = {
    "70B: accelerators × MFU": _preset(TYPED, "15T", "1,024", "8,192", "accelerators", "MFU", "days", n="70B"),
    "8B: 8k to 128k × micro-batch": _preset(
        "Llama 3.1 8B",
        "1T",
        "64",
        "8,192",
        "sequence length",
        "micro-batch",
        "memory",
        xs="8,192, 16,384, 32,768, 65,536, 131,072",
        ys="1, 2, 4, 8, 16",
    ),
    "Tokens × size in 90 days": _preset(TYPED, "15T", "2,048", "8,192", "tokens", "parameters", "days", n="70B"),
    "H100, H200 or B200, and how many": _preset(
        TYPED,
        "15T",
        "2,048",
        "8,192",
        "accelerators",
        "accelerator kind",
        "dollars",
        n="70B",
        xs="256, 512, 1,024, 2,048, 4,096, 8,192",
        ys="H100 SXM, H200 SXM, B200",
    ),
    "405B: tensor × pipeline": _preset(
        "Llama 3.1 405B",
        "15.6T",
        "16,384",
        "8,192",
        "tensor parallel",
        "pipeline parallel",
        "memory",
        tp="8",
        pp="16",
        zero="1",
        rc="selective",
        xs="1, 2, 4, 8, 16",
        ys="1, 2, 4, 8, 16, 32, 64",
    ),
}
