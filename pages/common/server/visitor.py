"""Who is here, without asking: an id that one browser keeps through reloads and tabs, and that names nobody."""

from __future__ import annotations

import hashlib

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string
from streamlit.web.server.starlette.starlette_server_config import XSRF_COOKIE_NAME


def visitor() -> str:
    """Return the same for all that one user opens: 16 hexadecimal digits, empty if no session runs.

    Who has signed in is the same in every browser. Others are told by the token of Streamlit's cookie against forged
    requests, which a browser gets before its first session and keeps until it is closed; the cookie hides it behind a
    mask that changes. Where cookies are rejected, each session is a user of its own. Only a digest of any of them is
    given away.
    """
    user = st.user.to_dict()
    if user.get("is_logged_in"):
        return _digest("user", user.get("iss"), user.get("sub") or user.get("email") or user.get("name"))
    token, _ = decode_xsrf_token_string(st.context.cookies.get(XSRF_COOKIE_NAME, ""))
    if token:
        return _digest("browser", token.hex())
    session = get_script_run_ctx()
    return _digest("session", session.session_id) if session else ""


def _digest(*parts: object) -> str:
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]
