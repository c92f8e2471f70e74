"""A model’s parameter tensors: how ranks divide them, and which of them are trained.

A projection is one matrix here, even where a library fuses several into one; of Q, K and V or of gate and up there
are three and two. Nothing is counted twice: a tied head is the embedding.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias

import numpy as np

from core.formula import Source
from core.limits import cached
from core.messages import Message, message, pick_message
from core.models.operation import AttentionCore, Op, Split, WeightKind
from core.models.operations import operations
from core.models.spec import TransformerSpec
from core.rows import read_rows
from core.suggest import suggestions
from core.training.layout import LayoutError


class DividedAmount(defaultdict[float, float]):
    """An amount by the most ranks that divide it: one, so many as there are key/value heads, or any number."""

    def __init__(self) -> None:
        super().__init__(float)

    def on(self, ranks: Any) -> Any:
        """Return the amount on one of ``ranks`` ranks, a number or an array."""
        return sum(amount / np.minimum(ranks, most) for most, amount in self.items())


def most_ranks(split: Split, ops: Iterable[Op]) -> float:
    """Return the most ranks that divide a tensor, one of an expert among those that share the expert.

    ops: the operation that makes the tensor and those after it, of which attention knows its key/value heads.
    """
    if split == "kv":
        core = next(op for op in ops if type(op) is AttentionCore)
        return core.kv_heads if core.kv_heads < core.heads else math.inf
    return math.inf if split in ("tensor", "expert tensor") else 1.0


_WEIGHTS = read_rows("weight_classes")

CLASSES: Mapping[str, str] = {row["weight"]: row["class"] for row in _WEIGHTS}
"""Name of an operation’s weight → its class, in the order in which a token meets them."""

_ORDER = {path: 2 * list(CLASSES.values()).index(name) for path, name in CLASSES.items()}
"""Name of a weight → place of its class; a bias follows its matrix."""


def class_of(path: str) -> str:
    """Return the class of a weight: its own name where no other is known."""
    return CLASSES.get(path, path)


@dataclass(frozen=True, slots=True)
class ParameterTensor:
    """``count`` tensors of one shape. A vector of n elements has n rows and one column."""

    name: str
    rows: int
    columns: int
    count: int
    kind: WeightKind

    @property
    def elements(self) -> int:
        """Parameters of all of them together."""
        return self.rows * self.columns * self.count


@cached("small_results_kept")
def tensors_of(spec: TransformerSpec) -> tuple[ParameterTensor, ...]:
    """Return the parameter tensors of ``spec``, in the order in which a token meets them."""
    counts: dict[tuple[int, int, str, int, int, WeightKind], int] = {}
    for op in operations(spec):
        for weight in op.weights:
            if weight.shared:
                continue
            path = weight.name.removesuffix(".bias") if weight.name not in CLASSES else weight.name
            bias = path != weight.name
            part = 2 if path.startswith("lm_head") else int(op.block == "mtp")
            name = f"{'prediction: ' * (part == 1)}{class_of(path)}{' bias' * bias}"
            key = (part, _ORDER.get(path, len(_ORDER)) + bias, name, weight.rows, weight.columns, weight.kind)
            counts[key] = counts.get(key, 0) + op.layers * weight.count
    return tuple(ParameterTensor(*key[2:5], count, key[5]) for key, count in sorted(counts.items()))


Method: TypeAlias = Literal["everything", "adapters", "last layers", "named tensors"]

METHODS: tuple[Method, ...] = ("everything", "adapters", "last layers", "named tensors")

QLORA = Source("Dettmers et al. 2023, QLoRA", "sections 2 and 3", "https://arxiv.org/abs/2305.14314")


@dataclass(frozen=True, slots=True)
class FrozenType:
    """How frozen weights are stored. each: bytes per element with the scales of its blocks. per_row: bytes of a scale
    for each output. computed: bytes of what products read. Only matrices of layers are quantised."""

    each: float
    per_row: float = 0.0
    computed: int = 2
    quantised: bool = True


FROZEN: Mapping[str, FrozenType] = {
    "bf16": FrozenType(2, quantised=False),
    "fp32": FrozenType(4, computed=4, quantised=False),
    "int8": FrozenType(1, per_row=4),
    "fp8": FrozenType(1 + 4 / 128**2),
    "nf4": FrozenType(0.5 + 4 / 64),
    "nf4, double": FrozenType(0.5 + 1 / 64 + 4 / (64 * 256)),
}
"""By name. nf4: blocks of 64 with an fp32 scale each; double: those scales in 8 bits, 256 of them with an fp32 scale
[QLoRA, section 3]. fp8: blocks of 128 × 128 as DeepSeek-V3 scales them. int8: an fp32 scale for each output, as
bitsandbytes' LLM.int8."""

_ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
_NETWORK = ("gate_proj", "up_proj", "down_proj")

MODULES: Mapping[str, str] = {row["class"]: row["module"] for row in _WEIGHTS if row["module"]}
"""Name of a class of tensors → its module as transformers calls it in a Llama or a DeepSeek."""

