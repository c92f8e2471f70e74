"""Compute budget: from a model, its tokens and a cluster to FLOPs, days, hours and dollars, beside published runs."""

from __future__ import annotations

from core.planning import words, words_device, words_runs
from core.planning.figures_plan import answer_strip
from core.planning.outlook import PUBLISHED, peers_of
from core.planning.words_long import long_sequences
from pages.parts import show
from pages.parts.compute_flops import where
from pages.parts.compute_inputs import CAUSAL, TYPED, ask
from pages.parts.compute_layer import roof, which
from pages.parts.compute_linear import linear
from pages.parts.compute_moves import moves
from pages.parts.compute_parts import explain, parts, parts_title
from pages.parts.compute_runs import beside, comparisons, evidence_panel
from pages.parts.compute_shape import OWN
from pages.parts.compute_table import table
from pages.parts.compute_whole import split, whole
from pages.parts.inputs import Inputs
from pages.parts.registry import COMPUTE
from pages.parts.theme import TOKENS


def story(model: str, tokens: str | None, gpu: str, count: str, mfu: str, seq: str, **more: str) -> dict[str, object]:
    """One chip: every field shown, so that the chip is lit only when all of them match."""
    usual = {"find": "time", "dtype": "bf16", "attn": CAUSAL, "price": ""}
    fields = {"model": model, "tokens": tokens, "gpu": gpu, "count": count, "mfu": mfu, "seq": seq}
    return {name: text for name, text in {**usual, **fields, **more}.items() if text is not None}


NEXT = (
    "layers=48 hidden=4096 heads=32 kv_heads=4 head_dim=128 ffn=0 vocab=128000 glu=yes tied_head=no qk_norm=head "
    "experts.count=128 experts.per_token=8 experts.width=1536"
)

STORIES = {
    "Llama 3.1 405B as trained": story("Llama 3.1 405B", "15.6T", "H100 SXM", "16,384", "41%", "8192"),
    "Lecture: 70B on 1,024 H100": story(TYPED, "15T", "H100 SXM", "1024", "0.5", "8192", n="70B"),
    "GPT-3 175B": story("GPT-3 175B", "300B", "V100 SXM 32 GB", "10,000", "21.3%", "2048", dtype="fp16"),
    "Llama 2 70B": story("Llama 2 70B", "2T", "A100 SXM 80 GB", "2048", "40%", "4096"),
    "DeepSeek-V3": story("DeepSeek-V3", "14.8T", "H800 SXM", "2048", PUBLISHED, "4096", dtype="fp8"),
    "GPT-2 124M on one node": story("GPT-2 124M", "10B", "A100 SXM 80 GB", "8", "0.5", "1024"),
    "Our next model": story(
        OWN, None, "H100 SXM", "512", PUBLISHED, "8192", find="tokens", within="60 days", shape=NEXT
    ),
}


def page() -> None:
    """Inputs, the answer beside what published runs took, and the panels behind it."""
    inputs = Inputs(COMPUTE)
    chips = show.slot()
    asked = ask(inputs)
    show.input_errors(inputs)
    inputs.presets("Stories", STORIES, into=chips)

    plan, model, device = asked.plan, asked.model, asked.device
    with show.guarded("The answer"):
        show.answer(
            words.answer(asked.outlook, model, device, "P10–P90" if asked.published else ""),
            words.assumptions(asked.outlook, device, asked.dtype),
        )
        if longer := long_sequences(asked.outlook, model, asked.seq_len):
            show.note(longer)
        if caution := words_device.ceiling(plan, device, asked.dtype):
            show.error(caution)

    with show.guarded("The range of published runs"):
        peers = peers_of(asked.outlook, asked.seen)
        show.says(words_runs.comparables(asked.outlook, asked.seen, published=asked.published))
        show.chart(
            answer_strip(asked.outlook, peers, asked.seen.mfu, TOKENS),
            alt=words_runs.comparables(asked.outlook, asked.seen, published=asked.published).replace("**", ""),
            key="compute:answer",
        )
    with show.guarded("The published run of this model"):
        beside(asked)

    for name, title, panel in (
        ("flops", "Where do the FLOPs go", lambda: where(inputs, asked)),
        ("linear", "From one matmul to 6ND", lambda: linear(inputs)),
        ("which", "Which MFU? One run under every convention", lambda: which(inputs, asked)),
        ("runs", "Evidence: the published runs, and how well they predict", lambda: evidence_panel(inputs, asked)),
        ("moves", "What moves the answer", lambda: moves(inputs, asked)),
        ("roof", f"Roofline of a layer on {device.name}", lambda: roof(inputs, asked)),
        ("whole", "The whole run: failures, checkpoints, energy, CO₂", lambda: whole(inputs, asked)),
        ("split", "Parameters or tokens? The compute-optimal split", lambda: split(asked)),
        ("parts", parts_title(asked), lambda: parts(asked)),
        ("table", "The plan as a table, to take away", lambda: table(inputs, asked)),
    ):
        with inputs.panel(name, title) as opened:
            if opened.open:
                panel()

    work = asked.outlook.work.explanations if asked.outlook.work else ()
    with show.guarded("How this is computed"):
        show.how(
            lambda: [*work, *explain(asked, comparisons(asked))],
            key="compute:how",
            notes=[note for note in (words.SCOPE, words_runs.given_up(asked.seen)) if note],
        )
    show.footer(inputs)


show.body(page)
