"""Reading a Hugging Face ``config.json`` into a `TransformerSpec`: the text alone, no network, no transformers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from core.messages import message, pick_message
from core.models.configs.families import FAMILIES, expert_groups
from core.models.configs.json_text import ConfigError, NoClosedFormError, read_object, shown
from core.models.configs.keys import ALIASES, COMPOSITES, GENERIC, TEXT_PARTS, Family, inert
from core.models.spec import Experts, LatentAttention, SlidingWindow, SpecError, TransformerSpec
from core.suggest import suggestions

if TYPE_CHECKING:
    from core.models.configs.fields import Fields


class UnknownFamilyError(NoClosedFormError):
    """A ``model_type`` that is none of the families known.

    missing: keys a shape needs that the config lacks under every name tried. draft: the shape its other fields
    describe, to be checked and edited, never a count of the model; None where they describe none.
    """

    def __init__(
        self, model_type: str, missing: tuple[str, ...], draft: TransformerSpec | None, problem: str = ""
    ) -> None:
        self.missing = missing
        self.draft = draft
        rules = [message("config.unknown_family" if model_type else "config.no_family")]
        if alike := suggestions(model_type, tuple(FAMILIES)):
            rules.append(message("config.alike", families=alike))
        if missing:
            rules.append(message("config.missing", keys=missing))
        elif problem:
            rules.append(message("config.not_generic", problem=problem))
        super().__init__(model_type, "model_type", model_type or None, " ".join(rules))


@dataclass(frozen=True, slots=True)
class ReadConfig:
    """What a config.json says.

    family: the family's name. max_seq: the longest sequence, 0 where it is not said. omitted: keys the config leaves
    out, for which the family's default stands. mtp_modules: multi-token prediction modules the config names; they are
    trained beside the main model and part of the spec only where asked for. notes: what a reader should know.
    """

    spec: TransformerSpec
    family: str
    model_type: str
    max_seq: int
    omitted: tuple[str, ...]
    mtp_modules: int
    notes: tuple[str, ...]
    unread: tuple[str, ...]
    part: bool


def from_hf_config(config: str | Mapping[str, Any], *, mtp: bool = False) -> TransformerSpec:
    """The shape that a config.json describes.

    mtp: whether multi-token prediction modules belong to it, as in training; published totals leave them out.
    Raises `ConfigError` for what is no config of a transformer, `NoClosedFormError` for a model that is counted by
    no formula here, `UnknownFamilyError` for a family not known.
    """
    return read_hf_config(config, mtp=mtp).spec


def read_hf_config(config: str | Mapping[str, Any], *, mtp: bool = False) -> ReadConfig:
    """The shape that a config.json describes and what else it says; see `from_hf_config`."""
    whole = read_object(config if isinstance(config, str) else _as_text(config))
    text, model_type, notes = _text_part(whole)
    part = bool(notes)
    if whole.get("is_encoder_decoder") is True:
        raise ConfigError("is_encoder_decoder", True, message("config.decoders"), '"is_encoder_decoder": false')
    family = FAMILIES.get(ALIASES.get(model_type, model_type))
    if family is None:
        raise _unknown(model_type, text)
    fields, keys, omitted = _fields(family, text)
    for key, allowed in family.only.items():
        if text.get(key) not in (None, allowed):
            example = f"{shown(key)}: {shown(allowed)}"
            rule = message("config.only_with", family=family.name, value=shown(allowed))
            raise NoClosedFormError(model_type, key, text[key], rule, example)
    for key in _ACTIVATIONS:
        if text.get(key) == "xielu" and "activation" not in family.keys:
            rule = message("config.xielu", family=family.name)
            raise NoClosedFormError(model_type, key, "xielu", rule, f'"{key}": "silu"')
    if fields.mtp and not mtp:
        notes.append(message("config.mtp"))
    try:
        spec = _spec(family, fields, keys, fields.mtp or 0 if mtp else 0)
    except SpecError as problem:
        field = _KEYED.get(problem.field, problem.field)
        key = keys.get(field, field)
        raise ConfigError(key, problem.value, problem.rule, _example(key, field, None, problem.example)) from None
    named = text.get("architectures") or whole.get("architectures")
    if isinstance(named, list) and named and not str(cast("list[object]", named)[0]).endswith(_HEADED):
        notes.append(message("config.headed", name=shown(cast("list[object]", named)[0])))
    notes += [family.note] if family.note else []
    unread = _unread(family, text)
    unused = {"mtp"} if not fields.mtp else set[str]()
    unused |= set() if spec.ffn else {"ffn"}
    unused |= set() if spec.experts else set(_OF_EXPERTS)
    lacks = tuple(dict.fromkeys(keys[field] for field in omitted if field not in unused))
    return ReadConfig(
        spec, family.name, model_type, fields.max_seq or 0, lacks, fields.mtp or 0, tuple(notes), unread, part
    )


_OF_EXPERTS = ("experts", "per_token", "expert_width", "shared", "shared_width")
"""Fields that say nothing of a model without experts."""

_ACTIVATIONS = ("hidden_act", "hidden_activation", "activation_function")
_HEADED = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")


def _unread(family: Family, text: Mapping[str, Any]) -> tuple[str, ...]:
    """Keys with a value that were not read, except those that change no count."""
    read = {name for names in family.keys.values() for name in names} | {*family.only, *family.inert, *TEXT_PARTS}
    read |= {key for key, value in family.built.items() if (_find(text, (key,)) or ("", None))[1] == value}
    outer = {name.partition(".")[0] for name in read if "." in name}

    def left(part: Mapping[str, Any], where: str) -> list[str]:
        parts: list[str] = []
        for key, value in part.items():
            name = f"{where}{key}"
            if isinstance(value, dict) and name in outer and not where:
                parts += left(cast("dict[str, Any]", value), f"{name}.")
            elif name not in read and value not in (None, False, [], {}) and not inert(key):
                parts.append(name)
        return parts

    return tuple(left(text, ""))


def _as_text(config: Mapping[str, Any]) -> str:
    """A mapping as the text it would be, so that every input passes the same checks."""
    try:
        return json.dumps(dict(config), default=str)
    except (TypeError, ValueError, RecursionError):
        raise ConfigError("", None, message("config.not_json")) from None


def _text_part(whole: dict[str, Any]) -> tuple[dict[str, Any], str, list[str]]:
    """The part of the config that describes the text model, its type, and a note where it is a part."""
    for key in TEXT_PARTS:
        part = whole.get(key)
        if isinstance(part, dict):
            inner = cast("dict[str, Any]", part)
            outer = {"tie_word_embeddings": whole["tie_word_embeddings"]} if "tie_word_embeddings" in whole else {}
            if inner.get("tie_word_embeddings") is True:
                outer = {}  # older files say it inside, where the outer default is no
            model_type = _type(inner) or _type(whole)
            return {**inner, **outer}, model_type, [message("config.part")]
    return whole, _type(whole), [message("config.part")] if _type(whole) in COMPOSITES else []


def _type(part: Mapping[str, Any]) -> str:
    result = part.get("model_type")
    if result is not None and not isinstance(result, str):
        raise ConfigError("model_type", result, message("config.text"), '"model_type": "llama"')
    return result or ""


def _find(part: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[str, object] | None:
    """The first of ``keys`` that the config has, with its value; None where it has none.

    Raises `ConfigError` where two of them contradict each other.
    """
    rows: list[tuple[str, object]] = []
    for key in keys:
        owner: object = part
        *outer, last = key.split(".")
        for step in outer:
            owner = cast("dict[str, object]", owner).get(step) if isinstance(owner, dict) else None
        if isinstance(owner, dict) and last in owner:
            rows.append((key, cast("dict[str, object]", owner)[last]))
    if any(value != rows[0][1] for _, value in rows if value is not None and rows[0][1] is not None):
        rule, (key, first) = message("config.agree", keys=[key for key, _ in rows]), rows[0]
        raise ConfigError(key, first, rule, message("config.only", field=shown(key), value=shown(first)))
    return next((pair for pair in rows if pair[1] is not None), rows[0] if rows else None)


def _fields(family: Family, part: Mapping[str, Any]) -> tuple[Fields, dict[str, str], tuple[str, ...]]:
    """The family's fields as the config has them, the key each has there, and the fields it leaves out."""
    values: dict[str, object] = dict(family.defaults)
    names = {field: keys[0] for field, keys in family.keys.items()}
    omitted: list[str] = []
    listing = _find(part, family.keys.get("layer_types", ()))
    for field, keys in family.keys.items():
        entry = _find(part, keys)
        if entry is None:
            if field in family.defaults and not (listing and field in _FROM_LIST):
                omitted.append(field)
            continue
        names[field], values[field] = entry
    return _checked(values, names), names, tuple(omitted)


