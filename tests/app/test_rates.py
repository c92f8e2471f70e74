"""Measured rates on Compute budget and Parallel plan: told, drawn, cleared, carried, and refused where they are not."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from core.benchmark import device
from core.benchmark.device import Cpu, Gpu, Machine
from core.planning.estimate import timed_estimate
from core.planning.form.measured_rates import with_measured_rates
from core.planning.form.plan_form import plan_of
from core.store import last_measured
from core.views.search import text
from pages.common.registry import COMPUTE, MEASURE, PARALLEL
from pages.parallel.form import FORM
from tests.app.plan_pages import bodies, fold, linked, next_pages, opened, shown, stripped
from tests.core.measured_cases import on_gpu

GIVEN = {"r16": "500 TFLOP/s", "rmem": "2.5 TB/s", "rof": "H100 80GB HBM3, 22 Nov 2026"}
SMALL = {"model": "Llama 3.1 8B", "count": "16", "gb": "128", "seq": "4,096", "tokens": "1T", "gpu": "H100 SXM"}


def answer(app: AppTest) -> str:
    return stripped(bodies(app, "np-answer")[0])


def test_parallel_plan_times_steps_by_them_until_they_are_cleared() -> None:
    plain, app = opened(PARALLEL, SMALL), opened(PARALLEL, {**SMALL, **GIVEN})
    plan = plan_of(FORM.parse({**SMALL, **GIVEN}))
    assert shown(text.headline(timed_estimate(plan))) in answer(app)
    assert answer(app) != answer(plain)
    assert {f"p_{name}" for name in GIVEN} <= linked(app).keys()
    assert GIVEN.items() <= next_pages(app, COMPUTE)[0].items()
    fold(app, "plan:experience", open=True)
    app.button(key="s_rates Datasheet").click().run()
    fold(app, "plan:experience", open=False)
    assert answer(app) == answer(plain)
    assert linked(app) == linked(plain)
    assert not {name for name in app.query_params if name in {f"p_{one}" for one in GIVEN}}


def test_the_last_measurement_of_the_plans_accelerator_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    record = on_gpu()
    texts = with_measured_rates(record)
    monkeypatch.setattr(last_measured, "last_measured", lambda: ((record,), ""))
    app = opened(COMPUTE, {**SMALL, "gpu": texts["gpu"]})
    plain = answer(app)
    fold(app, "plan:experience", open=True)
    app.button(key=f"c_rates Measured on {texts['rof']}").click().run()
    assert {f"p_{name}": text for name, text in texts.items()}.items() <= linked(app).items()
    assert answer(app) != plain
    app.button(key="c_rates Datasheet").click().run()
    assert answer(app) == plain
    app = opened(COMPUTE, {**SMALL, "gpu": "B200"})
    fold(app, "plan:experience", open=True)
    assert [button.key for button in app.button if "rates Measured" in str(button.key)] == []


@pytest.mark.parametrize(("gpu", "offered"), [("H100 SXM", True), ("A100 SXM 80 GB", False)])
def test_the_gpu_of_this_machine_can_be_measured(gpu: str, offered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = Cpu("a processor", "", "", 2, None)
    here = Machine((Gpu("NVIDIA H100 80GB HBM3", 85_045_968_896.0, 700.0),), cpu, "")
    monkeypatch.setattr(device, "machine", lambda: here)
    app = opened(COMPUTE, {"gpu": gpu})
    fold(app, "plan:experience", open=True)
    assert (f'href="{MEASURE.url_path}?' in "".join(bodies(app, "np-next-page"))) == offered
    monkeypatch.setattr(device, "machine", lambda: Machine((), cpu, "There is none."))
    app = opened(COMPUTE, {"gpu": gpu})
    fold(app, "plan:experience", open=True)
    assert f'href="{MEASURE.url_path}?' not in "".join(bodies(app, "np-next-page"))
