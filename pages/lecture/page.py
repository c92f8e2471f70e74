"""The lecture, checked: each claim, the value recomputed by core, a verdict, and a link that opens it."""

from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st

from core.fields import Form, choice, switch
from core.lecture.catalogue import CLAIMS, GROUPS, VERDICTS, Claim, Finding, findings, summary
from core.lecture.claims import DOCUMENTS, Example
from core.sources import CS336
from pages.common import show
from pages.common.experiments.panel import draw_experiments, switches
from pages.common.inputs import Inputs
from pages.common.registry import LECTURE, PAGE, TENSORS
from pages.common.theme import projecting
from pages.lecture.deck import deck
from pages.lecture.matmul import FIELDS, matmul_panel

ALL = "All"
ROLE = {
    "exact": "optimizer",
    "holds": "optimizer",
    "rule of thumb": "activations",
    "convention": "master",
    "needs care": "gradients",
}
_WHOLE = 40  # claims that are shown with their whole statement; more are named, so that a page can be scanned
_SIGNS = {"needs care": "!"}


TOPIC = choice("topic", "Topic", [*GROUPS, ALL], GROUPS[0], few=True)
VERDICT = choice("verdict", "Verdict", [ALL, *VERDICTS], ALL)
CLAIM = choice(
    "claim",
    "Claim",
    [ALL, *CLAIMS],
    ALL,
    short=[ALL, *(f"{claim.number} {claim.name}" for claim in CLAIMS.values())],
)
WRONG = switch("wrong", "Wrong in the notes", False, help="With lines of code that show it, run here and now.")
PANEL = switch("linear", "From one matmul to 6ND", False, part="panels")
GIVE = switch("deck", "Give the lecture: slides across pages, with notes", False, part="panels")


def _every_topic(texts: Mapping[str, str]) -> Mapping[str, str]:
    """A claim alone, and what is wrong, are looked for under every topic, where none is named."""
    wide = texts.get(WRONG.id) == "true" or texts.get(CLAIM.id, ALL) != ALL
    return {TOPIC.id: ALL} if wide and TOPIC.id not in texts else {}


FORM = Form("l", (TOPIC, VERDICT, CLAIM, WRONG, PANEL, GIVE, *FIELDS, *switches(LECTURE.id)), imply=_every_topic)


def page() -> None:
    """Filters, the verdicts in one sentence, and the table of claims."""
    inputs = Inputs(LECTURE, FORM)
    inputs.draw(TOPIC, changed=partial(inputs.put, CLAIM.id, ALL))
    cells = st.columns([1, 2, 1], vertical_alignment="bottom")
    for cell, field in zip(cells, (VERDICT, CLAIM, WRONG), strict=True):
        with cell:
            inputs.draw(field, changed=partial(inputs.put, CLAIM.id if field is VERDICT else TOPIC.id, ALL))
    show.input_errors(inputs)

    group, verdict, wanted, wrong = (inputs.reading.values[field.id] for field in (TOPIC, VERDICT, CLAIM, WRONG))
    claims = [
        claim
        for claim in CLAIMS.values()
        if (wanted == claim.id if wanted != ALL else group in (ALL, claim.group))
        and (wanted != ALL or verdict in (ALL, claim.verdict))
        and (not wrong or claim.verdict == "needs care")
    ]
    if claims and projecting():
        _slide(claims, findings())
    elif claims:
        _answer(claims)
    else:
        show.answer("No claim matches these filters.", "Set one of them back to “All”.")
    if (wrong or wanted != ALL) and not projecting():
        _examples(claims)
    with inputs.panel(PANEL.id, PANEL.label) as opened:
        if opened.open:
            matmul_panel(inputs)
    draw_experiments(inputs)
    with inputs.panel(GIVE.id, GIVE.label) as opened:
        if opened.open:
            deck()
    places = "; ".join(f"**{name}**, {document}" for name, document in DOCUMENTS.items())
    show.note(f"The claims are put in our words, in the lecture’s order. Where they stand: {places}.")
    show.source(CS336)
    show.footer(inputs)


