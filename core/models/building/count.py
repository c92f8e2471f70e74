"""Counting a model that stands on torch's meta device: parameters by module, FLOPs of a sequence, and its shape.

Tensors there have shapes and no values, so any size costs nothing. Runs in the building process only: it is handed
torch and transformers and imports neither.
"""

from __future__ import annotations

import importlib
import re
import signal
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from core.limits import limit
from core.messages import message
from core.models.building.events import MOST_PARTS, TEXT_CHARS
from core.models.building.record import BATCH, RunRecorder, first_expert
from core.models.building.shape import NoShapeError, shape_of
from core.models.counts_only import on_parabola
from core.models.spec_text import write_spec

_PATIENCE_S = 10.0
_SHORT = (16, 32, 64, 128)
"""Lengths counted where the one asked for takes too long: models that walk through a sequence token by token."""

_COUNTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "moe_top_k", "moe_topk", "moe_k", "top_k")
_AHEAD = ("num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers", "num_mtp_modules")


class _TooSlowError(Exception):
    """One run of the model took more processor time than it may."""


def first_line(problem: BaseException | None) -> str:
    """An error as one line that a message can hold."""
    words = " ".join(str(problem).split())
    return f"{type(problem).__name__}: {words}"[: TEXT_CHARS - 150]


class _Seen:
    """What a run of the model shows: the parameters it touches, and the share of its experts that a token runs."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.touched: set[int] = set()
        self.share: dict[int, tuple[int, int]] = {}

    def watch(self) -> Any:
        """A mode under which every torch function notes the parameters it is given.

        Values decide branches in a few places, and a tensor on the meta device has none. What is asked there is
        whether all tokens are real and in one sequence, and they are: ``all`` is true, any other question false.
        """
        torch, touched = self.torch, self.touched
        parameter, tensor = torch.nn.Parameter, torch.Tensor
        every, some = {torch.all, tensor.all}, {torch.any, tensor.any}
        no = {tensor.__bool__, tensor.__contains__}

        def walk(value: Any) -> None:
            if isinstance(value, parameter):
                touched.add(id(value))
            elif isinstance(value, list | tuple):
                for inner in cast("list[Any]", value):
                    walk(inner)

        class Watch(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                given: dict[str, Any] = kwargs or {}
                walk(args)
                walk(list(given.values()))
                if args and isinstance(args[0], tensor) and args[0].is_meta:
                    if func in every and len(args) == 1 and not given:
                        return torch.tensor(True, device="cpu")
                    if func in some and len(args) == 1 and not given:
                        return torch.tensor(False, device="cpu")
                    if func in no:
                        return False
                return func(*args, **given)

        return Watch()


def field_of(config: Any, name: str) -> Any:
    """A setting, None where the configuration has none or one for each layer."""
    try:
        return getattr(config, name, None)
    except Exception:  # transformers' own error for a setting that differs from layer to layer
        return None


def _setting(config: Any, names: tuple[str, ...]) -> int:
    """The first of these settings that is a whole number, 0 where none is."""
    for name in names:
        value = field_of(config, name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return 0


def _loose(model: Any, seen: _Seen, experts: int) -> dict[str, Any]:
    """Weights of experts that the model runs in its own way, by name: their share was not seen."""
    if experts < 2:
        return {}
    loose: dict[str, Any] = {}
    for name, value in model.named_parameters():
        stacked = value.dim() == 3 and value.shape[0] == experts
        if id(value) not in seen.share and (stacked or re.search(r"(?<!shared_)experts\.\d+\.", name)):
            loose[name] = value
    return loose


def _run(torch: Any, model: Any, seen: _Seen, seq_len: int) -> Any:
    """The FLOP counter after one sequence going forward."""
    counter: Any = importlib.import_module("torch.utils.flop_counter").FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        _forward(torch, model, seen, (1, seq_len))
    return counter


def _forward(torch: Any, model: Any, seen: _Seen, batch: tuple[int, int]) -> None:
    """Run a batch of tokens; raises `_TooSlowError`."""

    def stop(*_: object) -> None:
        raise _TooSlowError

    # Processor time, so that a busy machine counts as far as an idle one.
    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _PATIENCE_S)
    try:
        with seen.watch():
            model(input_ids=torch.zeros(batch, dtype=torch.long, device="meta"), use_cache=False)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _shape(torch: Any, model: Any, seen: _Seen) -> tuple[str, str]:
    """The shape of the model as text, with what its layers save in 16 bits; or an empty text, and why there is none."""
    recorder = RunRecorder(torch, model.to(torch.bfloat16), seen.share)
    try:
        with recorder.watching(importlib.import_module("transformers.modeling_utils").AttentionInterface):
            _forward(torch, model, seen, BATCH)
        record = recorder.record()
        total = sum(int(value.numel()) for value in model.parameters() if id(value) in seen.touched)
        text = write_spec(replace(shape_of(record, total), kept=record.kept))
        if len(text) > limit("spec_chars"):
            raise NoShapeError(message("shape.refused.too_long"))
    except MemoryError:
        raise
    except NoShapeError as problem:
        return "", str(problem)[:TEXT_CHARS]
    except Exception as problem:
        return "", message("shape.refused.unreadable", problem=first_line(problem))
    return text, ""


def _own_experts(counter: Any, loose: Mapping[str, Any], chosen: int, experts: int, seq_len: int) -> int:
    """FLOPs to take off where a model multiplies every expert and weighs those not chosen by zero.

    Raises ``ValueError`` where what was counted is neither all experts nor the chosen ones.
    """
    owners = {name.rpartition(".")[0] for name in loose}
    counted = sum(
        sum(ops.values()) for name, ops in counter.get_flop_counts().items() if name.partition(".")[2] in owners
    )
    every = sum(2 * int(value.numel()) * seq_len for value in loose.values() if value.dim() == 3)
    if counted == every:
        return every - every * chosen // experts
    if counted * experts == every * chosen:
        return 0
    raise ValueError("its experts are run in a way that cannot be told apart")


def _lengths(seq_len: int) -> list[int]:
    return sorted({seq_len, seq_len // 2, seq_len // 4} - {0})


def _carried_on(flop: Mapping[int, int], seq_len: int) -> int | None:
    """FLOPs of a sequence from those of four shorter ones, None where no parabola goes through all of them."""
    *first, (longest, last) = sorted(flop.items())
    fraction = on_parabola(dict(first), seq_len)
    return int(fraction) if on_parabola(dict(first), longest) == last and fraction.denominator == 1 else None


def _flop(torch: Any, model: Any, seen: _Seen, config: Any, seq_len: int) -> tuple[dict[int, int], list[str]]:
    """FLOPs of one sequence at the length asked for and two shorter ones, with notes."""
    experts, chosen = _setting(config, _COUNTS), _setting(config, _CHOSEN)

    def at(length: int) -> int:
        counter = _run(torch, model, seen, length)
        loose = _loose(model, seen, experts)
        if not loose:
            return int(counter.get_total_flops())
        if not 0 < chosen <= experts:
            raise ValueError("how many of its experts a token runs is not said")
        for value in loose.values():
            seen.share[id(value)] = (chosen, experts)
        spared = _own_experts(counter, loose, chosen, experts, length)
        seen_all[length] = loose
        return int(counter.get_total_flops()) - spared

    seen_all: dict[int, Any] = {}

    def once(length: int) -> int:
        for value in (v for loose in seen_all.values() for v in loose.values()):
            seen.share.pop(id(value), None)
        return at(length)

    try:
        # The longest first: what takes too long is known at once.
        flop = {length: once(length) for length in reversed(_lengths(seq_len))}
        return dict(sorted(flop.items())), []
    except _TooSlowError:
        short = {length: once(length) for length in _SHORT}
        number = _carried_on(short, seq_len)
        if number is None:
            raise ValueError("it takes too long to run at that length, and shorter ones do not grow evenly") from None
        two = {length: _carried_on(short, length) or 0 for length in _lengths(seq_len)}
        note = f"Its FLOPs were counted up to {_SHORT[-1]} tokens, where they grow evenly, and carried on from there."
        return two, [note]


_LAYER = re.compile(r"(?<=\.)\d+(?=\.)")


def _module_of(name: str) -> str:
    """The module that a parameter is told under: the layers are one, each part of a layer is told for itself."""
    steps = _LAYER.sub("*", name).split(".")[:-1]
    first = steps.index("*") if "*" in steps else -1
    parts = steps[: first + 2] if first >= 0 else steps[:3]
    deeper = next((i for i, step in enumerate(steps) if i >= len(parts) and "expert" in step), None)
    return ".".join(steps[: deeper + 1] if deeper is not None else parts) or name


def _parts(model: Any, seen: _Seen, known: bool) -> list[dict[str, Any]]:
    """Parameters by module, in the model's order; tied ones stand once."""
    counts_by_module: dict[str, tuple[int, int]] = {}
    own, looked_up = model.get_input_embeddings(), set[int]()  # by layers, of every token
    for module in model.modules():
        if module is not own and getattr(module, "num_embeddings", 0) == own.num_embeddings:
            looked_up.add(id(module.weight))
    for name, value in model.named_parameters():
        total = int(value.numel())
        some, of = (0, 1) if id(value) in looked_up else seen.share.get(id(value), (1, 1))
        run = total if not known else total * some // of if id(value) in seen.touched else 0
        before = counts_by_module.get(_module_of(name), (0, 0))
        counts_by_module[_module_of(name)] = (before[0] + total, before[1] + run)
    rows = [(name[:TEXT_CHARS], *counts) for name, counts in counts_by_module.items()]
    shown, remaining = rows[: MOST_PARTS - 1], rows[MOST_PARTS - 1 :]
    if remaining:
        shown.append(("…", sum(row[1] for row in remaining), sum(row[2] for row in remaining)))
    return [{"module": name, "total": total, "active": run} for name, total, run in shown]


