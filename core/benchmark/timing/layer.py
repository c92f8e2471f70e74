"""One training step of one transformer layer: forward, backward, AdamW; operation by operation, and compiled.

The layer is that of `core.benchmark.layer`. Weights and gradients are bf16, master weights and both moments fp32
("mixed bf16, fp32 master" among the policies that predictions know, 16 bytes per parameter); everything is fp32 where
the device computes in that. A tensor's gradient is widened just before its update, so that no fp32 copy of all
gradients is ever there. The input needs its gradient too, as that of every layer but the first does. There is no loss:
the gradient that arrives from the next layer is random.

FLOPs are those of forward and backward by `core.models.flops`, the causal half of attention's square counted.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Generator, Mapping
from typing import Any

from core.benchmark.layer import DEFAULT_LAYER, layer_flop, layer_parameters, smaller
from core.benchmark.points import Item
from core.benchmark.programme import LayerShape, Programme
from core.benchmark.timing.accuracy import FP32, Format, checked, error_of, exact, format_of
from core.benchmark.timing.bench import Bench, PreparedItem, SkippedError
from core.messages import message

NAME = "training step"
EAGER, COMPILED = "eager", "compiled"

STEP_S = 1.0
"""Seconds that a step may take; where it is expected to take longer, fewer tokens are timed."""

COMPILE_S = 90.0
"""Seconds that compiling may take; on a CPU it starts a C++ compiler, which took 48 s of a slow core."""

_EPS = 1e-5
_TURNS = 10_000.0
_RATE = 1e-8
_DECAY, _BETAS, _ADAM_EPS = 0.1, (0.9, 0.95), 1e-8
"""Learning rate: an update costs the same whatever it is, and weights that hardly move stay what was checked."""

_PREFIX = 16
"""Tokens that are checked: what comes later does not reach them, so that their float64 needs no more."""

_BACK = 2.5
"""Errors of gradients that are still right, over those of results: a backward pass rounds more often."""

_STATE_BYTES = 16
"""Bytes per parameter of the step: weight, gradient, master weight and two moments, whether mixed or all in fp32."""

_CHECK_BYTES = 16
"""Bytes per parameter of the check, beside them: weights and gradients in float64."""


def items(programme: Programme) -> tuple[Item, ...]:
    """Return the step of the plan's layer, or of a usual one, eager and compiled."""
    shape = programme.layer or DEFAULT_LAYER
    given: dict[str, Any] = {"shape": (shape.micro_batch, shape.seq_len), "seconds": programme.seconds}
    return tuple(Item(kind="layer", name=NAME, label=label, **given) for label in (EAGER, COMPILED))


def prepare(bench: Bench, programme: Programme, item: Item) -> PreparedItem:
    """Return the layer with its optimizer, checked against float64, with as many tokens as a step has time for.

    Raises `SkippedError` if compilation takes too long or states do not fit, `RefusedError` if a result is wrong, and
    torch's own error if compilation fails.
    """
    torch, shape, how = bench.torch, programme.layer or DEFAULT_LAYER, format_of(bench)
    if shape.experts:
        raise SkippedError(message("measure.skipped.experts"))
    if shape.head_dim % 2:
        raise SkippedError(message("measure.skipped.odd_head", width=float(shape.head_dim)))
    torch.manual_seed(0)
    cuda = bench.kind == "cuda"
    before = torch.cuda.memory_allocated() if cuda else 0
    parameters = layer_parameters(shape)
    least = smaller(shape)[0]
    bench.need((_STATE_BYTES + _CHECK_BYTES) * parameters + kept_bytes(least, how))
    step = LayerStep(torch, bench.place, shape, how)
    chosen = _fitting(bench, shape, step, how)
    step.feed(chosen)
    if item.label == COMPILED:
        with at_most(min(COMPILE_S, bench.left_s)):
            step.compile()
    error = step.check()
    step.run()

    def peak() -> float:
        return float(torch.cuda.max_memory_allocated() - before)

    if cuda:
        torch.cuda.reset_peak_memory_stats()
    return PreparedItem(
        step.run,
        (chosen.micro_batch, chosen.seq_len),
        flop=layer_flop(chosen),
        bytes=0.0,
        relative_error=error,
        dtype=how.name,
        peak=peak if cuda else None,
        timer=bench.queued,  # the operations of a small layer take the host longer to issue than the device to run
    )


