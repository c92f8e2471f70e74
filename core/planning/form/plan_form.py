"""The questions of planning as fields, declared once for every page, and the plan that a form of them describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from core.fields import CATALOG, Field, Form, ParsedForm, choice, optional, quantity, with_decimal_lengths
from core.hardware.accelerators import DTYPES, accelerators
from core.limits import limit
from core.models.catalog import catalog
from core.models.configs.custom import read_model
from core.models.spec_text import EXAMPLE
from core.number_text import QuantityError
from core.planning.form.layout import (
    ANY,
    AS_LAYERS,
    LAYING,
    LAYOUT_FIELDS,
    NETWORK,
    PER_NODE,
    SEARCH_FIELDS,
    USUAL,
    implied_layout,
    recompute_of,
)
from core.planning.form.training import OWN_FIELDS, POLICY, STATES, TRAINED_FIELDS, derived_texts, own_of, trained_of
from core.planning.form.whole_run import LIMIT_FIELDS, MATURITY, MEASURED_FIELDS, OWN_RUNS, WHOLE_FIELDS, measured_of
from core.planning.plan import (
    FINDS,
    MFU_KINDS,
    OWN_LAYOUT,
    OWN_SHAPE,
    PUBLISHED,
    TYPED,
    Lengths,
    Plan,
    PlanLimits,
    Power,
    RuntimeOptions,
    known_model,
    parse_mfu,
    parse_price,
    parse_within,
)
from core.runs.goodput import Reliability
from core.search.request import Constraints
from core.step_time.running import layers_with, loss_with
from core.training.activations.tensors import IMPLEMENTATIONS
from core.training.layout import OFFLOADS, RECOMPUTES, Layout
from core.training.optimizers import USUAL_OPTIMIZER, optimizers, why_not

QUESTION, MODEL, CLUSTER, MORE = "question", "model", "cluster", "more"
"""Parts of the form: what is asked for, the model and its tokens, the accelerators, and what is asked less often."""


FEWEST = 1_000
"""Parameters or tokens: a bare number below this lacks its B or T."""


def _shape(text: str) -> str:
    """Return a shape's text, checked; empty if none has been read."""
    if text:
        read_model(text)
    return text


FIND = choice("find", CATALOG, FINDS, "time", few=True, part=QUESTION)
WITHIN = Field("within", CATALOG, "90 days", parse_within, part=QUESTION)
MODEL_NAME = choice("model", CATALOG, (TYPED, OWN_SHAPE, *(m.name for m in catalog())), TYPED, part=MODEL)
SHAPE = Field("shape", CATALOG, "", _shape, part=MODEL, placeholder=EXAMPLE, max_chars=limit("spec_chars"))
PARAMETERS = quantity(
    "n", CATALOG, "70B", "parameters", low=1, high=limit("parameters"), whole=True, bare_from=FEWEST, part=MODEL
)
TRAINED = quantity(
    "tokens", CATALOG, "15T", "tokens", low=1, high=limit("tokens"), whole=True, bare_from=FEWEST, part=MODEL
)
ACCELERATOR = choice("gpu", CATALOG, [a.name for a in accelerators()], "H100 SXM", part=CLUSTER)
COUNT = quantity("count", CATALOG, "1,024", "accelerators", low=1, high=limit("accelerators"), whole=True, part=CLUSTER)
MFU = Field("mfu", CATALOG, PUBLISHED, parse_mfu, part=CLUSTER)
MFU_KIND = choice("pace", CATALOG, MFU_KINDS, "all hours", few=True, part=MORE)
DTYPE = choice("dtype", CATALOG, [d for d in DTYPES if d != "fp64_tensor"], "bf16", part=MORE)
SEQ_LEN = quantity("seq", CATALOG, "8,192", "length", low=1, high=limit("model_dimension"), whole=True, part=MORE)
ATTENTION = choice("attn", CATALOG, ("causal", "full"), "causal", few=True, part=MORE)
PRICE = optional("price", CATALOG, parse_price, nothing=None, part=MORE)
OPTIMIZER = choice("opt", CATALOG, list(optimizers()), USUAL_OPTIMIZER, why_not=why_not, part=STATES)
PLAN_FIELDS: tuple[Field, ...] = (
    FIND,
    WITHIN,
    MODEL_NAME,
    SHAPE,
    PARAMETERS,
    TRAINED,
    ACCELERATOR,
    COUNT,
    MFU,
    MFU_KIND,
    DTYPE,
    SEQ_LEN,
    ATTENTION,
    PRICE,
    OPTIMIZER,
    POLICY,
    *OWN_FIELDS.values(),
    *LAYOUT_FIELDS,
    *SEARCH_FIELDS,
    *WHOLE_FIELDS,
    *MEASURED_FIELDS,
    OWN_RUNS,
    MATURITY,
    *LIMIT_FIELDS,
    *TRAINED_FIELDS,
)
"""Every field of a plan, in the order in which a link spells them."""

