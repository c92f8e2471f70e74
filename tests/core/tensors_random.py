"""Random layouts, shapes and programs for the tests of tensors."""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch

from core.limits import limit
from core.tensors.layout import TensorLayout, bounds
from core.tensors.operations.lookup import OPERATIONS
from core.tensors.operations.operation import Operation
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.steps import Trace
from core.tensors.tracing.trace import trace
from core.tensors.view_rule import explain_view

STORAGE = torch.arange(1 << 16)


def random_layouts(count: int, seed: int) -> Iterator[tuple[TensorLayout, list[int]]]:
    """Layouts as slicing, permuting, expanding and as_strided make them, each with a new shape to try."""
    rng = random.Random(seed)
    count_made = 0
    while count_made < count:
        rank = rng.randint(0, 5)
        sizes = [0, 1, 1, 2, 2, 3, 4, 6] if rng.random() < 0.1 else [1, 2, 2, 3, 4, 6]
        shape = [rng.choice(sizes) for _ in range(rank)]
        if rng.random() < 0.2:
            stride = [rng.choice([0, 1, 2, 3, 4, 6, 8, 12]) for _ in shape]
        else:
            order = list(range(rank))
            if rng.random() < 0.5:
                rng.shuffle(order)
            stride, step = [0] * rank, rng.choice([0, 1, 1, 1, 2])
            for dim in reversed(order):
                stride[dim] = step
                step *= max(shape[dim], 1) * rng.choice([1, 1, 1, 1, 2])
        layout = TensorLayout(tuple(shape), tuple(stride), rng.choice([0, 5]))
        if not bounds(layout, len(STORAGE)).inside:
            continue
        count_made += 1
        yield layout, random_shape(rng, layout.numel)


def random_shape(rng: random.Random, numel: int) -> list[int]:
    """A factorisation of ``numel`` with ones strewn in; sometimes with -1, sometimes wrong."""
    if numel == 0:
        shape = [rng.choice([0, 0, 1, 2, 3]) for _ in range(rng.randint(1, 3))]
    else:
        shape, left = [], numel
        while left > 1:
            shape += [1] * (rng.random() < 0.2)
            shape.append(rng.choice([f for f in range(2, left + 1) if left % f == 0]))
            left //= shape[-1]
        shape += [1] * (rng.random() < 0.3)
    if shape and rng.random() < 0.3:
        shape[rng.randrange(len(shape))] = -1
    if rng.random() < 0.05:
        shape.append(rng.choice([2, -1, -2]))
    return shape


def in_torch(layout: TensorLayout) -> torch.Tensor:
    """A tensor of this layout over `STORAGE`."""
    return torch.as_strided(STORAGE, layout.shape, layout.stride, layout.offset)


def compare_views(count: int, seed: int) -> int:
    """Hold `explain_view` against torch on ``count`` layouts: verdict, shape and strides; how many views worked."""
    worked = 0
    for layout, shape in random_layouts(count, seed):
        tensor = in_torch(layout)
        verdict = explain_view(layout, shape)
        try:
            view = tensor.view(shape)
        except RuntimeError:
            assert not verdict.works, (layout, shape)
            assert verdict.stride is None
            assert verdict.reason
        else:
            worked += 1
            assert verdict.works, (layout, shape)
            assert (verdict.shape, verdict.stride) == (tuple(view.shape), view.stride()), (layout, shape)
        assert layout.is_contiguous == tensor.is_contiguous(), layout
    return worked


# --------------------------------------------------------------------------------------------------- programs

SHAPES = [(), (6,), (2, 3), (0, 3), (1, 6), (2, 3, 4), (4, 4), (64, 64), (2, 1, 3), (3, 1), (2, 2, 2, 2)]
DTYPES = ["int64", "float32", "bfloat16", "uint8", "int16"]
_NUMBERS = ["0", "1", "2", "3", "6", "-1", "-2", "7", "100", "1.5", "1000000000", "-0.0"]
_INDICES = ["0", "-1", "1", ":", "::2", "1:", ":-1", "None", "...", "[0, 1]", "[1, 1, 0]", "5", "[[0], [1]]", "[True]"]
_AXES = [
    "a b -> b a",
    "a b c -> (c a) b",
    "a b -> a",
    "a ... -> ...",
    "(a k) b -> a k b",
    "a b -> a r b",
    "... -> 1 ...",
]
_EQUATIONS = ["ij->ji", "ij,jk->ik", "ij,kj->ik", "ii->i", "...i->...", "ij,ij->", "ij", "i,j->ij", "ijk->kji"]
_MISTAKES = ["x.__class__", "x.veiw(6)", "x.numpy()", "w.t()", "x.resize_(9)", "x if x else x", "x[1.5]", "x.t", "[x]"]


