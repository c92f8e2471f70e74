"""The field's terms, each with one definition and, where one work gave it its meaning, that work."""

from __future__ import annotations

import re
from dataclasses import dataclass

from core.formula import Source
from core.sources import OCP_MX, PALM, ZERO

_IEEE = Source(
    "IEEE 754-2019, Standard for Floating-Point Arithmetic", url="https://doi.org/10.1109/IEEESTD.2019.8766229"
)
_MICIKEVICIUS = Source("Micikevicius et al. 2017, Mixed Precision Training", url="https://arxiv.org/abs/1710.03740")
_FP8 = Source("Micikevicius et al. 2022, FP8 Formats for Deep Learning", url="https://arxiv.org/abs/2209.05433")
_PALM = PALM.at("appendix B")
_KAPLAN = Source("Kaplan et al. 2020, Scaling Laws", "section 2.1", "https://arxiv.org/abs/2001.08361")
_ROOFLINE = Source("Williams et al. 2009, Roofline", url="https://doi.org/10.1145/1498765.1498785")
_FSDP = Source("Zhao et al. 2023, PyTorch FSDP", url="https://arxiv.org/abs/2304.11277")
_MEGATRON = Source("Shoeybi et al. 2019, Megatron-LM", url="https://arxiv.org/abs/1909.08053")
_PIPELINES = Source(
    "Narayanan et al. 2021, Efficient Large-Scale Language Model Training", url="https://arxiv.org/abs/2104.04473"
)
_KORTHIKANTI = Source(
    "Korthikanti et al. 2022, Reducing Activation Recomputation", url="https://arxiv.org/abs/2205.05198"
)
_RING = Source("Liu et al. 2023, Ring Attention", url="https://arxiv.org/abs/2310.01889")
_GSHARD = Source("Lepikhin et al. 2020, GShard", url="https://arxiv.org/abs/2006.16668")
_ADAMW = Source("Loshchilov and Hutter 2017, AdamW", url="https://arxiv.org/abs/1711.05101")
_FLASH = Source("Dao et al. 2022, FlashAttention", url="https://arxiv.org/abs/2205.14135")
_CHECKPOINTS = Source(
    "Daly 2006, A higher order estimate of the optimum checkpoint interval",
    url="https://doi.org/10.1016/j.future.2004.11.016",
)


