"""Logs as training programs print them: the median step of each, what is skipped, and what is refused.

The lines are made as the programs make them: nanoGPT's train.py, `training_log` of Megatron-LM's training.py,
torchtitan's components/metrics.py and tools/logging.py, and the callbacks of transformers' Trainer.
"""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import Any

import numpy as np
import pytest

from core.budget.equations import BudgetError
from core.number_text import QuantityError
from core.planning.actuals.log import parse_log
from core.planning.actuals.progress import JobProgress, progress
from core.planning.estimate import estimate
from core.planning.form.plan_form import plan_from
from core.planning.measured import parse_own_runs
from core.runs.goodput import parse_failures
from tests.every import every

PLAN = estimate(plan_from({"count": "64", "seq": "8,192", "gb": "512"}))
BATCH = 512 * 8192
BEGAN = datetime(2026, 1, 5, 12, tzinfo=UTC)
FIRST, EACH = 60.0, 2.0
"""Seconds of the first step, which compiles, and of every other one."""


def seconds(step: int) -> float:
    """When a step has ended that is not the first one."""
    return FIRST + EACH * step


def stamp(step: int, fraction: str = "") -> str:
    return f"{BEGAN + timedelta(seconds=seconds(step)):%Y-%m-%d %H:%M:%S}{fraction}"


def nanogpt(steps: int = 400, interval: int = 10) -> list[str]:
    """Step 200 has an evaluation in its time."""
    lines = ["tokens per iteration will be: 4,194,304", "compiling the model... (takes a ~minute)"]
    for step in range(0, steps + 1, interval):
        if step % 200 == 0:
            lines.append(f"step {step}: train loss {4.2:.4f}, val loss {4.3:.4f}")
        dt = FIRST if step % 200 == 0 else EACH + step % 7 / 1000
        mfu = -100.0 if step < 5 else 41.234
        lines.append(f"iter {step}: loss {9.125 - step / 100:.4f}, time {dt * 1000:.2f}ms, mfu {mfu:.2f}%")
    return [*lines, "saving checkpoint to out"]


def megatron(steps: int = 60, *, dated: bool = True, interval: int = 1) -> list[str]:
    lines = ["> building train, validation, and test datasets for GPT ...", ""]
    for step in range(interval, steps + 1, interval):
        each = (FIRST + EACH * (interval - 1)) / interval if step == interval else EACH
        log = f" [{stamp(step, '.654321')}]" if dated else ""
        log += f" iteration {step:8d}/{500_000:8d} |"
        log += f" consumed samples: {512 * step:12d} |"
        log += f" elapsed time per iteration (ms): {1000 * each:.1f} |"
        log += f" throughput per GPU (TFLOP/s/GPU): {400.1:.1f} |"
        log += f" learning rate: {1e-5:.6E} |"
        log += f" global batch size: {512:5d} |"
        log += f" lm loss: {9.1 - step / 100:.6E} |"
        log += f" loss scale: {1.0:.1f} |"
        log += f" grad norm: {1.2:.3f} |"
        log += f" number of skipped iterations: {0:3d} |"
        log += f" number of nan iterations: {0:3d} |"
        lines.append(log)
    lines.append("(min, max) time across ranks (ms):")
    return [*lines, " validation loss at iteration 60 | lm loss value: 7.9E+00 | lm loss PPL: 2.7E+03 |"]


