"""What was entered for one accelerator stays with it, wherever a plan is put on another one."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from core.planning.decide.offers import read_offers
from core.planning.form.plan_form import ACCELERATOR_FIELDS, PLAN_FORM, changes_on, plan_from, plan_of
from core.planning.plan import Within
from core.planning.sweep.axes import AXES
from core.planning.sweep.sweep import SweptAxis, sweep_plan

OWN, OTHER = "H200 SXM", "MI355X"
ENTERED = {"gpu": OWN, "price": "2.80", "net": "100 Gb/s", "node": "4", "ready": "proven"}
PLAN, BARE = plan_from(ENTERED), plan_from({"gpu": OTHER})


def test_entries_cover_every_field_of_an_accelerator() -> None:
    assert {field.id for field in ACCELERATOR_FIELDS} == ENTERED.keys() - {"gpu"}
    assert all(ENTERED[field.id] != field.default for field in ACCELERATOR_FIELDS)


def test_plan_on_another_accelerator_has_none_of_the_entries() -> None:
    assert PLAN.on_accelerator(OTHER) == BARE
    assert PLAN.on_accelerator(OWN) == PLAN


def test_changes_reset_entries_only_with_another_accelerator() -> None:
    assert plan_from(ENTERED | changes_on(OWN, {"gpu": OTHER})) == BARE
    assert plan_from(ENTERED | changes_on(OWN, {"gpu": OTHER, "price": "1"})) == replace(BARE, prices=(1.0, 1.0))
    assert changes_on(OWN, {"gpu": OWN, "n": "7B"}) == {"gpu": OWN, "n": "7B"}
    assert changes_on(OWN, {"n": "7B"}) == {"n": "7B"}


def test_sweep_over_accelerators_keeps_entries_on_their_own() -> None:
    kinds = SweptAxis(AXES["accelerator kind"], (OTHER, OWN))
    sweep = sweep_plan(ENTERED, kinds, SweptAxis(AXES["tokens"], ("15T",)), Within(90.0))
    assert sweep.plans == ((BARE, PLAN),)
    for column, plan in enumerate((BARE, PLAN)):
        assert plan_from(ENTERED | sweep.cell_overrides(0, column)) == plan


@pytest.mark.parametrize("turned", [False, True])
def test_sweep_over_prices_applies_them_to_every_accelerator(turned: bool) -> None:
    sides = SweptAxis(AXES["accelerator kind"], (OTHER,)), SweptAxis(AXES["price"], ("1",))
    sweep = sweep_plan(ENTERED, *(sides[::-1] if turned else sides), Within(90.0))
    assert sweep.plans == ((replace(BARE, prices=(1.0, 1.0)),),)
    assert plan_from(ENTERED | sweep.cell_overrides(0, 0)) == sweep.plans[0][0]


@pytest.mark.parametrize("price", ["", "3"])
def test_offer_of_another_accelerator_has_no_price_but_its_own(price: str) -> None:
    row = {"accelerator": OTHER, "count": "64", "price": price}
    (offer,) = read_offers([row], PLAN, date(2027, 1, 15)).offers
    expected = replace(BARE, accelerators=64.0, prices=(3.0, 3.0) if price else None)
    assert plan_from(ENTERED | offer.texts(64, PLAN)) == expected


@pytest.mark.parametrize("version", range(1, 6))
def test_link_keeps_the_accelerator_and_the_entries_that_it_names(version: int) -> None:
    texts = ENTERED | {"gpu": OTHER}
    address = {f"p_{name}": (text,) for name, text in texts.items()} | {"v": (str(version),)}
    opened = plan_of(PLAN_FORM.parse(PLAN_FORM.from_address(address)[0]))
    assert replace(opened, power=PLAN.power, limits=PLAN.limits) == replace(PLAN, accelerator=OTHER)