def random_program(rng: random.Random) -> str:
    """Lines as a visitor could type them: mostly well formed, sometimes with a slip."""
    names = ["x"]
    lines = [_line(rng, names) for _ in range(rng.choice([1, 1, 1, 2, 3, 4, 6, 12]))]
    text = "\n".join(lines)
    if rng.random() < 0.15 and text:  # a character lost, doubled or misplaced
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(["", text[at] * 2, rng.choice("()[],.xy'=+-@ \n0#;")]) + text[at + 1 :]
    return text


def _line(rng: random.Random, names: list[str]) -> str:
    kind = rng.random()
    if rng.random() < 0.25:
        return _statement(rng, names)
    if kind > 0.97:
        first, second = rng.choice(names), rng.choice(names)
        names += ["q", "k"] if rng.random() < 0.5 else []
        return rng.choice(
            [
                f"q, k = {first}",
                f"q, k = map(lambda t: t.flip(0), ({first}, {second}))",
                f"q, *k = {first}.unbind(0)",
                f"q = k = {first}",
                f"for i in range({rng.randint(0, 4)}):\n    q = {first}[i]\n    {second} = {second} + i",
                f"rearrange([{first}, {second}], 'n ... -> ... n')",
                f"ys = [{first}, {second}]; ys[-1]",
                f"with torch.no_grad():\n    q = {first} + 1",
                f"dt = {first}.dtype; {second}.to(dt)",
                f"import math; n = math.ceil({first}.dim() / 2)",
                f"{first} * math.sqrt(n)",
            ]
        )
    if kind > 0.92:
        queried = rng.choice(names)
        counted = ["3", f"{queried}.size(0)", f"len({queried})", f"{queried}.numel() // 2", "n + 1", "n * n"]
        return rng.choice([f"n = {rng.choice(counted)}  # count", f"n, d = {queried}.shape", "import torch; n = 2"])
    line = _tensor(rng, names, rng.randint(0, 3))
    if kind < 0.35:
        names.append(rng.choice(["y", "z", "w", "a1", "out"]))
        return f"{names[-1]} = {line}"
    if kind < 0.42:
        several = [rng.choice(["q", "k", "v"]) for _ in range(rng.randint(2, 3))]
        cut = f"chunk({rng.randint(1, 4)}, {rng.choice(['0', '-1', '1'])})"
        line = f"{', '.join(several)} = {_source(rng, names, 0)}.{cut}"
        names += several
        return line
    if kind < 0.6:
        target = rng.choice(names) + (_brackets(rng, names) if rng.random() < 0.8 else "")
        return f"{target} {rng.choice(['=', '+=', '-=', '*=', '//=', '/=', '**='])} {_operand(rng, names)}"
    return line


