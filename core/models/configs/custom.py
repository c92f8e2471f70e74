"""A model of one's own: a shape that is edited field by field, and stands where a catalogue's model would."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from core.limits import limit
from core.models.catalog import CatalogModel
from core.models.configs.config import ConfigError, NoClosedFormError, UnknownFamilyError, read_hf_config
from core.models.counts_only import CountedModel, read_counted
from core.models.flops import flops_per_token
from core.models.mixer import NAMES
from core.models.parameters import parameters
from core.models.spec import Experts, TransformerSpec
from core.models.spec_text import read_spec
from core.models.stand_in import MIXTURE_ERROR, mixture_stand_in
from core.units import format_count
from core.wording import listed

NAME = "Your model"

SIZES: Mapping[str, str] = {
    "layers": "Layers",
    "hidden": "Hidden width",
    "heads": "Heads",
    "kv_heads": "KV heads",
    "head_dim": "Head width",
    "ffn": "FFN width",
    "vocab": "Vocabulary",
}
"""The whole numbers of a shape that are edited one by one, with their labels."""

MIXTURE: Mapping[str, str] = {
    "count": "Experts",
    "per_token": "of which run",
    "width": "Expert width",
    "shared": "Shared experts",
}
"""Those of its mixture of experts; without one all are 0."""


def own_model(spec: TransformerSpec) -> CatalogModel:
    """``spec`` as a model, counted and nowhere published."""
    counted = parameters(spec)
    return CatalogModel(
        name=NAME,
        family="",
        hf_id="",
        spec=spec,
        parameters=counted.total,
        active=counted.active,
        published_total=math.nan,
        published_active=math.nan,
        published_source="",
        published_confidence="",
        max_seq=limit("model_dimension"),
        source="",
        confidence="",
        notes="",
        breakdown=True,
    )


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

    Raises `SpecTextError` or `CountedTextError`.
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
    """Read a config.json by formula; nothing raises."""
    try:
        read = read_hf_config(text)
    except NoClosedFormError as problem:
        draft = problem.draft if isinstance(problem, UnknownFamilyError) else None
        return ConfigSaid(None, False, f"{problem} The shape stays as it was.", True, draft)
    except ConfigError as problem:
        return ConfigSaid(None, False, f"{problem} The shape stays as it was.")
    sentences = [f"**Read as {read.family}:** {about(read.spec)}"]
    if read.omitted:
        sentences.append(f"The file lacks {listed(read.omitted)}, so Napkin uses the family’s defaults.")
    if read.unread:
        sentences.append(f"Napkin does not read {listed(read.unread)}, which may change the count.")
    return ConfigSaid(read.spec, not read.unread, " ".join([*sentences, *read.notes]), read.part or bool(read.unread))


def about_counted(counted: CountedModel) -> str:
    """A model known by its counts in one line."""
    active = f", {format_count(counted.active)} active" if counted.active != counted.total else ""
    by = counted.by.replace("_", " ")
    mixed = counted.active != counted.total
    proxy = "a mixture of experts" if mixed else "a dense model"
    return (
        f"**{counted.total:,}** parameters{active}, counted by building {counted.made} with {by}. Its layers are not "
        f"known, so days, memory, and cache are those of {proxy} with the same counts."
        + (f" The median error of its step time is {MIXTURE_ERROR:.0%}." if mixed else "")
    )


def about_built(spec: TransformerSpec, built: CountedModel) -> str:
    """How a shape that was read from a config compares with the model that was built from it."""
    beyond = built.total - parameters(spec).total
    if not beyond:
        return f"**Checked by building it:** {built.made} has as many parameters."
    if beyond > 0:
        return (
            f"**Built whole, it has {built.total:,} parameters:** {beyond:,} of {built.made} are outside this shape, "
            "such as encoders for images and sound."
        )
    return f"**Built, {built.made} has {built.total:,} parameters,** {-beyond:,} fewer than this shape. Check the file."


def is_like(draft: TransformerSpec, built: CountedModel) -> bool:
    """Whether a draft is the model that was built: as many parameters, all and active, and the same FLOPs."""
    counts = parameters(draft)
    same = (counts.total, counts.active) == (built.total, built.active)
    return same and all(n * flops_per_token(draft, n, "eager").forward == flop for n, flop in built.flop.items())


def about(spec: TransformerSpec) -> str:
    """The shape in one line: its parameters, and what the numbers to edit do not show."""
    counted = parameters(spec)
    active = f", {format_count(counted.active)} active" if spec.experts else ""
    sentences = [f"**{counted.total:,}** parameters{active}"]
    if spec.latent:
        sentences.append(f"latent attention of rank {spec.latent.kv_rank:,}")
    if spec.window:
        sentences.append(f"a window of {spec.window.size:,} tokens in {spec.windowed_layers} of {spec.layers} layers")
    if mixer := spec.mixer:
        place = "in parallel with" if mixer.parallel else "in place of"
        sentences.append(f"{NAMES[mixer.kind]} {place} attention in {mixer.layers} of {spec.layers} layers")
    for other in spec.others:
        seen = f"a window of {other.window:,} tokens" if other.window else "all tokens"
        sizes = f"{other.heads} heads of {other.head_dim}, {other.kv_heads} for keys and values"
        sentences.append(f"{other.layers} attention layers with {sizes}, that see {seen}")
    if spec.bare_layers:
        sentences.append(f"{spec.bare_layers} layers without attention")
    if indexer := spec.indexer:
        sentences.append(f"an indexer that chooses {indexer.chosen:,} tokens for attention")
    if spec.networks:
        sentences.append(f"feed-forward networks of {1 + len(spec.networks)} widths")
    if spec.experts and spec.experts.latent:
        sentences.append(f"experts in a latent width of {spec.experts.latent:,}")
    if spec.streams > 1:
        sentences.append(f"{spec.streams} residual streams")
    if (moe := spec.experts) and moe.groups_per_token < moe.route_groups:
        sentences.append(f"each token’s experts in {moe.groups_per_token} of {moe.route_groups} groups")
    if spec.mtp_modules:
        sentences.append(f"{spec.mtp_modules} multi-token prediction")
    if spec.position_rows:
        sentences.append(f"{spec.position_rows:,} learned positions")
    if spec.qk_norm != "none":
        sentences.append("norms of queries and keys")
    stands_in = (
        f" Napkin does not model the memory and time of {spec.unmodelled}. For memory, steps, and layouts it uses a "
        "dense model of the same size."
    )
    return f"{'; '.join(sentences)}.{stands_in if spec.unmodelled else ''}"
