"""The building process: ``python -m core.models.building.worker``, a request on its standard input, one line of answer.

It builds the model that transformers knows under a config's ``model_type``, on torch's meta device where tensors have
shapes and no memory, counts its parameters, and runs one sequence through it under torch's FLOP counter. It lives in
a process of its own, because a stranger's config decides how much it builds: memory and processor time are limited,
there is no network, nothing is written, and code named in a config is never loaded.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import os
import re
import resource
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from core.limits import limit
from core.models.building.count import count, field_of, first_line
from core.models.building.events import MOST_KEYS, TEXT_CHARS
from core.models.configs.json_text import INFINITE
from core.models.configs.keys import inert

_SETTINGS = {
    **dict.fromkeys(("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"), "1"),
    "USE_HUB_KERNELS": "0",
}
"""What keeps the libraries from asking the network, or for kernels compiled elsewhere."""

_DROPPED = {
    "auto_map",
    "attn_implementation",
    "_attn_implementation",
    "_attn_implementation_internal",
    "experts_implementation",
    "_experts_implementation",
    "_name_or_path",
    "dtype",
    "torch_dtype",
    "quantization_config",
    "use_cache",
}
"""Keys that name code, files, kernels or dtypes: none changes what is counted, and some would load something."""


_GRACE_S = 5
"""Seconds of processor time from the soft limit to the hard one."""


class NotBuiltError(Exception):
    """Why there is no count; the sentence is for a reader."""


def _limit_process(memory: int, seconds: int) -> None:
    """Cap the memory that the process takes beyond what its libraries have, and its processor time."""
    with contextlib.suppress(OSError, ValueError):
        here = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (here + memory, here + memory))
    # At the soft limit the kernel says why it ends the process. At the hard one it kills, as it does for memory.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + _GRACE_S))


_FORBIDDEN = ("socket.connect", "socket.getaddrinfo", "socket.sendto", "subprocess.Popen", "os.system", "os.exec")
_FORBIDDEN_TOO = ("os.fork", "os.posix_spawn", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "shutil.rmtree")


def _guard(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook, which nothing can take off again: no network, no other process, no file written."""
    if event in _FORBIDDEN or event in _FORBIDDEN_TOO:
        raise PermissionError(f"{event} is not allowed while a model is built")
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        raise PermissionError(f"writing {str(arguments[0])[:200]} is not allowed while a model is built")


