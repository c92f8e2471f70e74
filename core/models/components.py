"""Components of a model as people read them: each with its operations, parameters, FLOPs, and the formula of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.formula import Explanation, Source, Symbol, explanation, read_sources
from core.limits import cached
from core.models.flop_formulas import MEGATRON
from core.models.operation import Convolution, GroupedLinear, LayerLookup, Linear, Logits, Lookup, Op, Scan, Tower
from core.models.operations import operations, write_operations
from core.models.spec import TransformerSpec
from core.models.symbols import SYMBOLS, count, symbol, symbolic
from core.rows import read_record, read_rows

Group: TypeAlias = Literal["embedding", "attention", "feed-forward", "experts", "norms", "head", "prediction", "mixers"]
"""Part of the model that a component belongs to."""

Amount: TypeAlias = Literal["parameters", "active", "flop"]


@dataclass(frozen=True, slots=True)
class ComponentRow:
    """A component. operations: names of its operations and weights, by spaces. detail: a remark on its formula."""

    name: str
    group: Group
    operations: str = ""
    sources: tuple[Source, ...] = ()
    detail: str = ""


ROWS: Mapping[str, ComponentRow] = {
    row["key"]: read_record(ComponentRow, row, sources=read_sources(row["sources"])) for row in read_rows("components")
}
"""Id → component, in the order in which a token meets them."""

_PARAMETER_ROWS = {
    n: key for key, row in ROWS.items() if key not in ("gate", "up", "down") for n in row.operations.split()
}
_FLOP_ROWS = {n: key for key, row in ROWS.items() if key not in ("ffn", "positions") for n in row.operations.split()}
_NAMED = {*_PARAMETER_ROWS, *_FLOP_ROWS}
"""Operations that a row names. Whatever else the model runs is in the row of other operations."""

_PARAMETERS, _FLOP = count("N", "parameters"), Symbol("F", "forward FLOPs per token", "flop")


def row_name(spec: TransformerSpec, key: str) -> str:
    """Return the component’s name. Only beside experts do ordinary feed-forward networks need an adjective."""
    return ROWS[key].name.replace("Feed-forward", "Dense feed-forward" if spec.experts else "Feed-forward")


@dataclass(frozen=True, slots=True)
class ModelPart:
    """A component of one model, by the key of its row."""

    spec: TransformerSpec
    id: str

    @property
    def name(self) -> str:
        """The displayed name."""
        return row_name(self.spec, self.id)

    @property
    def group(self) -> Group:
        """The part of the model that it belongs to."""
        return ROWS[self.id].group


def weight_flop(op: Op) -> int:
    """Return forward FLOPs of one run that multiply by a weight (a lookup by a one-hot vector) or move a state."""
    if isinstance(op, Linear | Lookup | Convolution):
        return 2 * op.weights[0].rows * op.weights[0].columns * op.copies
    return op.flop * op.makes[0].width * op.state if isinstance(op, Scan) else 0


def amounts(spec: TransformerSpec, ops: tuple[Op, ...], of: Amount) -> Iterator[tuple[str, Op, int]]:
    """Yield component, operation, and amount of one run; a lookup costs nothing."""
    for op in ops:
        predicts = op.block == "mtp"
        if of == "flop":
            flop = 0 if isinstance(op, Lookup) else weight_flop(op)
            key = "prediction" if predicts else _key(spec, op.name, _FLOP_ROWS)
            if flop and key:
                yield key, op, flop
            continue
        for weight in op.weights:
            if not weight.shared:
                run = op.copies if of == "active" and isinstance(op, GroupedLinear) else weight.count
                run = 0 if of == "active" and isinstance(op, LayerLookup | Tower) else run
                key = "prediction" if predicts else _key(spec, weight.name, _PARAMETER_ROWS)
                yield key, op, weight.rows * weight.columns * run


def _key(spec: TransformerSpec, name: str, keys: Mapping[str, str]) -> str:
    """Return the component of an operation or a weight, or an empty string where it belongs to none."""
    key = keys.get(name) or keys.get(name.removesuffix(".bias")) or ("" if name in _NAMED else "further")
    return "queries_unranked" if key == "qkv" and spec.latent else key


@cached("small_results_kept")
def totals(spec: TransformerSpec, of: Amount) -> Mapping[str, int]:
    """Return each component’s amount over all layers, in the order in which a token meets them."""
    sums: dict[str, int] = {}
    for key, op, amount in amounts(spec, operations(spec), of):
        sums[key] = sums.get(key, 0) + op.layers * amount
    return {key: sums[key] for key in ROWS if key in sums}


@cached("results_kept")
def _symbolic_operations(spec: TransformerSpec) -> tuple[Op, ...]:
    return write_operations(symbolic(spec))


def explain_row(spec: TransformerSpec, key: str, of: Amount) -> Explanation:
    """Return the formula of a component’s amount, under the component’s name."""
    own = [part for part in amounts(spec, _symbolic_operations(spec), of) if part[0] == key]
    often = {op.layers for _, op, _ in own}
    if key == "prediction":
        layer = sum(amount for _, op, amount in own if _in_decoder_layer(op))
        module = sum(amount for _, op, amount in own if not _in_decoder_layer(op))
        total = symbol("modules", *often) * (symbol("layer_flop" if of == "flop" else "layer", layer) + module)
    elif len(often) > 1 and len({amount for *_, amount in own}) == 1:  # norms, which are all alike
        total = symbol("times", sum(op.layers for _, op, _ in own)) * own[0][2]
    elif len(often) > 1:  # one symbol cannot have several values
        first, *rest = (symbol("layers", 1) * op.layers * amount for _, op, amount in own)
        total = sum(rest, first)
    else:
        total = symbol("layers", *often) * sum(amount for _, _, amount in own)
    row, values = ROWS[key], total.values
    return explanation(
        f"{key}: {total.latex}",
        row_name(spec, key),
        row.detail,
        total.latex,
        _FLOP if of == "flop" else _PARAMETERS,
        {name: SYMBOLS[name] for name in values},
        values,
        total,
        (*row.sources, MEGATRON) if of == "flop" else row.sources,
    )


def _in_decoder_layer(op: Op) -> bool:
    """Whether an operation of multi-token prediction belongs to the layer that it repeats."""
    return not op.name.startswith("mtp.") and not isinstance(op, Logits)
