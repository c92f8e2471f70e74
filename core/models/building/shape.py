"""The shape of a model, read from what it ran: the recorded list of operations in the words of `TransformerSpec`.

Attention and feed-forward networks are told by what reads what and by widths, never by the names of a family. What
else layers multiply by, norm, or learn becomes `Further`, so that the parameters are all there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.models.building.record import AttentionCall, LayerRun, Matmul, NormCall, Record
from core.models.parameters import parameters
from core.models.spec import (
    AttentionLayers,
    DenseLayers,
    Experts,
    Further,
    KeyValues,
    LatentAttention,
    SlidingWindow,
    SpecError,
    TransformerSpec,
)

_MOST_OTHER = 0.01
"""Share of the parameters that may be vectors of unknown purpose. With more, the shape would say too little."""


class NoShapeError(Exception):
    """Why what ran has no shape; the sentence is for a reader."""


@dataclass(frozen=True, slots=True)
class _Heads:
    heads: int
    kv_heads: int
    key_dim: int
    value_dim: int
    window: int
    sinks: bool
    keys: KeyValues = "own"

    @property
    def value_width(self) -> int:
        """Width of values where it is not that of keys, else 0."""
        return self.value_dim if self.value_dim != self.key_dim else 0


@dataclass(slots=True)
class _Layer:
    """One layer in the words of a spec. known: fields that all layers share. heads: sizes of its attention."""

    known: dict[str, Any] = field(default_factory=dict[str, Any])
    heads: _Heads | None = None
    ffn: int = 0
    experts: Experts | None = None
    matmuls: list[Matmul] = field(default_factory=list[Matmul])
    norms: list[NormCall] = field(default_factory=list[NormCall])


def shape_of(record: Record, total: int) -> TransformerSpec:
    """Return the shape of a model with so many parameters; raises `NoShapeError`."""
    hidden = _agreed((run.width for run in record.layers), 0)
    if not hidden or not record.outside.tables or not record.outside.matmuls:
        raise NoShapeError("No stack of decoder layers was found in it.")
    layers = [_read_layer(run, hidden) for run in record.layers]
    try:
        spec = _spec(record, layers, hidden)
        left = total - parameters(spec).total
        if not 0 <= left <= _MOST_OTHER * total:
            raise NoShapeError(f"{abs(left):,} of its parameters are in operations of no known kind.")
        if not left:
            return spec
        times = 1 if left % spec.layers else spec.layers
        return replace(spec, further=(*spec.further, Further("vector", times, left // times)))
    except SpecError as problem:
        raise NoShapeError(f"What it runs is no shape: {problem}") from problem


def _agreed(values: Iterable[Any], default: Any) -> Any:
    """The value that all share, or ``default``."""
    found = set(values)
    return found.pop() if len(found) == 1 else default


def _within(module: str, owner: str) -> bool:
    return module.startswith(f"{owner}.") or module == owner


def _read_layer(run: LayerRun, hidden: int) -> _Layer:
    layer = _Layer()
    if len(run.attention) > 1:
        raise NoShapeError("A layer of it attends more than once.")
    owner = run.attention[0].module if run.attention else None
    inside = [one for one in run.matmuls if owner is not None and _within(one.module, owner)]
    norms = [one for one in run.norms if owner is not None and _within(one.module, owner) and one.module != owner]
    outside = [one for one in run.matmuls if one not in inside]
    others = [one for one in run.norms if one not in norms]
    if run.attention:
        _read_attention(layer, run.attention[0], inside, norms, hidden)
    _read_network(layer, outside, hidden)
    wide = [one for one in others if one.width == hidden]
    layer.norms += [one for one in others if one.width != hidden and one.vectors]
    layer.known["norms_per_layer"] = len(wide)
    layer.known["norm_vectors"] = _agreed((one.vectors for one in wide), 1)
    layer.known["norm"] = "layernorm" if any(one.centred for one in wide) else "rmsnorm"
    first = next((one.reads for one in outside if one.columns == hidden), 0)
    source = next((one.reads for one in wide if one.makes == first), first)
    layer.known["parallel_blocks"] = bool(run.attention) and source == run.given
    return layer


def _read_attention(
    layer: _Layer, call: AttentionCall, inside: list[Matmul], norms: list[NormCall], hidden: int
) -> None:
    """Read q, k, v, and the output projection, or the low ranks of latent attention; what is left stays."""
    results = call.heads * call.value_dim
    ends = [one for one in inside if (one.rows, one.columns) == (hidden, results)]
    if not ends:
        raise NoShapeError("Its attention has no output projection.")
    inside, layer.known["output_bias"] = [one for one in inside if one is not ends[-1]], ends[-1].bias
    made, after = {one.makes: one for one in inside}, {one.makes: one for one in norms}
    ups = [one for one in inside if one.reads in after and after[one.reads].reads in made]
    if ups:
        _read_latent(layer, call, inside, [(up, after[up.reads]) for up in ups])
        layer.norms += [one for one in norms if one.makes not in {up.reads for up in ups} and one.vectors]
        return
    first = [one for one in inside if one.columns == hidden]
    kv_heads = call.kv_heads
    if not kv_heads:
        widths = sum(one.rows for one in first) - call.heads * call.key_dim
        kv_heads = max(1, widths // (call.key_dim + call.value_dim))
    q, k, v = call.heads * call.key_dim, kv_heads * call.key_dim, kv_heads * call.value_dim
    sums = [sum(one.rows for one in first[: i + 1]) for i in range(len(first))]
    kinds: dict[int, tuple[KeyValues, int]] = {q + k + v + results: ("own", 2), q + k + v + call.heads: ("own", 1)}
    kinds |= {q + k + v: ("own", 0), q + k: ("one", 0), q: ("earlier", 0)}
    width = next((width for width in kinds if width in sums), None)
    if width is None:
        raise NoShapeError("Its attention projects to other widths than it reads.")
    keys, gate = kinds[width]
    read = first[: sums.index(width) + 1]
    layer.matmuls += [one for one in inside if one not in read]
    layer.heads = _Heads(call.heads, kv_heads, call.key_dim, call.value_dim, call.window, call.sinks, keys)
    gains = [one.gain for one in norms if one.vectors for _ in range(one.vectors)]
    normed = 1 if keys == "earlier" else 2
    qk_norm = "head" if gains == [call.key_dim] * normed else "full" if gains == [q, k][:normed] else "none"
    if qk_norm == "none":
        layer.norms += [one for one in norms if one.vectors]
    layer.known |= {
        "attention_gate": gate > 0,
        "gate_per_head": gate == 1,
        "attention_bias": all(one.bias for one in read),
        "qk_norm": qk_norm,
        "values_normed": qk_norm != "none" and any(not one.vectors for one in norms),
    }


def _read_latent(
    layer: _Layer, call: AttentionCall, inside: list[Matmul], ups: Sequence[tuple[Matmul, NormCall]]
) -> None:
    ranks: dict[str, int] = {"query_rank": 0}
    used, downs, made = list[Matmul](), list[Matmul](), {one.makes: one for one in inside}
    for up, norm in ups:
        down, rank = made[norm.reads], norm.width
        if down.rows > rank:
            rope = down.rows - rank
            ranks |= {"kv_rank": rank, "rope_dim": rope, "nope_dim": call.key_dim - rope}
        elif up.rows == call.heads * call.key_dim:
            ranks["query_rank"] = rank
        else:
            continue
        used, downs = [*used, up, down], [*downs, down]
    if "kv_rank" not in ranks:
        raise NoShapeError("Its attention has low ranks of no known kind.")
    if not ranks["query_rank"]:
        used += [one for one in inside if one.rows == call.heads * call.key_dim and one not in used][:1]
    layer.matmuls += [one for one in inside if one not in used]
    layer.heads = _Heads(call.heads, call.heads, call.key_dim, call.key_dim, call.window, call.sinks)
    layer.known["latent"] = LatentAttention(value_dim=call.value_dim, **ranks)
    layer.known["attention_bias"] = all(one.bias for one in downs)


@dataclass(frozen=True, slots=True)
class _Network:
    """A feed-forward network by its matmuls, the last of them down."""

    matmuls: tuple[Matmul, ...]

    @property
    def down(self) -> Matmul:
        return self.matmuls[-1]

    @property
    def gated(self) -> bool:
        return sum(one.rows for one in self.matmuls[:-1]) > self.down.columns


def _networks(matmuls: Sequence[Matmul]) -> tuple[list[_Network], list[Matmul]]:
    """Feed-forward networks, and the matmuls that belong to none."""
    left, found = list[Matmul](), list[_Network]()
    for down in matmuls:
        sizes, ends = (down.columns, 2 * down.columns), (down.rows, down.networks)
        alike = [up for up in left if up.rows in sizes and (up.columns, up.networks) == ends]
        ups = [up for up in alike if up.reads == alike[-1].reads != down.reads]
        if ups and sum(up.rows for up in ups) in sizes:
            found.append(_Network((*ups, down)))
            left = [up for up in left if up not in ups]
        else:
            left.append(down)
    return found, left


def _read_network(layer: _Layer, matmuls: Sequence[Matmul], hidden: int) -> None:
    """Read a dense network, or routed and shared experts; what is left stays."""
    found, left = _networks(matmuls)
    routed = [one for one in found if one.down.networks > 1]
    plain = [one for one in found if one.down.networks == 1 and one.down.rows == hidden]
    used = [*routed[:1], *plain[:1]]
    if used:
        layer.known["glu"] = used[0].gated
        layer.known["ffn_bias"] = all(one.bias for network in used for one in network.matmuls)
    if len({network.gated for network in used}) > 1 or len(routed) > 1:
        raise NoShapeError("Its experts are of several kinds.")
    if routed:
        down = routed[0].down
        router = [one for one in left if one.rows == down.networks][:1]
        gate = [one for one in left if one.rows == 1 and plain][:1]
        joins = [one for one in left if {one.rows, one.columns} == {down.rows, hidden} and down.rows != hidden][:2]
        if not router or (down.rows != hidden and len(joins) < 2):
            raise NoShapeError("Its experts have no router.")
        width = plain[0].down.columns if plain else 0
        layer.experts = Experts(
            down.networks,
            down.copies,
            down.columns,
            shared=len(plain[:1]),
            shared_width=width if width != down.columns else 0,
            shared_gate=bool(gate),
            router_bias=router[0].bias,
            latent=down.rows if joins else 0,
        )
        left = [one for one in left if one not in (*router, *gate, *joins)]
    elif plain:
        layer.ffn = plain[0].down.columns
    layer.matmuls += [*left, *(one for network in found if network not in used for one in network.matmuls)]


def _spec(record: Record, layers: Sequence[_Layer], hidden: int) -> TransformerSpec:
    known = _known(layers)
    attended = [layer.heads for layer in layers if layer.heads]
    if not attended:
        raise NoShapeError("It has no attention.")
    own, window, others = _attention_kinds(attended)
    experts = _agreed((layer.experts for layer in layers if layer.experts), None)
    if not experts and any(layer.experts for layer in layers):
        raise NoShapeError("Its layers have experts of several sizes.")
    dense = Counter(layer.ffn for layer in layers if not layer.experts)
    ffn = dense.most_common(1)[0][0] if dense else 0
    outside = record.outside
    (token, vocab, table), *tables = outside.tables
    *joins, head = outside.matmuls
    narrow = table != hidden and len(joins) == 2
    positions = sum(rows for _, rows, width in tables if width == hidden)
    return TransformerSpec(
        layers=len(layers),
        hidden=hidden,
        ffn=ffn,
        vocab=min(vocab, head.rows),
        tied_head=head.weight == token,
        norms_outside=sum(one.width == hidden for one in outside.norms),
        position_rows=positions,
        positions="" if record.rotary or positions else "none",
        embedding_width=table if narrow else 0,
        head_bias=head.bias,
        experts=replace(experts, dense_layers=sum(dense.values())) if experts else None,
        networks=tuple(DenseLayers(n, width) for width, n in dense.items() if width != ffn),
        bare_layers=len(layers) - len(attended),
        heads=own.heads,
        kv_heads=own.kv_heads,
        head_dim=own.key_dim,
        value_width=own.value_width,
        attention_sinks=own.sinks,
        window=window,
        others=others,
        further=_further(layers, known, hidden, () if narrow else joins),
        **known,
    )


def _known(layers: Sequence[_Layer]) -> dict[str, Any]:
    """Fields that all layers share. Where they differ in biases, norms, or gates, the least that each of them has."""
    names = {name for layer in layers for name in layer.known}
    known: dict[str, Any] = {}
    for name in sorted(names):
        values = [layer.known[name] for layer in layers if name in layer.known]
        if isinstance(values[0], LatentAttention) and len({*values}) > 1:
            raise NoShapeError("Its layers have latent attention of several sizes.")
        least = min(values) if isinstance(values[0], int) else values[0]
        known[name] = _agreed(values, "none" if name == "qk_norm" else least)
        if name in ("glu", "parallel_blocks", "attention_gate") and len({*values}) > 1:
            raise NoShapeError(f"Its layers differ in {name}.")
    return known


def _attention_kinds(
    layers: Sequence[_Heads],
) -> tuple[_Heads, SlidingWindow | None, tuple[AttentionLayers, ...]]:
    """The spec's own attention, its window, and the layers of other sizes."""
    kinds = Counter(layers)
    own = max(kinds, key=lambda one: (one.keys == "own", not one.window, kinds[one]))
    if len({replace(one, window=0) for one in kinds}) == 1 and len({one.window for one in kinds} | {0}) <= 2:
        marks = tuple(one.window > 0 for one in layers)
        if not any(marks):
            return own, None, ()
        period = next(p for p in range(1, len(marks) + 1) if marks[p:] == marks[:-p])
        return own, SlidingWindow(max(one.window for one in layers), marks[:period]), ()
    others = tuple(
        AttentionLayers(often, one.heads, one.kv_heads, one.key_dim, one.value_width, one.window, one.sinks, one.keys)
        for one, often in kinds.items()
        if one != own
    )
    return own, SlidingWindow(own.window) if own.window else None, others


def _further(
    layers: Sequence[_Layer], known: Mapping[str, Any], hidden: int, outside: Sequence[Matmul]
) -> tuple[Further, ...]:
    """Matmuls and norms that no other field describes."""
    found: Counter[tuple[Any, ...]] = Counter(("matmul", one.rows, one.columns) for one in outside)
    for layer in layers:
        found.update(("matmul", one.rows, one.columns) for one in layer.matmuls)
        found.update(("norm", one.width, one.gain) for one in layer.norms)
        found[("norm", hidden, hidden)] += layer.known["norms_per_layer"] - known["norms_per_layer"]
    return tuple(Further(kind, often, rows, columns) for (kind, rows, columns), often in found.items() if often)
