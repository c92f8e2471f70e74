"""What Napkin asks of a browser with every answer: to load nothing from elsewhere, whatever a page has come to say.

Streamlit 1.67 has no option for such headers, and its own page comes before any script of ours; so they are added to
what the server answers. A proxy passes them on.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import streamlit
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.limits import cached

_PAGE = Path(streamlit.__file__).parent / "static" / "index.html"

_HEADERS = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # addresses carry plans: other sites are not told them
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


@cached("tables_kept")
def headers() -> dict[str, str]:
    """Return the headers of every answer."""
    return {"Content-Security-Policy": _policy(), **_HEADERS}


def _policy() -> str:
    """Return the content security policy.

    Scripts are Streamlit's files, those in its page (by their hashes), and components, which it loads as blobs. Styles
    are made in the browser. Nothing comes from, or goes to, another server.
    """
    inline = re.findall(r"<script>(.*?)</script>", _PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    hashes = (base64.b64encode(hashlib.sha256(item.encode()).digest()).decode() for item in inline)
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(("'self'", "blob:", *(f"'sha256-{text}'" for text in hashes))),
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": "'self'",
        "worker-src": "'self' blob:",
        "manifest-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
    }
    return "; ".join(f"{name} {allowed}" for name, allowed in rules.items())


class Policy:
    """ASGI middleware that adds `headers` to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its answer back with the headers."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(headers())
            await send(message)

        await self.app(scope, receive, with_headers if scope["type"] == "http" else send)
