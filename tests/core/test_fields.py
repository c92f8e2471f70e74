"""Questions as data: what a form writes it reads again, older texts are translated, and a bad text changes nothing."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.budget.equations import BudgetError
from core.fields import LINK_VERSION, VERSION, Field, Form, choice, clipped, optional, quantity, slider, switch
from core.limits import limit
from core.messages import Message, message
from core.models.spec_text import EXAMPLE
from core.number_text import QuantityError
from core.planning.decide.decision import DECIDE_FORM
from core.planning.estimate import estimate
from core.planning.form.layout import SEARCH
from core.planning.form.links import link_texts
from core.planning.form.plan_form import PLAN_FIELDS, PLAN_FORM, plan_form, plan_from, plan_of
from core.planning.form.training import OWN_FIELDS
from core.planning.form.whole_run import LIMITS, WHOLE
from core.planning.measured import EXAMPLE as RUN_EXAMPLE
from core.planning.memory_estimate import memory_estimate
from core.planning.plan import OWN_POLICY, OWN_SHAPE, TYPED
from core.planning.presets import MEMORY_PRESETS, PRESETS, SEARCH_PRESETS
from core.quantities import parse_quantity
from core.step_time.running import EAGER
from core.training.custom_policy import own_like
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES, find_policy
from pages.compute.form import FORM as COMPUTE_FORM
from pages.home.form import FORM as HOME_FORM
from pages.measure.form import measure_form
from pages.memory.form import FORM as MEMORY_FORM
from pages.parallel.form import FORM as SEARCH_FORM
from tests.every import every

SIZE = quantity("n", "Size", "70B", "count", low=1, high=1e13, whole=True)
PRICE = optional("price", "Price", lambda text: parse_quantity(text, "number", low=0), nothing=None)
KIND = choice("kind", "Kind", ("one", "two"), "one")
OPEN, STEP = switch("open", "Open", False), slider("step", "Step", 5, 50, 20)
TINY = Form("t", (SIZE, PRICE, KIND, OPEN, STEP), older={1: lambda texts: {**texts, "kind": "two"}})
FORMS = {"compute": COMPUTE_FORM, "memory": MEMORY_FORM, "home": HOME_FORM, "search": SEARCH_FORM}


def said(sentence: str) -> tuple[str, Mapping[str, Any]]:
    """The id and values of a message."""
    assert isinstance(sentence, Message)
    return sentence.id, sentence.values


def opened(form: Form, query: str) -> tuple[dict[str, str], tuple[str, ...]]:
    return form.from_address(parse_qs(query, keep_blank_values=True))


@given(
    n=st.integers(1, 10**13),
    price=st.none() | st.floats(0, 1e3),
    kind=st.sampled_from(KIND.options),
    is_open=st.booleans(),
    step=st.integers(5, 50),
)
def test_what_is_written_is_read_again(n: int, price: float | None, kind: str, is_open: bool, step: int) -> None:
    typed = "" if price is None else repr(price)
    texts = {"n": str(n), "price": typed, "kind": kind, "open": str(is_open).lower(), "step": str(step)}
    again, sentences = opened(TINY, urlencode(TINY.write(texts)))
    reading = TINY.parse(again)
    assert (again, sentences, reading.problems) == (texts, (), ())
    assert reading.values == {"n": n, "price": price, "kind": kind, "open": is_open, "step": step}
    assert reading.texts == texts


@every("name", [*PRESETS, *MEMORY_PRESETS, *SEARCH_PRESETS])
def test_every_story_comes_back_from_its_link(name: str) -> None:
    preset = {**PRESETS, **MEMORY_PRESETS, **SEARCH_PRESETS}[name]
    for form in FORMS.values():
        texts, sentences = opened(form, urlencode(form.write(preset)))
        assert sentences == ()
        assert plan_of(form.parse(texts)) == plan_of(form.parse(preset))
        assert set(texts) == {field.id for field in form.fields if not field.omit_if_empty}
    assert plan_from(preset) == plan_of(PLAN_FORM.parse(preset))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_pages_ask_for_one_plan(form: Form) -> None:
    """Every field of a plan is on every form, and differs at most in where it begins; defaults can be read."""
    for field in PLAN_FIELDS:
        own = form[field.id]
        assert own.with_default(field.default) == field
        own.parse(own.default)
    assert not form.parse({}).problems
    with pytest.raises(KeyError):
        form["nothing of that name"]


TYPES = {field.id for field in OWN_FIELDS.values()}
TEXTS = (
    "3B",
    "64 GiB",
    "123",
    "662 TFLOP/s",
    "3.9 TB/s",
    "1.3",
    "7 days",
    "12%",
    "2 h",
    "9 per day",
    "$12M",
    "2 MW",
    EXAMPLE.replace("layers=32", "layers=16"),
    RUN_EXAMPLE,
    "q_proj v_proj",
    "layernorm mlp",
)
"""Texts of which every typed field of a plan takes one that is not its default."""


def another(field: Field) -> str:
    """A text that ``field`` reads to another value than its default; raises ``StopIteration`` where there is none."""

    def differs(text: str) -> bool:
        with contextlib.suppress(QuantityError):
            return field.parse(text) != field.parse(field.default)
        return False

    return next(text for text in (*field.options, "true", "false", *TEXTS) if differs(text))


@every("field", PLAN_FIELDS, ids=lambda field: field.id)
def test_every_field_of_a_plan_shapes_the_plan(field: Field) -> None:
    """A shape does where it is the model's, a type where the precision is one's own."""
    given = {"model": OWN_SHAPE} if field.id == "shape" else {"prec": OWN_POLICY} if field.id in TYPES else {}
    given |= {"rc": "modules"} if field.id == "rcm" else {"sw": EAGER.id} if field.id == "impl" else {}
    assert plan_of(PLAN_FORM.parse({**given, field.id: another(field)})) != plan_of(PLAN_FORM.parse(given))


@every("model", [OWN_SHAPE, "Llama 3 8B", TYPED])
@every("name", FORMS)
def test_links_to_other_pages_carry_the_plan_without_what_says_nothing(name: str, model: str) -> None:
    """The whole plan arrives on every page, with each field at its default and at another text."""
    for form in FORMS.values():
        for changed in PLAN_FIELDS:
            texts = FORMS[name].parse({"shape": EXAMPLE, changed.id: another(changed), "model": model}).texts
            sent = link_texts(texts)
            assert plan_of(form.parse(sent)) == plan_of(form.parse(texts))
            assert ("shape" in sent) == (model == OWN_SHAPE)
            assert {item.id for item in PLAN_FIELDS if item.part in (WHOLE, SEARCH, LIMITS)} & sent.keys() <= {
                changed.id
            }
            assert ("n" in sent) == (model == TYPED)
            assert changed.id in sent or changed.id in {"shape", "n", *TYPES}
            assert (sent.keys() >= TYPES) == (texts["prec"] == OWN_POLICY)


def test_texts_of_an_older_version_are_translated() -> None:
    old = urlencode({VERSION: "1", "c_find": "cost", "c_which": "true", "c_cost": "12", "c_n": "8B"})
    texts, sentences = opened(COMPUTE_FORM, old)
    assert sentences == ()
    assert texts == {"find": "time", "flops": "true", "n": "8B", "draw": "100%", "free": "0%"}
    assert opened(TINY, "v=1&t_n=7")[0] == {"n": "7", "kind": "two"}
    assert opened(TINY, "v=2&t_n=7")[0] == opened(TINY, "t_n=7")[0] == {"n": "7"}


def test_older_links_draw_the_power_of_accelerators_alone_unless_they_say_more() -> None:
    assert opened(COMPUTE_FORM, "v=3&c_n=8B")[0] == {"n": "8B", "draw": "100%", "free": "0%"}
    assert opened(COMPUTE_FORM, "v=3&c_n=8B&c_draw=182%25")[0]["draw"] == "182%"
    assert opened(COMPUTE_FORM, "v=3")[0] == {}
    assert "draw" not in opened(COMPUTE_FORM, f"v={LINK_VERSION}&c_n=8B")[0]


@every("name, typed, meant", [("seq", "128k", "128,000"), ("gb", "4M", "4,000,000 sequences")])
def test_k_was_a_thousand_in_older_links(name: str, typed: str, meant: str) -> None:
    assert opened(DECIDE_FORM, f"v=3&y_{name}={typed}")[0][name] == meant
    assert opened(DECIDE_FORM, f"v={LINK_VERSION}&y_{name}={typed}")[0][name] == typed


@every(
    "form, key",
    [
        (DECIDE_FORM, "p_mean"),
        (DECIDE_FORM, "p_longest"),
        (MEMORY_FORM, "p_longest"),
        (MEMORY_FORM, "m_svctx"),
        (measure_form("cuda", "u"), "u_seq"),
    ],
)
@every("version", [1, 3, 4])
def test_links_before_version_5_open_to_the_lengths_that_they_were_about(form: Form, key: str, version: int) -> None:
    name = key.partition("_")[2]
    assert form[name].parse(opened(form, f"v={version}&{key}=32k")[0][name]) == 32_000
    assert form[name].parse(opened(form, f"v={LINK_VERSION}&{key}=32k")[0][name]) == 32_768
    assert opened(form, f"v={version}&{key}=8,192")[0][name] == "8,192"


LENGTH_WORDS = re.compile("sequence|length|context|longest", re.IGNORECASE)
DEGREES = ("cp",)


@every("form", [*FORMS.values(), DECIDE_FORM, measure_form("cuda", "u"), measure_form("cpu", "u")])
def test_k_is_1024_in_every_length_and_its_help_says_so(form: Form) -> None:
    """Of datasets, batches, and dimensions it is 1,000."""
    for item in form.fields:
        with contextlib.suppress(QuantityError):
            read = item.parse("32k")
            assert read != 32_768 or message("quantity.lengths") in item.help, item.id
            assert read != 32_000 or not LENGTH_WORDS.search(item.label) or item.id in DEGREES, item.id


@pytest.mark.parametrize("version", [LINK_VERSION + 1, 99_999])
def test_a_newer_version_is_named_and_its_unknown_fields_are_not(version: int) -> None:
    texts, sentences = opened(TINY, f"v={version}&t_n=7&t_later=1")
    assert texts == {"n": "7"}
    assert len(sentences) == 1
    assert said(sentences[0]) == ("input.link_newer", {"version": version, "most": LINK_VERSION})


@pytest.mark.parametrize("version", ["", "two", "-1", "1e9", "٣", "1000000000000"])
def test_a_version_that_is_none_translates_nothing(version: str) -> None:
    assert opened(TINY, urlencode({VERSION: version, "t_n": "7"})) == ({"n": "7"}, ())


def test_unknown_and_doubled_fields_are_said_and_other_pages_are_not_looked_at() -> None:
    texts, sentences = opened(TINY, f"t_n=7&t_n=8&t_nonsense=1&{'t_' + 'x' * 99}=1&f_x=1&f_x=2&utm=3")
    assert texts == {"n": "8"}
    twice, unknown = sentences
    assert said(twice) == ("input.link_twice", {"name": "t_n", "times": 2})
    assert said(unknown) == ("input.link_unknown", {"names": ["t_nonsense", clipped("t_" + "x" * 99)]})


@every(
    "bad",
    [
        *({"n": text} for text in ("1.5", "1e999", "")),
        {"price": "cheap"},
        {"kind": "three"},
        {"open": "yes"},
        *({"step": text} for text in ("4", "²", "7.5")),
    ],
)
def test_a_bad_text_keeps_the_last_good_one(bad: dict[str, str]) -> None:
    good = {"n": "8", "price": "2", "kind": "two", "open": "true", "step": "30"}
    for last, expected in ((good, TINY.parse(good)), (None, TINY.parse({}))):
        reading = TINY.parse({**(last or {}), **bad}, last)
        assert reading.values == expected.values
        assert reading.texts == expected.texts
        (problem,) = reading.problems
        assert {problem.field} == set(bad)
        assert problem.message.startswith(TINY[problem.field].label)
        assert problem.used == expected.texts[problem.field]


@every(
    ("field", "text", "id"),
    [
        (KIND, "three", "input.option_few"),
        (KIND, "tow", "input.option_near"),
        (OPEN, "yes", "input.switch"),
        (STEP, "4", "input.slider"),
        (PLAN_FORM["opt"], "zzz", "input.option_many"),
        (PLAN_FORM["until"], "$5M", "input.not_a_deadline"),
        (PLAN_FORM["ktp"], "1-2-3", "input.range"),
        (PLAN_FORM["mfu"], "1-2-3", "input.mfu"),
        (PLAN_FORM["price"], "-1", "input.price"),
        (PLAN_FORM["rcm"], "layernorn", "input.module"),
        (PLAN_FORM["rof"], "a;b", "input.device_name"),
    ],
)
def test_a_bad_text_is_refused_with_its_own_message(field: Field, text: str, id: str) -> None:
    with pytest.raises(QuantityError) as refused:
        field.parse(text)
    assert said(refused.value.args[0])[0] == id


@every("text", ["\0", "⁇", "\ud800", "9" * 400, "-", "nan", "inf", "<b>", "1" + "e" * 70, " "])
def test_no_text_breaks_any_field(text: str) -> None:
    for form in FORMS.values():
        reading = form.parse({field.id: text for field in form.fields})
        assert reading.values.keys() == {field.id for field in form.fields}
        with contextlib.suppress(BudgetError):
            estimate(plan_of(reading))


def test_a_plan_of_bad_texts_is_refused_with_the_reason() -> None:
    with pytest.raises(QuantityError, match=r"“many”.*70B") as refused:
        plan_from({"n": "many"})
    assert "Still" not in str(refused.value), "nothing is in force instead"


def test_what_another_field_decides_is_read_as_it_decides() -> None:
    """Texts of fields that are led follow at once, in values, texts and what is written; bad ones are still told."""
    form = Form("t", (KIND, SIZE), derive=lambda values: {"n": "5"} if values["kind"] == "two" else {})
    assert form.parse({"kind": "one", "n": "7"}).values["n"] == 7
    reading = form.parse({"kind": "two", "n": "7"})
    assert (reading.values["n"], reading.texts["n"], reading.derived) == (5, "5", ("n",))
    assert form.parse(reading.texts).derived == ()
    (problem,) = form.parse({"kind": "two", "n": "many"}).problems
    assert problem.field == "n"


@every("prec", POLICIES)
@every("version", ["", "v=1&", "v=2&", "v=3&"])
def test_an_older_link_means_the_precision_that_it_names(version: str, prec: str) -> None:
    """It says no types, and stray ones change nothing: the plan is the one that only names the precision."""
    named = plan_from({"prec": prec} | ({"draw": "100%", "free": "0%"} if version else {}))
    for stray in ("", "&c_pw=fp8&c_pm=none&c_ps1=fp16"):
        texts, sentences = opened(COMPUTE_FORM, f"{version}{urlencode({'c_prec': prec})}{stray}")
        reading = COMPUTE_FORM.parse(texts)
        assert (plan_of(reading), sentences, reading.problems) == (named, (), ())
        own = plan_of(COMPUTE_FORM.parse({**reading.texts, "prec": OWN_POLICY}))
        optimizer = find_optimizer(own.optimizer)
        assert own.own_policy == own_like(find_policy(prec), optimizer)
        assert memory_estimate(own).total == memory_estimate(named).total


def test_forms_do_not_take_two_fields_of_one_name() -> None:
    with pytest.raises(ValueError, match="two fields"):
        plan_form("z", Field("n", "Again", "1", str))
    assert max(field.max_chars for field in PLAN_FIELDS) == limit("spec_chars")


@every("form", list(FORMS))
def test_a_text_that_is_too_long_is_refused_with_its_length(form: str) -> None:
    fields = [field for field in FORMS[form].fields if field.kind == "text"]
    for field in fields:
        text = "1" * (field.max_chars + 1)
        problems = FORMS[form].parse({field.id: text}).problems
        assert [problem.field for problem in problems] == [field.id]


def own_model_of(version: int, texts: dict[str, str]) -> dict[str, str]:
    """What a link of ``version`` with ``texts`` says of the model."""
    address = {f"p_{name}": (text,) for name, text in texts.items()} | {"v": (str(version),)}
    opened, messages = PLAN_FORM.from_address(address)
    assert not messages
    return {name: opened[name] for name in ("model", "shape") if name in opened}


def test_links_older_than_an_empty_shape_open_to_the_same_model() -> None:
    other = EXAMPLE.replace("layers=32", "layers=16")
    for version in range(1, LINK_VERSION):
        assert own_model_of(version, {"model": OWN_SHAPE}) == {"model": OWN_SHAPE, "shape": EXAMPLE}
        assert own_model_of(version, {"model": TYPED, "shape": EXAMPLE}) == {"model": TYPED}
        for model in (OWN_SHAPE, TYPED):
            texts = {"model": model, "shape": other}
            assert own_model_of(version, texts) == texts
    for texts in ({"model": OWN_SHAPE}, {"model": TYPED, "shape": EXAMPLE}):
        assert own_model_of(LINK_VERSION, texts) == texts
