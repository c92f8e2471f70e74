"""One layer's training step: the layer of transformers, timed with the work that a person would count."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.benchmark.layer import layer_flop, layer_parameters, smaller
from core.benchmark.points import Point, Refusal
from core.benchmark.programme import LayerShape
from core.benchmark.timing import layer
from core.benchmark.timing.accuracy import BF16 as BF16_FORMAT
from core.benchmark.timing.accuracy import FP32 as FP32_FORMAT
from core.benchmark.timing.accuracy import format_of
from core.benchmark.timing.bench import LONGEST_S
from core.benchmark.timing.timers import cpu_timer
from core.messages import message
from tests.core.timing_bench import BF16, FP32, TINY, bench, measured, processor, programme, refusal, stand_in

pytestmark = pytest.mark.usefixtures("one_thread")

EAGER, COMPILED = layer.items(programme())
MATRICES = 64 * 64 + 2 * 64 * 32 + 64 * 64 + 3 * 64 * 96


def test_the_work_of_a_layer_is_what_a_person_counts() -> None:
    assert layer_parameters(TINY) == MATRICES + 2 * 64
    squares = 2 * (4 * 16 * 32)
    assert layer_flop(TINY) == 3 * 64 * (2 * MATRICES + squares)
    made = layer.sizes(TINY).values()
    assert sum(size[0] * (size[1] if len(size) > 1 else 1) for size in made) == layer_parameters(TINY)


@pytest.mark.parametrize("element", [BF16, FP32])
@pytest.mark.parametrize("gated", [True, False])
def test_a_step_on_this_cpu(element: int, gated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    processor(monkeypatch, element)
    asked = programme(TINY.model_copy(update={"gated": gated}))
    assert asked.layer is not None
    point = measured(layer, EAGER, asked)
    assert isinstance(point, Point), point
    assert (point.shape, point.flop, point.peak_memory_bytes) == ((2, 32), layer_flop(asked.layer), None)
    assert point.relative_error is not None
    assert point.relative_error < (2e-2 if element == BF16 else 1e-5)


def test_the_layer_is_that_of_transformers() -> None:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

    config = LlamaConfig(
        hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        rms_norm_eps=1e-5, attn_implementation="sdpa",
    )  # fmt: skip
    theirs = LlamaDecoderLayer(config, 0)
    ours = layer.LayerStep(torch, "cpu", TINY, FP32_FORMAT)
    ours.feed(TINY)
    mlp, attention = theirs.mlp, theirs.self_attn
    places = {
        "norm 1": theirs.input_layernorm.weight,
        "norm 2": theirs.post_attention_layernorm.weight,
        "queries": attention.q_proj.weight,
        "keys": attention.k_proj.weight,
        "values": attention.v_proj.weight,
        "output": attention.o_proj.weight,
        "down": mlp.down_proj.weight,
    }
    with torch.no_grad():
        for name, weight in places.items():
            ours.weights[name].copy_(weight)
        ours.weights["up"].copy_(torch.cat((mlp.gate_proj.weight, mlp.up_proj.weight)))
    where = LlamaRotaryEmbedding(config)(ours.x, torch.arange(32)[None])
    right = cast("Any", theirs)(ours.x, position_embeddings=where)
    right = right[0] if isinstance(right, tuple) else right
    assert torch.allclose(ours.passes(ours.upstream), right, atol=1e-5)


@pytest.mark.parametrize("how", [FP32_FORMAT, BF16_FORMAT])
def test_a_step_is_that_of_adamw(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first step's moments, corrected, are the gradient and its square."""
    monkeypatch.setattr(layer, "_RATE", 0.125)
    torch.manual_seed(3)
    step = layer.LayerStep(torch, "cpu", TINY, how)
    step.feed(TINY)
    step.passes(step.upstream)
    gradients = {name: weight.grad.float().clone() for name, weight in step.weights.items()}
    before = {name: master.detach().clone() for name, master in step.masters.items()}
    step.forget()
    step.run()
    for name, weight in step.weights.items():
        was, gradient = before[name], gradients[name]
        expected = was - 0.125 * (0.1 * was + gradient / (gradient.abs() + 1e-8))
        assert torch.allclose(step.masters[name], expected, atol=1e-4)
        assert torch.equal(weight, step.masters[name].to(weight.dtype))
        assert weight.grad is None
        assert step.masters[name].grad is None