def torchtitan(steps: int = 600, *, dated: bool = True, colors: bool = True) -> list[str]:
    """A line for the first step and for every tenth, each with the rate since the one before."""
    color, off = ("\x1b[38;2;180;60;0m", "\x1b[39m") if colors else ("", "")
    lines = ["[rank0]:/usr/lib/python3/site-packages/torch/cuda/memory.py:330: FutureWarning: reset"]
    for step in [1, *range(10, steps + 1, 10)]:
        tps = BATCH / 64 / (FIRST if step == 1 else EACH)
        message = (
            f"{color}step: {step:2}  {color}loss: {8.1:8.5f}  {color}grad_norm: {1.2:7.4f}  "
            f"{color}memory: {40.0:5.2f}GiB({50.0:.2f}%)  {color}tps: {round(tps):,}  "
            f"{color}tflops: {400.0:,.2f}  {color}mfu: {40.5:.2f}%{off}"
        )
        lines.append(f"[rank0]:[titan] {stamp(step, ',123')} - root - INFO - {message}" if dated else message)
        if step % 100 == 0:
            lines.append(f"{color}validate step: {step:2}  {color}loss: {8.1:7.4f}  tps: {99_999:,}{off}")
    return lines


def trainer(
    steps: int = 200,
    *,
    bars: bool = True,
    end: bool = True,
    tokens: bool = True,
    dated: bool = False,
    written: Callable[[dict[str, Any]], str] = str,
) -> list[str]:
    """A dictionary for every tenth step, with tqdm's bar before it; evaluation has a bar of its own."""
    lines = ["Map: 100%|██████████| 52002/52002 [00:05<00:00, 9876.54 examples/s]"]
    for step in range(10, steps + 1, 10):
        at = int(seconds(step))
        if bars:
            lines.append(
                f" {step * 100 // steps:2d}%|█▏        | {step}/{steps} [{at // 60:02d}:{at % 60:02d}<10:00,  2.00s/it]"
            )
        logs: dict[str, Any] = {"loss": 2.1, "grad_norm": 1.25, "learning_rate": 5e-05, "epoch": step / 100}
        logs |= {"num_tokens": step * BATCH} if tokens else {}
        lines.append((f"[{stamp(step)}] " if dated else "") + written(logs))
        if step % 100 == 0:
            lines.append("100%|██████████| 50/50 [00:10<00:00,  4.70it/s]")
            lines.append(written({"eval_loss": 2.2, "eval_runtime": 10.6, "epoch": step / 100}))
    if end:
        runtime = seconds(steps)
        last = {"train_runtime": runtime, "train_samples_per_second": 512 * steps / runtime}
        last |= {"train_steps_per_second": steps / runtime, "train_loss": 2.3, "epoch": steps / 100}
        lines.append(written(last))
    return lines


def job(lines: list[str]) -> JobProgress:
    return progress(parse_log("\n".join(lines)), PLAN)


LOGS: dict[str, tuple[list[str], str, int]] = {
    "nanoGPT": (nanogpt(), "nanoGPT", 41),
    "Megatron-LM": (megatron(), "Megatron-LM", 60),
    "Megatron-LM, every tenth step": (megatron(interval=10), "Megatron-LM", 6),
    "Megatron-LM without timestamps": (megatron(dated=False), "Megatron-LM", 60),
    "Megatron-LM by srun": ([f"{rank}: {line}" for line in megatron() for rank in (0, 1)], "Megatron-LM", 60),
    "Megatron-LM with times of a shell": (
        [f"{12 + at // 20}:{at % 20 + 10}:00 {line}" for at, line in enumerate(megatron(50, dated=False))],
        "Megatron-LM",
        50,
    ),
    "torchtitan": (torchtitan(), "torchtitan", 61),
    "torchtitan, only messages": (torchtitan(dated=False, colors=False), "torchtitan", 61),
    "Trainer": (trainer(), "the Hugging Face Trainer", 20),
    "Trainer without tokens": (trainer(tokens=False), "the Hugging Face Trainer", 20),
    "Trainer as JSON with timestamps": (
        trainer(bars=False, dated=True, written=json.dumps),
        "the Hugging Face Trainer",
        20,
    ),
}
"""Logs of one job: lines, who wrote them, and how many of them are steps."""


