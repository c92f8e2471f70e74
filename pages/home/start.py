"""Home: the lecture's three napkin questions as live sentences, each a link into its page with the same inputs."""

import streamlit as st

from core.floats import FORMATS
from core.floats.compare import Stored, store_everywhere
from core.floats.story import as_read
from core.floats.text import FloatTextError, number_text, parse
from core.floats.view import explain_value
from core.hardware.accelerators import accelerators, find
from core.limits import limit
from core.planning.budget import Plan, budget, explain_days
from core.planning.runs import printed_mfu
from core.training import TrainingMemory, account, find_optimizer, find_policy, words
from core.units import format_count, format_quantity
from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.registry import COMPUTE, FLOATS, HOME, MEMORY

HOW_LONG, HOW_LARGE = "How long does it take?", "How large a model fits?"
HOW_EXACT = "What does a small number become?"
TINY = "1e-8"
SHOWN = ("fp16", "bf16", "fp32")
DEVICES = [a.name for a in accelerators() if a.peak("bf16") > 0 and a.memory_bytes > 0]


def typed(inputs: Inputs, name: str) -> str:
    """The text in force of a field, to hand it on in a link."""
    return inputs.fields[inputs.key(name)]


def how_long(inputs: Inputs) -> Plan | None:
    """Days of a training run; nothing where that failed."""
    with show.question(HOW_LONG):
        place = show.slot()
        cells = st.columns([1, 1, 1, 1.2, 0.8])
        with cells[0]:
            params = inputs.quantity("n", "Parameters", "70B", "count", low=1, high=limit("parameters"), whole=True)
        with cells[1]:
            tokens = inputs.quantity("tokens", "Tokens", "15T", "count", low=1, high=limit("tokens"), whole=True)
        with cells[2]:
            count = inputs.quantity(
                "count", "Accelerators", "1024", "count", low=1, high=limit("accelerators"), whole=True
            )
        with cells[3]:
            device = find(inputs.choice("gpu", "Accelerator", DEVICES, "H100 SXM"))
        with cells[4]:
            mfu = inputs.quantity(
                "mfu",
                "MFU",
                "0.5",
                "ratio",
                low=0.001,
                high=1.0,
                help="Model FLOPs utilisation: the share of the accelerators’ peak that goes into the model’s own "
                f"arithmetic. {printed_mfu().text}",
            )
        show.input_errors(inputs)
        plan = Plan(params, tokens, count, device.peak("bf16"), mfu)
        made = budget(plan)
        with place:
            show.answer(
                f"Training {format_count(params)} parameters on {format_count(tokens)} tokens takes "
                f"**{format_quantity(made.seconds, 'seconds')}** on {format_count(count)}\u00a0×\u00a0{device.name}.",
                f"{format_quantity(made.flop, 'flop')} (6 FLOPs per parameter and token), at "
                f"{format_quantity(mfu, 'ratio')} of the dense bf16 peak, "
                f"{format_quantity(plan.peak, 'flop_per_s')} each.",
            )
        show.onwards(
            "Where the FLOPs go, what it costs, what published runs took",
            COMPUTE,
            {
                "model": "Typed parameters",
                **{key: typed(inputs, key) for key in ("n", "tokens", "count", "gpu", "mfu")},
            },
        )
        return plan
    return None


def how_large(inputs: Inputs) -> TrainingMemory | None:
    """The largest model whose states fit; nothing where that failed."""
    with show.question(HOW_LARGE):
        place = show.slot()
        cells = st.columns([1, 1.4, 2.6])
        with cells[0]:
            held = inputs.quantity(
                "k", "How many accelerators", "8", "count", low=1, high=limit("accelerators"), whole=True
            )
        with cells[1]:
            holder = find(inputs.choice("mem", "Accelerator, memory of each", DEVICES, "H100 SXM"))
        show.input_errors(inputs)
        # Of whatever size: asked is only the largest.
        memory = account(
            1, find_optimizer("AdamW"), find_policy("fp32"), accelerators=int(held), memory=holder.memory_bytes
        )
        with place:
            show.answer(
                words.holding(memory, words.device_name(holder.name, holder.memory_bytes)),
                words.what_is_counted(memory),
            )
        show.onwards(
            "Other optimizers and precisions, byte by byte",
            MEMORY,
            {
                "n": words.largest_typed(memory),
                "opt": "AdamW",
                "prec": "fp32",
                "shard": "sharded",
                "count": typed(inputs, "k"),
                "gpu": typed(inputs, "mem"),
            },
        )
        return memory
    return None


def how_exact(inputs: Inputs) -> list[Stored] | None:
    """What a small number becomes in three formats; nothing where that failed."""
    with show.question(HOW_EXACT):
        place = show.slot()
        cells = st.columns([1, 4])
        with cells[0]:
            text = inputs.text("x", "A number", TINY, max_chars=limit("float_chars"))
        try:
            number = parse(text, FORMATS["fp32"])
            inputs.keep("x", text)
        except FloatTextError as problem:
            text = inputs.last_good("x", TINY)
            number = parse(text, FORMATS["fp32"])
            inputs.fail(f"A number: {problem}", f"Still using {text}.")
        show.input_errors(inputs)
        kept = store_everywhere(number, [FORMATS[name] for name in SHOWN])
        with place:
            show.answer(
                f"{as_read(number)} becomes " + ", ".join(f"**{one.text}** in {one.fmt.title}" for one in kept) + ".",
                "fp16 spends its bits on precision, bf16 on range; fp32 has both and takes twice the memory.",
            )
        show.onwards(
            "Flip its bits, and see it in every format",
            FLOATS,
            {"x": number_text(text, FORMATS["fp32"]), "fmt": "fp16"},
        )
        return kept
    return None


def page() -> None:
    """The three questions, and how their answers are computed."""
    inputs = Inputs(HOME)
    plan, memory, kept = how_long(inputs), how_large(inputs), how_exact(inputs)
    show.how(
        lambda: [
            *([HOW_LONG, *explain_days(plan)] if plan else ()),
            *([HOW_LARGE, *memory.explain_largest()] if memory else ()),
            *([HOW_EXACT, *(step for one in kept for step in explain_value(one.view))] if kept else ()),
        ],
        key="home:how",
    )
    show.footer(inputs)


show.body(page)
