"""The catalogue of models: one row of ``assets/data/models.csv`` each, with its shape, counts and sources.

Parameter counts are those of the model built on torch's meta device; published totals stand beside them.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from core.limits import cached
from core.models.counts_only import CountedModel
from core.models.parameters import parameters
from core.models.spec import TransformerSpec
from core.models.spec_text import read_spec
from core.rows import read_record, read_rows, whole
from core.units import format_count


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogModel:
    """One model. ``name`` is unique and never changes meaning (links carry it).

    parameters, active: exact counts; they differ only for mixtures of experts.
    published_total, published_active: what the authors print, NaN when they print none.
    breakdown: whether the spec's count by component reproduces ``parameters`` and ``active`` exactly. Where it does
    not, only the catalogue's totals may be shown.
    counted: of a model known by its counts alone, whose ``spec`` is only that of a dense model as large.
    """

    name: str
    family: str = ""
    hf_id: str = ""
    spec: TransformerSpec
    parameters: int
    active: int
    published_total: float = math.nan
    published_active: float = math.nan
    published_source: str = ""
    published_confidence: str = ""
    max_seq: int
    source: str = ""
    confidence: str = ""
    notes: str = ""
    breakdown: bool = True
    counted: CountedModel | None = None

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


_COLUMNS: Mapping[str, str] = {
    "name": "label", "family": "meta_class", "published_total": "params_total_published",
    "published_active": "params_active_published",
}  # fmt: skip
"""Field → its column, where that has another name."""


def _model(row: Mapping[str, str]) -> CatalogModel:
    spec = read_spec(row["shape"])
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
