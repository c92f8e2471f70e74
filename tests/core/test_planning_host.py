"""The memory of a node's host as a limit of a plan that offloads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.models.catalog import CATALOG
from core.planning.estimate import estimate
from core.planning.fine_tuning import largest_fitting
from core.planning.form.plan_form import plan_from
from core.planning.layout import search_request
from core.planning.memory_estimate import memory_estimate
from core.planning.memory_fixes import fixes
from core.planning.plan_limits import Check, checks
from core.search.fastest import searched
from core.training.device.host import host_memory, node_bytes

OFFLOADED = {
    "model": "Qwen2.5 7B", "gpu": "RTX 4090", "count": "1", "lay": "own", "acc": "1", "mbs": "1", "off": "optimizer",
    "prec": "bf16 throughout", "rc": "full", "seq": "2048",
}  # fmt: skip


def of(**texts: str) -> dict[str, Check]:
    a = estimate(plan_from(texts))
    return {check.id: check for check in checks(a, a.memory)}


def test_a_hosts_memory_is_a_limit_of_what_is_offloaded() -> None:
    """24 bytes a parameter by DeepSpeed’s rule, for all of a node; without a limit nothing is said of it."""
    assert set(of(**OFFLOADED)) == {"memory"}
    h = memory_estimate(plan_from(OFFLOADED))
    found = {ram: of(**OFFLOADED, ram=ram)["host"] for ram in ("64 GiB", "2 TB")}
    assert [check.met for check in found.values()] == [False, True]
    assert {check.value for check in found.values()} == {h.on_host}
    assert h.on_host == pytest.approx(1.5 * host_memory(h.setup).total)
    assert of(**{**OFFLOADED, "off": "none"}, ram="64 GiB")["host"].value == 0


def test_what_is_largest_and_what_would_fit_keep_to_the_hosts_memory() -> None:
    unlimited, limited = (plan_from({**OFFLOADED, **more}) for more in ({}, {"ram": "64 GiB"}))
    sizes = [
        float(CATALOG[next(item.text for item in largest_fitting(plan) if item.field == "model")].parameters)
        for plan in (unlimited, limited)
    ]
    assert sizes[1] < sizes[0]
    full = {**OFFLOADED, "off": "none"}
    offers = [
        [fix.texts.get("off") for fix in fixes(memory_estimate(plan_from({**full, **more})))]
        for more in ({}, {"ram": "8 GiB"})
    ]
    assert any(offers[0])
    assert not any(offers[1])


def test_more_is_offloaded_within_the_hosts_memory_only() -> None:
    """Activations of a longer sequence."""
    texts = {**OFFLOADED, "off": "none", "model": "Llama 3.2 1B", "rc": "none", "aoff": "true"}
    found = [largest_fitting(plan_from({**texts, **more})) for more in ({}, {"ram": "4 GiB"})]
    lengths = [int(next(item.text for item in items if item.field == "seq").replace(",", "")) for items in found]
    assert 0 < lengths[1] < lengths[0]
    assert memory_estimate(plan_from({**texts, "ram": "4 GiB", "seq": f"{lengths[1]}"})).host_holds
    assert not memory_estimate(plan_from({**texts, "ram": "4 GiB", "seq": f"{lengths[1] + 1}"})).host_holds


def test_the_search_offloads_what_the_host_holds_only() -> None:
    """Where nothing else fits, it offloads all the same, and the limit says that it is not kept."""
    several = {"model": "Qwen2.5 7B", "gpu": "RTX 4090", "count": "8", "koff": "true"}
    alone = {**several, "count": "1", "seq": "2048", "prec": "bf16 throughout"}

    def found(texts: dict[str, str], ram: str) -> tuple[int, bool]:
        plan = plan_from({**texts, "ram": ram})
        best = searched(search_request(plan)).best
        assert best
        setup = replace(memory_estimate(plan).setup, layout=best.layout)
        return int(best.layout.offload), node_bytes(setup.layout, host_memory(setup), 8) <= plan.limits.host

    assert found(alone, "4 TB") == (1, True)
    assert found(several, "8 GiB")[1]
    assert not found(alone, "8 GiB")[1]