@every("name", LOGS)
def test_the_median_step_of_every_log_is_the_same(name: str) -> None:
    """The first step, which compiles, is thirty times as long and does not count."""
    lines, written_by, steps = LOGS[name]
    p = job(lines)
    read = p.log.rows - p.log.skipped - p.log.missing - p.log.unreadable
    assert (p.log.format, read, p.log.rows) == (written_by, steps, len(lines))
    assert p.pace == pytest.approx(86400 * BATCH / EACH, rel=0.01)
    assert p.ends[0] == pytest.approx(p.day + (p.goal - p.trained) / p.pace, rel=0.01)
    assert p.ends[1] == pytest.approx(p.ends[0], rel=0.01)
    assert p.trained == pytest.approx(BATCH * {"nanoGPT": 400, "Megatron-LM": 60}.get(name, p.trained / BATCH))


def test_stops_between_dated_steps_are_days_and_gaps() -> None:
    lines = megatron()
    late = [line.replace("2026-01-05 12", "2026-01-05 18") for line in lines[40:]]
    p = job(lines[:40] + late)
    assert p.day * 86400 == pytest.approx(6 * 3600 + 60 * EACH, rel=0.01)
    assert p.gap_days == pytest.approx(0.25, rel=0.01)
    assert p.pace == pytest.approx(86400 * BATCH / EACH, rel=0.01)


@pytest.mark.parametrize("dated", [True, False])
def test_a_restart_from_a_checkpoint_trains_twice(dated: bool) -> None:
    lines = megatron(dated=dated)
    again = [line.replace("2026-01-05 12", "2026-01-05 13") for line in lines[42:]]
    p = job(lines[:52] + again)
    assert p.restarts == 1
    assert p.repeated == pytest.approx(10 * BATCH, rel=0.2)
    assert p.trained == 60 * BATCH


def test_only_the_last_dictionary_times_the_run() -> None:
    for lines, unit in ((trainer(bars=False), "tokens"), (trainer(bars=False, tokens=False), "samples")):
        p = job(lines)
        assert (p.log.measure, p.day * 86400) == (unit, pytest.approx(seconds(200)))
        assert p.trained == pytest.approx(200 * BATCH)


def test_a_state_file_of_the_trainer_is_read() -> None:
    history = [{"epoch": step / 100, "loss": 2.1, "learning_rate": 5e-5, "step": step} for step in range(10, 201, 10)]
    history.append({"epoch": 2.0, "step": 200, "total_flos": 1e18, "train_loss": 2.3, "train_runtime": seconds(200)})
    p = job(json.dumps({"best_metric": None, "log_history": history, "max_steps": 200}, indent=2).splitlines())
    assert (p.log.measure, p.trained) == ("steps", 200 * BATCH)


def test_step_times_alone_are_no_run_of_ones_own() -> None:
    p = job(megatron(dated=False))
    assert p.own is None


@every(
    "lines",
    [
        trainer(bars=False, end=False),
        trainer(bars=False, tokens=False, end=False, dated=True),
        megatron()[:3],
        ["iter 1: loss 2.1, time infms, mfu 2%", "iter 2: loss 2.0, time 5ms, mfu 2%"],
        ["iter 1: loss 2.1, time 5ms, mfu 2%", "iter 2: loss 2.0, time -5ms, mfu 2%"],
        ["iter 1: loss 2.1, time 5ms, mfu 2%", f"iter {10**40}: loss 2.0, time 5ms, mfu 2%"],
        ["step: 1  loss: 8  tps: nan  mfu: 1%", "step: 2  loss: 8  tps: 7,000  mfu: 1%"],
        ["{'loss': 1, 'epoch': 1, 'num_tokens': inf}", "{'train_runtime': 7, 'epoch': 1}"],
        ["{'loss': 1, 'epoch': 1}", "{'train_runtime': -7, 'train_steps_per_second': 1}"],
    ],
    ids=lambda row: row[0][:60],
)
def test_a_log_that_cannot_be_used_is_refused(lines: list[str]) -> None:
    with pytest.raises(QuantityError):
        parse_log("\n".join(lines))


def test_more_tokens_than_there_are_is_refused() -> None:
    with pytest.raises(BudgetError):
        job(["iter 1: loss 2.1, time 5ms, mfu 2%", f"iter {10**17}: loss 2.1, time 5ms, mfu 2%"])


