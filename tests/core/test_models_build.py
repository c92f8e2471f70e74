"""Models built without weights: against closed forms, against strangers' configs, and one at a time."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForCausalLM

from core.limits import limit
from core.models.building import count as building_count
from core.models.building import record
from core.models.building.count import count
from core.models.building.events import Built, ModelRefused, counted, decode, laid_out
from core.models.building.jobs import BuildRunner, build_key
from core.models.building.worker import _made
from core.models.configs.config import from_hf_config
from core.models.configs.families import FAMILIES
from core.models.counts_only import CountedModel, on_parabola, read_counted, write_counted
from core.models.flops import flops_per_token
from core.models.operations import operations
from core.models.parameters import parameters
from core.models.spec import TransformerSpec
from core.models.spec_text import SpecTextError, read_spec, write_spec
from core.planning.estimate import estimate
from core.planning.plan import OWN_SHAPE, Plan
from core.training.activations.stage import eager_bytes, settled
from core.training.layout import Layout
from tests.core.models_oracle import DENSE, MIXTURES, STATES, config_of
from tests.every import every
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("quiet")

SMALL = {**DENSE, **MIXTURES}
LOOPS = {"dbrx"}
"""Mixtures that look which experts have tokens before they multiply, which nothing without values can."""

NOT_READ = {"llama4_text", "gemma4_text", "deepseek_v32", "glm_moe_dsa"}
"""Families with operations that the reader has no name for: experts that all run, tables of layers, indexers."""

SAVE_OTHERWISE = {
    *("opt", "phi", "gptj", "gemma", "gemma2", "gemma3_text", "cohere", "apertus", "gpt_oss", "qwen3_5_text"),
    *("falcon", "olmo", "olmo2", "olmo3", "ernie4_5", "ernie4_5_moe", "deepseek_v2", "deepseek_v3", "glm4_moe"),
    "mimo_v2_flash",
}
"""Families whose layers save other bytes in single operations and 16 bits than is counted: soft caps, activation
functions, norms, and rotations in more steps than Llama’s, or in fewer than GPT-2’s."""

AS_COUNTED = {"apertus, plain"}


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
    family = name.partition(",")[0]
    read = laid_out(as_built(said))
    if family in NOT_READ:
        assert read is None
        return
    assert read, said["shape_refused"]
    found = parameters(read)
    assert (found.total, found.active) == (ours.total, ours.active)
    for convention in ("full", "exact", "eager"):
        counts = [flops_per_token(one, 24, convention).forward for one in (read, spec)]
        assert counts[0] == counts[1], convention
    assert operations_of(read) == operations_of(spec) or read.further
    assert bool(settled(read).kept) == (family in SAVE_OTHERWISE and name not in AS_COUNTED)
    assert settled(replace(spec, kept=read.kept)).kept == settled(read).kept


def as_built(said: dict[str, Any]) -> Built:
    """The answer of the process, as it is read."""
    built = decode(json.dumps({"built": {**said, "made": "X", "by": "transformers 5", "unread": []}}).encode())
    assert isinstance(built, Built)
    return built


def operations_of(spec: TransformerSpec) -> Counter[tuple[str, str, int]]:
    """Kinds of operations with weights, and elements of the weights; shared experts are one wide network or several."""
    found: Counter[tuple[str, str, int]] = Counter()
    for op in operations(spec):
        for weight in op.weights:
            place = (type(op).__name__, op.block, 0 if "shared_expert" in op.name else weight.columns)
            found[place] += op.layers * weight.rows * weight.columns * weight.count
    return found


@every("name", ["opt", "phi", "gptj", "gemma2", "cohere", "apertus", "gpt_oss", "qwen3_5_text"])
def test_saved_bytes_of_another_batch_are_those_that_were_recorded(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    text, said = config_of(name, SMALL[name]).to_json_string(), list[TransformerSpec]()
    moe = importlib.import_module("transformers.integrations.moe")
    for batch in ((2, 61), (3, 37)):
        monkeypatch.setattr(building_count, "BATCH", batch)
        monkeypatch.setattr(record, "BATCH", batch)
        model, config, _ = _made({"config": json.loads(text)}, transformers)
        said.append(read_spec(count(torch, moe, model.eval(), config, 8)["shape"]))
    ours, recorded = (eager_bytes(spec, Layout(micro_batch=3), 37) for spec in said)
    assert ours == pytest.approx(recorded, rel=0.02)


UNWRITTEN: dict[str, dict[str, Any]] = {
    "arcee": {},
    "afmoe": {"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "num_dense_layers": 1},
    "exaone4": {"sliding_window": 8},
    "granitemoe": {"num_local_experts": 5, "num_experts_per_tok": 2},
    "persimmon": {},
    "bitnet": {},
    "gpt_bigcode": {"n_layer": 3, "n_embd": 32, "n_head": 4, "n_inner": 48, "n_positions": 64},
    "modernbert-decoder": {},
}
"""Families that no table describes."""


@every(("name", "fields"), list(UNWRITTEN.items()))
def test_a_family_that_nobody_has_written_is_laid_out_from_what_it_runs(name: str, fields: dict[str, Any]) -> None:
    text = config_of(name, {**DENSE["llama"], **fields}).to_json_string()
    assert name not in FAMILIES
    moe = importlib.import_module("transformers.integrations.moe")
    model, config, _ = _made({"config": json.loads(text)}, transformers)
    said = count(torch, moe, model.eval(), config, 24)
    spec = laid_out(as_built(said))
    assert spec, said["shape_refused"]
    assert parameters(spec).total == sum(parameter.numel() for parameter in model.parameters())
    assert read_spec(write_spec(spec)) == spec
    plan = Plan(model=OWN_SHAPE, shape=write_spec(spec), tokens=1e9)
    assert estimate(plan).middle.steps_days > 0


def test_a_model_whose_operations_cannot_be_read_has_a_reason() -> None:
    moe = importlib.import_module("transformers.integrations.moe")
    model, config, _ = _made(
        {"config": json.loads(config_of("mamba2", STATES["mamba2"]).to_json_string())}, transformers
    )
    said = count(torch, moe, model.eval(), config, 24)
    assert (said["shape"], said["known"]) == ("", True)
    assert said["shape_refused"]


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
    built = BuildRunner(tmp_path / "lock").build(json.dumps(config), 32)
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


@every(
    "config",
    [
        {"model_type": "brand_new"},
        {"model_type": "t5"},
        {"model_type": "bart", "architectures": ["BartForConditionalGeneration"]},
        {**LITTLE, "hidden_size": "32"},
        {**LITTLE, "num_attention_heads": 0},
    ],
)
def test_what_is_refused_has_a_reason(config: dict[str, Any]) -> None:
    """In this process, to spare five starts of another."""
    worker = importlib.import_module("core.models.building.worker")
    with pytest.raises(worker.NotBuiltError, match=r"\w"):
        _made({"config": config}, transformers)


@every(
    ("text", "seq_len"),
    [
        ("x" * (limit("config_chars") + 1), 8),
        ("nope", 8),
        ('{"model_type": "llama", "num_hidden_layers": 10001}', 8),
        ('{"model_type": "llama", "text_config": {"hidden_size": 100000000}}', 8),
        ('{"model_type": "llama"}', 0),
    ],
    ids=lambda row: row[0][:40],
)
def test_what_is_refused_before_anything_starts(tmp_path: Path, text: str, seq_len: int) -> None:
    refused = BuildRunner(tmp_path / "lock", ["/nowhere/at/all"]).build(text, seq_len)
    assert isinstance(refused, ModelRefused)
    assert "not start" not in refused.reason


def script(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.mark.process
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print('hello')", "ended before it was done"),
        ("import sys; print('no such thing', file=sys.stderr); sys.exit(7)", "exit code 7. Its last line was: no such"),
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
    refused = BuildRunner(tmp_path / "lock", script(code), timeout_s=PATIENCE_S).build('{"model_type": "llama"}', 8)
    assert isinstance(refused, ModelRefused)
    assert said in refused.reason


@pytest.mark.process
def test_a_process_that_never_answers_is_stopped(tmp_path: Path) -> None:
    refused = BuildRunner(tmp_path / "lock", script("import time; time.sleep(600)"), timeout_s=0.2).build("{}", 8)
    assert isinstance(refused, ModelRefused)
    assert "stopped after" in refused.reason


@pytest.mark.process
def test_the_process_has_no_secret_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    names = script("import json, os; print(json.dumps({'refused': ' '.join(os.environ)}))")
    refused = BuildRunner(tmp_path / "lock", names).build("{}", 8)
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
    "shape": "",
    "shape_refused": "",
    "notes": [],
    "unread": [],
}


@every(
    "change",
    [
        {"parts": [{"module": "m", "total": 5, "active": 6}]},
        {"parts": [{"module": "m", "total": 10**17, "active": 5}]},
        {"parts": [{"module": "m" * 1000, "total": 5, "active": 5}]},
        {"parts": [{"module": "m", "total": 1, "active": 1}] * 100},
        {"flop": {"8": -1}},
        {"flop": {str(n): 1 for n in range(9)}},
        {"known": 1},
        {"shape": "x" * 1000},
        {"made": None},
    ],
)
def test_a_bad_answer_is_none(change: dict[str, Any]) -> None:
    assert decode(json.dumps({"built": GOOD}).encode())
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
    for wrong in (
        "made=X",
        "made=X made=Y",
        write_counted(replace(model, active=10)),
        write_counted(replace(model, flop={})),
        write_counted(model) + " flop.4=0",
        "hello there",
        "x" * 5000,
    ):
        with pytest.raises(SpecTextError):
            read_counted(wrong)


@pytest.mark.process
def test_a_runner_forgets_what_was_built_long_ago(tmp_path: Path) -> None:
    runner = BuildRunner(tmp_path / "lock", ["echo", '{"refused": "x"}'])
    texts = [json.dumps({"model": index}) for index in range(limit("build_answers") + 10)]
    assert {runner.build(text, 8) for text in texts} == {ModelRefused("x")}
    keys = [build_key(text, 8) for text in texts]
    remembered = [key for key in keys if runner.poll(key)]
    assert limit("build_answers") - 1 <= len(remembered) <= limit("build_answers") + 1
    assert keys[-1] in remembered
    assert keys[0] not in remembered
