"""The tensors of one trace, and what each planned operation does to them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from core.limits import limit
from core.tensors.layout import TensorLayout
from core.tensors.operations import guards
from core.tensors.operations.guards import check_size
from core.tensors.operations.table import SHORT_CASTS
from core.tensors.operations.values import DType, ExpressionError, Index, MemoryFormat, Slot, Value
from core.tensors.parsing.arguments import check_argument
from core.tensors.parsing.numbers import operator_of
from core.tensors.parsing.plan import PlanStep
from core.tensors.tracing.execution import BROADCASTING, call, touched
from core.tensors.tracing.foreseen import foresee
from core.tensors.tracing.machine import Answering
from core.tensors.tracing.reasons import reason, view_verdict
from core.tensors.tracing.recording import basis_of, layout_of, name_of, storage_identity
from core.tensors.tracing.several import are_several, largest, lists, opened


class ProgramRun(Answering):
    """The operations of one program, run one after the other."""

    def start(self, layout: TensorLayout, dtype: str) -> None:
        """Step 0: x over a fresh storage."""
        cells = 1 + (layout.span or (0, -1))[1]
        x = self.torch.arange(cells, dtype=getattr(self.torch, dtype)).as_strided(layout.shape, layout.stride)
        self._record(x, "start", source="x", expression="x", operation="x", inputs=(), name="x")

    def run(self, step: PlanStep) -> Exception | None:
        """Run one operation; what torch refused it with."""
        check_argument((step.values, step.index or ()))
        done = self._advance(step)
        self.planned.append(step)
        return None if done else self.problem

    def _advance(self, step: PlanStep) -> bool:
        """Run one planned operation; False when torch refused it."""
        inputs = self._seen(step)
        if step.form == "piece":
            inputs = []
        self._guard(step, inputs)
        if step.operation.restrides:
            self._keep_layouts(inputs[0])
        written = self._touched(step, inputs) if step.operation.writes else None
        self.meter.start()
        try:
            self._check_devices(step)
            with self.torch.set_grad_enabled(step.tracked), self._cast(step):
                results = self._ran(step, inputs)
                result, pieces = self._pick(step, results)
        except ExpressionError:
            raise
        except Exception as problem:  # whatever torch or einops raises is what this page is about
            self.problem = problem
            with self.torch.no_grad():
                self._refuse(step, problem, self._target(step))
            return False
        with self.torch.no_grad():
            self._done(step, inputs, result, pieces, written)
        if self.nodes.tracks(self.tensors[-1]) and self.steps[-1].kind != "refused":
            kept = self.saved[len(self.steps) - 1] = self.nodes.kept(self.tensors[-1])
            place = {identity: at for at, identity in enumerate(self.storages)}
            keeps = tuple((place.get(identity, -1), nbytes) for identity, nbytes in kept)
            self.steps[-1] = replace(self.steps[-1], keeps=keeps, asks_gradient=True)
        return True

    def _cast(self, step: PlanStep) -> Any:
        """The ``autocast`` that a step stands under."""
        if not step.cast:
            return nullcontext()
        return self.torch.autocast("cpu", dtype=getattr(self.torch, step.cast))

    def _done(self, step: PlanStep, inputs: Sequence[Any], result: Any, pieces: Sequence[Any], written: Any) -> None:
        """Record what an operation gave."""
        operation = step.operation
        basis = basis_of(step)
        if step.form == "write" or operation.writes:
            self._record_write(inputs[0], written if operation.writes else result, basis)
            self._work(inputs[0].numel() * (1 + len(self.steps[-1].changed)), step)
            return
        if step.form == "grad" and result is inputs[0]:  # added to the gradient that was there
            self._record_write(result, None, basis)
            return
        self.place, moves = self._placed(step)
        if moves and any(result is tensor or storage_identity(result) == storage_identity(tensor) for tensor in inputs):
            with self.torch.set_grad_enabled(step.tracked):
                result = result.clone()
        for tensor in (result, *pieces):
            self._check(tensor, step)
        verdict = view_verdict(operation.name, self._inputs(step), tuple(result.shape), name_of(result.dtype))
        kind = self._kind(result, inputs, step)
        together = [piece for piece in pieces if storage_identity(piece) == storage_identity(result)]
        self._record(
            result,
            kind,
            made=self.left if step.operation.name == "backward" else pieces if step.pick is None else (),
            **basis,
            pieces=tuple(self._piece(piece) for piece in together) if len(together) > 1 or len(pieces) == 1 else (),
            picked=step.pick,
            verdict=verdict,
            reason=self._moved(step, result)
            if moves
            else _broadcasts(step, inputs)
            or reason(step, kind, self._inputs(step), layout_of(result), name_of(result.dtype), verdict),
            moved=result.numel() * result.element_size() if moves else 0,
        )
        if pieces and step.pick is None:
            self.tensors[-1] = pieces
        self._work(sum(piece.numel() for piece in pieces or (() if kind in ("view", "same") else (result,))), step)

    def _moved(self, step: PlanStep, result: Any) -> str:
        return f"{result.numel() * result.element_size():,} B move from {self.device(step.inputs[0])} to {self.place}"

    def _work(self, elements: int, step: PlanStep) -> None:
        """Count what a step handled: what it made, a single view aside; of a write also every tensor that sees it."""
        self.worked += elements
        guards.check_total(self.worked, step.source)

    # ---------------------------------------------------------------------------------------------- before

    def _guard(self, step: PlanStep, inputs: Sequence[Any]) -> None:
        tensors = opened(inputs)
        shapes = [tuple(tensor.shape) for tensor in tensors]
        for guard in step.operation.guards:
            guard(guards.Call(shapes, step.values, step.given, lambda place: largest(tensors[place])))
        if not self.counted:  # else nothing is made anyway
            if step.operation.grows:
                foresee(self.torch, lambda metas: self._ran(step, metas), inputs)
            if any(isinstance(item, Slot | tuple) for item in step.index or ()):
                foresee(self.torch, lambda metas: metas[0][self._places(step.index or (), inputs)], inputs[:1])
        self._guard_complex(step, inputs)

    def _places(self, index: Index, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """``index`` for a tensor without memory: of a mask as many places as it picks, in each of its dimensions."""
        items: list[Any] = []
        for item in index:
            if not isinstance(item, Slot | tuple):
                items.append(item)
                continue
            picks = inputs[item.number] if isinstance(item, Slot) else self.torch.tensor(item, device="cpu")
            is_mask = picks.dtype in (self.torch.bool, self.torch.uint8)
            shape = (int(picks.count_nonzero()),) if is_mask else tuple(picks.shape)
            items += [self.torch.empty(shape, dtype=self.torch.int64)] * (picks.dim() if is_mask else 1)
        return tuple(items)

    def _guard_complex(self, step: PlanStep, inputs: Sequence[Any]) -> None:
        """torch would drop the imaginary part, with a warning nobody sees."""
        complex_ = [tensor.is_complex() for tensor in opened(inputs)]
        if not any(complex_):
            return
        name = step.operation.name
        wanted = [value.name for value in step.values if isinstance(value, DType)]
        casts = name in SHORT_CASTS or (name != "view" and any(not dtype.startswith("complex") for dtype in wanted))
        casts = casts or (name == "type_as" and complex_ == [True, False])
        writes = step.form == "write" or step.operation.writes
        if casts or (writes and not complex_[0]):
            raise ExpressionError("Complex numbers do not fit into a real type; take .real or .imag first.")

    def _check(self, result: Any, step: PlanStep) -> None:
        """Caps on what came out: views allocate nothing, but the next step could."""
        if not isinstance(result, self.torch.Tensor):
            raise ExpressionError(f"`{step.source[:60]}` gives no tensor.")
        shape = tuple(result.shape)
        if min(shape, default=0) < 0:
            # torch lets as_strided and broadcast_to make these when another size is 0.
            raise ExpressionError(f"`{step.source[:60]}` gives a tensor of shape {shape}; no size can be negative.")
        check_size(shape, f"The result of `{step.source[:60]}`", self.cap)
        if max(result.stride(), default=0) > limit(self.furthest):
            raise ExpressionError(f"`{step.source[:60]}` gives a stride above {limit(self.furthest):,}.")

    # --------------------------------------------------------------------------------------------- running

    def _ran(self, step: PlanStep, inputs: Sequence[Any]) -> Any:
        args, keywords = self._given(step, inputs)
        watch = self.meter.watch
        match step.form:
            case "grad":
                return inputs[0].grad if inputs[0].requires_grad else inputs[0]
            case "method" if step.operation.name == "backward":
                return self._backward(inputs[0], args, keywords)
            case "method" if step.operation.name == "retain_grad":
                inputs[0].retain_grad()
                return inputs[0]
            case "method" | "property" | "torch" | "F" | "nn" | "init":
                return call(self.torch, step.form, step.operation, inputs, args, keywords, watch, self.drawn)
            case "bare":
                subject = inputs[:1] if step.operation.subject else ()
                return watch(lambda: getattr(self.einops, step.operation.name)(*subject, *args, **keywords))
            case "index":
                index = self._index(step.index or (), inputs)
                return watch(lambda: inputs[0][index])
            case "unary":
                return watch(lambda: -inputs[0] if step.symbol == "-" else ~inputs[0])
            case "binary":
                return watch(lambda: operator_of(step.symbol)(*args))
            case "write":
                return self._write(step, inputs, args[0])
            case "name":
                return inputs[0]
            case "piece":
                return self.tensors[step.inputs[0]]

    def _backward(self, loss: Any, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        """``loss.backward()``, which gives the loss; the gradients that are new are kept in ``left``."""
        leaves = [leaf for leaf in self.nodes.leaves(loss).values() if isinstance(leaf, self.torch.Tensor)]
        leaves += [tensor for tensor in self.tensors if isinstance(tensor, self.torch.Tensor) and tensor.retains_grad]
        without = [leaf for leaf in leaves if leaf.grad is None]
        self.meter.watch(lambda: loss.backward(*args, **keywords))
        self.left = [leaf.grad for leaf in without if leaf.grad is not None]
        return loss

    def _touched(self, step: PlanStep, inputs: Sequence[Any]) -> npt.NDArray[np.int64] | None:
        """The cells that an operation in place is about to write, ``None`` for all of its tensor."""
        args, keywords = self._given(step, inputs)
        with suppress(Exception):  # what is wrong with the arguments torch says of the operation itself
            elements = touched(self.torch, step.operation, inputs[0], args, keywords)
            return None if elements is None else layout_of(inputs[0]).cells()[elements.detach().flatten().numpy()]
        return None

    def _given(self, step: PlanStep, inputs: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        keywords = {name: self._value(value, inputs) for name, value in step.keywords}
        return [self._value(arg, inputs) for arg in step.args], keywords

    def _keep_layouts(self, tensor: Any) -> None:
        """Let earlier steps keep the layout that ``tensor`` has now, which is about to change."""
        for number, seen in enumerate(self.tensors):
            if seen is tensor:
                self.tensors[number] = tensor.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def _value(self, value: Value, inputs: Sequence[Any]) -> Any:
        if isinstance(value, Slot):
            return inputs[value.number]
        if isinstance(value, DType | MemoryFormat):
            return getattr(self.torch, value.name)
        if isinstance(value, tuple) and any(isinstance(item, Slot) for item in value):
            return opened([inputs[item.number] for item in value if isinstance(item, Slot)])
        return value

    def _index(self, index: Index, inputs: Sequence[Any]) -> Any:
        """The items as torch takes them, one alone without a tuple, which it words its errors by."""
        items = [inputs[item.number] if isinstance(item, Slot) else lists(item) for item in index]
        return items[0] if len(items) == 1 and not isinstance(items[0], list) else tuple(items)

    def _write(self, step: PlanStep, inputs: Sequence[Any], value: Any) -> Any:
        """Write through a name or square brackets; gives the cells written, ``None`` for all of the tensor."""
        update = None if step.symbol == "=" else operator_of(step.symbol)
        if step.index is None:
            if update is not None:
                self.meter.watch(lambda: update(inputs[0], value))
            return None
        index = self._index(step.index, inputs)
        cells = self._cells_written(inputs[0], index)

        if update is None:
            self.meter.watch(lambda: inputs[0].__setitem__(index, value))
            return cells
        # What Python does: read, update in place, write back.
        part = [self.meter.watch(lambda: inputs[0][index])]
        used = [self.meter.last]
        part = [self.meter.watch(lambda: update(part.pop(), value))]
        used.append(self.meter.last)
        self.meter.watch(lambda: inputs[0].__setitem__(index, part.pop()))
        self.reads[len(self.steps)] = (*used, self.meter.last)
        return cells

    def _cells_written(self, tensor: Any, index: Any) -> Any:
        """The storage cells that square brackets take of ``tensor``, one per element; ``None`` where they fail."""
        with suppress(Exception):  # what is wrong with the index torch says of the write itself
            layout = layout_of(tensor)
            return self.torch.from_numpy(layout.cells()).view(layout.shape)[index].flatten().numpy()
        return None

    def _pick(self, step: PlanStep, result: Any) -> tuple[Any, tuple[Any, ...]]:
        """The tensor to go on with, and all pieces when there are several."""
        if step.form == "write" or not are_several(result):
            return result, ()
        pieces: tuple[Any, ...] = tuple(result)
        if step.form == "name":
            return pieces[0], pieces
        if step.form == "piece":
            if step.index is None:
                return pieces[step.pick or 0], ()
            pieces = pieces[self._index(step.index, ())]
        if not pieces:
            raise ExpressionError(f"`{step.source[:60]}` gives no tensor.")
        return pieces[step.pick or 0], pieces

    def _target(self, step: PlanStep) -> TensorLayout | None:
        """What a refused write would have written to: the tensor, or the part that its brackets take as a view."""
        if step.form != "write" and not step.operation.writes:
            return None
        target = self.tensors[step.inputs[0]]
        if step.index is not None:
            try:
                part = target[self._index(step.index, self._seen(step))]
            except (IndexError, TypeError, ValueError, RuntimeError):
                return None  # the brackets are what torch refused
            target = part if storage_identity(part) == storage_identity(target) else None
        return None if target is None else layout_of(target)


def _broadcasts(step: PlanStep, inputs: Sequence[Any]) -> str:
    """torch's warning of a loss between tensors of two shapes, in words; empty for anything else."""
    if step.operation.name not in BROADCASTING or len(inputs) < 2 or inputs[0].shape == inputs[1].shape:
        return ""
    one, other = tuple(inputs[0].shape), tuple(inputs[1].shape)
    wide = tuple(np.broadcast_shapes(one, other))
    return f"torch warns: {one} and {other} are broadcast to {wide}, so more pairs are compared than there are elements"