def count(torch: Any, moe: Any, model: Any, config: Any, seq_len: int) -> dict[str, Any]:
    """Parameters by module, FLOPs of a sequence, and the shape, or why there are none."""
    seen = _Seen(torch)
    moe.ALL_EXPERTS_FUNCTIONS["batched_mm"] = first_expert(torch, seen.share)
    flop: dict[int, int] = {}
    refused, notes = "", list[str]()
    text = config.get_text_config()
    try:
        flop, notes = _flop(torch, model, seen, text, seq_len)
    except MemoryError:
        raise
    except _TooSlowError:
        refused = "One sequence takes too long to run through it."
    except Exception as problem:
        refused = f"transformers cannot run it without weights: {first_line(problem)}"
    if _setting(text, _AHEAD):
        notes.append("Modules that predict tokens further ahead are not built and not counted.")
    if _setting(text, ("zero_expert_num", "zero_experts_num")):
        notes.append("Experts that compute nothing are counted as if a token ran through others in their place.")
    parts = _parts(model, seen, bool(flop))
    shape, shapeless = _shape(torch, model, seen) if flop else ("", "")
    return {
        "shape": shape,
        "shape_refused": shapeless,
        "parts": parts,
        "known": bool(flop),
        "flop": {str(length): value for length, value in flop.items()},
        "flop_refused": refused,
        "notes": notes,
    }