def _statement(rng: random.Random, names: list[str]) -> str:
    """One of the statements beside plain operations, some of them wrong or hostile."""
    a, b, inner = rng.choice(names), rng.choice(names), _tensor(rng, names, 1)
    asked = rng.choice([f"{a}.size(0)", f"{a}.dim()", f"len({a})", "n", f"{a}.shape[-1]", f"{a}.is_contiguous()", "N"])
    test = rng.choice(
        [f"{asked} > 1", f"{a}.shape == {b}.shape", f"{a}.is_contiguous()", f"({a} > 0).all()", f"{a}.dim() in (1, 2)"]
    )
    dims = rng.choice(["a b", "a b c", "batch seq", "... a", "2 3", "a a", "", "*", "a " * 20])
    kind = rng.choice(["Float", "Int", "Bool", "Shaped", "open"])
    shown = rng.choice(["", ":>8", ":.3f", ":>1000000000", "!r", ":{n}", "=", ":x"])
    caught, count = rng.choice(["RuntimeError", "IndexError", "Exception"]), rng.choice(["3", "10**9", "n"])
    given = rng.choice(["t + n", "t.t()", "t[:n]", "f(t)", inner])
    text = rng.choice(
        [
            f'y: {kind}[torch.Tensor, "{dims}"] = {inner}',
            f"try:\n    y = {inner}\nexcept {caught} as e:\n    print(e)",
            f"try:\n    {a}.view(7, -1)\nexcept (RuntimeError, ValueError):\n    y = {inner}\nfinally:\n    z = {b}",
            f"assert {test}",
            f"assert {test}, f'shape {{{a}.shape{shown}}}'",
            f"assert torch.allclose({a}, {b})",
            f"assert {a}.untyped_storage().data_ptr() == {b}.untyped_storage().data_ptr()",
            f"w = torch.ones({rng.choice(['3', '2, 3', f'{a}.shape'])}, requires_grad=True)",
            f"w = nn.Parameter({a}.float())\nloss = ({inner} * w).sum()\nloss.backward()\nw.grad",
            f"loss = {inner}.{rng.choice(['sum()', 'mean()', 'pow(2).sum()', 'flatten()[0]'])}",
            f"loss.backward({rng.choice(['', 'retain_graph=True', a])})",
            f"{a}.backward()",
            f"{a}.grad",
            f"{a}.grad {rng.choice(['= None', '+= 1', '*= 2'])}",
            f"{a}.requires_grad{rng.choice(['_()', ' = True', ' = False'])}",
            f"{a}.retain_grad()",
            f"print(f'{{{asked}{shown}}} of {{{a}.shape}} {{{inner}{shown}}}')",
            f"print({a}.shape, {inner}, '{shown}' * 3)",
            f"s = f'{{{asked}{shown}}}'",
            f"sizes = [{rng.choice(['i * 2', 'i', f'{a}.size(0) + i'])} for i in range({count})]",
            f"ys = [{a} + i for i in range({rng.randint(0, 3)}) if i != 1]",
            f"[t.sum() for t in ({a}, {b})]",
            f"def f(t, n={rng.randint(1, 3)}):\n    return {given}\ny = f({a})",
            f"def g(t: torch.Tensor, k):\n    y = t * k\n    return y, t\nq, k = g({a}, {b})",
            f"y = {a}.to({rng.choice([f'{chr(34)}cuda:0{chr(34)}', 'torch.bfloat16', 'device', f'{b}.dtype', '9'])})",
            f"y = {a}.{rng.choice(['cuda', 'cpu', 'bool', 'half'])}()",
            f"y = torch.where({rng.choice([f'{a} > 1', a])}{rng.choice(['', f', {a}, {b}', ', 0.0, 1.0'])})",
            f"i, j = torch.where({a} > {rng.randint(0, 3)})",
            f"y = {inner} if {test} else {b}",
            f"n = 1 if {test} else 2",
            f"if {test}:\n    y = {inner}\nelif {asked}:\n    {a} += 1\nelse:\n    z = {b}",
            f"with torch.no_grad():\n    {a} -= 0.1 * {a}.grad",
            f"for t in {rng.choice([a, f'({a}, {b})', f'{a}.shape', f'zip({a}, {b})', f'enumerate({a})'])}:\n    q = t",
            f"for i in range({asked}):\n    if i == 1:\n        {rng.choice(['break', 'continue'])}\n    z = {a} + i",
            f"torch.manual_seed({rng.choice(['0', '10**30', asked])})\ny = torch.randn({rng.choice(['2, 3', 'B, N'])})",
            f"nn.init.{rng.choice(['zeros_', 'xavier_uniform_', 'trunc_normal_'])}({a})",
            f"get_memory_usage({inner})",
            f"same_storage({a}, {b})",
            f"del {a}",
            f"n = {rng.choice(['10', '2', asked])} ** {rng.choice(['2', '10 ** 9', '9 ** 9 ** 9', '-1', asked])}",
            f"{asked} * {a}.stride(0) + {rng.randint(0, 9)}",
            f"{a}, {b} = {b}, {a}",
            f"y = torch.zeros(B, N, D) @ {rng.choice(['W', a])}",
            f"{a}.view({rng.choice(['open', '__import__', 'print', 'exit', 'lambda: 0', 'x.__class__'])})",
            f"torch.multinomial({a}.float().softmax(-1), {rng.randint(0, 3)})",
            f"{a}.add_({b}, alpha={rng.choice(['2', '-0.1', asked])})",
            f"class A(nn.Module):\n    def __init__(self, n={asked}):\n        super().__init__()\n"
            f"        self.w = {inner}\n    def forward(self, t):\n        return t * self.w\nm = A()\ny = m({b})",
            f"class A:\n    k = {asked}\n    def f(self, *t, **d):\n        self.z = t[0]\n"
            f"        return self.f(*t)\nA().f({a})",
            f"m = nn.Sequential(nn.Linear({asked}, 2), nn.ReLU(), nn.LayerNorm(2))\ny = m({a}.float())",
            f"p = nn.Parameter({a}.float())\no = torch.optim.SGD([p], lr=0.1)\np.sum().backward()\no.step()\n"
            "o.zero_grad()",
            f"d = {{'a': {a}, {asked}: {b}}}\ny = d['a']\nd[{asked}] = {inner}\ny = d.get({asked}, {a})",
            f"l = [{a}]\nl.append({inner})\nl += [{b}]\ny = torch.stack(l)\nl[{asked}] = {a}\nl.append(l)",
            f"h = lambda t, k={asked}: t.t() + k\ny = h({a})\nlist(map(h, [{a}, {b}]))",
            f"y = [i + t for t in ({a}, {b}) for i in range({asked}) if i]\n{a}[y[0]]",
            f"with torch.autocast('{rng.choice(['cpu', 'cuda'])}', dtype=torch.bfloat16):\n"
            f"    y = {a}.float() @ {b}.float()",
            f"n = {asked} {rng.choice(['<<', '>>', '^', '&', '|', '%'])} {count}\ny = {a} {rng.choice(['<<', '^'])} 1",
            f"{a}.stride[0]{rng.choice([' = 4', ''])}",
            f"y = {a}.item() + sum(t for t in {b})\nmax({a}, {b})\nfloat({a})",
            f"s, *r = {rng.choice([f'{a}.shape', f'{a}', '(1, 2, 3)', f'({a}, {b})', 'range(4)'])}\n"
            f"(i, j), k = (s, r), {asked}",
            f"y = {a}[{asked}:{b}.sum()]\ny = {a}.__getitem__((None,) * {asked} + (...,))",
            f"torch.save({a}, 'f')\nimport sys\nsys.getsizeof({a})\ntorch.finfo({a}.dtype).max",
            f"isinstance({a}, torch.Tensor) and type({a}) == torch.Tensor\n{a}.type(torch.float16).data",
            "raise ValueError('no')",
            "while True:\n    pass",
            f"global {a}",
            "return x",
        ]
    )
    names += [name for name in ("y", "z", "w", "loss", "q") if f"{name} =" in text]
    return text