PLAN_IDS = frozenset(field.id for field in PLAN_FIELDS)

ACCELERATOR_FIELDS = (PRICE, NETWORK, PER_NODE, MATURITY)
"""Fields whose entries belong to one accelerator. Measured rates name theirs, and power drawn is a share of any."""


def changes_on(accelerator: str, changes: Mapping[str, str]) -> dict[str, str]:
    """Return ``changes`` to the texts of a plan on ``accelerator``. Those that name another accelerator also reset the
    entries that belong to ``accelerator``, unless they replace them."""
    if changes.get(ACCELERATOR.id, accelerator) == accelerator:
        return dict(changes)
    return {**{field.id: field.default for field in ACCELERATOR_FIELDS}, **changes}


def _from_1(texts: dict[str, str]) -> dict[str, str]:
    """Return the texts of version 1: its cost is part of time, its entered MFU was of all hours, its checkpoints had 14
    bytes."""
    gone = ("cost", "linear", "lb", "ld", "lk", "xgrad")
    renamed = {name: text for name, text in texts.items() if name not in gone}
    if renamed.get("find") == "cost":
        renamed["find"] = "time"
    if renamed.pop("which", "") == "true":
        renamed["flops"] = "true"
    return renamed


_LENGTHS = ("seq", *(f"r{k}s" for k in range(1, 9)))
"""The lengths of a plan and of a calendar's runs."""

_STAGES = {"sharded": "3", "ZeRO-2": "2", "ZeRO-1": "1", "replicated": "0"}


def _from_2(texts: dict[str, str]) -> dict[str, str]:
    """Return the texts of version 2: how model states are spread was asked by four names, which are stages of ZeRO."""
    renamed = dict(texts)
    if renamed.get("shard") in _STAGES:
        renamed["zero"] = _STAGES[renamed.pop("shard")]
    return renamed


def _from_3(texts: dict[str, str]) -> dict[str, str]:
    """Return the texts of version 3: power was drawn up to the accelerators' own limits, no memory had to stay free,
    the k of a length was 1,000, and a batch without a unit was one of sequences."""
    renamed = with_decimal_lengths({"draw": "100%", "free": "0%", **texts} if texts else texts, (*_LENGTHS, "gb"))
    if renamed.get("gb") != texts.get("gb"):
        renamed["gb"] += " sequences"
    return renamed


def _from_4(texts: dict[str, str]) -> dict[str, str]:
    """Return the texts of version 4: the k of an example's length and of a served context was 1,000. A custom shape
    began as `EXAMPLE`, which links also named with other models."""
    texts = with_decimal_lengths(texts, ("mean", "longest", "svctx"))
    if texts.get(MODEL_NAME.id) == OWN_SHAPE:
        return {SHAPE.id: EXAMPLE, **texts}
    return {name: text for name, text in texts.items() if (name, text) != (SHAPE.id, EXAMPLE)}


