"""What stands under the answer where sequences are longer than those of the runs or the model it rests on."""

from __future__ import annotations

from core.models.catalog import CatalogModel
from core.planning.answer.outlook import Outlook
from core.units import significant

_MATTERS = 1.15
"""Work beyond that of the usual length from which a sentence says so."""


def long_sequences(o: Outlook, model: CatalogModel | None, seq_len: int) -> str:
    """How much longer sequences lengthen the answer, and whether the model was built for them; mostly empty."""
    said: list[str] = []
    if o.work and o.work.factor >= _MATTERS:
        whose = f", counted with the layers of {o.work.model} as a stand-in" if o.work.stand_in else ""
        said.append(
            f"**At {seq_len:,} tokens a token is {significant(o.work.factor, 3)} times the work** of one at "
            f"{o.work.usual_len:,}, the longest sequence of any run here{whose}; the hours are scaled by that, and the "
            "MFU is taken to hold, which no run has shown."
        )
    if model and seq_len > model.max_seq:
        said.append(f"{model.name} was built for at most {model.max_seq:,} tokens; you count {seq_len:,}.")
    return " ".join(said)
