"""What is sent again, and what is held afterwards, is what Streamlit would have made anew."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.cursor import RunningCursor
from streamlit.delta_generator import DeltaGenerator
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime
from streamlit.runtime.state import SessionState
from streamlit.runtime.state.session_state import WStates
from streamlit.runtime.state.session_state_proxy import SessionStateProxy

from pages.streamlit_patches import again
from pages.streamlit_patches.again import COMMANDS, draw_again
from pages.streamlit_patches.state import spare_state
from tests.app.test_post import Client, told, visited

SCRIPT = """
import streamlit as st

def chosen():
    st.session_state["changes"] = st.session_state.get("changes", 0) + 1

@st.fragment
def body():
    state = st.session_state
    chips = st.container()
    if state.get("typed") == "put":
        state["put"] = "by the script"
    cells = st.columns([1, 2])
    cells[0].text_input("Typed", "first", key="typed", max_chars=20, bind="query-params")
    with cells[1]:
        st.selectbox("Choice", ("a", "b", "c"), index=1, key="choice", on_change=chosen, bind="query-params")
    st.text_input("Put", "nothing", key="put", bind="query-params")
    st.segmented_control("Few", ("x", "y"), default="x", required=True, key="few", bind="query-params")
    st.toggle("Switch", key="switch", bind="query-params", help="What it does.")
    st.slider("Slide", 0, 9, 3, key="slide", bind="query-params")
    st.number_input("Number", 0, 9, key="number")
    st.text_input("Shown", "always", key="shown", disabled=True)
    with st.expander("Fold", key="fold", on_change="rerun", bind="query-params") as fold:
        if fold.open:
            st.text_input("Within", "", key="within", bind="query-params")
    if st.button("Press", key="press"):
        st.html("<p>pressed</p>")
    if state["switch"]:
        st.markdown("on, which moves all that follows")
    with st.container(key="row", horizontal=True):
        st.html(f"<p>{state['typed']} {state['slide']}</p>").html("<p>in its place</p>")
        st.html("<p>always the same</p>")
    chips.pills("Chips", ["one", "two"], key="chips")
    st.html(f"<p>{state.get('changes', 0)} {'number' in state} {state.get('absent', 'no')} {state.get('within')}</p>")

body()
st.text("after")
"""

STEPS: tuple[Mapping[str, Any], ...] = (
    {},
    {"typed": "second"},
    {"typed": "third"},
    {"choice": "c"},
    {},
    {"press": True},
    {"slide": 4},
    {"fold": True},
    {"within": "deep"},
    {"fold": False},
    {"switch": True},
    {"typed": "put"},
    {"put": "by hand"},
    {"typed": "first"},
    {"few": "y", "number": 5},
    {"shown": "forged"},
    {"choice": "none of them"},
    {"switch": False},
    {"chips": "two"},
    {"fold": True},
    {"whole": True},
    {"typed": "after all"},
    {"slide": 4},
)
"""What a visitor changes, run after run; "whole" asks for the whole page."""

_KINDS = {bool: "bool_value", str: "string_value", int: "double_value"}


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Streamlit's own ways again after a test that replaces them."""
    for name in COMMANDS:
        owner = next(kind for kind in DeltaGenerator.__mro__ if name in vars(kind))
        monkeypatch.setattr(owner, name, getattr(owner, name))
        monkeypatch.setattr(st, name, getattr(st, name))
    monkeypatch.setattr(SessionState, "_compact_state", SessionState._compact_state)
    monkeypatch.setattr(WStates, "__getitem__", WStates.__getitem__)
    for name in ("get", "__contains__", "__setitem__"):
        monkeypatch.setattr(SessionStateProxy, name, getattr(SessionStateProxy, name))
    monkeypatch.setattr(Runtime, "_instance", None)
    yield
    if "__deepcopy__" in vars(RunningCursor):
        del RunningCursor.__deepcopy__


def widgets(client: Client) -> dict[str, str]:
    """Key → id of every widget that came."""
    found: dict[str, str] = {}
    for _, message in client.seen:
        element = message.delta.new_element
        kind = element.WhichOneof("type")
        name = getattr(getattr(element, kind), "id", "") if kind else message.delta.add_block.expandable.id
        found |= {name.rsplit("-", 1)[-1]: name} if name else {}
    return found