_FROM_LIST = ("layers", "pattern", "window_every")
"""Fields that a list of the layers says."""

_NULLABLE = {
    *("kv_heads", "head_dim", "ffn", "embedding_width", "norms_in_parallel", "window", "layer_types", "rotary_layers"),
    *("dense_listed", "moe_listed", "query_rank", "experts", "shared", "mtp", "state_inner", "pattern"),
    *("route_groups", "groups_per_token", "routing", "blocks", "moe_types", "moe_marks", "moe_until", "latent"),
    *(
        "attending",
        "window_marks",
        "window_heads",
        "window_kv_heads",
        "global_kv_heads",
        "layer_embedding",
        "multiple",
    ),
    *("index_heads", "index_dim", "index_chosen", "index_types", "index_marks", "per_token", "expert_width"),
    *("per_layer", "window_size", "layer_vocab", "ffn_multiplier", "compress_ratios", "output_groups", "output_rank"),
}
"""Fields that a config may set to null: it then has none of it, or as much as follows from the others."""

_NEEDED = {"layers": 32, "hidden": 4096, "heads": 32, "ffn": 14336, "vocab": 128256}
"""What no shape can do without, with the example that messages show."""

_EXAMPLES: Mapping[str, object] = {
    **_NEEDED,
    "kv_heads": 8,
    "layer_types": ["sliding_attention", "full_attention"],
    "max_seq": 8192,
    "window": 4096,
}