def kept_bytes(shape: LayerShape, how: Format) -> float:
    """Return an upper bound on the bytes of activations of a step: the saved ones, and the same again as temporary
    memory."""
    heads = (shape.heads + shape.kv_heads) * shape.head_dim
    return 2.0 * how.bytes * shape.tokens * (10 * shape.hidden + 4 * heads + 6 * shape.ffn)


def _fitting(bench: Bench, shape: LayerShape, step: LayerStep, how: Format) -> LayerShape:
    """Return the layer with as many of its tokens as fit the memory and `STEP_S`.

    A step takes a time of its own, of which the update is most, and a time for each token.
    """
    tried = smaller(shape)
    before = None
    for less, more in zip(tried, (*tried[1:], None), strict=True):
        step.feed(less)
        step.run()
        took = min(bench.timer(step.run, 1))
        if took > STEP_S / 2 and more is not None:
            took = min(took, *bench.timer(step.run, 1))  # a hiccup of a busy machine must not decide
        expected = 2 * took if before is None else took + 2 * max(took - before, 0.0)
        if more is None or expected > STEP_S or kept_bytes(more, how) > bench.room():
            return less
        before = took
    raise AssertionError("the largest was tried")


class LayerStep:
    """A layer with its weights, optimizers and input; `run` is one step."""

    def __init__(self, torch: Any, place: str, shape: LayerShape, how: Format) -> None:
        self.torch, self.place, self.how = torch, place, how
        self.options = {"dtype": getattr(torch, how.torch_name), "device": place}
        self.forward: Callable[..., Any] = forward
        self.weights: dict[str, Any] = {}
        for name, size in sizes(shape).items():
            weight = torch.ones(size, **self.options)
            self.weights[name] = weight.normal_(std=size[-1] ** -0.5) if len(size) > 1 else weight
        for weight in self.weights.values():
            weight.requires_grad_()
        wide = how is FP32
        self.masters = {name: w if wide else w.detach().float() for name, w in self.weights.items()}
        self.optimizers = {name: _adamw(torch, master) for name, master in self.masters.items()}

    def feed(self, shape: LayerShape) -> None:
        """Set random input and the gradient of the output for this many tokens."""
        size = (shape.micro_batch, shape.seq_len, shape.hidden)
        self.shape = shape
        self.x = self.torch.randn(size, **self.options, requires_grad=True)
        self.upstream = self.torch.randn(size, **self.options)
        self.turns = tuple(turn.to(self.options["dtype"]) for turn in turns(self.torch, shape, self.place))

    def compile(self) -> None:
        """Compile the layer, forward and backward, for the tokens that it has now."""
        self.forward = self.torch.compile(forward, dynamic=False)
        try:
            self.passes(self.upstream)
        except BaseException:
            self.torch.compiler.reset()
            raise
        self.forget()

    def passes(self, upstream: Any) -> Any:
        """Return forward and backward; gives the result, and leaves gradients behind."""
        out = self.forward(self.torch, self.shape, self.weights, self.x, self.turns)
        out.backward(upstream)
        return out

    def forget(self) -> None:
        """Let all gradients go."""
        for tensor in (self.x, *self.weights.values()):
            tensor.grad = None

    def run(self) -> None:
        """Run one step."""
        self.passes(self.upstream)
        self.x.grad = None
        for name, weight in self.weights.items():
            master = self.masters[name]
            if master is not weight:
                master.grad, weight.grad = weight.grad.float(), None
            self.optimizers[name].step()
            master.grad = None
            if master is not weight:
                weight.data.copy_(master)

    def check(self) -> float:
        """Return the result's error against float64. Raises `RefusedError` if it, or that of a gradient, is too large.

        The gradient that arrives is zero beyond the first tokens of the first sequence. What comes later does not
        reach those, so that the same layer in float64 on them alone gives every gradient.
        """
        torch, few = self.torch, min(_PREFIX, self.shape.seq_len)
        upstream = torch.zeros_like(self.upstream)
        upstream[0, :few] = self.upstream[0, :few]
        out = self.passes(upstream)
        double = {"dtype": torch.float64, "device": self.place}
        weights = {name: weight.detach().to(**double).requires_grad_() for name, weight in self.weights.items()}
        x = self.x[:1, :few].detach().to(**double).requires_grad_()
        turned = tuple(turn[:few].to(**double) for turn in self.turns)
        right = forward(torch, self.shape, weights, x, turned)
        right.backward(upstream[:1, :few].to(**double))
        error = checked(error_of(torch, out[:1, :few], exact(torch, right)), self.how.tolerance)
        most = _BACK * self.how.tolerance
        got = {"input": self.x.grad[:1, :few], **{name: weight.grad for name, weight in self.weights.items()}}
        rights = {"input": x.grad, **{name: weight.grad for name, weight in weights.items()}}
        for name, gradient in got.items():
            wrong = error_of(torch, gradient, exact(torch, rights[name]))
            checked(wrong, most, name)
        self.forget()
        return error


