"""What of a layer's saved tensors is left where most of its weights are frozen, and what adapters add.

The gradient flows through frozen weights, so what nonlinear operations keep stays; what only the gradient of a weight
reads goes with it. Measured on torch 2.13 with saved_tensors_hooks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_ATTENTION = (
    *("queries", "keys", "values", "queries down", "keys and values down", "attention gate"),
    "state: first projection",
)

_READERS: Mapping[str, tuple[str, ...]] = {
    "norm 1 output": _ATTENTION,
    "attention input": _ATTENTION,
    "query latent norm output": ("queries up",),
    "key/value latent norm output": ("keys and values up",),
    "norm 2 output": ("feed-forward gate", "feed-forward up", "router", "shared experts gate", "shared experts up"),
    "feed-forward input": (
        "feed-forward gate",
        "feed-forward up",
        "router",
        "shared experts gate",
        "shared experts up",
    ),
    "norm 1 before the gain": ("norm",),
    "norm 2 before the gain": ("norm",),
    "norm 3 before the gain": ("norm",),
    "norm 4 before the gain": ("norm",),
    "query norm before the gain": ("norm of queries",),
    "key norm before the gain": ("norm of keys",),
    "query latent norm before the gain": ("norm of the query rank",),
    "key/value latent norm before the gain": ("norm of the key/value rank",),
    "product": ("feed-forward down",),
    "activation output": ("feed-forward down",),
    "experts’ product": ("expert down",),
    "experts’ activation output": ("expert down",),
    "shared experts’ product": ("shared experts down",),
    "shared experts’ activation output": ("shared experts down",),
    "expert inputs": ("expert gate", "expert up"),
    "gated output": ("attention output",),
    "state: gated output": ("state: output",),
    "final norm before the gain": ("norm outside the layers",),
    "final norm output": ("output head",),
}
"""Saved tensor → the weights whose gradients alone read it."""

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

    def _trained_share(self, name: str) -> float:
        return dict(self.trained_shares).get(name, 0.0)

    def _reads(self, name: str) -> bool:
        """Whether adapters of this class read the layer's own saved input."""
        return not self.element_bytes and not self.dropout and any(a.name == name for a in self.adapters)

    def kept_share(self, name: str, *, square: bool = False) -> float:
        """The share that stays of a saved tensor by its name; of one that is cast for each reader, the share of its
        casts.

        square: attention materialises its scores.
        """
        if name == "norm 1 input in fp32":  # written out, a norm reads it for the gradient of its input alone
            return 1.0 - self.unfed_share
        tensor, _, casts = name.partition(", a cast for each of ")
        readers = ("attention output",) if square and tensor == "attention output" else _READERS.get(tensor)
        if readers is None:
            return 1.0
        shares = [1.0 if self._reads(reader) else self._trained_share(reader) for reader in readers]
        return sum(shares) / float(casts.split()[0]) if casts else max(shares)

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
