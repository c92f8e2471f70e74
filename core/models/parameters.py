"""Parameters of a transformer by component, exact to the last one.

Each component is one formula over all layers; ``TERMS`` lists them and ``parameters(spec)`` puts them together. The
counts are those of the tensors a framework allocates; buffers (rotary tables, router balancing offsets) are no
parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from core.formula import Explanation, Formula
from core.models.mixer_formulas import (
    convolution_parameters,
    mixer_input_parameters,
    selection_parameters,
    state_parameters,
)
from core.models.parameter_formulas import (
    activation_parameters,
    embedding_parameters,
    ffn_parameters,
    head_bias_parameters,
    inner_norm_parameters,
    joint_parameters,
    latent_kv_parameters,
    latent_query_parameters,
    norm_parameters,
    output_parameters,
    position_parameters,
    prediction_parameters,
    qkv_parameters,
    router_parameters,
    sink_parameters,
)
from core.models.spec import TransformerSpec
from core.models.terms import MIXER_WIDTHS, Group, Numbers, ShapeTerm, last_layer, numbers_of, term

MIXER_TERMS: tuple[ShapeTerm, ...] = (
    term(
        "mixer_input",
        "State: first projection",
        "mixers",
        mixer_input_parameters,
        layers="mixer_layers",
        bias="mixer_bias",
        **MIXER_WIDTHS,
    ),
    term(
        "convolution",
        "State: convolution",
        "mixers",
        convolution_parameters,
        layers="mixer_layers",
        bias="mixer_conv_bias",
        **MIXER_WIDTHS,
    ),
    term("selection", "State: selection", "mixers", selection_parameters, layers="selective_layers", **MIXER_WIDTHS),
    term("state", "State: decay and step", "mixers", state_parameters, layers="mixer_layers", **MIXER_WIDTHS),
    term(
        "mixer_norms",
        "State: norms",
        "norms",
        inner_norm_parameters,
        layers="mixer_layers",
        first="mixer_normed_width",
        second="zero",
    ),
    term(
        "mixer_output",
        "State: output",
        "mixers",
        output_parameters,
        layers="mixer_layers",
        heads="mixer_heads",
        head_dim="mixer_width",
        bias="mixer_bias",
    ),
)
"""What layers with a state have in place of attention."""

TERMS: tuple[ShapeTerm, ...] = (
    term("embedding", "Token embedding", "embedding", embedding_parameters, hidden="table_width"),
    term("joints", "Embedding projections", "embedding", joint_parameters, joints="table_joints", width="table_width"),
    term("positions", "Position table", "embedding", position_parameters, rows="position_rows"),
    term("qkv", "Q, K, V", "attention", qkv_parameters, layers="plain_layers", bias="attention_bias"),
    term(
        "queries",
        "Queries",
        "attention",
        latent_query_parameters,
        layers="ranked_layers",
        bias="attention_bias",
        rank="query_rank",
    ),
    term(
        "queries_unranked",
        "Queries",
        "attention",
        qkv_parameters,
        layers="unranked_layers",
        bias="zero",
        kv_heads="zero",
        head_dim="score_dim",
    ),
    term(
        "keys_values",
        "Keys and values",
        "attention",
        latent_kv_parameters,
        layers="latent_layers",
        bias="attention_bias",
        rank="kv_rank",
    ),
    term(
        "inner_norms",
        "Norms inside attention",
        "norms",
        inner_norm_parameters,
        layers="attention_layers",
        first="inner_first",
        second="inner_second",
    ),
    term("sinks", "Attention sinks", "attention", sink_parameters, layers="sink_layers"),
    term(
        "attention_gate",
        "Attention gate",
        "attention",
        qkv_parameters,
        layers="gate_layers",
        bias="attention_bias",
        kv_heads="zero",
    ),
    term(
        "output",
        "Attention output",
        "attention",
        output_parameters,
        layers="attention_layers",
        head_dim="value_dim",
        bias="output_bias",
    ),
    *MIXER_TERMS,
    term(
        "ffn",
        "Feed-forward",
        "feed-forward",
        ffn_parameters,
        layers="dense_layers",
        networks="one",
        width="ffn",
        bias="ffn_bias",
    ),
    term(
        "activation",
        "Activation function",
        "feed-forward",
        activation_parameters,
        layers="dense_layers",
        each="activation_scalars",
    ),
    term("router", "Router", "experts", router_parameters, layers="moe_layers", bias="router_bias"),
    term(
        "experts",
        "Routed experts",
        "experts",
        ffn_parameters,
        run="networks=per_token",
        layers="moe_layers",
        networks="experts",
        width="expert_width",
        bias="ffn_bias",
    ),
    term(
        "shared",
        "Shared experts",
        "experts",
        ffn_parameters,
        layers="moe_layers",
        networks="shared",
        width="shared_width",
        bias="ffn_bias",
    ),
    term(
        "shared_gate",
        "Gate of the shared experts",
        "experts",
        router_parameters,
        layers="shared_gates",
        bias="zero",
        experts="one",
    ),
    term(
        "norms",
        "Norms",
        "norms",
        norm_parameters,
        layers="normed_layers",
        per_layer="norms_per_layer",
        outside="single_norms",
        vectors="norm_vectors",
    ),
    term(
        "prediction",
        "Multi-token prediction",
        "prediction",
        prediction_parameters,
        run="layer=extra_layer_run",
        modules="mtp_modules",
        layer="extra_layer",
        vectors="norm_vectors",
    ),
    term("head", "Output head", "head", embedding_parameters, vocab="head_rows", hidden="table_width"),
    term("head_bias", "Bias of the head", "head", head_bias_parameters, bias="head_bias"),
)
"""Every component of a model, in the order a token meets them."""

_IN_LAYER = {"attention", "feed-forward", "experts", "norms"}


@dataclass(frozen=True, slots=True)
class Component:
    """One component's formula with its values; ``active`` is what one token runs through."""

    name: str
    total: int
    active: int
    formula: Formula[...]
    values: Mapping[str, float]
    id: str
    group: Group

    def explain(self) -> Explanation:
        """The formula with these values substituted, under the component's name."""
        return replace(self.formula.explain(**self.values), title=self.name)


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """Parameters by component, in the order a token meets them. ``active`` differs from ``total`` with experts."""

    components: tuple[Component, ...]

    @property
    def total(self) -> int:
        return sum(component.total for component in self.components)

    @property
    def active(self) -> int:
        """Parameters one token runs through, input embedding included."""
        return sum(component.active for component in self.components)


