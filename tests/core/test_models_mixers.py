"""Layers with a state: counted by formula; those of Mamba refused by name where memory or time must be known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.hardware.accelerators import find
from core.hardware.cluster import cluster
from core.models.attention_share import growth
from core.models.configs.config import from_hf_config
from core.models.configs.custom import own_model
from core.models.flops import flops_per_token
from core.models.parameters import parameters
from core.models.spec import SpecError, TransformerSpec
from core.models.spec_text import write_spec
from core.models.stand_in import mixture_stand_in
from core.planning.estimate import estimate
from core.planning.form.plan_form import plan_from
from core.planning.layout import resolved_plan, search_request
from core.planning.memory_estimate import memory_estimate
from core.planning.plan import OWN_SHAPE
from core.search.fastest import searched
from core.search.request import SearchRequest
from core.step_time.step import default_states, step_over, step_time
from core.training.activations.saved import saved_tensors
from core.training.activations.stage import StepSettings
from core.training.activations.tensors import FUSED
from core.training.device.inputs import usual
from core.training.device.memory import memory_over
from core.training.device.traffic import traffic_per_step
from core.training.layout import Layout
from tests.core.memory_of import memory_per_device
from tests.every import every

JAMBA = from_hf_config({"model_type": "jamba"})
MAMBA = from_hf_config({"model_type": "mamba2"})
H100S = cluster(find("H100 SXM"), 8)
POLICY, _ = usual(None, None)

REFUSED: dict[str, Callable[[TransformerSpec], object]] = {
    "memory": lambda spec: memory_per_device(spec, Layout(), seq_len=4096),
    "memory, not checked": lambda spec: memory_over(spec, Layout(), default_states(spec), StepSettings(4096, FUSED, 2)),
    "activations": lambda spec: saved_tensors(spec, FUSED),
    "step": lambda spec: step_time(spec, H100S, Layout(data=8), seq_len=4096),
    "step, not checked": lambda spec: step_over(spec, H100S, Layout(data=8), default_states(spec), seq_len=4096),
    "traffic": lambda spec: traffic_per_step(spec, Layout(data=8), policy=POLICY, seq_len=4096),
    "search": lambda spec: searched(SearchRequest(spec, H100S, 64, 4096)),
}


@every("way", REFUSED)
def test_no_memory_and_no_time_without_an_account(way: str) -> None:
    assert JAMBA.unmodelled
    with pytest.raises(SpecError) as refused:
        REFUSED[way](JAMBA)
    assert JAMBA.unmodelled in str(refused.value)


def test_a_mixture_stands_in_for_memory_and_steps_and_says_so() -> None:
    """The run takes the model's own FLOPs; what it holds and its step are those of a mixture with its counts."""
    spec = JAMBA
    counts = parameters(spec)
    plan = plan_from({"model": OWN_SHAPE, "shape": write_spec(spec), "count": "64", "seq": "4096"})
    a = estimate(plan)
    assert (a.shape.spec, a.stands_in) == (spec, False)
    assert a.middle.parameters == parameters(spec).active
    h = memory_estimate(resolved_plan(plan, a.stored_parameters, 64))
    assert h.stands_in
    assert h.spec == mixture_stand_in(counts.total, counts.active) == search_request(plan).spec
    assert not own_model(spec).laid_out


def test_a_state_costs_the_same_at_every_length() -> None:
    """Twice the tokens double attention's products and nothing of the state's; without attention nothing grows."""
    for attention in ("full", "causal", "eager"):
        one, two = (flops_per_token(JAMBA, length, attention) for length in (4096, 8192))
        grown = {part.id for part, more in zip(one.parts, two.parts, strict=True) if more.flop > part.flop}
        assert grown == {"scores", "values"}
        assert flops_per_token(MAMBA, 1, attention).forward == flops_per_token(MAMBA, 1 << 20, attention).forward
    assert growth(MAMBA, 4096, "full").crossing == float("inf")
    assert 4096 < growth(JAMBA, 4096, "full").crossing < float("inf")
