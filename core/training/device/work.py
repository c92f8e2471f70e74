"""FLOPs of a step in which only some weights are trained, over those of one in which all are."""

from __future__ import annotations

from core.models.flops import flops_per_token
from core.models.spec import TransformerSpec
from core.training.activations.partly import PartlyTrained


def work_share(spec: TransformerSpec, partly: PartlyTrained | None, seq_len: int) -> float:
    """Model FLOPs of forward and backward over those of full training; 1 where everything is trained.

    Each product of the forward pass has one more for the gradient of its input wherever a gradient flows, and one for
    that of its weight where that is trained: 4 N per token and the adapters' own where all is frozen, not 6 N.
    """
    if partly is None:
        return 1.0
    counted = flops_per_token(spec, seq_len)
    head = sum(part.flop for part in counted.parts if part.group == "head")
    layers = counted.weights - head
    done = (
        layers * partly.flop_over_forward
        + counted.squares * (1 + 2 * partly.active_share)
        + head * (2 + partly.head_share)
    )
    return done / counted.training
