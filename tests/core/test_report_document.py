"""A report as one file: what it says is the answer's, it needs nothing else, and no name can do harm in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from core.planning.comparison.entry import Entry
from core.planning.plan_limits import limit_report
from core.views.comparison import text as comparison_text
from core.views.plan import text as plan_text
from core.views.plan import text_limits
from core.views.report.document import as_html
from core.wording import plain
from tests.core.report_cases import HOSTILE, LINK, ODD, PAGE_PRESETS, report
from tests.every import every

_TAGS = (
    "html head meta title style body main section footer h1 h2 h3 p a div span b small sup code figure table caption "
    "thead tbody tr th td dl dt dd details summary script"
)
TAGS = frozenset(_TAGS.split())
"""All that a report is made of."""

VOID = {"meta", "br", "img", "link", "input", "hr", "base"}


class Reader(HTMLParser):
    """The tags of a document with their attributes, and what stands in each element of a class."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.said: list[tuple[tuple[str, ...], str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.tags.append((tag, named))
        if tag not in VOID:
            self.open.append(f"{tag}.{named.get('class', '')}")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop().split(".")[0] == tag

    def handle_data(self, data: str) -> None:
        self.said.append((tuple(self.open), data))

    def text(self, of: str = "main") -> str:
        """All that stands in elements whose name and class begin so."""
        found = "".join(data for where, data in self.said if any(one.startswith(of) for one in where))
        return found.replace("\u00a0", " ")


def read(*entries: Entry, link: str = LINK) -> Reader:
    """The document of these plans, whole."""
    found = Reader(as_html(report(*entries, link=link)))
    assert found.open == []
    return found


def alone(found: Reader) -> None:
    """It loads nothing, sends nothing, and has the browser run only the two scripts that draw its pictures."""
    assert {tag for tag, _ in found.tags} <= TAGS
    for tag, named in found.tags:
        assert not {"src", "srcset", "data", "action", "background", "xlink:href"} & named.keys()
        assert not [name for name in named if name.startswith("on")]
        assert "url(" not in named.get("style", "")
        if "href" in named:
            assert tag == "a"
            assert named["href"].startswith(("https://", "http://"))
    assert not re.search(r"url\(|@import|expression\(", found.text("style"))
    (policy,) = (named["content"] for tag, named in found.tags if named.get("http-equiv"))
    assert "default-src 'none'" in policy
    scripts = [text for where, text in found.said if where and where[-1] == "script."]
    assert len(scripts) == 2
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    assert f"script-src {allowed};" in policy


def shown(text: str) -> str:
    """A sentence as the document's text has it: without marks, powers as digits."""
    plainly = plain(text).translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "−0123456789"))
    return plainly.replace("\u00a0", " ").replace("^", "").replace("`", "")


@pytest.mark.sweep(6)
@pytest.mark.parametrize("name", PAGE_PRESETS)
def test_a_preset_is_reported_whole(name: str) -> None:
    entry = PAGE_PRESETS[name]
    found, a = read(entry), entry.answer
    alone(found)
    assert found.text("p.answer") == shown(plan_text.headline(a))
    assert shown(plan_text.mfu_text(a)) in found.text()
    assert shown(text_limits.limits_line(a, limit_report(a))) in found.text()
    assert all(shown(line) in found.text() for line in (*plan_text.cautions(a), plan_text.does_not_fit(a)))
    explained = [*a.explain(), *a.memory.explain()]
    assert all(one.title.partition(":")[0] in found.text("h3") for one in explained)
    pictures = [named for _, named in found.tags if "data-figure" in named]
    assert len(pictures) == 2
    assert all(
        one["aria-label"] and one["role"] == "img" and json.loads(one["data-figure"])["data"] for one in pictures
    )
    sources = {source.url for one in explained for source in one.sources if source.url}
    assert sources <= {named.get("href") for _, named in found.tags}


def test_several_plans_are_told_beside_each_other() -> None:
    entries = list(PAGE_PRESETS.values())[:4]
    made = report(*entries)
    found = read(*entries)
    alone(found)
    assert found.text("p.answer").startswith(shown(" ".join(comparison_text.answer(made.plans, 0))))
    for entry in entries:
        assert shown(plan_text.headline(entry.answer)) in found.text("p.answer")
        assert entry.name in found.text("th")
    for _, cells in comparison_text.result_rows(made.plans, 0):
        assert all(shown(text) in found.text("td") for text, _ in cells)


def test_a_plan_without_answer_has_its_reason_among_others() -> None:
    entries = [*list(PAGE_PRESETS.values())[:2], ODD["no answer"]]
    reason = report(ODD["no answer"]).plans[0].problem
    assert reason
    assert shown(reason) in read(*entries).text("p.wrong")
    alone(read(ODD["no answer"], ODD["no answer"]))


@every("name", HOSTILE)
def test_a_name_is_text_and_nothing_else(name: str) -> None:
    first, second = list(PAGE_PRESETS.values())[:2]
    for entries in ([Entry(name, first.texts)], [Entry(name, first.texts), second]):
        found = read(*entries)
        alone(found)
        heading = found.text("h1") if len(entries) == 1 else found.text("h3")
        # The page keeps out characters that turn the direction of all that follows them.
        assert " ".join(name.replace("\u202e", "").split()) in " ".join(heading.split()), heading


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", 'https://x.example/" onclick=alert(1)', "compute-budget?v=3", ""]
)
def test_only_an_address_in_the_web_is_a_link(link: str) -> None:
    found = read(next(iter(PAGE_PRESETS.values())), link=link)
    alone(found)
    assert not [named for _, named in found.tags if named.get("class") == "open"]
