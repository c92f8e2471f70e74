"""Fields of the parallel layout: the batch, what a search keeps to, and a custom layout."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.fields import Field, choice, optional, quantity, switch
from core.glossary import meaning
from core.limits import limit
from core.planning.plan import (
    FASTEST,
    FINE_TUNING_BATCH,
    LAYINGS,
    OWN_LAYOUT,
    PRE_TRAINING_BATCH,
    parse_batch,
    parse_range,
)
from core.step_time.running import KERNELS, SOFTWARE, TUNED_BY, USUAL_SOFTWARE, USUAL_TUNING
from core.suggest import suggestions
from core.training.activations.tensors import COMPILED_WHOLE, IMPLEMENTATIONS, LOGITS_KEPT
from core.training.layout import BY_MODULE, MODULES, OFFLOAD_NAMES, RECOMPUTES, recomputation
from core.units import QuantityError, parse_quantity

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
    "as many within 6% as divide over it. The more accelerators share it, the less each has to do. "
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


LAYOUT = "layout"
"""The part of the form."""


LAYING = choice(
    "lay",
    "Layout",
    LAYINGS,
    FASTEST,
    few=True,
    part=LAYOUT,
    help="**fastest**: the fastest that fits, found anew for every plan. **own**: the one typed. Days, dollars and "
    "memory are those of the layout chosen.",
)


def _degree(id: str, label: str, help: str) -> Field:
    return quantity(id, label, "1", "count", low=1, high=limit("accelerators"), whole=True, part=LAYOUT, help=help)


def _whole(text: str) -> float:
    return parse_quantity(text, "count", low=1, high=limit("accelerators"), whole=True, example="8")


def _modules(text: str) -> int:
    """Flags of modules by their names."""
    names = dict.fromkeys(name.removeprefix("moe_") if name == "moe_act" else name for name in _words(text))
    for name in names or ("",):
        if name not in MODULES:
            near = suggestions(name, tuple(MODULES)) or tuple(MODULES)
            raise QuantityError(f"“{name}” is no module. Near it: {', '.join(near)}. For example: layernorm mlp.")
    return sum(MODULES[name] for name in names)


def _words(text: str) -> list[str]:
    return [name for name in re.split(r"[\s,+]+", text.strip().lower()) if name]


def _layers(text: str) -> int:
    """So many layers of a stage, 0 for all; below 0 groups of so many."""
    if text.strip().lower() in ("", "all"):
        return 0
    groups = re.fullmatch(r"groups? of (.+)", text.strip(), re.IGNORECASE)
    most, example = limit("model_layers"), "10, or groups of 4"
    number = parse_quantity(groups[1] if groups else text, "count", low=1, high=most, whole=True, example=example)
    return -int(number) if groups else int(number)


def recompute_of(values: Mapping[str, Any]) -> int:
    """What a layout computes again, of the values of a form."""
    modules = values[RECOMPUTE_MODULES.id] if values[RECOMPUTE.id] == BY_MODULE else 0
    return recomputation(RECOMPUTES.get(values[RECOMPUTE.id], 0), modules, values[RECOMPUTE_LAYERS.id])


ZERO = choice(
    "zero",
    "ZeRO stage",
    ("0", "1", "2", "3"),
    "3",
    few=True,
    part=LAYOUT,
    help="What data-parallel accelerators share instead of each keeping its own. **0**: nothing, a full copy on each. "
    "**1**: optimizer state and master weights. **2**: gradients as well. **3**: parameters as well, as FSDP does.",
)
MICRO_BATCH = _degree(
    "mbs",
    "Micro-batch",
    "Sequences that one data-parallel rank takes through forward and backward at a time. Activations grow with it.",
)
TENSOR = _degree("tp", "Tensor", "Accelerators over which every matrix is split. Usually no more than a node has.")
PIPELINE = _degree("pp", "Pipeline", "Stages of layers, one after the other. The first keeps most activations.")
CONTEXT = _degree("cp", "Context", "Accelerators over which the tokens of a sequence are split.")
EXPERT = _degree(
    "ep",
    "Expert",
    "Accelerators over which routed experts are spread; they are taken from those of the other degrees but pipeline.",
)
EXPERT_TENSOR = optional(
    "etp",
    "Expert tensor",
    _whole,
    nothing=0.0,
    placeholder="usual",
    part=LAYOUT,
    help="Accelerators over which one routed expert is split, whatever Tensor is. Empty: one where experts are spread, "
    "else those of Tensor. Megatron-Core alone has it; it takes Tensor’s unless told otherwise.",
)
RECOMPUTE = choice(
    "rc",
    "Recompute",
    (*RECOMPUTES, BY_MODULE),
    "full",
    part=LAYOUT,
    help="What backward computes again instead of keeping it. **selective**: with fused attention the outputs of norms "
    "and activation functions, with scores that are kept the core of attention, as Megatron-LM’s selective. **per "
    "operation**: every second matrix product and all that is none, torchtitan’s selective. **full**: all but each "
    "layer’s input, for about a third more computing. **modules**: those named.",
)
RECOMPUTE_MODULES = Field(
    "rcm",
    "Modules recomputed",
    "core_attn",
    _modules,
    part=LAYOUT,
    max_chars=80,
    help="**core_attn**: attention between its projections. **layernorm**: outputs of norms. **act**: activation "
    "functions, experts’ too (moe_act). **mla_up_proj**: queries, keys and values from their latents. **mlp**: dense "
    "layers’ feed-forward network. **moe**: the mixture with its router.",
)
RECOMPUTE_LAYERS = Field(
    "rcn",
    "Layers recomputed",
    "",
    _layers,
    part=LAYOUT,
    placeholder="all",
    max_chars=20,
    help="**10**: so many of each pipeline stage, as Megatron-LM’s block and torchtitan’s every nth. **groups of 4**: "
    "of four layers one input is kept, as Megatron-LM’s uniform.",
)
MICRO_BATCHES = optional(
    "acc",
    "Micro-batches a step",
    _whole,
    nothing=0.0,
    placeholder="fill the batch",
    part=LAYOUT,
    help="Of one step on one data-parallel rank. Empty: as many as the global batch takes; a number decides the batch.",
)
INTERLEAVE = _degree(
    "vpp", "Chunks of a stage", "Model chunks that each pipeline stage has; 1 is the plain schedule, 1F1B."
)
SEQUENCE_PARALLEL = switch(
    "sp",
    "Sequence parallel",
    True,
    part=LAYOUT,
    help=meaning("sequence parallelism"),
)
SHARD_GROUP = optional(
    "hsdp",
    "Shard over",
    _whole,
    nothing=0.0,
    placeholder="all",
    part=LAYOUT,
    help="Accelerators over which ZeRO shards; copies of these groups are then kept alike, as HSDP does. Empty: all "
    "that work on different data.",
)
OFFLOAD = choice(
    "off",
    "Offload",
    OFFLOAD_NAMES,
    "none",
    part=LAYOUT,
    help="What lives in the host’s memory. **optimizer**: its state and master weights, which are updated there. "
    "**optimizer and parameters**: each layer’s weights come over the host’s link in forward, and again in backward; "
    "it needs ZeRO-3, on one accelerator too.",
)
SWITCHED = {"true": "optimizer", "false": "none"}
"""What offload was called while it was on or off."""
TRAINING_SOFTWARE = choice(
    "sw",
    "Training software",
    tuple(SOFTWARE),
    USUAL_SOFTWARE,
    part=LAYOUT,
    help="What runs the steps; step times are like those published for it.\n\n"
    + "\n\n".join(f"**{software.id}**: {software.meaning}" for software in SOFTWARE.values()),
)
TUNING = choice(
    "tun",
    "Tuned",
    tuple(TUNED_BY),
    USUAL_TUNING,
    part=LAYOUT,
    help="Who made this run fast: its layout, kernels and settings. It decides how wide the range of a step is, never "
    "its middle.\n\n**by its writers**: as vendors publish their software.\n\n**by us**: software of others, with "
    "settings that were tried.\n\n**by nobody**: as it comes.",
)
USUAL = "usual"
"""As the software has it."""

IMPLEMENTATION = choice(
    "impl",
    "Layers written as",
    (USUAL, *IMPLEMENTATIONS),
    USUAL,
    part=LAYOUT,
    help="**usual**: fused kernels; under PyTorch, eager as Hugging Face SDPA, operation by operation.\n\n"
    + "\n\n".join(f"**{how.id}**: {how.meaning}" for how in IMPLEMENTATIONS.values()),
)
KERNEL = choice(
    "fa",
    "Attention kernel",
    (USUAL, *KERNELS),
    USUAL,
    part=LAYOUT,
    help="The first is the newest kernel for the accelerator: on Hopper FlashAttention-3 or that of NVIDIA’s "
    "library, which are about as fast, on Blackwell that of the library. **FlashAttention-2** takes twice as long on "
    "Hopper, which decides the time of long sequences; elsewhere the choice changes nothing. **usual**: what "
    "the software takes by itself; PyTorch takes the library’s on NVIDIA, FlashAttention-2 on others.",
)
AS_LAYERS = "as layers"
"""The loss is written as the layers are."""

LOSS = choice(
    "loss",
    "Loss",
    (AS_LAYERS, "separate", LOGITS_KEPT, "fused", COMPILED_WHOLE),
    AS_LAYERS,
    part=LAYOUT,
    help="**separate**: cross-entropy holds its result and two gradients in fp32; the logits too where the program "
    "keeps what its model returned, as `outputs = model(…)` does. **fused**: the gradient takes the place of the "
    "logits’ copy; **compiled with the model**, of the logits. **as layers**: fused with fused kernels, separate "
    "otherwise and in eager PyTorch.",
)
CHUNKS = _degree("chunks", "Loss in pieces", "Pieces in which logits and loss are worked out, one at a time.")
OVERHEAD = quantity(
    "ctx",
    "Runtime",
    "2 GB",
    "bytes",
    high=1e12,
    part=LAYOUT,
    help="What the driver, its kernels and the workspaces of libraries take on each accelerator. As much again is "
    "counted for the buffers of each group of accelerators that exchange data.",
)
SLACK = quantity(
    "frag",
    "Fragmentation",
    "3%",
    "ratio",
    high=1.0,
    part=LAYOUT,
    help="What the allocator holds beyond the tensors. The default is the median of published readings.",
)

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
    OVERHEAD,
    SLACK,
)
"""All of them, in the order in which a link spells them."""


def implied_layout(texts: Mapping[str, str]) -> dict[str, str]:
    """Whose layout texts mean that were written before one was asked: one's own where Parallel plan showed that, where
    a part of a model is trained, and where anything of it was typed. Micro-batches of a step were then those of the
    pipeline's stages where the batch was not looked at, as in fine-tuning. Offload was then on or off."""
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
