"""Whatever a plan asks of a search stays within a gigabyte and a few seconds, or is refused before it begins."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.budget.equations import BudgetError
from core.limits import limit
from core.models.spec import SpecError
from core.number_text import QuantityError
from core.planning.estimate import estimate
from core.planning.form.plan_form import PLAN_FORM
from core.planning.layout import search_request, too_large
from core.planning.memory_estimate import memory_estimate
from core.planning.memory_fixes import fewest_accelerators, fixes
from core.planning.plan import OWN_SHAPE, Plan, Within
from core.planning.sweep.axes import AXES
from core.planning.sweep.sweep import SweptAxis, plan_of_texts, sweep_plan
from core.search.fastest import WAITING, searched, turn
from core.search.request import SpaceError
from core.training.layout import LayoutError

SECONDS, BYTES = 5, 10**9
_REFUSED = (BudgetError, LayoutError, SpecError, QuantityError)

_SIZES = st.sampled_from(("1", "5,040", "720,720", "8,648,640", "10,000,000"))
_SHAPES = st.builds(
    "layers={} hidden=720720 heads={} kv_heads={} head_dim=8 ffn=5040 vocab=5040 glu=yes tied_head=no{}".format,
    st.sampled_from((720, 5040, 9240, 10_000)),
    st.just(5040),
    st.just(5040),
    st.sampled_from(("", *(f" experts.count={n} experts.per_token=1 experts.width={n}" for n in (64, 256, 720, 5040)))),
)
_KEPT = st.sampled_from(("", "1-720720", "720-10000000"))
_PLANS = st.fixed_dictionaries(
    {
        "n": st.sampled_from(("70B", "15T", "10000T")),
        "count": _SIZES,
        "seq": _SIZES,
        "gb": _SIZES,
        "rate1k": st.just("0"),
        "node": st.sampled_from(("", "8", "720", "10,000")),
        "knode": st.sampled_from(("true", "false")),
        "koff": st.sampled_from(("true", "false")),
        "ketp": _KEPT,
        "kep": _KEPT,
        "kpp": _KEPT,
    },
    optional={"shape": _SHAPES},
)


EXPERTS = (
    "layers=720 hidden=720720 heads=5040 kv_heads=5040 head_dim=8 ffn=5040 vocab=5040 glu=yes tied_head=no "
    "experts.count=5040 experts.per_token=1 experts.width=5040"
)


def bounded(work: Callable[[], object]) -> int:
    """How a process ends that does ``work`` with a gigabyte beyond what is loaded, and `SECONDS` of a processor."""
    child = os.fork()
    if not child:
        try:
            with open("/proc/self/statm", encoding="ascii") as pages:
                loaded = int(pages.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (loaded + BYTES, loaded + BYTES))
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            work()
        except _REFUSED:
            os._exit(0)
        except MemoryError:
            os._exit(9)
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def plan_of(texts: Mapping[str, str]) -> Plan:
    own = {"model": OWN_SHAPE} if "shape" in texts else {}
    return plan_of_texts({field.id: field.default for field in PLAN_FORM.fields} | dict(texts) | own)


@settings(max_examples=12)
@given(_PLANS)
def test_no_plan_takes_more_than_a_gigabyte_and_five_seconds(texts: dict[str, str]) -> None:
    try:
        plan = plan_of(texts)
    except _REFUSED:
        return
    works: tuple[Callable[[], object], ...] = (
        lambda: estimate(plan).memory,
        lambda: searched(search_request(plan)),
        lambda: (fixes(h := memory_estimate(plan)), fewest_accelerators(h)),
    )
    assert [bounded(work) for work in works] == [0, 0, 0]


def test_the_bounds_of_the_test_above_end_what_passes_them() -> None:
    assert bounded(lambda: bytearray(2 * BYTES)) != 0


def sides(count: int) -> tuple[SweptAxis, SweptAxis]:
    lengths = tuple(str(1024 * (k + 1)) for k in range(count))
    sizes = tuple(f"{k + 1}T" for k in range(count))
    return SweptAxis(AXES["sequence length"], lengths), SweptAxis(AXES["parameters"], sizes)


def test_a_sweep_of_too_many_layouts_is_refused_and_one_of_fewer_is_not() -> None:
    texts = {field.id: field.default for field in PLAN_FORM.fields}
    with pytest.raises(BudgetError):
        sweep_plan(texts, *sides(limit("sweep_values")), Within(90.0))
    assert sweep_plan(texts, *sides(2), Within(90.0)).answered


def test_a_plan_of_too_many_layouts_is_refused() -> None:
    split = plan_of({"shape": EXPERTS, "node": "10,000", "ketp": "1-720720", "rate1k": "0"})
    problem = too_large(split)
    assert problem is not None
    assert problem.count > problem.left > problem.most == limit("layouts_tried")
    with pytest.raises(BudgetError, match="at most"):
        estimate(split)
    with pytest.raises(SpaceError):
        searched(search_request(split))
    assert too_large(plan_of({"n": "15T"})) is None


def test_two_heavy_searches_run_at_once_and_light_ones_beside_them() -> None:
    inside, most, shown, lock = 0, 0, 0, threading.Lock()
    heavy, may_end = limit("light_search") + 1, threading.Event()

    def waiting() -> nullcontext[None]:
        nonlocal shown
        shown += 1
        return nullcontext()

    def search() -> None:
        nonlocal inside, most
        WAITING.set(waiting)
        with turn(heavy), turn(heavy):  # one inside another waits for no place
            with lock:
                inside += 1
                most = max(most, inside)
            may_end.wait(60)
            with lock:
                inside -= 1

    threads = [threading.Thread(target=search) for _ in range(limit("searches_at_once") + 2)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 60
    while shown < 2 and time.monotonic() < until:
        time.sleep(0.01)
    with turn(1):
        assert (inside, shown) == (limit("searches_at_once"), 2)
    may_end.set()
    for thread in threads:
        thread.join(60)
    assert (inside, most) == (0, limit("searches_at_once"))
