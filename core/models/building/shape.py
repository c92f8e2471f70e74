"""The shape of a model, read from what it ran: the recorded list of operations in the words of `TransformerSpec`.

Attention and feed-forward networks are told by what reads what and by widths, never by the names of a family. What
else layers multiply by, norm, or learn becomes `Further`, so that the parameters are all there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.messages import message
from core.models import spec as specs
from core.models.building.record import AttentionCall, LayerRun, Matmul, ModelRun, NormCall
from core.models.parameters import parameters

_MOST_OTHER = 0.01
"""Share of the parameters that may be vectors of unknown purpose. With more, the shape would say too little."""

_ALIKE = ("glu", "parallel_blocks", "attention_gate", "latent", "qk_norm", "norm")
"""What all layers share. Of biases, norms, and the like a spec has the least that each layer has."""


class NoShapeError(Exception):
    """Operations that `TransformerSpec` cannot describe. Its message is a sentence of the catalog."""


@dataclass(slots=True)
class _Layer:
    """One layer in the words of a spec. known: its fields. further: kind, rows, and columns of what else it runs."""

    known: dict[str, Any] = field(default_factory=dict[str, Any])
    heads: AttentionCall | None = None
    ffn: int = 0
    experts: specs.Experts | None = None
    further: Counter[tuple[specs.FurtherKind, int, int]] = field(default_factory=Counter[Any])

    def add(self, matmuls: Sequence[Matmul], norms: Sequence[NormCall] = ()) -> None:
        """Add what no other field describes."""
        self.further.update(("matmul", one.rows, one.columns) for one in matmuls)
        self.further.update(("norm", one.width, one.gain) for one in norms if one.vectors)


def shape_of(run: ModelRun, total: int) -> specs.TransformerSpec:
    """Return the shape of a model with so many parameters; raises `NoShapeError`."""
    hidden, outside = {layer.width for layer in run.layers}, run.outside
    if len(hidden) != 1 or not outside.tables or not outside.matmuls:
        raise NoShapeError(message("shape.refused.no_layers"))
    try:
        spec = _spec(run, [_read_layer(layer, *hidden) for layer in run.layers], *hidden)
        left = total - parameters(spec).total
        if not 0 <= left <= _MOST_OTHER * total:
            raise NoShapeError(message("shape.refused.unknown", parameters=float(abs(left))))
        times = 1 if left % spec.layers else spec.layers
        other = (specs.Further("vector", times, left // times),) if left else ()
        return replace(spec, further=(*spec.further, *other))
    except specs.SpecError as problem:
        raise NoShapeError(message("shape.refused.invalid", problem=problem)) from problem


def _read_layer(run: LayerRun, hidden: int) -> _Layer:
    layer, owner = _Layer(), ""
    if len(run.attention) > 1:
        raise NoShapeError(message("shape.refused.attention_twice"))
    if run.attention:
        owner = run.attention[0].module
        inside = [one for one in run.matmuls if f"{one.module}.".startswith(f"{owner}.")]
        norms = [one for one in run.norms if one.module.startswith(f"{owner}.")]
        _read_attention(layer, run.attention[0], inside, norms, hidden)
    rest = [one for one in run.matmuls if not owner or not f"{one.module}.".startswith(f"{owner}.")]
    others = [one for one in run.norms if not owner or not one.module.startswith(f"{owner}.")]
    _read_network(layer, rest, hidden)
    wide = [one for one in others if one.width == hidden]
    layer.add((), [one for one in others if one.width != hidden])
    first = next((one.reads for one in rest if one.columns == hidden), 0)
    source = next((one.reads for one in wide if one.makes == first), first)
    layer.known |= {
        "norms_per_layer": len(wide),
        "norm_vectors": min((one.vectors for one in wide), default=1),
        "norm": "layernorm" if any(one.centred for one in wide) else "rmsnorm",
        "parallel_blocks": bool(owner) and source == run.given,
    }
    return layer


def _read_attention(
    layer: _Layer, call: AttentionCall, inside: list[Matmul], norms: list[NormCall], hidden: int
) -> None:
    """Read q, k, v, and the output projection, or the low ranks of latent attention."""
    results, widths = call.heads * call.value_dim, call.value_dim * (call.value_dim != call.key_dim)
    end = next((one for one in reversed(inside) if (one.rows, one.columns) == (hidden, results)), None)
    if end is None:
        raise NoShapeError(message("shape.refused.no_output"))
    inside, layer.known["output_bias"] = [one for one in inside if one is not end], end.bias
    made, after = {one.makes: one for one in inside}, {one.makes: one for one in norms}
    lows = [(one, after[one.reads], made.get(after[one.reads].reads)) for one in inside if one.reads in after]
    if low := [(up, norm, down) for up, norm, down in lows if down]:
        return _read_latent(layer, call, inside, norms, low)
    first = [one for one in inside if one.columns == hidden]
    sums = [sum(one.rows for one in first[: i + 1]) for i in range(len(first))] or [0]
    q = call.heads * call.key_dim
    kv_heads = call.kv_heads or max(1, (sums[-1] - q) // (call.key_dim + call.value_dim))
    k, v = kv_heads * call.key_dim, kv_heads * call.value_dim
    kinds: dict[int, tuple[specs.KeyValues, int]] = {
        q + k + v + results: ("own", 2),
        q + k + v + call.heads: ("own", 1),
    }
    kinds |= {q + k + v: ("own", 0), q + k: ("one", 0), q: ("earlier", 0)}
    width = next((width for width in kinds if width in sums), None)
    if width is None:
        raise NoShapeError(message("shape.refused.widths"))
    (keys, gate), read = kinds[width], first[: sums.index(width) + 1]
    layer.heads = replace(call, module="", kv_heads=kv_heads, value_dim=widths, keys=keys)
    gains, normed = [one.gain for one in norms for _ in range(one.vectors)], 1 if keys == "earlier" else 2
    qk_norm = "head" if gains == [call.key_dim] * normed else "full" if gains == [q, k][:normed] else "none"
    layer.add([one for one in inside if one not in read], norms if qk_norm == "none" else ())
    layer.known |= {
        "attention_gate": gate > 0,
        "gate_per_head": gate == 1,
        "attention_bias": all(one.bias for one in read),
        "qk_norm": qk_norm,
        "values_normed": qk_norm != "none" and any(not one.vectors for one in norms),
    }
    return None


def _read_latent(
    layer: _Layer,
    call: AttentionCall,
    inside: list[Matmul],
    norms: list[NormCall],
    low: list[tuple[Matmul, NormCall, Matmul]],
) -> None:
    queries, ranks = call.heads * call.key_dim, {"query_rank": 0}
    plain = [one for one in inside if one.rows == queries][:1]
    pair = next(((up, norm, down) for up, norm, down in low if down.rows > norm.width), None)
    query = next(((up, norm, down) for up, norm, down in low if down.rows == norm.width and up.rows == queries), None)
    if pair is None:
        raise NoShapeError(message("shape.refused.ranks"))
    rank, rope = pair[1].width, pair[2].rows - pair[1].width
    ranks |= {"kv_rank": rank, "rope_dim": rope, "nope_dim": call.key_dim - rope}
    if query:
        ranks["query_rank"] = query[1].width
    used = [pair[0], pair[2], *((query[0], query[2]) if query else plain)]
    layer.add(
        [one for one in inside if one not in used], [one for one in norms if one not in (pair[1], query and query[1])]
    )
    layer.heads = replace(call, module="", kv_heads=call.heads, value_dim=0)
    layer.known["latent"] = specs.LatentAttention(value_dim=call.value_dim, **ranks)
    layer.known["attention_bias"] = pair[2].bias and (not query or query[2].bias)


def _networks(matmuls: Sequence[Matmul]) -> tuple[list[list[Matmul]], list[Matmul]]:
    """Feed-forward networks, the matmul down last, and the matmuls that belong to none."""
    left, found = list[Matmul](), list[list[Matmul]]()
    for down in matmuls:
        sizes, ends = (down.columns, 2 * down.columns), (down.rows, down.networks)
        alike = [up for up in left if up.rows in sizes and (up.columns, up.networks) == ends]
        ups = [up for up in alike if up.reads == alike[-1].reads != down.reads]
        if ups and sum(up.rows for up in ups) in sizes:
            found.append([*ups, down])
            left = [up for up in left if up not in ups]
        else:
            left.append(down)
    return found, left


def _read_network(layer: _Layer, matmuls: Sequence[Matmul], hidden: int) -> None:
    """Read a dense network, or routed and shared experts."""
    found, left = _networks(matmuls)
    routed = [one for one in found if one[-1].networks > 1]
    plain = [one for one in found if one[-1].networks == 1 and one[-1].rows == hidden][:1]
    gated = {sum(up.rows for up in ups) > down.columns for *ups, down in (*routed, *plain)}
    if len(gated) > 1 or len(routed) > 1:
        raise NoShapeError(message("shape.refused.experts_differ"))
    if gated:
        layer.known["glu"] = gated.pop()
        layer.known["ffn_bias"] = all(one.bias for network in (*routed, *plain) for one in network)
    width = plain[0][-1].columns if plain else 0
    if routed:
        down = routed[0][-1]
        latent = down.rows if down.rows != hidden else 0
        router = [one for one in left if one.rows == down.networks][:1]
        gate = [one for one in left if one.rows == 1 and plain][:1]
        joins = [one for one in left if {one.rows, one.columns} == {latent, hidden}][:2]
        if not router or (latent and len(joins) < 2):
            raise NoShapeError(message("shape.refused.no_router"))
        more: dict[str, Any] = {"shared": len(plain), "shared_width": width, "shared_gate": bool(gate)}
        more |= {"router_bias": router[0].bias, "latent": latent}
        layer.experts = specs.Experts(down.networks, down.copies, down.columns, **more)
        left = [one for one in left if one not in (*router, *gate, *joins)]
    else:
        layer.ffn = width
    layer.add([*left, *(one for network in found if network not in (*routed, *plain) for one in network)])


def _spec(run: ModelRun, layers: Sequence[_Layer], hidden: int) -> specs.TransformerSpec:
    calls = [layer.heads for layer in layers if layer.heads]
    experts = {layer.experts for layer in layers if layer.experts}
    if not calls or len(experts) > 1:
        raise NoShapeError(message("shape.refused.experts_differ" if calls else "shape.refused.no_attention"))
    dense = Counter(layer.ffn for layer in layers if not layer.experts)
    ffn = dense.most_common(1)[0][0] if dense else 0
    (token, vocab, table), *tables = run.outside.tables
    *joins, head = run.outside.matmuls
    narrow = table != hidden and len(joins) == 2
    known: dict[str, Any] = {}
    for name in sorted({name for layer in layers for name in layer.known}):
        values = {layer.known[name] for layer in layers if name in layer.known}
        if len(values) > 1 and name in _ALIKE:
            raise NoShapeError(message("shape.refused.layers_differ", field=name))
        known[name] = min(values)
    further: Counter[tuple[specs.FurtherKind, int, int]] = Counter()
    further.update(("matmul", one.rows, one.columns) for one in joins if not narrow)
    for layer in layers:
        further.update(layer.further)
        further[("norm", hidden, hidden)] += layer.known["norms_per_layer"] - known["norms_per_layer"]
    positions = sum(rows for _, rows, width in tables if width == hidden)
    return specs.TransformerSpec(
        layers=len(layers),
        hidden=hidden,
        ffn=ffn,
        vocab=min(vocab, head.rows),
        tied_head=head.weight == token,
        norms_outside=sum(one.width == hidden for one in run.outside.norms),
        position_rows=positions,
        positions="" if run.rotary or positions else "none",
        embedding_width=table if narrow else 0,
        head_bias=head.bias,
        experts=replace(experts.pop(), dense_layers=sum(dense.values())) if experts else None,
        networks=tuple(specs.DenseLayers(n, width) for width, n in dense.items() if width != ffn),
        bare_layers=len(layers) - len(calls),
        further=tuple(specs.Further(kind, n, *size) for (kind, *size), n in further.items() if n),
        **_attention_kinds(calls),
        **known,
    )


def _attention_kinds(calls: Sequence[AttentionCall]) -> dict[str, Any]:
    """The spec's own attention, and that of layers with other sizes or windows."""
    kinds = Counter(calls)
    own = max(kinds, key=lambda one: (one.keys == "own", not one.window, kinds[one]))
    sizes: dict[str, Any] = {"heads": own.heads, "kv_heads": own.kv_heads, "head_dim": own.key_dim}
    sizes |= {"value_width": own.value_dim, "attention_sinks": own.sinks}
    windows = {one.window for one in kinds} - {0}
    if windows and len({replace(one, window=max(windows)) for one in kinds}) == len(windows) == 1:
        marks = tuple(one.window > 0 for one in calls)
        period = next(p for p in range(1, len(marks) + 1) if marks[p:] == marks[:-p])
        return {**sizes, "window": specs.SlidingWindow(max(windows), marks[:period])}
    fields = ("heads", "kv_heads", "value_dim", "window", "sinks", "keys")
    others = [
        specs.AttentionLayers(n, head_dim=one.key_dim, **{name: getattr(one, name) for name in fields})
        for one, n in kinds.items()
        if one != own
    ]
    return {**sizes, "others": tuple(others), "window": specs.SlidingWindow(own.window) if own.window else None}
