"""Fields of the parallel layout: the batch, what a search keeps to, and a custom layout."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from core.fields import CATALOG, Field, choice, optional, quantity, switch
from core.limits import limit
from core.messages import message
from core.number_text import QuantityError
from core.planning.plan import FASTEST, LAYINGS, OWN_LAYOUT, PRE_TRAINING_BATCH, parse_batch, parse_range
from core.quantities import parse_quantity
from core.step_time.running import KERNELS, SOFTWARE, TUNED_BY, USUAL_SOFTWARE, USUAL_TUNING
from core.suggest import suggestions
from core.training.activations.tensors import COMPILED_WHOLE, IMPLEMENTATIONS, LOGITS_KEPT
from core.training.layout import BY_MODULE, MODULES, OFFLOAD_NAMES, RECOMPUTES, recomputation

SEARCH = "search"
"""The part of the form."""

ANY = "any"


def _range_field(id: str) -> Field:
    return Field(id, CATALOG, "", parse_range, part=SEARCH, max_chars=limit("number_chars"))


BATCH = Field("gb", CATALOG, PRE_TRAINING_BATCH, parse_batch, part="more", max_chars=limit("number_chars"))
KEEP_TENSOR = _range_field("ktp")
KEEP_PIPELINE = _range_field("kpp")
KEEP_INTERLEAVE = _range_field("kvpp")
KEEP_CONTEXT = _range_field("kcp")
KEEP_EXPERT = _range_field("kep")
KEEP_EXPERT_TENSOR = _range_field("ketp")
KEEP_MICRO_BATCH = _range_field("kmbs")
KEEP_ZERO = choice("kzero", CATALOG, (ANY, "0", "1", "2", "3"), ANY, few=True, part=SEARCH)
KEEP_RECOMPUTE = choice("krc", CATALOG, (ANY, *RECOMPUTES), ANY, few=True, part=SEARCH)
IN_NODE = switch("knode", CATALOG, True, part=SEARCH)
MAY_OFFLOAD = switch("koff", CATALOG, False, part=SEARCH)

_IN_BYTES = re.compile(r"B/s\s*$")
"""How a bandwidth in bytes ends: its capital letter tells it from one in bits."""

_SLOWEST = 1e6


def _network(text: str) -> float:
    """Return bytes per second, typed in bits as networks are sold, or in bytes."""
    most, example = float(limit("measured_bytes_per_s")), "400 Gb/s"
    if _IN_BYTES.search(text):
        return parse_quantity(text, "bytes_per_s", low=_SLOWEST, high=most, example=example)
    return parse_quantity(text, "bits_per_s", low=8 * _SLOWEST, high=8 * most, example=example) / 8


NETWORK = optional("net", CATALOG, _network, nothing=None, part=SEARCH, omit_if_empty=True)

PER_NODE = optional(
    "node",
    CATALOG,
    lambda text: int(parse_quantity(text, "count", low=1, high=limit("node"), whole=True, example="8")),
    nothing=None,
    part=SEARCH,
    omit_if_empty=True,
)

KEPT_FIELDS = (
    KEEP_TENSOR,
    KEEP_PIPELINE,
    KEEP_INTERLEAVE,
    KEEP_CONTEXT,
    KEEP_EXPERT,
    KEEP_EXPERT_TENSOR,
    KEEP_MICRO_BATCH,
    KEEP_ZERO,
    KEEP_RECOMPUTE,
    IN_NODE,
    MAY_OFFLOAD,
)
"""What layouts that are searched have to keep to."""

SEARCH_FIELDS: tuple[Field, ...] = (BATCH, *KEPT_FIELDS, NETWORK, PER_NODE)
"""All of them, in the order in which a link spells them."""


LAYOUT = "layout"
"""The part of the form."""


LAYING = choice("lay", CATALOG, LAYINGS, FASTEST, few=True, part=LAYOUT)


def _degree(id: str) -> Field:
    return quantity(id, CATALOG, "1", "count", low=1, high=limit("accelerators"), whole=True, part=LAYOUT)


def _whole(text: str) -> float:
    return parse_quantity(text, "count", low=1, high=limit("accelerators"), whole=True, example="8")


def _modules(text: str) -> int:
    """Return the flags of modules by their names."""
    names = dict.fromkeys(name.removeprefix("moe_") if name == "moe_act" else name for name in _words(text))
    for name in names or ("",):
        if name not in MODULES:
            near = suggestions(name, tuple(MODULES)) or tuple(MODULES)
            raise QuantityError(message("input.module", entered=name, near=near))
    return sum(MODULES[name] for name in names)


def _words(text: str) -> list[str]:
    return [name for name in re.split(r"[\s,+]+", text.strip().lower()) if name]


def _layers(text: str) -> int:
    """So many layers of a stage, 0 for all; below 0 groups of so many."""
    if text.strip().lower() in ("", "all"):
        return 0
    groups = re.fullmatch(r"groups? of (.+)", text.strip(), re.IGNORECASE)
    most, example = limit("model_layers"), "10 or groups of 4"
    number = parse_quantity(groups[1] if groups else text, "count", low=1, high=most, whole=True, example=example)
    return -int(number) if groups else int(number)


def recompute_of(values: Mapping[str, Any]) -> int:
    """Return what a layout computes again, of the values of a form."""
    modules = values[RECOMPUTE_MODULES.id] if values[RECOMPUTE.id] == BY_MODULE else 0
    return recomputation(RECOMPUTES.get(values[RECOMPUTE.id], 0), modules, values[RECOMPUTE_LAYERS.id])


ZERO = choice("zero", CATALOG, ("0", "1", "2", "3"), "3", few=True, part=LAYOUT)
MICRO_BATCH = _degree("mbs")
TENSOR = _degree("tp")
PIPELINE = _degree("pp")
CONTEXT = _degree("cp")
EXPERT = _degree("ep")
EXPERT_TENSOR = optional("etp", CATALOG, _whole, nothing=0.0, part=LAYOUT)
RECOMPUTE = choice("rc", CATALOG, (*RECOMPUTES, BY_MODULE), "full", part=LAYOUT)
RECOMPUTE_MODULES = Field("rcm", CATALOG, "core_attn", _modules, part=LAYOUT, max_chars=80)
RECOMPUTE_LAYERS = Field("rcn", CATALOG, "", _layers, part=LAYOUT, max_chars=20)
MICRO_BATCHES = optional("acc", CATALOG, _whole, nothing=0.0, part=LAYOUT)
INTERLEAVE = _degree("vpp")
SEQUENCE_PARALLEL = switch("sp", CATALOG, True, part=LAYOUT)
SHARD_GROUP = optional("hsdp", CATALOG, _whole, nothing=0.0, part=LAYOUT)
OFFLOAD = choice("off", CATALOG, OFFLOAD_NAMES, "none", part=LAYOUT)
SWITCHED = {"true": "optimizer", "false": "none"}
"""What offload was called while it was on or off."""
TRAINING_SOFTWARE = choice("sw", CATALOG, tuple(SOFTWARE), USUAL_SOFTWARE, part=LAYOUT)
TUNING = choice("tun", CATALOG, tuple(TUNED_BY), USUAL_TUNING, part=LAYOUT)
USUAL = "usual"
"""As the software has it."""

IMPLEMENTATION = choice("impl", CATALOG, (USUAL, *IMPLEMENTATIONS), USUAL, part=LAYOUT)
KERNEL = choice("fa", CATALOG, (USUAL, *KERNELS), USUAL, part=LAYOUT)
AS_LAYERS = "as layers"
"""The loss is written as the layers are."""

LOSS = choice("loss", CATALOG, (AS_LAYERS, "separate", LOGITS_KEPT, "fused", COMPILED_WHOLE), AS_LAYERS, part=LAYOUT)
CHUNKS = _degree("chunks")
RUNTIME_MEMORY = quantity("ctx", CATALOG, "2 GB", "bytes", high=1e12, part=LAYOUT)
FRAGMENTATION = quantity("frag", CATALOG, "3%", "ratio", high=1.0, part=LAYOUT)

OWN_LAYOUT_FIELDS: tuple[Field, ...] = (
    ZERO,
    MICRO_BATCH,
    TENSOR,
    PIPELINE,
    CONTEXT,
    EXPERT,
    EXPERT_TENSOR,
    RECOMPUTE,
    RECOMPUTE_MODULES,
    RECOMPUTE_LAYERS,
    MICRO_BATCHES,
    INTERLEAVE,
    SEQUENCE_PARALLEL,
    SHARD_GROUP,
    OFFLOAD,
)
"""Those that only a layout of one's own has."""