def browser(all_fields: bool, held: list[Any]) -> Callable[[Runtime, str, Client], Any]:
    """A visit of all steps. all_fields: every change comes with what all fields hold, as a browser sends them, and with
    the address. held: takes what the session holds after each step."""

    async def visit(server: Runtime, session: str, client: Client) -> None:
        says: dict[str, Any] = {}
        for step in STEPS:
            ask, ended, ids = BackMsg(), client.ended, widgets(client)
            fragment = next((m.delta.fragment_id for _, m in client.seen if m.delta.fragment_id), "")
            request = ask.rerun_script
            request.query_string = "choice=a&slide=7"
            request.fragment_id = "" if "whole" in step else fragment
            request.cached_message_hashes.extend(m.hash for _, m in client.seen if m.metadata.cacheable)
            says = {**(says if all_fields else {}), **step}
            for key, value in says.items():
                if key not in ids:
                    continue
                widget = request.widget_states.widgets.add()
                widget.id = ids[key]
                if key == "chips":
                    widget.string_array_value.data.append(value)
                elif key in ("slide", "number"):
                    if key == "slide":
                        widget.double_array_value.data.append(value)
                    else:
                        widget.double_value = value
                elif key == "few":
                    widget.string_array_value.data.append(value)
                elif key == "press":
                    widget.trigger_value = True
                else:
                    setattr(widget, _KINDS[type(value)], value)
            says.pop("press", None)
            server.handle_backmsg(session, ask)
            async with asyncio.timeout(60):
                while client.ended == ended or client.seen[-1][1].WhichOneof("type") != "session_status_changed":
                    await asyncio.sleep(0.005)
            info = server._session_mgr.get_active_session_info(session)
            assert info is not None
            state = info.session._session_state
            held.append(
                (
                    copy.deepcopy(state.filtered_state),
                    dict(state.query_params._query_params),
                    {name: bound.widget_id for name, bound in state.query_params._bindings_by_param.items()},
                    set(state._new_widget_state.widget_metadata),
                    set(state._old_state),
                )
            )

    return visit


def shown(client: Client) -> list[list[str]]:
    """What each run left standing, place by place in the order in which they came, in words that a failure can print.

    What stood there for a moment may or may not have been sent.
    """
    runs: list[dict[object, str]] = [{}]
    for one in map(ForwardMsg.FromString, told(client)):
        kind = one.WhichOneof("type") or ""
        place = tuple(one.metadata.delta_path) if kind in ("delta", "ref_hash") else (kind, len(runs[-1]))
        runs[-1][place] = str(one)
        if kind == "script_finished":
            runs.append({})
    return [list(run.values()) for run in runs]


@pytest.mark.parametrize("all_fields", [False, True])
def test_what_is_sent_and_held_is_streamlits_own(tmp_path: Path, all_fields: bool) -> None:
    theirs: list[Any] = []
    plain = visited(tmp_path, SCRIPT, browser(all_fields, theirs))
    spare_state()
    draw_again()
    ours: list[Any] = []
    spared = visited(tmp_path, SCRIPT, browser(all_fields, ours))
    assert not any(m.delta.new_element.HasField("exception") for _, m in plain.seen)
    assert len(theirs) == len(STEPS)
    for step, one, other in zip(STEPS, ours, theirs, strict=True):
        for mine, its in zip(one, other, strict=True):
            assert mine == its, step
    assert shown(spared) == shown(plain)


def test_most_of_a_page_is_sent_again(tmp_path: Path) -> None:
    spare_state()
    draw_again()
    client = visited(tmp_path, SCRIPT, browser(True, []))
    ends = [i for i, (_, message) in enumerate(client.seen) if message.HasField("script_finished")]
    runs = [[m for _, m in client.seen[start:end] if m.HasField("delta")] for start, end in pairwise(ends)]
    repeated = [sum(any(m is old for old in before) for m in now) / len(now) for before, now in pairwise(runs)]
    quiet = STEPS.index({"typed": "third"}) - 2
    assert repeated[quiet] > 0.6
    assert 0 < sum(repeated) / len(repeated) < 1


def test_a_second_call_changes_nothing() -> None:
    draw_again()
    spare_state()
    before = [getattr(DeltaGenerator, name) for name in COMMANDS], SessionState._compact_state
    draw_again()
    spare_state()
    assert ([getattr(DeltaGenerator, name) for name in COMMANDS], SessionState._compact_state) == before


def test_without_a_name_streamlits_own_way_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(again._NEEDED, DeltaGenerator, ("_no_longer_there",))
    before = DeltaGenerator.html
    draw_again()
    assert before is DeltaGenerator.html


def test_a_place_on_the_page_is_copied_whole() -> None:
    place = RunningCursor(0, (1, 2))
    place.open_block()
    place.lock_element()
    theirs = copy.deepcopy(place)
    spare_state()
    ours = copy.deepcopy(place)
    assert vars(ours).keys() == vars(theirs).keys()
    assert ours.delta_path == theirs.delta_path == place.delta_path
    ours.lock_element()
    assert place.delta_path == theirs.delta_path