def sizes(shape: LayerShape) -> Mapping[str, tuple[int, ...]]:
    """Return the layer's weights by name, matrices as (outputs, inputs)."""
    heads, shared = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    return {
        "norm 1": (shape.hidden,),
        "queries": (heads, shape.hidden),
        "keys": (shared, shape.hidden),
        "values": (shared, shape.hidden),
        "output": (shape.hidden, heads),
        "norm 2": (shape.hidden,),
        "up": ((2 if shape.gated else 1) * shape.ffn, shape.hidden),
        "down": (shape.hidden, shape.ffn),
    }


def turns(torch: Any, shape: LayerShape, place: str) -> tuple[Any, ...]:
    """Return cosines and sines of rotary positions, (tokens, head width), the halves of a head turned together."""
    half = torch.arange(0, shape.head_dim, 2, dtype=torch.float32, device=place) / shape.head_dim
    angles = torch.outer(torch.arange(shape.seq_len, dtype=torch.float32, device=place), _TURNS**-half)
    both = torch.cat((angles, angles), -1)
    return both.cos(), both.sin()


def forward(torch: Any, shape: LayerShape, weights: Mapping[str, Any], x: Any, turns: tuple[Any, ...]) -> Any:
    """Return the layer on (sequences, tokens, width)."""
    functional = torch.nn.functional
    sequences, length, width = x.shape

    def projected(name: str) -> Any:
        result = functional.linear(normed, weights[name])
        return result.view(sequences, length, -1, shape.head_dim).transpose(1, 2)

    def turned(a: Any) -> Any:
        low, high = a.chunk(2, -1)
        return a * turns[0] + torch.cat((-high, low), -1) * turns[1]

    normed = functional.rms_norm(x, (width,), weights["norm 1"], _EPS)
    q, k, v = turned(projected("queries")), turned(projected("keys")), projected("values")
    grouped = shape.heads != shape.kv_heads
    seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)
    x = x + functional.linear(seen.transpose(1, 2).reshape(sequences, length, -1), weights["output"])
    normed = functional.rms_norm(x, (width,), weights["norm 2"], _EPS)
    inner = functional.linear(normed, weights["up"])
    if shape.gated:
        gate, up = inner.chunk(2, -1)
        inner = functional.silu(gate) * up
    else:
        inner = functional.gelu(inner, approximate="tanh")
    return x + functional.linear(inner, weights["down"])


class _TimeUp(BaseException):
    """Time is over; no library's own handling of failures takes it for one of its own."""


@contextlib.contextmanager
def at_most(seconds: float) -> Generator[None]:
    """Stop compiling that takes longer than ``seconds``, raising `SkippedError`; child processes waited for end too.

    An alarm interrupts the main thread only; elsewhere nothing could be cut short, so that nothing is begun.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        raise SkippedError(message("measure.skipped.no_alarm"))

    def up(*_: object) -> None:
        raise _TimeUp

    handler = signal.signal(signal.SIGALRM, up)
    left, every = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _TimeUp:
        raise SkippedError(message("measure.skipped.compile", limit=seconds)) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, left, every)
        signal.signal(signal.SIGALRM, handler)


def _adamw(torch: Any, weight: Any) -> Any:
    """Return AdamW over ``weight``, in one kernel where torch has that for its device."""
    options = {"lr": _RATE, "betas": _BETAS, "eps": _ADAM_EPS, "weight_decay": _DECAY}
    try:
        return torch.optim.AdamW([weight], fused=True, **options)
    except RuntimeError:
        return torch.optim.AdamW([weight], foreach=True, **options)