LAYOUT_FIELDS: tuple[Field, ...] = (
    LAYING,
    *OWN_LAYOUT_FIELDS,
    TRAINING_SOFTWARE,
    TUNING,
    IMPLEMENTATION,
    KERNEL,
    LOSS,
    CHUNKS,
    RUNTIME_MEMORY,
    FRAGMENTATION,
)
"""All of them, in the order in which a link spells them."""


def implied_layout(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the layout choice that older texts imply.

    The custom layout applies where Parallel plan showed it, where part of a model is trained, and where any of its
    fields was entered. The micro-batches of a step were then those of the pipeline's stages if the batch was not read,
    as in fine-tuning. Offload was then on or off.
    """
    if switched := SWITCHED.get(texts.get(OFFLOAD.id, "")):
        return {OFFLOAD.id: switched, **implied_layout({**texts, OFFLOAD.id: switched})}
    if LAYING.id in texts or not texts:
        return {}
    fine_tuned = texts.get("ft", "everything") != "everything"
    typed = any(texts.get(field.id, field.default) != field.default for field in OWN_LAYOUT_FIELDS)
    if texts["look"] != "own layout" if "look" in texts else not (fine_tuned or typed):
        return {}
    return {LAYING.id: OWN_LAYOUT} | (
        {MICRO_BATCHES.id: texts.get("acc") or texts.get("pp", "1")} if fine_tuned else {}
    )