def _slide(claims: Sequence[Claim], by_claim: Mapping[str, Finding]) -> None:
    """What fits a wall: one claim with what came out, several by their numbers."""
    if len(claims) == 1:
        (claim,) = claims
        show.answer(f"{by_claim[claim.id].value.rstrip('.')}: **{claim.verdict}**.")
        row = (show.remarked(claim.text, claim.remark), show.badge(claim.verdict, ROLE[claim.verdict]))
        show.small_table(("The lecture", "Verdict"), [row], words=None)
        return
    show.answer(summary(claims))
    topics: list[tuple[str, show.Html]] = []
    for group in GROUPS:
        of_group = [claim for claim in claims if claim.group == group]
        words = (show.badge(f"{one.number} {_SIGNS.get(one.verdict, '✓')}", ROLE[one.verdict]) for one in of_group)
        if of_group:
            topics.append((group, show.Html(" ".join(words))))
    show.small_table(("Topic", "Claims: ✓ stands, ! needs care"), topics, words=None)


def _answer(claims: Sequence[Claim]) -> None:
    """How many stand, and each with what was found."""
    by_claim = findings()
    contradicted = [claim.number for claim in claims if not by_claim[claim.id].confirms]
    part = "" if len(claims) == len(CLAIMS) else f" {summary(tuple(CLAIMS.values())).replace('Of', 'In all, of')}"
    show.answer(
        summary(claims) + (f" The computation contradicts **{', '.join(contradicted)}**." if contradicted else ""),
        "Every verdict is checked by computing it: "
        + "; ".join(f"**{word}**, {meaning}" for word, meaning in VERDICTS.items())
        + f".{part}",
    )
    brief = len(claims) > _WHOLE
    if brief:
        show.note("In short; a topic, a verdict or a claim alone shows each statement, where it stands and the remark.")
    with st.container(key="l_brief" if brief else "l_whole"):
        show.small_table(
            ("No.", show.Column("Claim", whole=brief), "Recomputed now", "Verdict", "Try it"),
            [
                (
                    claim.number,
                    claim.name if brief else show.remarked(claim.text, claim.stands_in),
                    by_claim[claim.id].value if brief else show.remarked(by_claim[claim.id].value, claim.remark),
                    show.badge(claim.verdict, ROLE[claim.verdict]),
                    _opens(claim),
                )
                for claim in claims
            ],
            words=None,
        )
    show.how_each(
        lambda: [
            show.DerivationPart(claim.number, claim.name, by_claim[claim.id].how, by_claim[claim.id].explanations)
            for claim in claims
        ],
        key="lecture:how",
    )


def _examples(claims: Sequence[Claim]) -> None:
    """Lines of code that show each claim, or what is wrong with it, and what they print here and now."""
    for claim in claims:
        if claim.example and len(claims) == 1:
            with show.question(f"{claim.number} {claim.text}"):
                _example(claim, claim.example)
        elif claim.example:
            with show.fold(
                f"{claim.number} Lines that show it: {claim.name}", key=f"lecture:lines:{claim.id}"
            ) as lines:
                if lines.open:
                    _example(claim, claim.example)


def _example(claim: Claim, example: Example) -> None:
    st.code(example.code, language="python", wrap_lines=True)
    st.code(example.output(), language=None, wrap_lines=True)
    show.note(claim.remark)
    if example.on_tensors:
        show.next_page("Step by step in Tensor views", TENSORS, {"x": example.code})


def _opens(claim: Claim) -> str:
    """The link to the page that shows the claim; where none does, to the lines that do."""
    if claim.link is None:
        return show.link("its code", LECTURE, {"claim": claim.id})
    page = PAGE[claim.link.page]
    return show.link(page.title, page, claim.link.fields, at=claim.link.at)


show.draw_page(page)