def slowness() -> float:
    """How much slower than usual this machine adds numbers up; a usual one takes 8 ms for 100,000 of them."""
    took = min(_added_up() for _ in range(3))
    return max(1.0, took / 0.008)


def _added_up() -> float:
    start = time.process_time()
    sum(i * i for i in range(100_000))
    return time.process_time() - start


@contextmanager
def within(limit: float) -> Iterator[None]:
    """Fail where the body takes more seconds of a usual machine, however busy or slow this one is."""
    limit *= slowness()

    def stop(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"longer than {limit} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


CSV = ["days,tokens,loss", *(f"{day / 10},{day * 6e9:.6g},2.5" for day in range(60))]
PIECES = ("nan", "inf", "-inf", "1e309", "-1", "9" * 30, "", " " * 50, ",", "|", "{", "}", "[", ":", "\x1b[31m", "\x00")
"""What a mutation puts in the place of something else."""


def mutated(good: str, chance: random.Random) -> str:
    """A good text with a few pieces cut out, doubled, exchanged, or replaced by something worse."""
    for _ in range(chance.randint(1, 8)):
        a, b = sorted(chance.randint(0, len(good)) for _ in range(2))
        b = min(b, a + chance.choice((1, 3, 20, 400)))
        new = chance.choice([*PIECES, good[b:a], 3 * good[a:b], good[a:b][::-1], f"{chance.random():.3g}"])
        good = good[:a] + new + good[b:]
    return good


@pytest.mark.parametrize("name", [*LOGS, "CSV"])
def test_mutations_of_a_good_log_raise_only_what_the_reader_says(name: str) -> None:
    chance = random.Random(name)
    good = "\n".join(CSV if name == "CSV" else LOGS[name][0])
    read = 0
    for _ in range(40):
        bad = mutated(good, chance)
        with within(1.0):
            try:
                p = progress(parse_log(bad), PLAN)
            except (QuantityError, BudgetError):
                continue
        read += 1
        numbers = (p.day, p.trained, p.pace, p.overall, p.steady, p.ends[0], *p.days, *p.tokens)
        assert np.isfinite(numbers).all()
        assert p.pace > 0
    assert read > 5


@every(
    "hostile",
    [
        1_000_000 * ",",
        "\n".join(50 * [19_000 * ","]),
        "\n".join(50 * [1500 * "iter 1: loss "]),
        "\n".join(50 * [1200 * "iteration 1/ 2 |"]),
        "\n".join(50 * [1800 * "step: tps: "]),
        "\n".join(50 * [1900 * "{'loss': 1"]),
        "\n".join(50 * [1900 * "1/1 [11:11"]),
        "\n".join(50 * [9999 * "\x1b["]),
        1_000_000 * "{",
        "time,tokens\n" + 40_000 * "x y z w,asdf qwer\n",
        "time," + 3900 * "step," + "\n" + 125 * ("1 x 1," + 3900 * "x," + "\n"),
        "days,tokens\n" + "\n".join(f"{20_000 - at % 20_000 if at % 2 else at},{at % 100}" for at in range(40_000)),
    ],
    ids=lambda row: row[:40],
)
def test_a_hostile_log_is_refused_or_read_within_a_second(hostile: str) -> None:
    with within(1.0):
        try:
            parse_log(hostile)
        except QuantityError:
            return


@every("blanks", [" ", "\t", "\u00a0"])
def test_blanks_cost_no_time_in_rates_and_runs(blanks: str) -> None:
    many = 3_000 * blanks
    with within(1.0):
        assert parse_failures(f"{many}8{many}per{many}days{many}").between == 10_800
        with pytest.raises(QuantityError):
            parse_failures(f"{many}8{many}perday{many}x")
        with pytest.raises(QuantityError):
            parse_own_runs(f"7B,2T,8 H100 SXM,1{many}x")
