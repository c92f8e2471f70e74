"""What a search over layouts is asked, as fields: the global batch, what every layout must keep to, and the aim."""

from __future__ import annotations

import re
from dataclasses import replace

from core.fields import Field, choice, optional, switch
from core.limits import limit
from core.planning.search_texts import FINE_TUNING_BATCH, PRE_TRAINING_BATCH, parse_batch, parse_range
from core.training.layout import RECOMPUTES
from core.units import parse_quantity

SEARCH = "search"
"""The part of the form."""

ANY = "any"


def _range_field(id: str, label: str, help: str) -> Field:
    return Field(id, label, "", parse_range, part=SEARCH, placeholder=ANY, max_chars=limit("number_chars"), help=help)


_SPANS = "Empty: any. Or 8, up to 8, 2-8."

BATCH = Field(
    "gb",
    "Global batch",
    PRE_TRAINING_BATCH,
    parse_batch,
    part="more",
    max_chars=limit("number_chars"),
    help="Of one optimizer step on all accelerators: 2,048 for that many sequences, or 16M tokens. A layout takes "
    "as many within 6 % as divide over it. The more accelerators share it, the less each has to do. "
    f"Fine-tuning starts with {FINE_TUNING_BATCH}, the batch of Llama 2’s (arXiv:2307.09288, section 3.1).",
)
KEEP_TENSOR = _range_field("ktp", "Tensor", f"Tensor-parallel degrees that are tried. {_SPANS}")
KEEP_PIPELINE = _range_field("kpp", "Pipeline", f"Pipeline stages that are tried. {_SPANS}")
KEEP_INTERLEAVE = _range_field("kvpp", "Chunks of a stage", f"Model chunks of each stage that are tried. {_SPANS}")
KEEP_CONTEXT = _range_field("kcp", "Context", f"Context-parallel degrees that are tried. {_SPANS}")
KEEP_EXPERT = _range_field("kep", "Expert", f"Expert-parallel degrees that are tried. {_SPANS}")
KEEP_EXPERT_TENSOR = replace(
    _range_field("ketp", "Expert tensor", "Ranks that split one routed expert. Empty: as usual. Or 8, up to 8, 2-8."),
    placeholder="usual",
)
KEEP_MICRO_BATCH = _range_field("kmbs", "Micro-batch", f"Sequences of a micro-batch that are tried. {_SPANS}")
KEEP_ZERO = choice("kzero", "ZeRO stage", (ANY, "0", "1", "2", "3"), ANY, few=True, part=SEARCH)
KEEP_RECOMPUTE = choice("krc", "Recompute", (ANY, *RECOMPUTES), ANY, few=True, part=SEARCH)
IN_NODE = switch(
    "knode",
    "Tensor within a node",
    True,
    part=SEARCH,
    help="Tensor-parallel groups stay on the fast links of one node. Off: they may span nodes.",
)
MAY_OFFLOAD = switch("koff", "Allow offload", False, part=SEARCH, help="Optimizer state may live in the host’s memory.")

_IN_BYTES = re.compile(r"B/s\s*$")
"""How a bandwidth in bytes ends: its capital letter tells it from one in bits."""

_SLOWEST = 1e6


def _network(text: str) -> float:
    """Bytes per second, typed in bits as networks are sold, or in bytes."""
    most, example = float(limit("measured_bytes_per_s")), "400 Gb/s"
    if _IN_BYTES.search(text):
        return parse_quantity(text, "bytes_per_s", low=_SLOWEST, high=most, example=example)
    return parse_quantity(text, "bits_per_s", low=8 * _SLOWEST, high=8 * most, example=example) / 8


NETWORK = replace(
    optional(
        "net",
        "Network, each",
        _network,
        nothing=None,
        placeholder="usual",
        part=SEARCH,
        help="Bandwidth between nodes that one accelerator has for itself, one way: 400 Gb/s where a node of eight has "
        "eight adapters of 400 Gb/s. Empty: that of the system in which the accelerator usually comes.",
    ),
    omit_if_empty=True,
)

PER_NODE = replace(
    optional(
        "node",
        "In a node",
        lambda text: int(parse_quantity(text, "count", low=1, high=limit("node"), whole=True, example="8")),
        nothing=None,
        placeholder="usual",
        part=SEARCH,
        help="Accelerators that fast links of their own join: those of a server, or of a rack. Empty: as many as the "
        "accelerator’s usual system joins. How fast these links are: **Measured, links**.",
    ),
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

SEARCH_FIELDS: tuple[Field, ...] = (
    BATCH,
    *KEPT_FIELDS,
    NETWORK,
    PER_NODE,
)
"""All of them, in the order in which a link spells them."""
