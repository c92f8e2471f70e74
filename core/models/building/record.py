"""What a model runs for a short batch: matmuls with their weights, attention, norms, and bytes saved for backward.

Runs in the building process only: it is handed torch and imports nothing of it. Tensors are on torch's meta device,
where a batch costs no memory. Experts send every token through the first of them, which multiplies and saves what all
of them together would.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from core.models.spec import Kept, KeyValues

BATCH = (2, 61)
"""Sequences and their length. With a single sequence some copies are views, which spares what others pay. No model has
a width of this length, so that what grows with its square is told by its sides."""

_LAYER = re.compile(r"(.*?)\.?\b(\d+)\b\.?(.*)")


@dataclass(frozen=True, slots=True)
class Matmul:
    """A matmul with a weight. module: that runs it, within its layer. reads, makes: identities of tensors. copies: of
    ``networks`` experts, those that a token runs."""

    weight: str
    module: str
    rows: int
    columns: int
    bias: bool
    reads: int
    makes: int
    copies: int = 1
    networks: int = 1


@dataclass(frozen=True, slots=True)
class AttentionCall:
    """Attention. kv_heads: 0 where keys were repeated before. window: 0 for all tokens."""

    module: str
    heads: int
    kv_heads: int
    key_dim: int
    value_dim: int
    window: int = 0
    sinks: bool = False
    keys: KeyValues = "own"


@dataclass(frozen=True, slots=True)
class NormCall:
    """A norm with so many learned vectors of ``gain`` elements. width: elements per token. centred: LayerNorm, which
    takes off the mean."""

    module: str
    width: int
    vectors: int
    gain: int
    centred: bool
    reads: int
    makes: int


@dataclass
class LayerRun:
    """What one layer ran, or all that is outside of the layers. tables: name, rows, and width of each lookup.

    saved: bytes that it saves for backward, without weights and without a few bytes per token, by the module that does,
    whether they grow with the square of the length, and whether they are fp32. given: identity of what it reads. width:
    of what it makes.
    """

    matmuls: list[Matmul] = field(default_factory=list[Matmul])
    attention: list[AttentionCall] = field(default_factory=list[AttentionCall])
    squares: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = field(default_factory=list[Any])
    norms: list[NormCall] = field(default_factory=list[NormCall])
    tables: list[tuple[str, int, int]] = field(default_factory=list[tuple[str, int, int]])
    saved: Counter[tuple[str, bool, bool]] = field(default_factory=Counter[tuple[str, bool, bool]])
    given: int = 0
    width: int = 0


@dataclass(frozen=True, slots=True)
class ModelRun:
    """What a model ran. rotary: whether it rotates queries and keys. outside: what no layer ran."""

    layers: tuple[LayerRun, ...]
    outside: LayerRun
    rotary: bool

    @property
    def kept(self) -> tuple[Kept, ...]:
        """What a mean layer saved."""
        sums, tokens = Counter[tuple[Any, bool]](), BATCH[0] * BATCH[1]
        for layer in self.layers:
            inside = f"{layer.attention[0].module}." if layer.attention else "none"
            for (module, square, wide), size in layer.saved.items():
                part = "attention" if f"{module}.".startswith(inside) else "norms" if module == "norm" else "network"
                sums["keys" if square else part, wide] += size
        each = {
            (part, wide): size / (2 + 2 * wide) / tokens / len(self.layers) / (BATCH[1] if part == "keys" else 1)
            for (part, wide), size in sums.items()
        }
        return tuple(Kept(part, round(number), wide) for (part, wide), number in each.items() if number > 0.5)


class RunRecorder:
    """Notes what a model runs while it is watched. share: of experts' weights, by identity."""

    def __init__(self, torch: Any, model: Any, share: dict[int, tuple[int, int]]) -> None:
        self.torch, self.model, self.share = torch, model, share
        self.runs: dict[tuple[str, int], LayerRun] = {}
        self.names = {id(module): name for name, module in model.named_modules()}
        self.weights = {_storage(value): (name, value) for name, value in model.named_parameters()}
        self.where: list[Any] = []
        self.alive: list[Any] = []
        self.saved = set[int]()
        self.rotary = self.centred = False

    def here(self, module: Any = None) -> tuple[LayerRun, str]:
        """The layer that a module belongs to, the one at work by default, and the module's name there."""
        module = module if module is not None else self.where[-1] if self.where else self.model
        found = _LAYER.fullmatch(name := self.names.get(id(module), ""))
        stack, layer, rest = (found[1], int(found[2]), found[3]) if found else ("", -1, name)
        return self.runs.setdefault((stack, layer), LayerRun()), rest

    @contextmanager
    def watching(self, interface: Any) -> Generator[None]:
        """Record what runs inside. interface: transformers' class that hands out attention functions."""
        torch, given, ran, attended = self.torch, interface.get_interface, self._ran, self._attended

        class Watch(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                made = func(*args, **(kwargs or {}))
                ran(func._schema.name.partition("::")[2], args, made)
                return made

        def hand_out(owner: Any, *names: Any) -> Callable[..., Any]:
            plain = given(owner, *names)

            def attend(module: Any, q: Any, k: Any, v: Any, *rest: Any, **more: Any) -> Any:
                attended(module, q, k, v, more)
                return plain(module, q, k, v, *rest, **more)

            return attend

        with ExitStack() as stack:
            stack.callback(setattr, interface, "get_interface", given)
            interface.get_interface = hand_out
            for module in self.model.modules():
                module.register_forward_pre_hook(self._enter)
                module.register_forward_hook(self._leave)
            stack.enter_context(torch.autograd.graph.saved_tensors_hooks(self._save, _same))
            stack.enter_context(Watch())
            yield

    def record(self) -> ModelRun:
        """Return what ran. The layers are those of the stack with most matmuls."""
        for run in self.runs.values():
            for (module, q, k), (_, scores, v) in zip(run.squares[::2], run.squares[1::2], strict=False):
                if not run.attention and q[1] == k[2] == scores[2] == v[1]:  # attention that is written out
                    run.attention.append(AttentionCall(module, q[0] // BATCH[0], 0, q[2], v[2]))
        often = Counter({place: len(run.matmuls) for place, run in self.runs.items() if place[1] >= 0})
        stack = max((place[0] for place in often), key=lambda s: sum(n for p, n in often.items() if p[0] == s))
        layers = tuple(self.runs[place] for place in sorted(self.runs) if place[0] == stack and place[1] >= 0)
        return ModelRun(layers, self.runs.get(("", -1), LayerRun()), self.rotary)

    def _enter(self, module: Any, inputs: Any) -> None:
        self.where.append(module)
        run, name = self.here()
        if not name and inputs:
            run.given = _storage(inputs[0])

    def _leave(self, module: Any, inputs: Any, output: Any) -> None:
        (run, name), kind = self.here(), type(module).__name__.lower()
        self.where.pop()
        several: list[Any] = list(cast("Sequence[Any]", output)) if isinstance(output, tuple | list) else [output]
        made: Any = several[0] if several else None
        self.rotary |= "rotary" in kind
        if made is None or not isinstance(made, self.torch.Tensor) or not inputs:
            return
        if not name:
            run.width = int(made.shape[-1])
        if "norm" in kind:
            sizes = {key.rpartition(".")[2]: int(value.numel()) for key, value in module.named_parameters()}
            total = sum(int(value.numel()) for value in module.parameters())
            gain = total // max(1, len(sizes))
            centred = self.centred or ("layernorm" in kind and "rms" not in kind)
            run.norms[:] = [norm for norm in run.norms if not norm.module.startswith(f"{name}.")]
            ends = (_storage(inputs[0]), _storage(made))
            width = int(made.numel()) // (BATCH[0] * BATCH[1])
            run.norms.append(NormCall(name, width, len(sizes), gain, centred, *ends))
            self.centred = False

    def _attended(self, module: Any, q: Any, k: Any, v: Any, more: Any) -> None:
        run, name = self.here(module)
        sizes = (int(q.shape[1]), int(k.shape[1]), int(k.shape[-1]), int(v.shape[-1]))
        window, sinks = more.get("sliding_window"), more.get("s_aux") is not None
        run.attention.append(AttentionCall(name, *sizes, int(window or 0), sinks))

    def _ran(self, name: str, args: Any, made: Any) -> None:
        given = [x for x in args if isinstance(x, self.torch.Tensor)]
        self.alive += [given, made]
        self.centred |= name == "native_layer_norm"
        run, module = self.here()
        if name == "_to_copy" and (weight := self.weights.get(_storage(given[0]))):
            self.weights[_storage(made)] = weight  # a router may multiply in fp32
        if name in ("mm", "addmm", "bmm", "baddbmm"):
            x, w = given[-2:]
            weight = self.weights.get(_storage(w))
            if weight and name in ("mm", "addmm"):
                owner, share = self.where[-1], self.share.get(id(weight[1]), (1, 1))
                bias = getattr(owner, "bias", None) is not None or getattr(owner, "has_bias", False)
                sizes, ends = (int(w.shape[-1]), int(w.shape[-2])), (_storage(x), _storage(made))
                run.matmuls.append(Matmul(weight[0], module, *sizes, bias, *ends, *share))
            elif not weight and name in ("bmm", "baddbmm"):
                run.squares.append((module, tuple(x.shape), tuple(w.shape)))
        elif name == "embedding" and (weight := self.weights.get(_storage(given[0]))):
            rows, width = map(int, weight[1].shape)
            run.tables.append((weight[0], rows, width))

    def _save(self, tensor: Any) -> Any:
        storage = _storage(tensor)
        if storage not in self.weights and storage not in self.saved:
            self.saved.add(storage)
            self.alive.append(tensor)
            if tensor.shape and tensor.shape[-1] > 1:
                run, module = self.here()
                module = "norm" if self.where and "norm" in type(self.where[-1]).__name__.lower() else module
                rows, columns = (0, 0, *tensor.shape)[-2:]
                square = rows == BATCH[1] and columns - rows in (0, 1)  # one more with a sink
                run.saved[module, square, tensor.dtype == self.torch.float32] += tensor.untyped_storage().nbytes()
        return tensor


def first_expert(torch: Any, share: dict[int, tuple[int, int]]) -> Callable[..., Any]:
    """Return what experts run, with every token sent to the first of them. share: takes note of how many a token runs.

    Values that would choose experts do not exist here. What is multiplied and saved is the same in all.
    """

    def forward(module: Any, hidden: Any, index: Any, weights: Any, *rest: Any, **more: Any) -> Any:
        chosen = int(index.shape[-1])
        for value in module.parameters():
            if value.shape[0] == module.num_experts:
                share[id(value)] = (chosen, int(module.num_experts))

        def product(name: str, x: Any) -> Any:
            weight = getattr(module, name)[0]
            bias = getattr(module, f"{name}_bias")[0] if module.has_bias else None
            return torch.nn.functional.linear(x, weight.t() if module.is_transposed else weight, bias)

        y = product("gate_up_proj" if module.has_gate else "up_proj", hidden.repeat_interleave(chosen, 0))
        y = product("down_proj", module._apply_gate(y) if module.has_gate else module.act_fn(y))
        y = module.post_expert_norm(y) if module.has_post_expert_norm else y
        token = torch.arange(hidden.shape[0], device=hidden.device).repeat_interleave(chosen)
        return torch.zeros_like(hidden).index_add_(0, token, (y * weights.reshape(-1, 1)).to(hidden.dtype))

    return forward


def _same(saved: Any) -> Any:
    return saved


def _storage(tensor: Any) -> int:
    return tensor.untyped_storage()._cdata
