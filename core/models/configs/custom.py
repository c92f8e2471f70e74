"""A model of one's own: a shape that is edited field by field, and stands where a catalogue's model would."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.limits import limit
from core.messages import Message, message, pick_message
from core.models.catalog import CatalogModel
from core.models.configs.config import ConfigError, NoClosedFormError, UnknownFamilyError, read_hf_config
from core.models.counts_only import CountedModel, read_counted
from core.models.mixer import NAMES
from core.models.parameters import parameters
from core.models.spec import Experts, TransformerSpec
from core.models.spec_text import read_spec
from core.models.stand_in import MIXTURE_ERROR, mixture_stand_in

NAME = "Your model"

SIZES = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab")
"""The whole numbers of a shape that are edited one by one."""

MIXTURE = ("count", "per_token", "width", "shared")
"""Those of its mixture of experts; without one all are 0."""


def size_label(field: str) -> Message:
    """Return the label of ``field`` (of `SIZES` or `MIXTURE`)."""
    return message(f"shape.size.{field}")


def own_model(spec: TransformerSpec) -> CatalogModel:
    """``spec`` as a model, counted and nowhere published."""
    counted = parameters(spec)
    most = limit("model_dimension")
    return CatalogModel(name=NAME, spec=spec, parameters=counted.total, active=counted.active, max_seq=most)


def proxy_model(spec: TransformerSpec) -> CatalogModel:
    """``spec`` as a model that approximates one whose layers nobody knows."""
    named = message("shape.proxy_name", layers=float(spec.layers), width=float(spec.hidden))
    return replace(own_model(spec), name=named)


def counted_model(counted: CountedModel) -> CatalogModel:
    """A model known by its counts alone. For want of its own layers it has those of a stand-in with the same counts."""
    return replace(
        own_model(mixture_stand_in(counted.total, counted.active)),
        name=f"Your {counted.made}",
        parameters=counted.total,
        active=counted.active,
        breakdown=False,
        counted=counted,
    )


def read_model(text: str) -> CatalogModel:
    """The model that a line of text describes, by its shape or by its counts.

    Raises `SpecTextError`.
    """
    if text.lstrip().startswith("made="):
        return counted_model(read_counted(text))
    return own_model(read_spec(text))


def size_of(spec: TransformerSpec, field: str) -> int:
    """The number of ``field`` (of `SIZES` or `MIXTURE`)."""
    return getattr(spec, field) if field in SIZES else getattr(spec.experts, field) if spec.experts else 0


def edited(spec: TransformerSpec, field: str, value: int) -> TransformerSpec:
    """``spec`` with one number changed.

    The first expert makes a mixture of what was dense, and none makes it dense again. Raises `SpecError` for a shape
    that no transformer can have.
    """
    if field in SIZES:
        return replace(spec, **{field: value})
    if field == "count" and value == 0:
        dense = spec.experts.width * spec.experts.per_token if spec.experts else 0
        return replace(spec, experts=None, ffn=spec.ffn or dense)
    moe = spec.experts or Experts(count=8, per_token=2, width=spec.ffn)
    if field == "count" and not spec.experts:
        moe = replace(moe, count=value, per_token=min(2, value))
    else:
        moe = replace(moe, **{field: value})
    return replace(spec, experts=moe)


PASTE = '{"model_type": "llama", "num_hidden_layers": 32, …}'
"""What the empty box shows."""


@dataclass(frozen=True, slots=True)
class ConfigSaid:
    """What became of a config.json: its shape, or None; whether all is well with it; and what to tell.

    buildable: whether building the model (`core.models.building.jobs`) can say more: it is of a kind that no formula
    counts, more than its text model, or has keys that were not read. draft: a shape like that of a family not known,
    to be checked and edited where building refuses too; never a count of the model.
    """

    spec: TransformerSpec | None
    clean: bool
    text: str
    buildable: bool = False
    draft: TransformerSpec | None = None


def read_config(text: str) -> ConfigSaid:
    """Read a config.json by formula. Raises nothing."""
    try:
        read = read_hf_config(text)
    except ConfigError as problem:
        draft = problem.draft if isinstance(problem, UnknownFamilyError) else None
        buildable = isinstance(problem, NoClosedFormError)
        return ConfigSaid(None, False, f"{problem} {message('shape.unchanged')}", buildable, draft)
    sentences: list[str] = [message("shape.read_as", family=read.family), *about(read.spec)]
    if read.omitted:
        sentences.append(message("shape.defaults", keys=read.omitted))
    if read.unread:
        sentences.append(message("shape.unread", keys=read.unread))
    return ConfigSaid(read.spec, not read.unread, " ".join([*sentences, *read.notes]), read.part or bool(read.unread))


def about_counted(counted: CountedModel) -> str:
    """Return the counts of a model of which nothing else is known, and which layers stand in for its own."""
    mixture = counted.active != counted.total
    total, active = float(counted.total), float(counted.active)
    named = "shape.counted_active" if mixture else "shape.counted"
    said = pick_message(named, total=total, active=active, made=counted.made, by=counted.by.replace("_", " "))
    proxy = "shape.proxy_mixture" if mixture else "shape.proxy"
    return f"{said} {pick_message(proxy, error=MIXTURE_ERROR)}"


def about_built(spec: TransformerSpec, built: CountedModel) -> Message:
    """Return how a shape that was read from a config compares with the model that was built from it."""
    beyond = float(built.total - parameters(spec).total)
    named = "shape.built_same" if not beyond else "shape.built_more" if beyond > 0 else "shape.built_fewer"
    return pick_message(named, made=built.made, total=float(built.total), beyond=beyond, fewer=-beyond)


def about(spec: TransformerSpec) -> list[Message]:
    """Return the parameters of a shape, and what the numbers to edit do not show."""
    counted = parameters(spec)
    named = "shape.about_active" if spec.experts else "shape.about"
    said = [pick_message(named, total=float(counted.total), active=float(counted.active))]
    if parts := _parts(spec):
        said.append(message("shape.also", parts=parts))
    if spec.unmodelled:
        said.append(message("shape.unmodeled", what=spec.unmodelled))
    return said


def _parts(spec: TransformerSpec) -> list[Message]:
    layers, moe, parts = float(spec.layers), spec.experts, list[Message]()
    if spec.latent:
        parts.append(message("shape.latent", rank=float(spec.latent.kv_rank)))
    if spec.window:
        tokens, windowed = float(spec.window.size), float(spec.windowed_layers)
        parts.append(message("shape.window", tokens=tokens, layers=windowed, all=layers))
    if mixer := spec.mixer:
        place = "shape.mixer_parallel" if mixer.parallel else "shape.mixer"
        parts.append(message(place, mixer=NAMES[mixer.kind], layers=float(mixer.layers), all=layers))
    parts += [
        pick_message(
            "shape.other_window" if other.window else "shape.other",
            layers=float(other.layers),
            heads=float(other.heads),
            width=float(other.head_dim),
            kv_heads=float(other.kv_heads),
            tokens=float(other.window or 0),
        )
        for other in spec.others
    ]
    if spec.bare_layers:
        parts.append(message("shape.bare", layers=float(spec.bare_layers)))
    if spec.indexer:
        parts.append(message("shape.indexer", tokens=float(spec.indexer.chosen)))
    if spec.networks:
        parts.append(message("shape.networks", sizes=1.0 + len(spec.networks)))
    if moe and moe.latent:
        parts.append(message("shape.expert_latent", width=float(moe.latent)))
    if spec.streams > 1:
        parts.append(message("shape.streams", streams=float(spec.streams)))
    if moe and moe.groups_per_token < moe.route_groups:
        groups, every = float(moe.groups_per_token), float(moe.route_groups)
        parts.append(message("shape.routed_groups", groups=groups, all=every))
    if spec.further:
        parts.append(message("shape.further"))
    if spec.kept:
        parts.append(message("shape.kept"))
    if spec.tower:
        parts.append(message("shape.tower", parameters=float(spec.tower)))
    if spec.mtp_modules:
        parts.append(message("shape.mtp", modules=float(spec.mtp_modules)))
    if spec.position_rows:
        parts.append(message("shape.positions", rows=float(spec.position_rows)))
    if spec.qk_norm != "none":
        parts.append(message("shape.qk_norm"))
    return parts
