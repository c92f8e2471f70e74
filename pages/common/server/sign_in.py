"""Signing in, where the server's secrets.toml has an [auth] table (README, "For a team"); elsewhere nobody is asked.

Streamlit does the OpenID Connect; here is the menu's entry for it, and the name under which a visitor's plans are kept.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from urllib.request import urlopen

import streamlit as st
from streamlit.errors import StreamlitAuthError, StreamlitMissingAuthlibError

from core.limits import limit
from core.messages import message
from core.views.common.markup import markdown_text
from core.wording import cleaned

LOG = logging.getLogger(__name__)


_GIVEN, _PROVIDERS, _REQUIRED = "who:given", "who:providers", "who:required"
_PATIENCE_S = 5


def who() -> str:
    """Return the name of the user who has signed in, or the one they gave last; empty if there is none."""
    return signed_in() or st.session_state.get(_GIVEN, "")


def ask_name(key: str) -> None:
    """Draw a box for the name under which one who has not signed in saves."""
    if signed_in():
        return

    def keep() -> None:
        st.session_state[_GIVEN] = cleaned(st.session_state[key], limit("plan_owner"))

    st.session_state[key] = st.session_state.get(_GIVEN, "")
    st.text_input(message("server.your_name"), key=key, max_chars=limit("plan_owner"), on_change=keep, width=320)


def signed_in() -> str:
    """Return the user's name, or address if that is all the provider says; empty for one who has not signed in."""
    user = st.user.to_dict()
    if not user.get("is_logged_in"):
        return ""
    name = next((text for key in ("name", "email", "sub") if (text := user.get(key))), "")
    return str(name)[: limit("plan_owner")]


def shut_out() -> bool:
    """Return whether a user has to sign in before anything is shown: ``required = true`` in the [auth] table."""
    return bool(_known_providers()) and st.session_state[_REQUIRED] and not signed_in()


def _known_providers() -> tuple[str, ...]:
    """Return the providers, read once in a session: every run would look for the file again."""
    if _PROVIDERS not in st.session_state:
        st.session_state[_PROVIDERS] = found = _providers()
        st.session_state[_REQUIRED] = bool(found) and st.secrets["auth"].get("required") is True
    return st.session_state[_PROVIDERS]


def entry() -> None:
    """Draw the menu's entry: "Sign in", or "Sign out" with the name; nothing if signing in is not configured."""
    providers = _known_providers()
    if not providers:
        return
    name = signed_in()
    if name:
        st.button(
            message("server.sign_out", name=markdown_text(name)),
            on_click=st.logout,
            icon=":material/logout:",
            type="tertiary",
            key="app:out",
        )
        return
    for provider in providers:
        label = _sign_in_label(provider)
        if st.button(label, icon=":material/login:", type="tertiary", key=f"app:in:{provider}"):
            _go(provider)


def _sign_in_label(provider: str) -> str:
    return message("server.sign_in_with", provider=markdown_text(provider)) if provider else message("server.sign_in")


def _providers() -> tuple[str, ...]:
    """Return the names of the [auth.…] tables, "" for one that stands in [auth] itself; none without an [auth]
    table."""
    if not st.secrets.load_if_toml_exists() or "auth" not in st.secrets:
        return ()
    auth: Mapping[str, object] = st.secrets["auth"]
    named = tuple(name for name, table in auth.items() if isinstance(table, Mapping) and "client_id" in table)
    return named or ("",)


def _answers(provider: str) -> bool:
    """Return whether the provider says where it signs people in; True if the settings lack its address."""
    auth: Mapping[str, Any] = st.secrets.get("auth", {})
    address = (auth.get(provider, auth) if provider else auth).get("server_metadata_url")
    if not address:
        return True
    try:
        with urlopen(address, timeout=_PATIENCE_S) as found:  # noqa: S310 - the operator's own setting
            return found.status == 200
    except (OSError, ValueError) as problem:
        LOG.warning("Signing in: %s: %s", address, problem)
        return False


def _go(provider: str) -> None:
    """Send the browser to the provider, or say what is missing: to users in one sentence, to the log all of it."""
    try:
        if _answers(provider):
            st.login(provider or None)
        else:  # the browser would end at a bare page of an error
            st.error(message("server.sign_in_down"))
    except StreamlitMissingAuthlibError:
        st.error(message("server.sign_in_package"))
    except StreamlitAuthError as problem:
        LOG.warning("Signing in: %s", problem)
        st.error(message("server.sign_in_setup"))
