"""compose.yaml and Dockerfile say what tests/team has proven: the same template, the same settings, no rights."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.patience import PATIENCE_S
from tests.team.topology import ROOT, TEMPLATE, nginx_command, nginx_settings

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
REPLICAS = {name: service for name, service in SERVICES.items() if "build" in service}
PROXY = SERVICES["proxy"]
STEPS = [
    (step.split(" ", 1)[0], step.split(" ", 1)[1])
    for step in re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text(encoding="utf-8")).splitlines()
    if step and not step.startswith("#")
]
PINNED = re.compile(r"^[\w./-]+:\d+\.\d+[\w.-]*$")


def of(kind: str) -> list[str]:
    return [said for step, said in STEPS if step == kind]


def settings() -> dict[str, str]:
    return {name: value for name, value in PROXY["environment"].items() if name.startswith("NAPKIN_")}


def test_the_proxy_has_the_template_that_was_tested_and_all_it_asks_for(tmp_path: Path) -> None:
    [mount] = PROXY["volumes"]
    here, there, how = mount.split(":")
    assert (ROOT / here).resolve() == TEMPLATE
    assert (there, how) == ("/etc/nginx/templates/nginx.conf.template", "ro")
    made = Path(PROXY["environment"]["NGINX_ENVSUBST_OUTPUT_DIR"]) / Path(there).stem
    assert str(made) in PROXY["command"]
    assert settings().keys() == nginx_settings(tmp_path, "", []).keys()
    assert all(re.match(PROXY["environment"]["NGINX_ENVSUBST_FILTER"], name) for name in settings())
    writable = settings()["NAPKIN_SCRATCH"]
    assert writable in PROXY["tmpfs"]
    checked = [*nginx_command(tmp_path, {**settings(), "NAPKIN_SCRATCH": str(tmp_path)}), "-t"]
    done = subprocess.run(checked, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


def test_the_proxy_knows_every_replica_and_they_are_alike() -> None:
    at = [service["networks"]["front"]["ipv4_address"] for service in REPLICAS.values()]
    [port] = of("EXPOSE")
    assert re.findall(r"server (\S+) ", settings()["NAPKIN_REPLICAS"]) == [f"{address}:{port}" for address in at]
    assert len(set(at)) == len(at) == 3
    assert set(REPLICAS) <= set(PROXY["depends_on"])
    alike = [{**service, "networks": None} for service in REPLICAS.values()]
    assert all(service == alike[0] for service in alike)


def test_replicas_share_the_folder_in_which_they_line_up() -> None:
    [folder] = re.findall(r"NAPKIN_DATA=(\S+)", " ".join(of("ENV")))
    assert of("VOLUME") == [folder]
    assert all(f"shared:{folder}" in service["volumes"] for service in REPLICAS.values())
    assert "shared" in COMPOSE["volumes"]


def test_only_the_proxy_is_reachable_and_the_database_only_from_replicas() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["proxy"]
    assert COMPOSE["networks"]["data"]["internal"]
    assert {name for name, service in SERVICES.items() if "data" in service["networks"]} == {*REPLICAS, "db"}


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_comes_back_says_how_it_is_and_writes_nowhere_else(name: str) -> None:
    service = SERVICES[name]
    assert service["restart"] == "unless-stopped"
    assert "healthcheck" in service or (name in REPLICAS and of("HEALTHCHECK"))
    assert service["read_only"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert name in REPLICAS or PINNED.match(service["image"])


def test_secrets_are_asked_for_and_stand_nowhere() -> None:
    for service in SERVICES.values():
        for name, value in service["environment"].items():
            if re.search("PASSWORD|SECRET|DATABASE_URL", name):
                asked = re.findall(r"\$\{(\w+):\?", value)
                assert asked, name
                assert all(f"\n{one}=\n" in (ROOT / ".env.example").read_text() for one in asked)
    kept_out = (ROOT / ".gitignore").read_text().split()
    assert {".env", ".streamlit/secrets.toml"} <= set(kept_out)


def test_the_image_is_pinned_runs_without_rights_and_holds_only_the_product() -> None:
    [base] = of("FROM")
    assert PINNED.match(base)
    assert int(of("USER")[-1]) > 0
    assert STEPS.index(("USER", of("USER")[-1])) > max(
        i for i, (step, _) in enumerate(STEPS) if step in ("RUN", "COPY")
    )
    assert not of("ADD")
    copied = [said.split()[0] for said in of("COPY")]
    assert all((ROOT / path).exists() for path in copied)
    assert {"app.py", "core", "pages", "assets", "requirements.txt", ".streamlit/config.toml"} <= set(copied)
    assert not {".", "./", ".streamlit", "tests", ".env"} & set(copied)
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")}
    assert let_in == set(copied)
    links = {p.name: str(p.readlink()) for p in ROOT.iterdir() if p.is_symlink() and not p.name.startswith(".")}
    assert all(f"ln -s {target} {name}" in " ".join(of("RUN")) for name, target in links.items())