def test_a_wrong_layer_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code that forgets something is found out: forward, and in a gradient alone."""

    def unscaled(run: Any) -> Any:
        return lambda *given: 1.1 * run(*given)

    def deaf(run: Any) -> Any:
        def forward(torch: Any, shape: Any, weights: Any, *given: Any) -> Any:
            up = weights["up"]
            return run(torch, shape, {**weights, "up": 2 * up - up.detach()}, *given)

        return forward

    for wrong, tensor in ((unscaled, None), (deaf, "up")):
        monkeypatch.setattr(torch, "compile", lambda run, dynamic, wrong=wrong: wrong(run))
        assert refusal(layer, COMPILED).values.get("tensor") == tensor


def test_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled is timed, and what takes too long is cut short."""
    compiled: list[str] = []

    def as_it_is(run: Any, dynamic: bool) -> Any:
        compiled.append(run.__name__)
        return run

    monkeypatch.setattr(torch, "compile", as_it_is)
    assert isinstance(measured(layer, COMPILED, programme()), Point)
    assert compiled == ["forward"]

    def endless(*_: Any, **__: Any) -> None:
        try:
            threading.Event().wait(600)
        except Exception:
            pytest.fail("a library’s own handling of failures took the alarm")

    monkeypatch.setattr(torch, "compile", endless)
    monkeypatch.setattr(layer, "COMPILE_S", 0.05)
    handler = signal.getsignal(signal.SIGALRM)
    found = measured(layer, COMPILED, programme())
    assert isinstance(found, Refusal)
    assert (found.why, found.text) == ("skipped", message("measure.skipped.compile", limit=0.05))
    assert signal.getsignal(signal.SIGALRM) is handler


def test_compiling_ends_with_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Late in a measurement it has what is left of it, not all the seconds that it may take."""
    monkeypatch.setattr(torch, "compile", lambda *_, **__: threading.Event().wait(600))
    late = replace(bench(), begun=time.monotonic() - LONGEST_S + 0.2)
    begun = time.monotonic()
    found = measured(layer, COMPILED, programme(), late)
    assert isinstance(found, Refusal)
    assert found.why == "skipped"
    assert time.monotonic() - begun < 60 < layer.COMPILE_S
    assert bench().left_s == pytest.approx(LONGEST_S, abs=5)


def test_a_step_is_queued_where_the_host_is_slow() -> None:
    used: list[int] = []

    def queued(run: Any, count: int, *, flush: bool = True) -> list[float]:
        used.append(count)
        return cpu_timer(run, count)

    point = measured(layer, EAGER, programme(), replace(bench(), queued=queued))
    assert isinstance(point, Point)
    assert sum(used) >= point.runs


def test_peak_memory_is_what_the_layer_adds_on_a_gpu() -> None:
    held = {"now": 1000.0, "most": 10_000.0}

    def forget() -> None:
        held["most"] = 7000.0

    cuda = SimpleNamespace(
        is_bf16_supported=lambda including_emulation: including_emulation,
        memory_allocated=lambda: held["now"],
        max_memory_allocated=lambda: held["most"],
        reset_peak_memory_stats=forget,
    )
    found = measured(layer, EAGER, programme(), bench(stand_in(cuda=cuda), "cuda"))
    assert isinstance(found, Point), found
    assert found.peak_memory_bytes == 6000
    assert found.dtype == "fp16", "a GPU whose bf16 is emulated computes in fp16"


def test_what_a_step_is_not_timed_for() -> None:
    mixture = TINY.model_copy(update={"experts": 8, "experts_per_token": 2})
    odd = TINY.model_copy(update={"head_dim": 15})
    # Of its states and the check's, at 32 bytes per parameter, a byte of each is missing.
    scant = 31 * layer_parameters(TINY) + layer.kept_bytes(TINY, format_of(bench()))
    for shape, room, why in ((mixture, 1e10, "experts"), (odd, 1e10, "odd_head"), (TINY, scant, "memory")):
        assert refusal(layer, EAGER, programme(shape), bench(room=room)).id == f"measure.skipped.{why}"


@given(st.floats(1e-4, 0.9), st.floats(1e-6, 1e-2))
def test_as_many_tokens_as_a_step_has_time_for(own: float, each: float) -> None:
    """Steps of a time of their own and one per token: the longest that fits is chosen."""
    fed: list[LayerShape] = []
    step = cast("layer.LayerStep", SimpleNamespace(feed=fed.append, run=lambda: None))

    def timer(run: Any, count: int, *, flush: bool = True) -> list[float]:
        return [own + each * fed[-1].tokens] * count

    asked = TINY.model_copy(update={"seq_len": 4096, "micro_batch": 4})
    here = bench()
    timed = type(here)(here.torch, here.kind, here.place, timer, here.state, here.room)
    chosen = layer._fitting(timed, asked, step, BF16_FORMAT)  # pyright: ignore[reportPrivateUsage]
    tried = smaller(asked)
    first = own + each * tried[0].tokens
    fits = [one for one in tried if own + each * one.tokens <= layer.STEP_S]
    assert chosen == (tried[0] if 2 * first > layer.STEP_S else fits[-1])
