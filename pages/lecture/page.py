"""The lecture, checked: each claim, the value that core recomputes, a verdict, and a link to the evidence."""

from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st

from core.fields import Form, choice, switch
from core.lecture.catalogue import CLAIMS, findings
from core.lecture.claims import GROUPS, VERDICTS, Claim, Example
from core.messages import message, messages
from core.sources import CS336
from core.views.lecture.text import answer_text
from pages.common import show
from pages.common.experiments.panel import draw_experiments, switches
from pages.common.inputs import Inputs
from pages.common.registry import LECTURE, PAGE, TENSORS
from pages.common.theme import projecting
from pages.lecture.deck import deck_panel
from pages.lecture.matmul import FIELDS, matmul_panel

ALL = "All"
ROLE = {
    "exact": "optimizer",
    "holds": "optimizer",
    "rule of thumb": "activations",
    "convention": "master",
    "needs care": "gradients",
}
_WHOLE = 40  # claims that are shown with their statements; more are only named, so that the page can be scanned

TOPIC = choice("topic", message("lecture.field.topic"), [*GROUPS, ALL], GROUPS[0], few=True)
VERDICT = choice("verdict", message("lecture.field.verdict"), [ALL, *VERDICTS], ALL)
CLAIM = choice(
    "claim",
    message("lecture.field.claim"),
    [ALL, *CLAIMS],
    ALL,
    short=[ALL, *(f"{claim.number} {claim.name}" for claim in CLAIMS.values())],
)
WRONG = switch("wrong", message("lecture.field.wrong"), False, help=message("lecture.field.wrong_help"))
PANEL = switch("linear", message("lecture.panel.linear"), False, part="panels")
GIVE = switch("deck", message("lecture.panel.deck"), False, part="panels")


def _every_topic(texts: Mapping[str, str]) -> Mapping[str, str]:
    """Search a single claim, and corrections, under every topic where the link names none."""
    wide = texts.get(WRONG.id) == "true" or texts.get(CLAIM.id, ALL) != ALL
    return {TOPIC.id: ALL} if wide and TOPIC.id not in texts else {}


FORM = Form("l", (TOPIC, VERDICT, CLAIM, WRONG, PANEL, GIVE, *FIELDS, *switches(LECTURE.id)), imply=_every_topic)


def page() -> None:
    """Draw the filters, the claims with their verdicts, and the panels."""
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
        _slide(claims)
    elif claims:
        _answer(claims)
    else:
        show.answer(message("lecture.answer.none"), message("lecture.answer.none_detail"))
    if (wrong or wanted != ALL) and not projecting():
        _examples(claims)
    with inputs.panel(PANEL.id, PANEL.label) as opened:
        if opened.open:
            matmul_panel(inputs)
    draw_experiments(inputs)
    with inputs.panel(GIVE.id, GIVE.label) as opened:
        if opened.open:
            deck_panel()
    show.note(message("lecture.documents"))
    show.source(CS336)
    show.footer(inputs)


def _slide(claims: Sequence[Claim]) -> None:
    """Draw what fits a wall: one claim with its finding, or several by their numbers."""
    if len(claims) == 1:
        (claim,) = claims
        found = message("lecture.slide.found", finding=findings()[claim.id].value, verdict=claim.verdict)
        show.answer(found)
        columns = (message("lecture.heading.claim"), message("lecture.heading.verdict"))
        row = (show.remarked(claim.text, claim.remark), show.badge(claim.verdict, ROLE[claim.verdict]))
        show.small_table(columns, [row], words=None)
        return
    show.answer(answer_text(claims))
    topics: list[tuple[str, show.Html]] = []
    for group in GROUPS:
        of_group = [claim for claim in claims if claim.group == group]
        marks = ((one, "!" if one.verdict == "needs care" else "✓") for one in of_group)
        badges = (show.badge(f"{one.number} {mark}", ROLE[one.verdict]) for one, mark in marks)
        topics += [(group, show.Html(" ".join(badges)))] if of_group else []
    show.small_table((message("lecture.heading.topic"), message("lecture.heading.marks")), topics, words=None)


def _answer(claims: Sequence[Claim]) -> None:
    """Draw how many claims need care, and each claim with its finding."""
    found = findings()
    show.answer(answer_text(claims), message("lecture.answer.detail"))
    brief = len(claims) > _WHOLE
    if brief:
        show.note(message("lecture.brief"))
    with st.container(key="l_brief" if brief else "l_whole"):
        show.small_table(
            (
                message("lecture.heading.number"),
                show.Column(message("lecture.heading.claim"), whole=brief),
                *messages("lecture.heading", "found verdict evidence"),
            ),
            [
                (
                    claim.number,
                    claim.name if brief else show.remarked(claim.text, claim.stands_in),
                    found[claim.id].value if brief else show.remarked(found[claim.id].value, claim.remark),
                    show.badge(claim.verdict, ROLE[claim.verdict]),
                    _evidence_link(claim),
                )
                for claim in claims
            ],
            words=None,
        )
    show.how_each(
        lambda: [
            show.DerivationPart(one.number, one.name, found[one.id].how or "", found[one.id].explanations)
            for one in claims
        ],
        key="lecture:how",
    )


def _examples(claims: Sequence[Claim]) -> None:
    """Draw the code that shows each claim, and its output now."""
    for claim in claims:
        if claim.example and len(claims) == 1:
            with show.question(f"{claim.number} {claim.text}"):
                _example(claim, claim.example)
        elif claim.example:
            title = message("lecture.code.title", number=claim.number, name=claim.name)
            with show.fold(title, key=f"lecture:lines:{claim.id}") as lines:
                if lines.open:
                    _example(claim, claim.example)


def _example(claim: Claim, example: Example) -> None:
    st.code(example.code, language="python", wrap_lines=True)
    st.code(example.output(), language=None, wrap_lines=True)
    show.note(claim.remark)
    if example.on_tensors:
        show.next_page(message("lecture.code.open"), TENSORS, {"x": example.code})


def _evidence_link(claim: Claim) -> str:
    """Return the link to the page that shows the claim, or to its code where no page does."""
    if claim.link is None:
        return show.link(message("lecture.code.link"), LECTURE, {"claim": claim.id})
    page = PAGE[claim.link.page]
    return show.link(page.title, page, claim.link.fields, at=claim.link.at)


show.draw_page(page)