def _example(key: str, field: str, annotation: object, known: int | None = None) -> str:
    value = known if known is not None else _EXAMPLES.get(field, False if annotation is bool else 8)
    return f"{shown(key.rpartition('.')[2])}: {shown(value)}"


def _checked(values: Mapping[str, object], names: Mapping[str, str]) -> Fields:
    """The fields checked one by one; raises `ConfigError` naming the first that cannot be."""
    from pydantic import ValidationError

    from core.models.configs.fields import Fields

    kinds = {name: info.annotation for name, info in Fields.model_fields.items()}
    given: dict[str, object] = {}
    for field, value in values.items():
        if value is not None:
            given[field] = value
        elif kinds[field] is bool:
            given[field] = False
        elif field not in _NULLABLE:
            key = names.get(field, field)
            raise ConfigError(key, None, message("config.needed"), _example(key, field, kinds[field]))
    try:
        return Fields.model_validate(given)
    except ValidationError as problem:
        first = problem.errors()[0]
        field = str(first["loc"][0])
        key = names.get(field, field)
        example = _example(key, field, kinds[field])
        bounds = {name: float(bound) for name, bound in first.get("ctx", {}).items() if isinstance(bound, int)}
        rule = pick_message(_RULES.get(first["type"], "config.whole"), most=bounds.get("le"), least=bounds.get("ge"))
        raise ConfigError(key, given.get(field), rule, example) from None


_RULES = {
    "bool_type": "config.bool",
    "list_type": "config.list",
    "missing": "config.needed",
    "string_type": "config.text",
    "less_than_equal": "config.at_most",
    "greater_than_equal": "config.at_least",
}
"""What pydantic found wrong → the second half of a sentence."""


_KEYED = {
    "count": "experts",
    "width": "expert_width",
    "dense_layers": "dense_first",
    "size": "window",
    "rank": "step_rank",
    "state": "state_rows",
    "groups": "state_groups",
    "conv": "state_conv",
}
"""Fields of a spec whose field of a config has another name."""


def _spec(family: Family, f: Fields, keys: Mapping[str, str], mtp_modules: int) -> TransformerSpec:
    """The spec of the checked fields."""
    derived = family.derived(f)
    experts = derived["experts"] if "experts" in derived else _experts(f, keys)
    dense = f.layers - (f.layers - experts.dense_layers if experts else 0)
    ffn = f.ffn or (f.ffn_times or 0) * f.hidden
    latent = _latent(f)
    values: dict[str, Any] = {
        "layers": f.layers,
        "hidden": f.hidden,
        "heads": f.heads,
        "kv_heads": f.heads if latent else f.kv_heads or f.heads,
        "ffn": ffn if dense else 0,
        "vocab": f.vocab,
        "tied_head": f.tied,
        "attention_bias": f.attention_bias,
        "output_bias": f.output_bias,
        "ffn_bias": f.ffn_bias,
        "parallel_blocks": f.parallel,
        "embedding_width": (f.embedding_width or 0) if f.embedding_width != f.hidden else 0,
        "experts": experts,
        "latent": latent,
        "window": _window(family, f, keys),
        "mtp_modules": mtp_modules,
    }
    if "head_dim" not in {**family.fixed, **derived}:
        values["head_dim"] = latent.nope_dim + latent.rope_dim if latent else f.head_dim or _head_dim(f, keys)
    return TransformerSpec(**{**values, **family.fixed, **derived})


def _head_dim(f: Fields, keys: Mapping[str, str]) -> int:
    if f.hidden % f.heads:
        rule = message("config.heads", heads=float(f.heads))
        raise ConfigError(keys["hidden"], f.hidden, rule, f'"{keys["hidden"]}": {128 * f.heads}')
    return f.hidden // f.heads


