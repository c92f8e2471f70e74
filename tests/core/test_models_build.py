"""Models built without weights: against closed forms, against strangers' configs, and one at a time."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForCausalLM

from core.jobs.queue import WaitingLine
from core.limits import limit
from core.models.building.count import count
from core.models.building.events import Built, BuiltPart, ModelRefused, decode, on_parabola
from core.models.building.jobs import BuildRunner, build_key
from core.models.building.worker import _made
from core.models.configs.config import from_hf_config
from core.models.counts_only import CountedModel, CountedTextError, counted, read_counted, write_counted
from core.models.flops import flops_per_token
from core.models.parameters import parameters
from tests.core.models_oracle import DENSE, MIXTURES, STATES, config_of
from tests.patience import PATIENCE_S, until

pytestmark = pytest.mark.usefixtures("quiet")

SMALL = {**DENSE, **MIXTURES}
LOOPS = {"dbrx"}
"""Mixtures that look which experts have tokens before they multiply, which nothing without values can."""


@pytest.mark.sweep(8)
@pytest.mark.parametrize("name", SMALL)
def test_what_is_counted_without_values_is_what_the_formulas_say(name: str) -> None:
    """Parameters, active ones and every FLOP, of every family, without a single value in a tensor."""
    text = config_of(name, SMALL[name]).to_json_string()
    moe = importlib.import_module("transformers.integrations.moe")
    model, config, _ = _made({"config": json.loads(text)}, transformers)
    said = count(torch, moe, model.eval(), config, 24)
    spec = from_hf_config(text)
    ours = parameters(spec)
    assert sum(part["total"] for part in said["parts"]) == ours.total
    if name in LOOPS:
        assert (said["known"], said["flop"]) == (False, {})
        assert "cannot run it without weights" in said["flop_refused"]
        return
    assert said["known"], said["flop_refused"]
    assert sum(part["active"] for part in said["parts"]) == ours.active
    eager = {str(n): flops_per_token(spec, n, "eager").forward * n for n in (6, 12, 24)}
    assert said["flop"] == eager


LITTLE = {
    "model_type": "jamba",
    "num_hidden_layers": 4,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "vocab_size": 61,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "num_experts": 5,
    "num_experts_per_tok": 2,
    "mamba_dt_rank": 4,
}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", STATES)
def test_what_a_token_runs_through_beside_a_state(name: str) -> None:
    """Parameters and active ones; a state is moved on there in chunks or by single tokens, and counted so."""
    text = config_of(name, STATES[name]).to_json_string()
    moe = importlib.import_module("transformers.integrations.moe")
    model, config, _ = _made({"config": json.loads(text)}, transformers)
    parts = count(torch, moe, model.eval(), config, 24)["parts"]
    ours = parameters(from_hf_config(text))
    assert [sum(part[of] for part in parts) for of in ("total", "active")] == [ours.total, ours.active]


@pytest.mark.process
def test_a_model_through_the_process(tmp_path: Path) -> None:
    """Everything at once: built in a process of its own, its own code ignored, an invented key named."""
    config = {**LITTLE, "auto_map": {"AutoModelForCausalLM": "stranger/thing--code.Model"}, "zork": 3}
    built = BuildRunner(WaitingLine(tmp_path)).build(json.dumps(config), 32)
    assert isinstance(built, Built), built
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**LITTLE))
    assert built.made == "JambaForCausalLM"
    assert built.total == sum(parameter.numel() for parameter in model.parameters())
    experts = sum(p.numel() for n, p in model.named_parameters() if ".experts." in n)
    assert built.active == built.total - experts * 3 // 5
    ours = parameters(from_hf_config(LITTLE))
    assert (built.total, built.active) == (ours.total, ours.active)
    assert built.unread == ("zork",)
    assert any("auto_map" in note for note in built.notes)
    assert set(built.flop) == {8, 16, 32}
    found = counted(built)
    assert found is not None
    assert read_counted(write_counted(found)) == found


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model_type": "brand_new"}, "knows no model_type 'brand_new'"),
        ({"model_type": "t5"}, "no causal language model"),
        ({"model_type": "bart", "architectures": ["BartForConditionalGeneration"]}, "an encoder and a decoder"),
        ({**LITTLE, "hidden_size": "32"}, "refuses the config.*hidden_size"),
        ({**LITTLE, "num_attention_heads": 0}, "transformers"),
    ],
)
def test_what_is_refused_has_a_reason(config: dict[str, Any], said: str) -> None:
    """In this process, to spare five starts of another."""
    worker = importlib.import_module("core.models.building.worker")
    with pytest.raises(worker.NotBuiltError, match=said):
        _made({"config": config}, transformers)


@pytest.mark.parametrize(
    ("text", "seq_len", "said"),
    [
        ("x" * (limit("config_chars") + 1), 8, "100,001 characters"),
        ("nope", 8, "no JSON"),
        ('{"model_type": "llama", "num_hidden_layers": 10001}', 8, "no model has more than 10,000"),
        ('{"model_type": "llama", "text_config": {"hidden_size": 100000000}}', 8, "no model has more than 10,000,000"),
        ('{"model_type": "llama"}', 0, "A sequence has 1 to"),
    ],
)
def test_what_is_refused_before_anything_starts(tmp_path: Path, text: str, seq_len: int, said: str) -> None:
    refused = BuildRunner(WaitingLine(tmp_path), ["/nowhere/at/all"]).build(text, seq_len)
    assert isinstance(refused, ModelRefused)
    assert said in refused.reason


def script(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.mark.process
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print('hello')", "ended before it was done"),
        ("import sys; print('no such thing', file=sys.stderr); sys.exit(7)", "exit code 7. Its last words: no such"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "when memory runs out"),
        ('print(\'{"refused": "because"}\')', "because"),
        ("print('x' * 5_000_000)", "ended before it was done"),
        (
            "from core.models.building.worker import _limit_process; _limit_process(10**9, 1)\nwhile True: pass",
            "more processor time",
        ),
    ],
)
def test_whatever_the_process_does_there_is_an_answer(tmp_path: Path, code: str, said: str) -> None:
    refused = BuildRunner(WaitingLine(tmp_path), script(code), timeout_s=PATIENCE_S).build('{"model_type": "llama"}', 8)
    assert isinstance(refused, ModelRefused)
    assert said in refused.reason


@pytest.mark.process
def test_a_process_that_never_answers_is_stopped(tmp_path: Path) -> None:
    refused = BuildRunner(WaitingLine(tmp_path), script("import time; time.sleep(600)"), timeout_s=0.2).build("{}", 8)
    assert isinstance(refused, ModelRefused)
    assert "stopped after 0.2 s" in refused.reason


@pytest.mark.process
def test_the_process_has_no_secret_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    names = script("import json, os; print(json.dumps({'refused': ' '.join(os.environ)}))")
    refused = BuildRunner(WaitingLine(tmp_path), names).build("{}", 8)
    assert isinstance(refused, ModelRefused)
    assert "PATH" in refused.reason.split()
    assert "DATABASE_URL" not in refused.reason


DEEDS = (
    "import socket; socket.create_connection(('127.0.0.1', 9))",
    "import socket; socket.getaddrinfo('example.org', 80)",
    "import subprocess; subprocess.run(['true'])",
    "import os; os.system('true')",
    "open('/tmp/napkin-build-guard', 'w')",
)


@pytest.mark.process
def test_the_process_can_do_nothing_but_count() -> None:
    code = f"""
