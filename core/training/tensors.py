"""The parameter tensors of a transformer by class: what an optimizer sees, with the shape of each.

A projection is one matrix here, even where a library fuses several into one; of Q, K and V or of gate and up there
are three and two. Nothing is counted twice: a tied head is the embedding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.limits import cached
from core.models.operation import WeightKind
from core.models.operations import operations
from core.models.spec import TransformerSpec

CLASSES: Mapping[str, str] = {
    "embed_tokens": "token embedding",
    "project_in": "embedding to layers",
    "project_out": "layers to embedding",
    "embed_positions": "position table",
    "self_attn.q_a_proj": "queries down",
    "self_attn.q_a_layernorm": "norm of the query rank",
    "self_attn.q_b_proj": "queries up",
    "self_attn.q_proj": "queries",
    "self_attn.kv_a_proj_with_mqa": "keys and values down",
    "self_attn.kv_a_layernorm": "norm of the key/value rank",
    "self_attn.kv_b_proj": "keys and values up",
    "self_attn.k_proj": "keys",
    "self_attn.v_proj": "values",
    "self_attn.q_norm": "norm of queries",
    "self_attn.k_norm": "norm of keys",
    "self_attn.g_proj": "attention gate",
    "self_attn.indexer.wq_b": "indexer: queries",
    "self_attn.indexer.wk": "indexer: keys",
    "self_attn.indexer.q_norm": "indexer: norm of queries",
    "self_attn.indexer.k_norm": "indexer: norm of keys",
    "self_attn.indexer.weights_proj": "indexer: weights of heads",
    "self_attn.indexer.kv_proj": "indexer: compressed keys",
    "self_attn.indexer.gate_proj": "indexer: weights of compressed keys",
    "self_attn.indexer.position_bias": "indexer: positions of compressed keys",
    "self_attn.indexer.kv_norm": "indexer: norm of compressed keys",
    "self_attn.compressor.kv_proj": "compressed keys",
    "self_attn.compressor.gate_proj": "weights of compressed keys",
    "self_attn.compressor.position_bias": "positions of compressed keys",
    "self_attn.compressor.kv_norm": "norm of compressed keys",
    "self_attn.sinks": "attention sinks",
    "self_attn.o_a_proj": "attention output down",
    "self_attn.o_proj": "attention output",
    "mamba.in_proj": "state: first projection",
    "mamba.conv1d": "state: convolution",
    "mamba.x_proj": "state: step size, B and C",
    "mamba.dt_proj": "state: step size",
    "mamba.f_b_proj": "state: decay of channels",
    "mamba.g_b_proj": "state: gate",
    "mamba.A_log": "state: decay",
    "mamba.D": "state: skip",
    "mamba.A_log,D,dt_bias": "state: decay, step size and skip",
    "mamba.dt_layernorm": "state: norm of step size",
    "mamba.b_layernorm": "state: norm of B",
    "mamba.c_layernorm": "state: norm of C",
    "mamba.norm": "state: norm of output",
    "mamba.out_proj": "state: output",
    "mlp.gate_proj": "feed-forward gate",
    "mlp.up_proj": "feed-forward up",
    "mlp.down_proj": "feed-forward down",
    "mlp.act_fn": "number of the activation function",
    "mlp.gate": "router",
    "mlp.gate_norm": "router: gain of its input",
    "mlp.gate.scale": "router: gain of experts",
    "mlp.latent_in_proj": "experts in",
    "mlp.latent_norm": "experts: norm of their sum",
    "mlp.latent_out_proj": "experts out",
    "mlp.experts.gate_proj": "expert gate",
    "mlp.experts.up_proj": "expert up",
    "mlp.experts.down_proj": "expert down",
    "mlp.shared_expert.gate_proj": "shared experts gate",
    "mlp.shared_expert.up_proj": "shared experts up",
    "mlp.shared_expert.down_proj": "shared experts down",
    "mlp.shared_expert_gate": "gate of the shared experts",
    "input_layernorm": "norm",
    "post_attention_layernorm": "norm",
    "pre_feedforward_layernorm": "norm",
    "post_feedforward_layernorm": "norm",
    "embed_tokens_per_layer": "embedding of layers",
    "per_layer_model_projection": "embedding of layers: projection",
    "per_layer_projection_norm": "embedding of layers: norm",
    "per_layer_input_gate": "embedding of layers: gate",
    "per_layer_projection": "embedding of layers: output",
    "post_per_layer_input_norm": "embedding of layers: norm of output",
    "hyper_connection.fn": "hyper-connections",
    "hyper_connection.base": "hyper-connections: scales",
    "embed_layernorm": "norm outside the layers",
    "norm": "norm outside the layers",
    "mtp.eh_proj": "projection",
    "mtp.enorm": "norm of the module",
    "mtp.hnorm": "norm of the module",
    "mtp.norm": "norm of the module",
    "lm_head": "output head",
    "lm_head.bias": "bias of the head",
}
"""Name of an operation’s weight → its class, in the order in which a token meets them."""

_ORDER = {path: 2 * list(CLASSES.values()).index(name) for path, name in CLASSES.items()}
"""Name of a weight → place of its class; a bias follows its matrix."""


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
            bias = weight.name not in CLASSES
            path = weight.name.removesuffix(".bias") if bias else weight.name
            part = 2 if path.startswith("lm_head") else int(op.block == "mtp")
            name = f"{'prediction: ' * (part == 1)}{CLASSES[path]}{' bias' * bias}"
            key = (part, _ORDER[path] + bias, name, weight.rows, weight.columns, weight.kind)
            counts[key] = counts.get(key, 0) + op.layers * weight.count
    return tuple(ParameterTensor(*key[2:5], count, key[5]) for key, count in sorted(counts.items()))
