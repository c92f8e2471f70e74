"""A real OpenID Connect provider, npm's `oidc-provider`, which signs everybody in under the name that they type."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE

from tests.team.ensure import ensure

PACKAGES = ("oidc-provider@8.8.1", "jose@5.10.0")
SCRIPT = Path(__file__).with_suffix(".mjs")
FOLDER = Path(__file__).parents[2] / ".venv" / "node"


def ensure_packages() -> Path:
    """The folder with the packages; installs them where they are not."""
    if not all((FOLDER / "node_modules" / package.partition("@")[0]).is_dir() for package in PACKAGES):
        command = [ensure("npm"), "install", "--prefix", FOLDER, "--no-audit", "--no-fund", *PACKAGES]
        FOLDER.mkdir(exist_ok=True)
        subprocess.run(command, check=True, capture_output=True, timeout=900)
    return FOLDER


class Provider:
    """A provider on the loopback for the app at one base URL. `forge` and `away` make it a bad one."""

    def __init__(self, port: int, app: str) -> None:
        self.url, self.app = f"http://127.0.0.1:{port}", app
        # Node finds packages beside a script, not beside what calls it.
        script = shutil.copy(SCRIPT, ensure_packages())
        self._command = [ensure("node"), script, str(port), app]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdin=PIPE, stdout=PIPE, stderr=subprocess.DEVNULL, text=True)
        self._hear("listening")

    def stop(self) -> None:
        with self._process as process:
            process.kill()

    def forge(self, **claims: object) -> None:
        """From now on ID tokens say this, signed with the provider's own key."""
        assert self._process.stdin
        print(json.dumps(claims), file=self._process.stdin, flush=True)
        self._hear("forging")

    @contextmanager
    def away(self) -> Iterator[None]:
        """Nobody answers, as long as this is open; what was issued before is forgotten."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def _hear(self, word: str) -> None:
        """Wait until it says so; it has remarks beside."""
        assert self._process.stdout
        assert any(line.strip() == word for line in self._process.stdout), f"it ended with {self._process.wait()}"

    def configure(self, secrets: Path) -> None:
        """Write the secrets.toml that makes the app use this provider."""
        secrets.write_text(
            f'[auth]\nredirect_uri = "{self.app}/oauth2callback"\ncookie_secret = "{"c" * 32}"\nclient_id = "napkin"\n'
            f'client_secret = "s"\nserver_metadata_url = "{self.url}/.well-known/openid-configuration"\n'
        )