def dense_name(numbers: Numbers) -> str:
    """What the ordinary feed-forward networks are called: only beside experts do they need an adjective."""
    return "Dense feed-forward" if numbers["experts"] else "Feed-forward"


def with_extra_layer(numbers: Numbers) -> Numbers:
    """The numbers with the parameters of one more layer, where there are prediction modules to have one."""
    alone = last_layer(numbers)
    terms = [t for t in TERMS if t.group in _IN_LAYER]
    return {
        **numbers,
        "extra_layer": sum(t.formula(**t.values(alone)) for t in terms),
        "extra_layer_run": sum(t.formula(**t.run_values(alone)) for t in terms),
    }


@lru_cache(maxsize=512)
def parameters(spec: TransformerSpec) -> ParameterCount:
    """Parameters of ``spec`` by component, total and active."""
    numbers = numbers_of(spec)
    if spec.mtp_modules:
        numbers = with_extra_layer(numbers)
    parts: list[Component] = []
    for t in TERMS:
        if t.id == "prediction" and not spec.mtp_modules:
            continue
        values = t.values(numbers)
        total = int(t.formula(**values))
        if total:
            name = dense_name(numbers) if t.id == "ffn" else t.name
            active = int(t.formula(**t.run_values(numbers))) if t.run else total
            parts.append(Component(name, total, active, t.formula, values, t.id, t.group))
    return ParameterCount(tuple(parts))
