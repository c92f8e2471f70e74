"""A limit of uploaded files: Streamlit keeps each until its session ends, whether a widget uses it or not."""

from __future__ import annotations

import re
from collections import Counter

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime

from core.limits import limit
from core.messages import message

_PATH = re.compile(r"/_stcore/upload_file/(?P<session>[^/]+)/[^/]{1,64}$")

EACH = 10_000
"""Bytes that a file takes beside its content: its name and type, which come in a header."""


class _FullError(Exception):
    """A file is more than may be kept."""


class Uploads:
    """ASGI middleware that limits uploads, per session and in total, by the bytes received and stored.

    It also rejects a file whose name cannot be decoded.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._coming = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; what it uploads, as far as there is room."""
        if scope["type"] != "http" or scope["method"] != "PUT":
            await self.app(scope, receive, send)
            return
        path, came = _PATH.search(scope["path"]), 0

        async def counted() -> Message:
            nonlocal came
            message = await receive()
            came += (more := len(message.get("body", b"")))
            self._coming[session] += more
            self._make_sure(session)
            return message

        if path is None:
            await PlainTextResponse(message("server.upload_address"), 400)(scope, receive, send)
            return
        session = path["session"]
        try:
            self._make_sure(session)
            await self.app(scope, counted, send)
        except _FullError:
            await PlainTextResponse(message("server.upload_full"), 413)(scope, receive, send)
        except UnicodeError:
            await PlainTextResponse(message("server.upload_name"), 400)(scope, receive, send)
        finally:
            self._coming -= Counter({session: came})  # and forget who is at none

    def _make_sure(self, session: str) -> None:
        """Raise `_FullError` if a session, or all of them, hold more than they may."""
        files = runtime.get_instance().uploaded_file_mgr
        mine = files.file_storage.get(session, {}).values()  # type: ignore[attr-defined]
        held = sum(len(file.data) + EACH for file in mine) + self._coming[session]
        everybody = files._total_bytes + EACH * files._file_count + self._coming.total()  # type: ignore[attr-defined]
        if held > limit("session_upload_bytes") or everybody > limit("server_upload_bytes"):
            raise _FullError