def _derived(values: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the texts that others decide: types by a precision's name, and the number of parameters by a model's
    layers."""
    known = known_model(values["find"], values["model"], values["shape"])
    return {**derived_texts(values), **({PARAMETERS.id: f"{known.active:,}"} if known else {})}


_PANELS_GONE = ("study", "more", "look", "parts", "pic", "meas", "fam", "runs")
_GONE = frozenset((*_PANELS_GONE, "keep=", "data=", "gbm=0.023", "sent=", "gbo=", "aim", "win", "ffn", "grow"))
"""What links may have of pages as they were: ids, or ids with the text that said nothing."""


def plan_form(
    prefix: str,
    *others: Field,
    imply: Callable[[Mapping[str, str]], Mapping[str, str]] = lambda _: {},
    **more: Any,
) -> Form:
    """Return a form of the plan's fields and the given ``others``, with what older texts imply for them."""

    def implied(texts: Mapping[str, str]) -> Mapping[str, str]:
        return {**implied_layout(texts), **imply(texts)}

    older = {0: _from_2, 1: _from_1, 2: _from_2, 3: _from_3, 4: _from_4}
    how: dict[str, Any] = {"older": older, "derive": _derived, "imply": implied}
    gone = _GONE | more.pop("gone", frozenset())
    return Form(prefix, (*PLAN_FIELDS, *others), **how, shared=PLAN_IDS, gone=gone, **more)


PLAN_FORM = plan_form("c")
"""The plan alone."""


def plan_of(reading: ParsedForm) -> Plan:
    """Return the plan that the values of a form over `PLAN_FIELDS` describe."""
    v: Mapping[str, Any] = reading.values
    return Plan(
        find=v["find"],
        within=v["within"],
        model=v["model"],
        shape=v["shape"] if v["model"] == OWN_SHAPE else "",
        parameters=v["n"],
        tokens=v["tokens"],
        accelerator=v["gpu"],
        accelerators=v["count"],
        dtype=v["dtype"],
        seq_len=int(v["seq"]),
        mfu=v["mfu"],
        mfu_kind=v["pace"],
        attention=v["attn"],
        prices=v["price"],
        optimizer=v["opt"],
        policy=v["prec"],
        own_policy=own_of(v),
        layout=Layout(
            tensor=int(v["tp"]),
            pipeline=int(v["pp"]),
            interleave=int(v["vpp"]),
            context=int(v["cp"]),
            expert=int(v["ep"]),
            expert_tensor=int(v["etp"]),
            micro_batch=int(v["mbs"]),
            micro_batches=int(v["acc"]),
            zero=int(v["zero"]),
            shard_group=int(v["hsdp"]),
            sequence_parallel=int(v["sp"]),
            recompute=recompute_of(v),
            offload=OFFLOADS[v["off"]],
        ),
        own_layout=v[LAYING.id] == OWN_LAYOUT,
        software=v["sw"],
        tuned_by=v["tun"],
        network=v["net"],
        per_node=v["node"],
        runtime_options=RuntimeOptions(
            layers_with(v["sw"], v["impl"]),
            loss_with(v["sw"], IMPLEMENTATIONS[layers_with(v["sw"], v["impl"])])
            if v["loss"] == AS_LAYERS
            else v["loss"],
            int(v["chunks"]),
            v["ctx"],
            v["frag"],
            v["inb"],
            v["paged"],
            v["aoff"],
            v["disp"],
            "" if v["fa"] == USUAL else v["fa"],
        ),
        reliability=Reliability(
            failures=v["rate1k"],
            write_each=v["each"],
            blocking=v["waits"],
            restart=v["back"],
            interval=v["every"],
            elsewhere=v["other"],
            taken=v["spot"],
        ),
        power=Power(v["draw"], v["pue"], v["grid"]),
        batch=v["gb"],
        constraints=Constraints(
            tensor=v["ktp"],
            pipeline=v["kpp"],
            interleave=v["kvpp"],
            context=v["kcp"],
            expert=v["kep"],
            expert_tensor=v["ketp"] or 0,
            micro_batch=v["kmbs"],
            zero=None if v["kzero"] == ANY else int(v["kzero"]),
            recompute=None if v["krc"] == ANY else int(RECOMPUTES[v["krc"]]),
            offload=None if v["koff"] else 0,
            tensor_in_node=v["knode"],
        ),
        measured=measured_of(v),
        own_runs=v["ownruns"],
        maturity=v["ready"],
        limits=PlanLimits(*(v[field.id] for field in LIMIT_FIELDS)),
        trained=trained_of(v),
        lengths=Lengths(int(v["mean"]), int(v["longest"])),
    )


def plan_as_given(reading: ParsedForm) -> Plan:
    """Return the plan with the model, parameters, and accelerators that the form names, without solving."""
    return replace(plan_of(reading), find="time")


def plan_from(texts: Mapping[str, str]) -> Plan:
    """Return the plan of ``texts`` by id, such as a preset's; raises `QuantityError` for the first that cannot be
    read."""
    reading = PLAN_FORM.parse(texts)
    for problem in reading.problems:
        field = PLAN_FORM[problem.field]
        try:
            field.parse(texts[field.id])
        except QuantityError as wrong:
            raise QuantityError(wrong.about(field.label)) from None
    return plan_of(reading)


def complete_presets(presets: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Return presets with every field of a plan, so that no field of another preset remains after one is selected.

    Fields that a preset does not name have their defaults.
    """
    return {name: {**preset, **PLAN_FORM.parse(preset).texts} for name, preset in presets.items()}
