"""The catalogue of models: one row of ``assets/data/models.csv`` each, with its shape, counts and sources.

What of a shape has no column stands in ``more``, under the names of `TransformerSpec`; of its parts as in
``mixer.layers=23``.

Parameter counts are those of the model built on torch's meta device; published totals stand beside them.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.limits import cached
from core.models.counts_only import CountedModel
from core.models.mixer import Mixer
from core.models.parameters import parameters
from core.models.spec import Experts, LatentAttention, SlidingWindow, TransformerSpec
from core.rows import read_record, read_rows, read_values, whole
from core.units import format_count


@dataclass(frozen=True, slots=True)
class CatalogModel:
    """One model. ``name`` is unique and never changes meaning (links carry it).

    parameters, active: exact counts; they differ only for mixtures of experts.
    published_total, published_active: what the authors print, NaN when they print none.
    breakdown: whether the spec's count by component reproduces ``parameters`` and ``active`` exactly. Where it does
    not, only the catalogue's totals may be shown.
    counted: of a model known by its counts alone, whose ``spec`` is only that of a dense model as large.
    stands_in: whether it may lend its shape to a size of unknown shape. Rows added later never do, so that no plan of
    such a size changes with the catalogue.
    """

    name: str
    family: str
    hf_id: str
    spec: TransformerSpec
    parameters: int
    active: int
    published_total: float
    published_active: float
    published_source: str
    published_confidence: str
    max_seq: int
    source: str
    confidence: str
    notes: str
    breakdown: bool
    counted: CountedModel | None = None
    stands_in: bool = False

    @property
    def laid_out(self) -> bool:
        """Whether what its own layers keep and how long they take is known; elsewhere a dense model stands in."""
        return self.counted is None and not self.spec.unmodelled

    @property
    def windowed(self) -> bool:
        """Whether some or all layers attend to a sliding window only."""
        return self.spec.window is not None

    @property
    def mixture(self) -> bool:
        """Whether this is a mixture of experts."""
        return self.active != self.parameters if self.counted else self.spec.experts is not None

    @property
    def sized(self) -> str:
        """Its count: ``70.55B parameters``, or ``12.88B active of 46.7B parameters``."""
        active = f"{format_count(self.active)} active of " if self.mixture else ""
        return f"{active}{format_count(self.parameters)} parameters"


_LATENT = re.compile(r"mla\(q_lora=(\d+),kv_lora=(\d+),qk_nope=(\d+),qk_rope=(\d+),v=(\d+)\)")


def _more(row: Mapping[str, str], part: str = "") -> dict[str, Any]:
    """What ``more`` says of the shape itself, or of a part of it."""
    names = ((name.rpartition("."), value) for name, value in read_values(row["more"]).items())
    return {field: value for (of, _, field), value in names if of == part}


def _spec(row: Mapping[str, str]) -> TransformerSpec:
    latent = _LATENT.fullmatch(row["attn_type"])
    experts, dense = whole(row["n_experts"]), whole(row["first_dense_layers"])
    return TransformerSpec(
        layers=int(row["layers"]),
        hidden=int(row["hidden"]),
        heads=int(row["heads"]),
        kv_heads=int(row["kv_heads"]),
        head_dim=int(row["head_dim"]),
        ffn=whole(row["ffn"]) if dense or not experts else 0,
        vocab=int(row["vocab"]),
        glu=row["glu"] == "True",
        tied_head=row["tied_embeddings"] == "True",
        experts=Experts(
            count=experts,
            per_token=int(row["experts_per_token"]),
            width=int(row["moe_ffn"]),
            shared=whole(row["shared_experts"]),
            dense_layers=dense,
            router_bias="router.bias" in row["biases"],
            **_more(row, "experts"),
        )
        if experts
        else None,
        latent=LatentAttention(*map(int, latent.groups())) if latent else None,
        norm="layernorm" if row["norm"].startswith("layernorm") else "rmsnorm",
        window=SlidingWindow(whole(row["window"]), tuple(letter == "w" for letter in row["window_pattern"]))
        if row["window"]
        else None,
        mixer=Mixer(**mixer) if (mixer := _more(row, "mixer")) else None,
        **_more(row),
    )


_COLUMNS: Mapping[str, str] = {
    "name": "label", "family": "meta_class", "published_total": "params_total_published",
    "published_active": "params_active_published",
}  # fmt: skip
"""Field → its column, where that has another name."""


def _model(row: Mapping[str, str]) -> CatalogModel:
    spec = _spec(row)
    total = int(row["params_meta_count"])
    active = whole(row["params_active_meta"]) or total
    counted = parameters(spec)
    return read_record(
        CatalogModel,
        row,
        _COLUMNS,
        spec=spec,
        parameters=total,
        active=active,
        breakdown=(counted.total, counted.active) == (total, active),
        counted=None,
        stands_in=row["stands_in"] == "True",
    )


@cached("tables_kept")
def catalog() -> tuple[CatalogModel, ...]:
    """Every model of the catalogue, in its order."""
    return tuple(_model(row) for row in read_rows("models"))


CATALOG: Mapping[str, CatalogModel] = {model.name: model for model in catalog()}
"""Every model of the catalogue by name."""


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.lower())


@cached("tables_kept")
def _by_key() -> Mapping[str, CatalogModel]:
    return {_key(model.name): model for model in catalog()}


def model_named(name: str) -> CatalogModel:
    """The model of this name, whatever its case and punctuation.

    Raises ``KeyError`` naming the closest ones when there is none.
    """
    result = _by_key().get(_key(name))
    if result is None:
        close = difflib.get_close_matches(_key(name), list(_by_key()), n=3, cutoff=0.3)
        hint = f" Did you mean {', '.join(_by_key()[c].name for c in close)}?" if close else ""
        raise KeyError(f"No model of the catalogue is called {name!r}.{hint}")
    return result


@cached("results_kept")
def nearest_dense(parameters: float, seq_len: int = 1) -> CatalogModel:
    """The dense model that stands in for ``parameters`` of unknown shape: the closest in ratio, the first of equals.

    One built as models are now (gated feed-forward network, no sliding window) and for sequences of ``seq_len`` where
    such a one is within a factor of two; else one built so for shorter ones; else any.
    """
    dense = [model for model in catalog() if model.stands_in]
    usual = [model for model in dense if model.spec.glu and not model.windowed]
    long = [model for model in usual if model.max_seq >= seq_len]

    def away(model: CatalogModel) -> float:
        return abs(math.log(model.parameters / parameters))

    nearest = [min(group, key=away) for group in (long, usual, dense) if group]
    return next((model for model in nearest if away(model) <= math.log(2)), nearest[-1])
