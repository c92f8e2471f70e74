"""What people typed stays the text that it is: in Markdown, in sentences of our markup, in figures, and as a name."""

from __future__ import annotations

import html
import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.views.common.chart import as_typed
from core.views.common.markup import markdown_text, rich, safe_text, unlinked
from core.wording import cleaned, unmarked

ACTIVE = (
    "![x](http://a.example/x)",
    '<img src="http://a.example/x">',
    "[x](http://a.example) [x] [x]: http://a.example",
    "<http://a.example> HTTPS://a.example www.a.example x@a.example",
    "**a** _b_ ~~c~~ `d` # e | f",
    "$x$ $$\\href{http://a.example}{x}$$ \\(x\\)",
    ":red[x] :material/home: :streamlit: :tada: ::x[y] :::x",
    "1. x",
    "123) x",
    "- x",
    "--- === +++",
    "> x",
    "    x",
    "a -> b <- c -- d >= e",
    "&lt;b&gt; &#33;",
    "#12 @everyone",
    "x\ny\u2028z",
    "\\",
)
WHAT_IS_READ_AGAIN = re.compile(
    r"https?://|www\.|[\w.+-]@[\w-]|:[\w+-]+:|(?<!\w)[@#]\w|<->|->|<-|--|>=|<=|~=", re.IGNORECASE
)
"""What GitHub or Streamlit looks for in plain text, when escapes are gone."""

anything = st.text(
    alphabet=st.sampled_from("ab1 \n\\`*_{}[]()<>#+-.!|~$&:@/w=") | st.characters(codec="utf-8"), max_size=40
)


def examples(test):  # type: ignore[no-untyped-def]
    for item in ACTIVE:
        test = example(item)(test)
    return test


@examples
@given(anything)
def test_typed_text_is_no_markdown(text: str) -> None:
    """Every mark is escaped, nothing of what is read once more is whole, and what is left when both are read is the
    text on one line."""
    result = markdown_text(text)
    assert "\n" not in result
    plain = re.sub(r"\\[!-/:-@\[-`{-~]", "", result)
    assert not re.search(r"[\\`*_{}\[\]<>&#|~$]", plain)
    assert not re.match(r"[-+=]|\d{1,9}[.)]", result)
    message = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", result)
    assert not WHAT_IS_READ_AGAIN.search(message)
    unseen = str.maketrans("", "", "\u2060\u2068\u2069")
    assert message.translate(unseen) == " ".join(text.split()).translate(unseen)


@examples
@given(anything)
def test_our_own_sentences_have_no_address(text: str) -> None:
    assert not re.search(r"https?://|www\.|\w@\w", unlinked(text), re.IGNORECASE)


@examples
@given(anything)
def test_typed_text_in_a_sentence_has_none_of_its_markup(text: str) -> None:
    """Whatever stands around it: bold text, code, and other names."""
    text = " ".join(text.replace("\0", "").split()) or "x"
    sentence = rich(f"**{unmarked(text)}** beside {unmarked(text)}, `x`")
    unseen = str.maketrans("", "", "\0\u2060\u2068\u2069")
    message = safe_text(text).translate(unseen)
    assert sentence.translate(unseen) == f'<b>{message}</b> beside {message}, <code class="np-mono">x</code>'


@examples
@given(anything)
def test_typed_text_in_a_figure_has_no_tag(text: str) -> None:
    assert "<" not in as_typed(text)
    assert html.unescape(as_typed(text)) == text


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("a\u202eb\u2066c\u200fd", "abcd"),
        ("a\u200bb\ufeffc\u00add\u2060e", "abcde"),
        ("\u200b\u200d\u3164\u2800", ""),
        ("e\u0301", "e\u0301"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("a" + "\u0301" * 60 + "b", "a" + "\u0301" * 4 + "b"),
        (" a\tb\0\ud800 ", "ab"),
    ],
)
def test_a_name_has_what_can_be_seen(typed: str, name: str) -> None:
    assert cleaned(typed, 80) == name


@given(st.text(max_size=60))
def test_a_clean_name_stays(text: str) -> None:
    once = cleaned(text, 40)
    assert cleaned(once, 40) == once
    assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in once)


@given(st.text(max_size=60))
def test_nothing_on_a_page_turns_what_follows(text: str) -> None:
    assert not set("\u202a\u202b\u202d\u202e\u2066\u2067") & set(safe_text(text))


def test_a_name_from_right_to_left_stands_apart() -> None:
    """Else a number that follows it would be read before it."""
    assert unmarked("עברית") == markdown_text("עברית") == "\u2068עברית\u2069"
    assert unmarked("70B · 15T") == "70B · 15T"
