"""Known vulnerabilities of what a server installs: ``python -m tests.tools.audit``, the last step of `make lint`.

pip-audit asks PyPI about every distribution that is locked, and about torch. Where nothing answers, a sentence says so
and nothing fails.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE_S = 10
_PINNED = re.compile(r"^([\w.\-]+)(?:\[[^\]]*\])?==([^\s;]+)", re.MULTILINE)


def installed() -> str:
    """Names and versions, one to a line."""
    text = "\n".join(
        (ROOT / path).read_text(encoding="utf-8") for path in ("deploy/requirements.lock", "requirements.txt")
    )
    return "\n".join(sorted({f"{name}=={version}".lower() for name, version in _PINNED.findall(text)}))


def verdict(answer: str, day: str) -> tuple[str, bool]:
    """What pip-audit's JSON says of a day, and whether something that is installed is vulnerable."""
    try:
        known = [each for each in json.loads(answer)["dependencies"] if "vulns" in each]
    except json.JSONDecodeError:
        known = []
    if not known:
        return "Vulnerabilities: not looked up, as PyPI does not answer here.", False
    found = [(each, fault) for each in known for fault in each["vulns"]]
    lines = [f"Vulnerabilities as PyPI knew them on {day}: {len(found)} in {len(known)} distributions."]
    for each, fault in found:
        repaired = ", ".join(fault["fix_versions"]) or "no version yet"
        lines.append(f"{each['name']} {each['version']}: {fault['id']}, repaired in {repaired}")
    return "\n".join(lines), bool(found)


def main() -> int:
    """Ask, and say what is known."""
    asked = [sys.executable, "-m", "pip_audit", "--disable-pip", "--no-deps", "--progress-spinner=off", "--format=json"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(installed())
        file.flush()
        command = [*asked, f"--timeout={PATIENCE_S}", f"--requirement={file.name}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    text, vulnerable = verdict(done.stdout, f"{datetime.now(UTC):%Y-%m-%d}")
    print(text)
    return int(vulnerable)


if __name__ == "__main__":
    sys.exit(main())