def _source(rng: random.Random, names: list[str], depth: int) -> str:
    if depth and rng.random() < 0.3:
        return f"({_tensor(rng, names, depth - 1)})"
    return rng.choice(names)


def _operand(rng: random.Random, names: list[str]) -> str:
    return rng.choice(_NUMBERS) if rng.random() < 0.6 else _source(rng, names, 1)


def _tensor(rng: random.Random, names: list[str], depth: int) -> str:
    if rng.random() < 0.02:
        return rng.choice(_MISTAKES)
    text = _source(rng, names, depth)
    for _ in range(rng.randint(0, 3)):
        text = _applied(rng, names, text, depth)
    return text


def _applied(rng: random.Random, names: list[str], text: str, depth: int) -> str:
    """One operation more on the tensor ``text``."""
    kind = rng.random()
    if kind < 0.2:
        return text + _brackets(rng, names)
    if kind < 0.3:
        symbol = rng.choice(["+", "-", "*", "/", "//", "%", "**", "@", ">", "==", "<=", "&", "|"])
        return f"({text} {symbol} {_operand(rng, names)})"
    form, name = rng.choice(sorted(OPERATIONS))
    operation = OPERATIONS[form, name]
    given = _arguments(rng, names, operation)
    pick = f"[{rng.randint(-1, 2)}]" if operation.several and rng.random() < 0.9 else ""
    if operation.fields and rng.random() < 0.7:
        pick = f".{rng.choice(operation.fields)}"
    if form == "method":
        return f"{text}.{name}({', '.join(given)}){pick}"
    if form == "property":
        return f"{text}.{name}"
    if operation.subject:
        given.insert(0, text)
    before = {"torch": "torch.", "F": "F.", "bare": "", "nn": "nn.", "init": "nn.init."}[form]
    return f"{before}{name}({', '.join(given)}){pick}"