def _experts(f: Fields, keys: Mapping[str, str]) -> Experts | None:
    if not f.experts:
        return None
    if f.per_token is None:
        key = keys.get("per_token", "num_experts_per_tok")
        raise ConfigError(key, None, message("config.per_token"), f'"{key}": 2')
    listed = set(f.dense_listed or ())
    first, every = f.dense_first or 0, f.moe_every or 1
    at = every - 1 if f.moe_offset is None else f.moe_offset
    marks = f.moe_marks if isinstance(f.moe_marks, list) else None
    if f.moe_types is not None or marks:
        kinds = [kind == "sparse" for kind in f.moe_types or ()] or [bool(mark) for mark in marks or ()]
        dense = sum(not mixed for mixed in kinds[: f.layers])
    elif f.moe_listed is not None:
        mixed = set(f.moe_listed)
        dense = sum(i not in mixed for i in range(f.layers))
    else:
        dense = sum(i < first or i in listed or i % every != at for i in range(f.layers))
    shared = f.shared or 0
    width = f.expert_width or f.ffn or 0
    return Experts(
        count=f.experts,
        per_token=f.per_token,
        width=width,
        shared=shared if f.shared_width != 0 else 0,
        dense_layers=dense,
        router_bias=f.router_bias,
        shared_width=f.shared_width or 0,
        shared_gate=bool(f.shared_width) and f.shared_gated,
        latent=f.latent or 0,
        latent_norm=f.latent_norm and bool(f.latent),
        **expert_groups(f),
    )


def _latent(f: Fields) -> LatentAttention | None:
    if f.kv_rank is None or f.value_dim is None:
        return None
    return LatentAttention(f.query_rank or 0, f.kv_rank, f.nope_dim or 0, f.rope_dim or 0, f.value_dim)


def _window(family: Family, f: Fields, keys: Mapping[str, str]) -> SlidingWindow | None:
    """The sliding window and the shortest pattern of layers that has it; None where no layer does."""
    if not f.window or not f.window_on or not family.windowed:
        return None
    marks = _marks(f, keys) if f.layer_types else tuple(family.windowed(f, layer) for layer in range(f.layers))
    if not any(marks):
        return None
    period = next(p for p in range(1, len(marks) + 1) if marks[p:] == marks[:-p])
    return SlidingWindow(f.window, marks[:period])


_KINDS = {"sliding_attention": True, "full_attention": False}


def _marks(f: Fields, keys: Mapping[str, str]) -> tuple[bool, ...]:
    """Which layers the config's own list says are windowed."""
    key, kinds = keys["layer_types"], f.layer_types or []
    example = _example(key, "layer_types", None)
    if len(kinds) != f.layers:
        raise ConfigError(
            key, kinds, message("config.entries", entries=float(len(kinds)), layers=float(f.layers)), example
        )
    for kind in kinds:
        if kind not in _KINDS:
            raise ConfigError(key, kind, message("config.kinds", kinds=tuple(_KINDS)), example)
    return tuple(_KINDS[kind] for kind in kinds)


def _unknown(model_type: str, part: Mapping[str, Any]) -> UnknownFamilyError:
    """The error for a family not known, with the shape its fields describe under their usual names."""
    values: dict[str, object] = {"tied": False, "attention_bias": False, "ffn_bias": False}
    names = {field: keys[0] for field, keys in GENERIC.items()}
    for field, keys in GENERIC.items():
        entry = _find(part, keys)
        if entry and entry[1] is not None:
            names[field], values[field] = entry
    missing = tuple(names[field] for field in _NEEDED if field not in values)
    if missing == (names["ffn"],) and {"experts", "expert_width"} <= set(values):
        missing = ()
    if missing:
        return UnknownFamilyError(model_type, missing, None)
    generic = Family("generic", GENERIC, {}, {"glu": _gated(part)}, lambda _: {}, None, {}, "", (), {})
    try:
        return UnknownFamilyError(model_type, (), _spec(generic, _checked(values, names), names, 0))
    except (ConfigError, SpecError) as problem:
        field = names.get(problem.field, problem.field)
        why = message("config.field", field=field, value=shown(problem.value), rule=problem.rule)
        return UnknownFamilyError(model_type, (), None, why)


def _gated(part: Mapping[str, Any]) -> bool:
    """Whether the keys speak of a gated feed-forward network: names and activations of plain ones say it is none."""
    acts = {str(part.get(key)) for key in (*_ACTIVATIONS, "mlp_hidden_act")}
    return not (acts & {"relu", "relu2", "gelu_new", "gelu_fast"} or {"n_inner", "ffn_dim", "fc_dim"} & set(part))