GROUPS: Mapping[str, tuple[str, ...]] = {
    "all-linear": (
        *_ATTENTION,
        *_NETWORK,
        *("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "g_proj", "in_proj", "out_proj"),
    ),
    "attention": (*_ATTENTION, "q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "g_proj"),
    "mlp": _NETWORK,
}
"""Words for several target modules."""

TARGETS: tuple[str, ...] = (*GROUPS, *dict.fromkeys(name for group in GROUPS.values() for name in group), "lm_head")
"""Every name that adapters can be asked for."""


class TrainedError(LayoutError):
    """A choice of what is trained that cannot be. field: of `Trained`. The message: what is wrong and what would do."""

    def __init__(self, field: str, problem: Message) -> None:
        ValueError.__init__(self, problem)
        self.field, self.value, self.rule, self.example = field, 0, problem, None


@dataclass(frozen=True, slots=True)
class Trained:
    """What a plan trains.

    rank, alpha, targets, dora, dropout: of adapters; targets are names of `TARGETS`. head: embedding and head are
    trained beside them. norms: norms and biases are. last: layers from the top. names: patterns with ``*`` over names
    such as ``layers.31.mlp.down_proj``, or parts of such names. frozen: how the rest is stored, by name of `FROZEN`.
    frozen_fp32: what is neither trained nor quantised is in fp32, and the residual stream with it. fused: queries, keys
    and values are one matrix, whose adapters read one input after dropout, as litgpt's do; PEFT drops out for each.
    """

    method: Method = "everything"
    rank: int = 16
    alpha: float = 32.0
    targets: tuple[str, ...] = ("all-linear",)
    dora: bool = False
    dropout: bool = False
    head: bool = False
    norms: bool = False
    last: int = 2
    names: tuple[str, ...] = ()
    frozen: str = "bf16"
    frozen_fp32: bool = False
    fused: bool = False

    @property
    def everything(self) -> bool:
        return self.method == "everything"

    @property
    def adapters(self) -> bool:
        return self.method == "adapters"

    @property
    def storage(self) -> FrozenType:
        """How frozen weights are stored."""
        return FROZEN[self.frozen]

    @property
    def computed(self) -> int:
        """Bytes of what frozen embedding, head and norms are in, and the residual stream."""
        return 4 if self.frozen_fp32 else self.storage.computed

    @property
    def modules(self) -> frozenset[str]:
        """The target modules by their own names."""
        return frozenset(name for target in self.targets for name in GROUPS.get(target, (target,)))


EVERYTHING = Trained()


def module_of(tensor: ParameterTensor) -> str:
    """The module of a tensor; its own name with underscores where transformers has no one name for it."""
    name = tensor.name.removesuffix(" bias").removeprefix("prediction: ")
    return MODULES.get(name, re.sub(r"\W+", "_", name))


def _layers_of(spec: TransformerSpec, tensor: ParameterTensor) -> int:
    """Layers over which tensors of this class lie; 0 where they are outside the layers."""
    if tensor.kind in ("embedding", "head") or tensor.name.startswith(("prediction", "norm outside", "vision tower")):
        return 0
    if " to " in tensor.name or tensor.name == "bias of the head":
        return 0
    return next(n for n in range(min(spec.layers, tensor.count), 0, -1) if tensor.count % n == 0)


@dataclass(frozen=True, slots=True)
class TrainedPart:
    """Tensors of one shape that are all trained, or all frozen. base: which tensors of the model they are, or adapt.

    adapter: they stand beside ``base``, whose elements are counted with it. share: part of the layers that have them.
    """

    tensor: ParameterTensor
    base: ParameterTensor
    trained: bool
    adapter: bool = False


def _adapters(t: Trained, base: ParameterTensor) -> Iterator[TrainedPart]:
    out, into, count = base.rows, base.columns, base.count
    shapes = [("A", t.rank, into), ("B", out, t.rank)] + [("magnitude", out, 1)] * t.dora
    for name, rows, columns in shapes:
        kind = "vector" if columns == 1 else "matrix"
        part = ParameterTensor(f"{base.name}: adapter {name}", rows, columns, count, kind)
        yield TrainedPart(part, base, trained=True, adapter=True)


def _outside(base: ParameterTensor) -> bool:
    return base.kind in ("embedding", "head") or base.name == "bias of the head"


def _matched(t: Trained, spec: TransformerSpec, base: ParameterTensor) -> int:
    """How many of the layers' tensors (or 1, outside the layers) the method trains."""
    layers, module = _layers_of(spec, base), module_of(base)
    suffix = ".bias" if base.name.endswith(" bias") else ""
    if t.method == "last layers":
        trained = min(t.last, layers) if layers else 0
    elif t.method == "named tensors":
        every = [f"layers.{i}.{module}{suffix}" for i in range(layers)] or [f"{module}{suffix}"]
        trained = sum(any(names_tensor(pattern, name) for pattern in t.names) for name in every)
    else:
        trained = 0
    beside = t.method in ("adapters", "last layers")
    if beside and ((t.head and _outside(base)) or (t.norms and base.kind == "vector" and not _outside(base))):
        return max(1, layers)
    return trained


def names_tensor(pattern: str, name: str) -> bool:
    """Whether a pattern of `Trained.names` is meant for the tensor ``name``."""
    return fnmatchcase(name, pattern) if "*" in pattern else pattern in name


@cached("results_kept")
def parts_of_training(spec: TransformerSpec, trained: Trained) -> tuple[TrainedPart, ...]:
    """The tensors of a model, each trained or frozen, and those that are trained beside them.

    Raises `TrainedError` for a name that is no tensor's, a rank above the width, and quantised tensors to be trained.
    """
    parts: list[TrainedPart] = []
    narrow = min((base for base in tensors_of(spec) if _adapted(trained, base)), key=_width, default=None)
    if narrow and trained.rank > _width(narrow):
        rank, width = float(trained.rank), float(_width(narrow))
        said = message("training.error.rank", rank=rank, module=module_of(narrow), width=width)
        raise TrainedError("rank", said)
    for base in tensors_of(spec):
        if _adapted(trained, base):
            parts.extend(_adapters(trained, base))
        layers = max(1, _layers_of(spec, base))
        hit = layers if trained.everything else _matched(trained, spec, base)
        for number, whether in ((hit, True), (layers - hit, False)):
            if number:
                parts.append(TrainedPart(replace(base, count=base.count * number // layers), base, whether))
    _check(spec, trained, parts)
    return tuple(parts)


def _adapted(trained: Trained, base: ParameterTensor) -> bool:
    """Whether an adapter is beside a tensor."""
    leaf = module_of(base).rsplit(".", 1)[-1]
    return trained.adapters and leaf in trained.modules and base.kind in ("matrix", "expert matrix", "head")


def _width(base: ParameterTensor) -> int:
    """The shorter side of a matrix."""
    return min(base.rows, base.columns)


def _check(spec: TransformerSpec, t: Trained, parts: list[TrainedPart]) -> None:
    modules = list(dict.fromkeys(module_of(base) for base in tensors_of(spec)))
    if t.method == "named tensors":
        layered = {module_of(b): _layers_of(spec, b) for b in tensors_of(spec)}
        every = [f"layers.{i}.{m}{end}" for m, n in layered.items() for i in range(n) for end in ("", ".bias")]
        every += [m for m, n in layered.items() if not n]
        for pattern in t.names or ("",):
            if not pattern or not any(names_tensor(pattern, name) for name in every):
                near = suggestions(pattern.replace("*", ""), modules) or modules[1:4]
                missing = "training.error.name" if pattern else "training.error.no_name"
                raise TrainedError("names", pick_message(missing, pattern=pattern, near=near))
    if t.adapters and not any(part.adapter for part in parts):
        leaves = [m.rsplit(".", 1)[-1] for m in modules]
        available = list(dict.fromkeys(leaves[1:8]))
        raise TrainedError("targets", message("training.error.no_target", targets=t.targets, modules=available))
    if t.method == "last layers" and t.last > spec.layers:
        said = message("training.error.last", layers=float(spec.layers), last=float(t.last))
        raise TrainedError("last", said)
    matrices = [part for part in parts if part.base.kind in ("matrix", "expert matrix") and not part.adapter]
    chosen = [part for part in matrices if part.trained]
    if t.method == "named tensors" and t.storage.quantised and len(chosen) == len(matrices):
        module = module_of(chosen[0].base)
        raise TrainedError("frozen", message("training.error.frozen", module=module, frozen=t.frozen))


@cached("results_kept")
def active_share(spec: TransformerSpec, trained: Trained) -> float:
    """Share of the layers through which a gradient flows: from the lowest that is trained to the top."""
    if trained.method in ("everything", "adapters") or trained.head:
        return 1.0
    if trained.method == "last layers":
        return trained.last / spec.layers
    layered = {module_of(base): _layers_of(spec, base) for base in tensors_of(spec)}
    if any(not n and "embed" in m and any(names_tensor(p, m) for p in trained.names) for m, n in layered.items()):
        return 1.0
    ends = [(module, layers, end) for module, layers in layered.items() for end in ("", ".bias")]

    def trains(i: int) -> bool:
        names = [f"layers.{i}.{module}{end}" for module, layers, end in ends if layers > i]
        return any(names_tensor(pattern, name) for pattern in trained.names for name in names)

    lowest = next((i for i in range(spec.layers) if trains(i)), spec.layers)
    return (spec.layers - lowest) / spec.layers


def stored_bytes(trained: Trained, base: ParameterTensor) -> float:
    """Bytes per element of a frozen tensor: matrices of layers as the storage has them, others in what it computes."""
    storage = trained.storage
    if base.kind in ("matrix", "expert matrix") and base.name != "router":
        return storage.each + storage.per_row / base.columns
    return float(trained.computed)