import sys
from core.models.building.worker import _guard
sys.addaudithook(_guard)
for deed in {DEEDS!r}:
    try:
        exec(deed)
        print("done")
    except PermissionError as refused:
        print(refused)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout.splitlines()
    assert len(said) == len(DEEDS)
    for deed, line in zip(DEEDS, said, strict=True):
        assert "not allowed while a model is built" in line, deed


GOOD = {
    "made": "X",
    "by": "transformers 1",
    "parts": [{"module": "m", "total": 5, "active": 3}],
    "known": True,
    "flop": {"8": 80},
    "flop_refused": "",
    "notes": [],
    "unread": [],
}


def test_a_good_answer_is_read() -> None:
    built = decode(json.dumps({"built": GOOD}).encode())
    assert built == Built("X", "transformers 1", (BuiltPart("m", 5, 3),), True, {8: 80}, "", (), ())


@pytest.mark.parametrize(
    "change",
    [
        {"parts": [{"module": "m", "total": 5, "active": 6}]},
        {"parts": [{"module": "m", "total": -5, "active": 0}]},
        {"parts": [{"module": "m", "total": 5.0, "active": 5}]},
        {"parts": [{"module": "m", "total": 10**17, "active": 5}]},
        {"parts": [{"module": "m" * 1000, "total": 5, "active": 5}]},
        {"parts": [{"module": "m", "total": 1, "active": 1}] * 100},
        {"flop": {"8": -1}},
        {"flop": {"x": 1}},
        {"flop": {str(n): 1 for n in range(9)}},
        {"known": 1},
        {"notes": "no"},
        {"made": None},
        {"unread": [3]},
    ],
    ids=str,
)
def test_a_bad_answer_is_none(change: dict[str, Any]) -> None:
    assert decode(json.dumps({"built": {**GOOD, **change}}).encode()) is None


