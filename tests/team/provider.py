"""A stand-in for an OpenID Connect provider that signs everybody in under one name, without asking."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwk, jwt

CLIENT = "napkin"
NAME = "Ada *Lovelace* [x](y)"
"""A name that would be markup if it were taken for it."""


class Provider(ThreadingHTTPServer):
    """OpenID Connect of one user: discovery, authorisation, token, keys."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.key = jwk.RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
        self.nonces: dict[str, str] = {}

    def configure(self, secrets: Path, app: str) -> None:
        """Write the secrets.toml that makes an app at this base URL use this provider."""
        secrets.write_text(
            f'[auth]\nredirect_uri = "{app}/oauth2callback"\ncookie_secret = "{"c" * 32}"\nclient_id = "{CLIENT}"\n'
            f'client_secret = "s"\nserver_metadata_url = "{self.url}/.well-known/openid-configuration"\n'
        )


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        url, path = self.server.url, urlsplit(self.path).path
        if path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            code = f"code{len(self.server.nonces)}"
            self.server.nonces[code] = asked.get("nonce", "")
            self.send_response(302)
            back = urlencode({"code": code, "state": asked["state"]})
            self.send_header("Location", f"{asked['redirect_uri']}?{back}")
            self.end_headers()
        elif path == "/keys":
            self._say({"keys": [self.server.key.as_dict(private=False)]})
        else:
            ends = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
            kinds = {"response_types_supported": ["code"], "id_token_signing_alg_values_supported": ["RS256"]}
            self._say({"issuer": url, **{name: f"{url}/{end}" for name, end in ends.items()}, **kinds})

    def do_POST(self) -> None:
        sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        nonce, now = self.server.nonces[sent["code"][0]], int(time.time())
        claims = {"iss": self.server.url, "aud": CLIENT, "sub": "1", "name": NAME, "iat": now, "exp": now + 3600}
        token = jwt.encode({"alg": "RS256", "kid": "one"}, {**claims, "nonce": nonce}, self.server.key)
        self._say({"access_token": "a", "token_type": "Bearer", "expires_in": 3600, "id_token": token})

    def _say(self, answer: dict[str, object]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def provider() -> Iterator[Provider]:
    """A provider on the loopback."""
    with Provider() as made:
        threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield made
        made.shutdown()
