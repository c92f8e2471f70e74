"""What of a layer's saved tensors is left where most of its weights are frozen, and what adapters add.

The gradient flows through frozen weights, so what nonlinear operations keep stays; what only the gradient of a weight
reads goes with it. Measured on torch 2.13 with saved_tensors_hooks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_FUSED = ("queries", "keys", "values")
"""Matrices that some software has as one."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """Adapters beside one class of matrices ``width_in`` → ``width_out``; a token runs through ``times`` of them in a
    layer that has them."""

    name: str
    width_in: int
    width_out: int
    times: float = 1.0


@dataclass(frozen=True, slots=True)
class PartlyTrained:
    """Which weights of a layer have gradients.

    active_share: of the layers, those through which a gradient flows; unfed_share: of these, those whose input has
    none, being the lowest. trained_shares: class of tensors and the share of active layers in which it is trained.
    adapters: beside which matrices; rank, dora, dropout: theirs; fused: those of queries, keys and values have one
    input after dropout; element_bytes: of what they compute in where that is not the layer's, else 0.
    largest_dequantised_bytes: of the largest matrix that products read as a copy. weight_gradient_share: of the
    weights' FLOPs, those of weight gradients; adapter_flop_share: FLOPs of adapters in forward, over those of the
    weights. head_share: of the head, what is trained. quantised_bytes_per_parameter: which each pass reads and writes
    anew; 0 where weights are not quantised.
    """

    @property
    def flop_over_forward(self) -> float:
        """Products of the layers in forward and backward, over those of forward: 3 where all is trained, 2 where all
        is frozen and a gradient flows through it."""
        return 1.0 + self.active_share + self.weight_gradient_share + 3.0 * self.adapter_flop_share

    active_share: float = 1.0
    unfed_share: float = 0.0
    trained_shares: tuple[tuple[str, float], ...] = ()
    adapters: tuple[Adapter, ...] = ()
    rank: int = 0
    dora: bool = False
    dropout: bool = False
    fused: bool = False
    element_bytes: int = 0
    largest_dequantised_bytes: float = 0.0
    weight_gradient_share: float = 0.0
    adapter_flop_share: float = 0.0
    head_share: float = 0.0
    quantised_bytes_per_parameter: float = 0.0

    def read_share(self, name: str) -> float:
        """The share of active layers in which training reads the saved input of this class of weights: for their
        gradient, or that of an adapter that shares the input."""
        shares = not self.element_bytes and not self.dropout and any(adapter.name == name for adapter in self.adapters)
        return 1.0 if shares else dict(self.trained_shares).get(name, 0.0)

    def adapter_tensors(self, layer_element_bytes: int, experts: bool) -> Iterator[tuple[str, str, float, float]]:
        """What adapters keep for backward: name, its target, elements per token, bytes of an element."""
        sharing = [adapter.name for adapter in self.adapters if adapter.name in _FUSED] if self.fused else []
        for adapter in self.adapters:
            expert = adapter.name.startswith(("expert ", "shared", "router"))
            if (expert and not experts) or (adapter.name.startswith("feed-forward") and experts):
                continue
            each = self.element_bytes or layer_element_bytes
            if self.element_bytes and not self.dropout:
                yield f"{adapter.name}: adapter’s input", adapter.name, adapter.times * adapter.width_in, each
            if self.dropout and adapter.name not in sharing[1:]:
                size = adapter.times * adapter.width_in
                yield f"{adapter.name}: adapter’s input after dropout, and its mask", adapter.name, size, each + 1
            yield f"{adapter.name}: adapter’s middle", adapter.name, adapter.times * self.rank, each
            if self.dora:
                yield (
                    f"{adapter.name}: DoRA’s two outputs",
                    adapter.name,
                    adapter.times * adapter.width_out,
                    layer_element_bytes + each,
                )