@settings(max_examples=200, derandomize=True)
@given(
    st.tuples(st.integers(0, 10**9), st.integers(0, 10**13), st.integers(0, 10**9)),
    st.lists(st.integers(1, 10**6), min_size=4, max_size=4, unique=True),
)
def test_a_parabola_is_found_again(coefficients: tuple[int, int, int], lengths: list[int]) -> None:
    def at(n: int) -> int:
        constant, straight, square = coefficients
        return constant + straight * n + square * n * n

    *known, new = lengths
    assert on_parabola({n: at(n) for n in known}, new) == at(new)


def test_a_counted_model_in_text() -> None:
    model = CountedModel("X", "transformers_1", 9, 5, {8: 80, 16: 200})
    assert read_counted(write_counted(model)) == model
    assert model.forward(8) == 10
    for wrong, said in (
        ("made=X", "It needs"),
        ("made=X made=Y", "twice"),
        (write_counted(replace(model, active=10)), "cannot run"),
        (write_counted(replace(model, flop={})), "one to three lengths"),
        (write_counted(model) + " flop.4=0", "none at all"),
        ("hello there", "no part of"),
        ("x" * 5000, "5,000 characters"),
    ):
        with pytest.raises(CountedTextError, match=said):
            read_counted(wrong)


def config(model: str) -> str:
    """A config by which a model is told from others."""
    return json.dumps({"model": model})


NOTES = """
import json, os, sys, time
folder, model = sys.argv[1], json.load(sys.stdin)["config"]["model"]
os.mkdir(folder + "/alone")
with open(folder + "/log", "a") as log:
    log.write(model + chr(10))
while not os.path.exists(folder + "/go"): time.sleep(0.01)
os.rmdir(folder + "/alone")
print("no answer" if model == "bad" else json.dumps({"refused": model}))
"""
"""A building process that fails beside another, notes what it builds, and waits until it may end."""


def noting(folder: Path) -> BuildRunner:
    return BuildRunner(WaitingLine(folder / "line"), [sys.executable, "-S", "-c", NOTES, str(folder)], timeout_s=600)


def log(folder: Path) -> list[str]:
    return (folder / "log").read_text().split()


def wait(runner: BuildRunner, key: str) -> Built | ModelRefused:
    def answer() -> Built | ModelRefused | None:
        build = runner.poll(key)
        assert build is not None
        return build.answer

    return until(answer, "the answer")


@pytest.mark.process
def test_one_build_at_a_time_and_no_more_than_may_wait(tmp_path: Path) -> None:
    runner = noting(tmp_path)
    names = ["bad", *(f"c{i}" for i in range(limit("build_queue")))]
    jobs = [runner.submit(config(name), 8) for name in names]
    assert all(job.under_way for job in jobs)
    full = runner.submit(config("one more"), 8)
    assert (full.state, runner.poll(full.key)) == ("full", None)
    assert runner.submit(config(names[1]), 8).key == jobs[1].key
    (tmp_path / "go").touch()
    failed, *refused = [wait(runner, job.key) for job in jobs]
    assert isinstance(failed, ModelRefused)
    assert "ended before it was done" in failed.reason
    assert refused == [ModelRefused(name) for name in names[1:]]
    assert runner.submit(config(names[1]), 8).answer == ModelRefused(names[1])
    assert log(tmp_path) == names, "what was built is remembered"


@pytest.mark.process
def test_a_visitor_stands_in_line_once(tmp_path: Path) -> None:
    """And what another waits for as well stays."""
    (tmp_path / "go").touch()
    runner = noting(tmp_path)
    other = WaitingLine(tmp_path / "line").join(1)
    assert other
    asked = [("a", "ann"), ("b", "bob"), ("c", "ann"), ("d", "eve"), ("d", "bob"), ("e", "eve"), ("f", "ann")]
    for model, who in (*asked, *((model, "ann") for model in "ghijklmn")):
        assert runner.submit(config(model), 8, who).state == "waiting"
    aheads = {model: build.ahead for model in "abcdefn" if (build := runner.poll(build_key(config(model), 8)))}
    assert aheads == {"d": 1, "e": 2, "n": 3}
    other.leave()
    for model in "den":
        assert wait(runner, build_key(config(model), 8)) == ModelRefused(model)
    assert log(tmp_path) == ["d", "e", "n"]


@pytest.mark.process
def test_a_runner_forgets_what_was_built_long_ago(tmp_path: Path) -> None:
    runner = BuildRunner(WaitingLine(tmp_path), ["echo", '{"refused": "x"}'])
    keys: list[str] = []
    for index in range(limit("build_answers") + 10):
        keys.append(build_key(config(str(index)), 8))
        assert runner.build(config(str(index)), 8) == ModelRefused("x")
    remembered = [key for key in keys if runner.poll(key)]
    assert limit("build_answers") - 1 <= len(remembered) <= limit("build_answers") + 1
    assert keys[-1] in remembered
    assert keys[0] not in remembered
