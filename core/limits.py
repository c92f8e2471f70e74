"""Every cap on untrusted input: one table, each row with its reason.

Untrusted is whatever comes from the URL, a text box, an upload or a database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import _lru_cache_wrapper, lru_cache  # pyright: ignore[reportPrivateUsage]
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limit:
    """One cap: its value, the unit the value is in, and why it is where it is."""

    value: int
    unit: str
    reason: str


LIMITS: Mapping[str, Limit] = {
    "number_chars": Limit(64, "characters", "a typed quantity; the longest honest one is about 30"),
    "product_factors": Limit(8, "numbers", "of a typed product such as 400000*1024*1024; each is an exact fraction"),
    "readings_kept": Limit(2_048, "texts", "what a form read last, to read only what changed; its visitors share it"),
    "float_chars": Limit(1_200, "characters", "a typed float; fp64's smallest tie, 2^-1075 written out, has 1,077"),
    "float_box_chars": Limit(30_000, "characters", "of a float’s box, so that a long paste hears why it is refused"),
    "box_chars": Limit(2_000, "characters", "of any box of one line, so that a long paste hears why it is refused"),
    "float_exponent": Limit(400, "decimal exponent", "beyond fp64's 1e-324 to 1e308; bounds big-integer work"),
    "float_terms": Limit(16, "terms", "a typed sum such as 1 + 2^-8 + 2^-40; each term is an exact fraction"),
    "additions": Limit(10_000, "additions", "a sum is simulated step by step; more takes longer than a click may"),
    "scaled_steps": Limit(5_000, "steps", "of training whose scales follow one from another: 20 ms, and a full line"),
    "block_chars": Limit(600, "characters", "32 typed values of up to 18 characters"),
    "pasted_chars": Limit(20_000, "characters", "kept of a paste: it is in the address, and servers refuse 128 kB"),
    "sheets_graded": Limit(40, "sheets", "different ones in one paste, 15 ms each; a class mostly has the same one"),
    "expression_chars": Limit(12_000, "characters", "checked before parsing: deep nesting exhausts the parser"),
    "expression_lines": Limit(
        160, "lines", "a page shows the steps of each; a block of a transformer with its classes has 100"
    ),
    "tensor_elements": Limit(65_536, "elements", "half a megabyte of int64, which a server can spare for each step"),
    "counted_elements": Limit(1 << 40, "elements", "a tensor whose shape is followed without memory; 4 TB of float32"),
    "tensor_rank": Limit(8, "dimensions", "torch allows 64; beyond 8 nobody can read the picture"),
    "tensor_pieces": Limit(64, "tensors", "what one split, chunk or unbind may make; a page lists them all"),
    "picture_cells": Limit(24_576, "cells", "all pictures of one page; a browser draws so many in half a second"),
    "storage_cells_drawn": Limit(4_096, "cells", "one storage or tensor; the picture summarises beyond this"),
    "program_bytes": Limit(100_000, "bytes", "of a program with what is put before it; one message to the helper"),
    "program_seconds": Limit(
        20, "seconds", "of one program by the clock, so that one that sleeps makes room for others"
    ),
    "program_cpu_seconds": Limit(2, "seconds", "of processor time, so that a busy machine cuts no honest program"),
    "program_memory": Limit(320 << 20, "bytes", "of a program beyond torch's own; a small model with its optimizer"),
    "program_report_bytes": Limit(8 << 20, "bytes", "of what a program reports; a training step of GPT has 1.4 MB"),
    "program_events": Limit(20_000, "lines", "of a report; a training step of GPT has a thousand"),
    "program_report_values": Limit(400_000, "lists and objects", "in a report; each takes twenty times its text"),
    "program_tensor_bytes": Limit(160 << 20, "bytes", "of tensors that are made; larger ones are only counted"),
    "programs_at_once": Limit(12, "programs", "which share the cores; if all use their memory, 4 GB"),
    "program_wait_seconds": Limit(15, "seconds", "that a program waits for others, before its user hears so"),
    "parameters": Limit(10**16, "parameters", "a thousand times the largest model announced"),
    "tokens": Limit(10**18, "tokens", "a thousand times all text there is"),
    "node": Limit(10_000, "accelerators", "more than any links but those of a network join"),
    "accelerators": Limit(10_000_000, "accelerators", "ten times the largest cluster announced"),
    "log_rows": Limit(50_000, "rows", "of a job's log; one a minute for five weeks, read in half a second"),
    "log_line_chars": Limit(20_000, "characters", "of a line of a job's log; a W&B export of 100 runs has 18,000"),
    "log_bad_rows": Limit(5_000, "rows", "of a job's log that cannot be read, 25 us each, before it is refused"),
    "log_cells": Limit(200_000, "cells", "of a job's log in columns that may count tokens, about a microsecond each"),
    "own_runs": Limit(20, "runs", "of one's own that set a plan's share; more hardly narrow it further"),
    "batch_sequences": Limit(10_000_000, "sequences", "of one step; a thousand times the largest batch published"),
    "batch_tokens": Limit(10**12, "tokens", "of one step; ten thousand times the largest batch published"),
    "timeline_passes": Limit(4_096, "passes", "of stages over micro-batches in one picture; a browser draws so many"),
    "price_per_hour": Limit(10_000, "dollars", "per accelerator and hour; a thousand times the dearest rent"),
    "model_dimension": Limit(10_000_000, "elements", "layers, widths, vocabulary, sequence length"),
    "config_chars": Limit(
        100_000, "characters", "a pasted config.json; composites with long tables reach about 60,000"
    ),
    "config_file_bytes": Limit(4 << 20, "bytes", "a config.json with lists of layers kept in 16 bits; they reach 3 MB"),
    "upload_bytes": Limit(1 << 20, "bytes", "a chosen file; 100,000 characters have 400,000 at most"),
    "session_upload_bytes": Limit(16 << 20, "bytes", "files of one session, which keeps them until it ends"),
    "server_upload_bytes": Limit(1 << 29, "bytes", "files of all sessions, a tenth of what a replica has"),
    "config_depth": Limit(16, "open brackets", "checked before parsing; honest configs are at most 6 deep"),
    "searches_kept": Limit(64, "searches", "done last: 2,000 plans, 0.5 MB; or a byte for each layout, 2 MB at worst"),
    "searches_at_once": Limit(2, "searches", "that try many layouts; each keeps a core busy for up to five seconds"),
    "light_search": Limit(500_000, "layouts", "up to which a search waits for no other; a quarter of a second"),
    "layouts_tried": Limit(4_000_000, "layouts", "of which one is the fastest; a slow core takes two seconds"),
    "repeated_search": Limit(2_000_000, "layouts", "of a search that is made for a dozen numbers of accelerators"),
    "sweep_layouts": Limit(16_000_000, "layouts", "tried for all cells of a sweep; a core takes five seconds"),
    "model_layers": Limit(10_000, "layers", "a hundred times the deepest model; a pattern of windows is walked"),
    "build_seconds": Limit(60, "seconds", "processor time of one model built without weights; most take 3 to 25"),
    "build_wait": Limit(180, "seconds", "the same by the clock: on a machine that is busy with others"),
    "build_memory": Limit(3_000_000_000, "bytes", "a building process beyond its libraries; honest models take 0.3 GB"),
    "build_output": Limit(1_000_000, "bytes", "what a building process may print; an answer has about 10,000"),
    "build_queue": Limit(4, "models", "waiting while the machine builds another; the fifth is told to come back"),
    "build_answers": Limit(64, "models", "built and remembered by a server, about 10 kB each"),
    "spec_chars": Limit(900, "characters", "a shape as text with every field set; it also stands in the link"),
    "matmul_size": Limit(16_384, "rows", "a square fp32 matmul of 16,384 takes 3.2 GB for its three operands"),
    "measure_seconds": Limit(300, "seconds", "one measuring job; it holds the device for everybody"),
    "measure_dtype_seconds": Limit(
        60, "seconds", "timed seconds per item; what does not fit into a job any more is skipped"
    ),
    "measure_sizes": Limit(16, "sizes", "of square matmuls in one measurement; halvings of the largest are eleven"),
    "measure_outcomes": Limit(400, "results", "of one measurement: ten dtypes by sixteen sizes and all else, twice"),
    "measured_flop_per_s": Limit(10**18, "FLOP/s", "a typed rate of one accelerator; fifty times the fastest"),
    "measured_bytes_per_s": Limit(10**16, "bytes/s", "likewise of its memory; hundreds of times the fastest"),
    "rates_origin": Limit(96, "characters", "a device's name, of up to 80, and a day; it stands in links"),
    "measure_text_chars": Limit(4_000, "characters", "a library's own words; the rest is cut with an ellipsis"),
    "measure_name_chars": Limit(80, "characters", "what was timed, by name; it stands in a row or beside a bar"),
    "measurements_kept": Limit(20, "measurements", "of the machines that share a data folder; each has about 60 kB"),
    "job_queue": Limit(8, "jobs", "in line while one runs; at half a minute each, the last waits four"),
    "experiment_seconds": Limit(60, "seconds", "one experiment's process, most of which is loading torch"),
    "experiment_points": Limit(256, "numbers", "of one curve of an experiment; the longest has forty"),
    "experiment_figures": Limit(64, "figures", "of one experiment; the most have thirteen"),
    "experiment_bytes": Limit(100_000_000, "bytes", "of one tensor that an experiment makes and sends"),
    "plan_name": Limit(80, "characters", "a plan's name; it heads a column and a row"),
    "compared_plans": Limit(6, "plans", "beside each other; a seventh column is read by nobody"),
    "calendar_runs": Limit(
        9, "runs", "of one decision; with eight offers, the best assignment takes up to ten seconds"
    ),
    "pools": Limit(8, "offers", "of accelerators in one decision; a team has about four"),
    "decision_chars": Limit(
        10_000, "characters", "a table of offers or runs; nine shapes with every field have as many"
    ),
    "decision_chosen_chars": Limit(200, "characters", "which run is on which offer; nine of each have about 150"),
    "decision_link_chars": Limit(12_000, "characters", "a packed decision; one of shapes at their longest has 8,000"),
    "decision_bytes": Limit(100_000, "bytes", "the same unpacked, so that a short link cannot fill the memory"),
    "decisions_kept": Limit(8, "decisions", "answered last, up to 100 plans each; a rerun asks for the same again"),
    "decision_parts": Limit(24, "cells", "on parts of an offer; each takes a search of 20 to 80 ms"),
    "offer_chars": Limit(900, "characters", "one line that offers hardware; older ones have twenty outages"),
    "interruptions": Limit(60, "an hour", "of spot capacity; one a minute leaves no progress"),
    "run_name": Limit(40, "characters", "a run's name; it heads a bar"),
    "maintenance_hours": Limit(168, "hours", "of maintenance a month at a site: a week of each month"),
    "dollars": Limit(10**13, "dollars", "a price or a yearly sum as typed; the whole industry's capital is below it"),
    "answers_kept": Limit(512, "plans", "compared plans whose answers a server keeps; its visitors share them"),
    "compared_plans_chars": Limit(12_000, "characters", "six plans spelled out in a link; they have about 4,000"),
    "sweep_values": Limit(16, "values", "along one side of a sweep; more than 256 cells are read by nobody"),
    "sweep_chars": Limit(400, "characters", "the values of one side as typed; sixteen precisions have about so many"),
    "sweeps_kept": Limit(32, "boards", "answered last, about 30 kB each; a rerun of a page asks for the same again"),
    "saved_plans": Limit(50_000, "plans", "of one database, five times what its list is measured with; 3 kB each"),
    "database_connections": Limit(15, "connections", "of one process; PostgreSQL by default has a hundred for all"),
    "saved_chars": Limit(20_000, "characters", "a saved plan's fields; all of them at their longest have about 8,000"),
    "plan_id": Limit(32, "characters", "of a link that names a saved plan; ids have 16"),
    "plan_note": Limit(2_000, "characters", "a plan's note; a page of text"),
    "plan_owner": Limit(120, "characters", "who saved a plan, by name or address"),
    "plan_tags": Limit(8, "tags", "of a plan; more are a note"),
    "tag_chars": Limit(24, "characters", "a tag; it stands in a row beside others"),
    "search_chars": Limit(200, "characters", "of a search among saved plans, each word of which is looked for"),
    "plans_listed": Limit(100, "plans", "read at once; a longer list is searched, not read"),
    "changes_listed": Limit(200, "changes", "of a plan's history, the last ones"),
    "run_seconds": Limit(60, "seconds", "of one run of a page; the slowest, a search, takes seven on a slow core"),
    "left_run_seconds": Limit(5, "seconds", "likewise of a user who has left and sees no answer; a save takes a tenth"),
    "waiting_changes": Limit(50, "changes", "of one visitor, which wait for a run to end: 20 kB each, all fields"),
    "waiting_bytes": Limit(8 << 20, "bytes", "of those changes; the longest text that a box takes has half as many"),
    "messages_per_second": Limit(5, "messages", "of one browser, which has each change of its user in one"),
    "messages_at_once": Limit(50, "messages", "that need not wait: what a browser sends when it comes back"),
    "messages_late": Limit(
        150, "messages", "that waited for those before them: half a minute of them, and no person's"
    ),
    "study_bytes": Limit(100_000, "bytes", "a study file; a hundred models written out as shapes have as many"),
    "study_points": Limit(20_000, "searches", "of one study; at a fifth of a second each, an hour of one core"),
    "study_plans": Limit(10**11, "plans", "of one study; two cores take some ten hours for them"),
    "plans_drawn": Limit(500, "plans", "drawn of those kept; more points are no clearer, and each rerun sends them"),
    "study_top": Limit(100, "plans", "kept of each point; a table of more is read by nobody"),
    "study_rows": Limit(200_000, "plans", "points times plans kept, 100 MB once they are read"),
    "study_problem_chars": Limit(1_000, "characters", "why a point could not be searched; it is kept with the results"),
    "worker_line_bytes": Limit(65_536, "bytes", "one line of a process; an answer of a build has about 10,000"),
    "worker_lines": Limit(20_000, "lines", "an honest job prints about four lines a second, 1,200 in all"),
    "tables_kept": Limit(1, "result", "of a function without arguments, such as a table of the product; 0.8 MB"),
    "large_results_kept": Limit(4, "results", "of 8 MB: a file of measurements"),
    "arrays_kept": Limit(32, "results", "of 0.5 MB: values of 65,536 codes, a figure, a timeline; 16 MB a function"),
    "results_kept": Limit(256, "results", "of 0.1 MB, most of them 10 kB: a sheet, a plan’s memory; 26 MB a function"),
    "small_results_kept": Limit(1_024, "results", "of 25 kB: an answer, a model’s operations; 25 MB a function"),
    "layouts_kept": Limit(4_096, "layouts", "found, 15 kB at most with what they were found for; 60 MB a function"),
    "texts_kept": Limit(4_096, "texts", "of up to 900 characters as HTML or in an address, 10 kB; 40 MB a function"),
    "jobs_kept": Limit(8, "jobs", "that ended and can still be looked up; a measurement’s results have 60 kB"),
    "faults_kept": Limit(256, "faults", "of different kinds, logged once in a while; 0.5 kB each"),
    "worker_stderr_bytes": Limit(8_192, "bytes", "the tail of a process's error output that is kept"),
}


def limit(name: str) -> int:
    """Return the value of the cap ``name``. Raises ``KeyError`` for an unknown cap."""
    return LIMITS[name].value


def cached(name: str) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """Return a decorator that caches results of a function, at most as many as the cap ``name`` allows."""
    return lru_cache(maxsize=limit(name))