@dataclass(frozen=True, slots=True)
class Term:
    """One term, what it means in one or two sentences, other names for it, and its source where there is one."""

    name: str
    meaning: str
    also: tuple[str, ...] = ()
    source: Source | None = None

    @property
    def id(self) -> str:
        """The term in a link: lower-case letters and digits, a hyphen for all between."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def names(self) -> tuple[str, ...]:
        """The term and its other names."""
        return (self.name, *self.also)


_TERMS = (
    Term(
        "1F1B",
        "A pipeline schedule in which each stage, once the pipeline is full, alternates one forward with one backward "
        "pass, so that it keeps the activations of few micro-batches.",
        source=_PIPELINES,
    ),
    Term(
        "6ND",
        "The rule that training a dense model of N parameters on D tokens takes about 6·N·D FLOPs: 2 forward and 4 "
        "backward for each parameter and token. It leaves out attention’s products of activations.",
        source=_KAPLAN,
    ),
    Term(
        "accelerator-hour",
        "One accelerator for one hour, busy or not; what is billed.",
        ("GPU-hour",),
    ),
    Term(
        "activations",
        "What the forward pass computes and backward needs again; their memory grows with the micro-batch and the "
        "sequence length.",
    ),
    Term(
        "AdamW",
        "Adam with weight decay taken out of the gradient. It keeps two numbers for each parameter: running means of "
        "the gradient and of its square.",
        source=_ADAMW,
    ),
    Term(
        "bf16",
        "A 16-bit float with 8 exponent and 7 fraction bits: the range of fp32 for normal numbers, at two to three "
        "significant decimal digits.",
        ("bfloat16",),
    ),
    Term(
        "causal attention",
        "Attention in which a token sees itself and those before it: half of the square of all pairs, and half of its "
        "FLOPs where they are counted so.",
    ),
    Term(
        "checkpoint",
        "A saved copy of weights and optimizer state, from which training goes on after a failure. Activation "
        "checkpointing is another thing: see recomputation.",
        source=_CHECKPOINTS,
    ),
    Term(
        "context parallelism",
        "Each accelerator holds a part of every sequence, and keys and values go round so that all tokens still see "
        "each other. It divides the activations of long sequences.",
        ("context parallel",),
        _RING,
    ),
    Term(
        "contiguous",
        "A tensor is contiguous if its elements lie in storage without gaps, the last index running fastest.",
    ),
    Term(
        "data parallelism",
        "Each accelerator, or group of them, works on its own part of the batch with the same weights, and the "
        "gradients are averaged.",
        ("data parallel",),
    ),
    Term(
        "dense peak",
        "The datasheet’s rate of matrix products without structured sparsity. The sparse figure is twice as large on "
        "many parts and is never what dense training could reach.",
    ),
    Term(
        "double rounding",
        "Rounding to one format and then to a narrower one, which can end elsewhere than rounding once.",
    ),
    Term(
        "expert parallelism",
        "The experts of a mixture are spread over accelerators, and tokens travel to those that they are routed to.",
        ("expert parallel",),
        _GSHARD,
    ),
    Term(
        "FLOP",
        "One floating-point addition or multiplication; a multiply-add counts as two. FLOPs are an amount of work, "
        "FLOP/s a rate.",
        ("FLOPs", "FLOP/s"),
    ),
    Term(
        "FlashAttention",
        "Attention computed block by block on the chip, so that the square of scores never goes to memory.",
        source=_FLASH,
    ),
    Term(
        "fp16",
        "IEEE 754’s 16-bit float, with 5 exponent and 10 fraction bits: finer than bf16, but it ends at 65,504.",
        source=_IEEE,
    ),
    Term(
        "fp64",
        "IEEE 754’s 64-bit float, with 11 exponent and 52 fraction bits: to check against, not to train in.",
        source=_IEEE,
    ),
    Term("fp32", "IEEE 754’s 32-bit float, with 8 exponent and 23 fraction bits.", source=_IEEE),
    Term(
        "fp8",
        "An 8-bit float: E4M3, up to 448, for weights and activations, and E5M2, up to 57,344, for gradients.",
        source=_FP8,
    ),
    Term(
        "FSDP",
        "PyTorch’s fully sharded data parallelism: parameters, gradients and optimizer state are each kept once over "
        "all data-parallel ranks and gathered when needed, as ZeRO-3 does.",
        source=_FSDP,
    ),
    Term(
        "global batch",
        "All sequences, or tokens, of one optimizer step, over all accelerators.",
    ),
    Term(
        "goodput",
        "The share of the time on the wall that ends up in the finished model: without failures, restarts, lost steps "
        "and checkpoints.",
    ),
    Term(
        "gradient accumulation",
        "Adding up the gradients of several micro-batches before one optimizer step, for a batch larger than memory "
        "would hold at once.",
    ),
    Term(
        "HFU",
        "Hardware FLOPs utilisation: all FLOPs the accelerators did, recomputed ones included, over what they could do "
        "at dense peak.",
        source=_PALM,
    ),
    Term(
        "HSDP",
        "Hybrid sharded data parallelism: FSDP inside groups of accelerators, plain data parallelism between them.",
        source=_FSDP,
    ),
    Term("int8", "A whole number of 8 bits, from −128 to 127; of floats it holds what a scale makes of them."),
    Term(
        "loss scaling",
        "Multiplying the loss, and so every gradient, by a factor that lifts small gradients above fp16’s smallest "
        "value; it is divided out before the update.",
        ("loss scale",),
        source=_MICIKEVICIUS,
    ),
    Term(
        "master weights",
        "A copy of the weights in fp32 that takes the updates, while matrix products use a narrower one: an update too "
        "small for bf16 is not lost.",
        source=_MICIKEVICIUS,
    ),
    Term(
        "MFU",
        "Model FLOPs utilisation: the FLOPs the model needs, over what the accelerators could do in that time at dense "
        "peak. Recomputation does not count.",
        source=_PALM,
    ),
    Term(
        "micro-batch",
        "The sequences that go through the model at once on one data-parallel rank; a step takes one or more.",
    ),
    Term(
        "MTBF",
        "Mean time between failures. That of a cluster is that of one accelerator over their number.",
    ),
    Term(
        "MX formats",
        "Block formats in which 32 elements share one scale, a power of two.",
        ("MXFP8", "MXFP4"),
        OCP_MX,
    ),
    Term(
        "optimizer state",
        "What an optimizer keeps for each parameter between steps, such as Adam’s two running means.",
    ),
    Term(
        "P10–P90",
        "The range between the values that a tenth and nine tenths of cases stay below: four in five lie inside. P50 "
        "is the median.",
        ("P10", "P50", "P90"),
    ),
    Term(
        "pipeline parallelism",
        "The layers are divided into stages on different accelerators, and micro-batches follow one another through "
        "them. What a stage waits at start and end is the bubble.",
        ("pipeline parallel", "pipeline bubble"),
        _PIPELINES,
    ),
    Term(
        "PUE",
        "Power usage effectiveness: the power of the whole building over that of its machines.",
    ),
    Term(
        "rank",
        "One process of a distributed run, usually one accelerator.",
    ),
    Term(
        "recomputation",
        "Computing activations again in backward instead of keeping them: less memory, up to a third more FLOPs.",
        ("activation checkpointing",),
        _KORTHIKANTI,
    ),
    Term(
        "ridge point",
        "Peak rate over memory bandwidth, in FLOPs per byte. Work that does fewer FLOPs for each byte it moves waits "
        "for memory.",
        source=_ROOFLINE,
    ),
    Term(
        "SDPA",
        "PyTorch’s scaled_dot_product_attention, one call for attention behind which several kernels stand.",
    ),
    Term(
        "sequence parallelism",
        "Norms and residuals are split along the sequence over the tensor-parallel accelerators, which divides the "
        "activations that tensor parallelism alone copies to each.",
        ("sequence parallel",),
        _KORTHIKANTI,
    ),
    Term("SGD", "Stochastic gradient descent: weights minus learning rate times gradient. Plain, it keeps no state."),
    Term(
        "stochastic rounding",
        "Rounding up or down at random, with the nearer neighbour the likelier, so that the mean is right.",
    ),
    Term("storage offset", "The cell of storage at which a tensor’s first element lies."),
    Term(
        "stride",
        "How many cells of storage lie between two elements that are neighbours along one dimension.",
    ),
    Term(
        "subnormal",
        "A number below the smallest normal one, whose leading bit is 0: all steps there are equally wide, and bits of "
        "precision are lost towards zero.",
        source=_IEEE,
    ),
    Term(
        "tensor parallelism",
        "Each matrix of a layer is divided over accelerators that exchange results within the layer, and so need fast "
        "links.",
        ("tensor parallel",),
        _MEGATRON,
    ),
    Term(
        "ULP",
        "Unit in the last place: what the last bit of a stored number is worth, the step to its neighbour away from "
        "zero. From a power of two the step towards zero is half as wide.",
    ),
    Term("view", "A tensor that shares its storage with another and differs in shape, strides or offset; no copy."),
    Term(
        "ZeRO",
        "Data-parallel accelerators share what each would keep a copy of: optimizer state (stage 1), gradients as well "
        "(2), parameters as well (3).",
        ("ZeRO-1", "ZeRO-2", "ZeRO-3"),
        ZERO,
    ),
)

TERMS: tuple[Term, ...] = tuple(sorted(_TERMS, key=lambda term: term.name.lower()))
"""Every term, in alphabetical order."""


_MEANINGS = {name: term.meaning for term in TERMS for name in term.names}


def meaning(name: str) -> str:
    """The definition of a term, for a text that begins with it. Raises ``KeyError`` where there is none."""
    return _MEANINGS[name]


def matching(wanted: str) -> tuple[Term, ...]:
    """Terms whose names hold ``wanted``, then those whose definition does; all where nothing is wanted."""
    text = " ".join(wanted.lower().split())
    named = [term for term in TERMS if any(text in name.lower() for name in term.names)]
    return (*named, *(term for term in TERMS if term not in named and text in term.meaning.lower()))


def _written(term: Term) -> str:
    """How a term may stand in a sentence: any of its names, an ordinary word also with a capital or in the plural."""
    ways: list[str] = []
    for name in sorted(term.names, key=len, reverse=True):
        first, rest = name[0], re.escape(name[1:]).replace(r"\ ", r"[ \xa0-]")
        if not name[1:2].islower():
            ways.append(re.escape(first) + rest + ("s?" if name[-1].isalpha() and not name.endswith("s") else ""))
            continue
        plural = "" if name.endswith("s") else "(?:es)?" if name.endswith("ch") else "s?"
        ways.append(f"[{first.lower()}{first.upper()}]{rest}{plural}")
    return f"({'|'.join(ways)})"


PATTERN = rf"(?<![\w/.-])(?:{'|'.join(_written(term) for term in TERMS)})(?![\w-]|/\w)"
"""Where terms stand in a text: one group for each of `TERMS`, in syntax that JavaScript reads alike."""

_PATTERN = re.compile(PATTERN)


def appearances(text: str) -> tuple[Term, ...]:
    """The terms that stand in a text, in order, each once."""
    return tuple(dict.fromkeys(TERMS[int(match.lastindex or 1) - 1] for match in _PATTERN.finditer(text)))