def _cleaned(value: Any) -> Any:
    """The config without the keys that name code, files or kernels, at any depth, and with its infinite bounds."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if fields.keys() == {INFINITE} and fields[INFINITE] in ("Infinity", "-Infinity"):
            return float(fields[INFINITE])
        return {key: _cleaned(inner) for key, inner in fields.items() if key not in _DROPPED}
    return [_cleaned(inner) for inner in cast("list[Any]", value)] if isinstance(value, list) else value


def _class_of(auto: Any, config: Any, named: str, model_type: str) -> tuple[Any, str]:
    """The class to build, and a note where it is not the one the config names."""
    text = auto.MODEL_FOR_CAUSAL_LM_MAPPING
    whole = (auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING, auto.MODEL_FOR_MULTIMODAL_LM_MAPPING)
    other = (auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING, auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING)

    def known(mapping: Any) -> list[Any]:
        with contextlib.suppress(KeyError):
            classes = mapping[type(config)]
            return list(cast("tuple[Any, ...]", classes)) if isinstance(classes, tuple) else [classes]
        return []

    decoders = known(text)
    composites = [result for mapping in whole for result in known(mapping)]
    for result in (*decoders, *composites):
        if result.__name__ == named:
            return result, ""
    if named in {result.__name__ for mapping in other for result in known(mapping)}:
        raise NotBuiltError(f"{named} is an encoder and a decoder; only decoders are counted.")
    chosen = next(iter((*decoders, *composites)), None)
    if chosen is None:
        raise NotBuiltError(f"transformers knows no causal language model under model_type {model_type!r}.")
    return chosen, f"Built as {chosen.__name__}, not as the {named} that the file names." if named else ""


def _made(request: Mapping[str, Any], transformers: Any) -> tuple[Any, Any, list[str]]:
    """The model on the meta device, its config, and notes."""
    torch = importlib.import_module("torch")
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    mapping: Any = importlib.import_module("transformers.models.auto.configuration_auto").CONFIG_MAPPING
    values: dict[str, Any] = request["config"]
    model_type, named = values.get("model_type"), values.get("architectures")
    if not isinstance(model_type, str) or model_type not in mapping:
        raise NotBuiltError(f"transformers {transformers.__version__} knows no model_type {str(model_type)[:60]!r}.")
    notes: list[str] = []
    if "auto_map" in values:
        notes.append("The file names code of its own (auto_map), which is never loaded.")
    if "quantization_config" in values:
        notes.append("Counted before quantization.")
    try:
        config: Any = mapping[model_type].from_dict(_cleaned(values))
    except Exception as problem:
        raise NotBuiltError(f"transformers refuses the config: {first_line(problem)}") from problem
    first = str(cast("list[Any]", named)[0]) if isinstance(named, list) and named else ""
    result, note = _class_of(auto, config, first, model_type)
    notes += [note] if note else []
    part = config.sub_configs.get("text_config")
    if part is not None and result.config_class == part:
        config = config.get_text_config()
    last: Exception | None = None
    for attention in ("eager", None):
        arguments = {} if attention is None else {"attn_implementation": attention}
        try:
            with torch.device("meta"):
                return result._from_config(config, experts_implementation="batched_mm", **arguments), config, notes
        except MemoryError:
            raise
        except Exception as problem:
            last = last or problem
    raise NotBuiltError(f"transformers cannot build {result.__name__}: {first_line(last)}") from last


def _unread(values: Mapping[str, Any], config: Any, where: str = "") -> Iterator[str]:
    """Keys of the file that the configuration has no field for, and that no line of the family's code names."""
    known = {*getattr(config, "__dataclass_fields__", ()), *getattr(config, "attribute_map", ())}
    code = _code_of(config)
    for key, value in values.items():
        inner = field_of(config, key)
        if isinstance(value, dict) and hasattr(inner, "sub_configs"):
            yield from _unread(cast("dict[str, Any]", value), inner, f"{where}{key}.")
        elif (
            key not in known
            and key not in _DROPPED
            and not inert(key)
            and not re.search(rf"\b{re.escape(key)}\b", code)
        ):
            yield f"{where}{key}"[:TEXT_CHARS]


def _code_of(config: Any) -> str:
    """The text of the modules that define a configuration and its model."""
    name = type(config).__module__
    results = [sys.modules.get(each) for each in (name, name.replace("configuration_", "modeling_"))]
    return "\n".join(inspect.getsource(module) for module in results if module)


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """The count of the model that the request describes; raises `NotBuiltError`."""
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    moe: Any = importlib.import_module("transformers.integrations.moe")
    importlib.import_module("transformers.modeling_utils")
    _limit_process(int(request["memory"]), int(request["seconds"]))
    sys.addaudithook(_guard)
    transformers.utils.logging.set_verbosity_error()
    model, config, notes = _made(request, transformers)
    counted = count(torch, moe, model.eval(), config, int(request["seq_len"]))
    return {
        "made": type(model).__name__,
        "by": f"transformers {transformers.__version__}",
        **counted,
        "notes": [*notes, *counted["notes"]],
        "unread": list(_unread(request["config"], config))[:MOST_KEYS],
    }


def main() -> None:
    """Read a request, build, answer."""
    os.environ.update(_SETTINGS)
    sys.dont_write_bytecode = True
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no answer
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit("build_output"), limit("build_output")))
    request: dict[str, Any] = json.load(sys.stdin)
    try:
        reply: dict[str, Any] = {"built": answer(request)}
    except NotBuiltError as problem:
        reply = {"refused": str(problem)[:TEXT_CHARS]}
    except MemoryError:
        reply = {"refused": "The model takes more memory to build than is allowed, even without its weights."}
    print(json.dumps(reply), file=out, flush=True)


if __name__ == "__main__":
    main()