def _arguments(rng: random.Random, names: list[str], operation: Operation) -> list[str]:
    """Arguments of kinds the operation takes, in small sizes, now and then one too many or too few."""
    if operation.name == "einsum":
        tensors = [_source(rng, names, 0) for _ in range(rng.randint(1, 3))]
        equation = f"'{rng.choice(_EQUATIONS)}'" if "torch" in operation.forms else f"'{rng.choice(_AXES)}'"
        return [equation, *tensors] if "torch" in operation.forms else [*tensors, equation]
    if rng.random() < 0.6:  # as in the example of the operation, which works on some shapes
        _, _, tail = operation.example.partition(f"{operation.name}(")
        inner = tail[: tail.rfind(")")]
        return [inner.removeprefix("x, ") if operation.subject else inner] if inner else []
    given: list[str] = []
    for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3])):
        if not operation.takes:
            break
        given.append(random_argument(rng, names, rng.choice(operation.takes)))
    if operation.keywords and operation.keywords != ("*",) and given and rng.random() < 0.2:
        given[-1] = f"{rng.choice(operation.keywords)}={given[-1]}"
    return given


def random_argument(rng: random.Random, names: list[str], kind: str) -> str:
    ints = [str(rng.choice([-1, 0, 1, 1, 2, 2, 3, 4, 6])) for _ in range(rng.randint(0, 4))]
    match kind:
        case "int":
            queried = rng.choice(names)
            counts = [
                f"{queried}.size({rng.choice([0, 1, -1])})",
                f"{queried}.shape[0]",
                f"*{queried}.shape",
                "n",
                "n // 2",
            ]
            return rng.choice([*(ints or ["2"]), "1000000000"] * 2 + counts)
        case "float":
            return rng.choice(_NUMBERS)
        case "ints" | "data":
            return f"({''.join(f'{n}, ' for n in ints)})"
        case "bool":
            return rng.choice(["True", "False"])
        case "dtype":
            return f"torch.{rng.choice(['int32', 'float32', 'bfloat16', 'int64', 'uint8', 'bool', 'complex64'])}"
        case "format":
            return f"torch.{rng.choice(['channels_last', 'contiguous_format', 'preserve_format', 'channels_last_3d'])}"
        case "text":
            return f"'{rng.choice(_AXES)}'"
        case "tensor":
            return _source(rng, names, 1)
        case "tensors":
            return f"[{', '.join(_source(rng, names, 0) for _ in range(rng.randint(0, 3)))}]"
        case _:
            return "None"


def _brackets(rng: random.Random, names: list[str]) -> str:
    items = [rng.choice(_INDICES) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.2:
        items[-1] = rng.choice([f"{rng.choice(names)} > 2", rng.choice(names), "torch.tensor([1, 0])", "..."])
    return f"[{', '.join(items)}]"


def outcome(text: str, shape: tuple[int, ...], dtype: str = "int64") -> Trace | str:
    """The trace, or the reader's message; any other exception fails the test that called."""
    try:
        return trace(text, shape, dtype=dtype)
    except ExpressionError as problem:
        return str(problem)


def survives(text: str, shape: tuple[int, ...], dtype: str = "int64") -> Trace | str:
    """Run ``text`` and check what holds of every trace: caps, bounds, contiguity, storage sharing, values seen."""
    result = outcome(text, shape, dtype)
    if isinstance(result, str):
        assert result
        assert len(result) < 1_500, result
        return result
    assert len(result) <= limit("expression_steps") + 1
    total = inside = 0
    most = limit("counted_elements" if result.counted else "tensor_elements")
    for step in result:
        if step.storage < 0:
            assert not result.starts_with_x
            assert step.number == 0 or step.kind == "refused"
            continue
        assert step.layout.numel <= most, text
        assert bounds(step.layout, step.storage_elements).inside, text
        assert step.bytes_allocated <= 8 * most, text
        assert not (result.counted and (step.values or step.storage_values)), text
        assert not step.error_type.endswith("Warning"), (text, step.error_message)
        total += step.bytes_allocated if step.number else 0
        inside += step.bytes_inside
        assert step.bytes_total >= total + inside
        if step.kind == "refused":
            continue
        assert step.layout.is_contiguous == step.is_contiguous, text
        if step.verdict is not None and step.operation != "ravel":
            assert step.verdict.works == (step.kind != "copy" or step.layout.numel == 0), text
        if step.kind == "write":
            assert step.changed or not step.touched, text
    return result
