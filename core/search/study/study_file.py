"""A study from its file, which anybody may have written: JSON, checked field by field before anything is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from core.hardware.accelerators import find
from core.hardware.cluster import Cluster, cluster
from core.limits import limit
from core.models.catalog import model_named
from core.models.configs.json_text import ConfigError, read_object, sendable, shown
from core.models.spec import SpecError, TransformerSpec, modelled
from core.models.spec_text import SpecTextError, read_spec
from core.search.constraints import Constraints, Range
from core.search.study.study import Study, StudyError
from core.step_time.software import SOFTWARE, USUAL_SOFTWARE
from core.training.optimizers import find_optimizer
from core.training.precision import find_policy

EXAMPLE = (
    '{"models": ["Llama 3.1 8B"], "clusters": [{"accelerator": "H100 SXM", "accelerators": [64, 128]}], '
    '"global_batch_sequences": [512], "seq_len": [8192]}'
)
"""A study file that is enough, as messages show it."""

_EXAMPLES = {
    "models": '["Llama 3.1 8B", "Mixtral 8x7B"]',
    "clusters": '[{"accelerator": "H100 SXM", "accelerators": [64, 128]}]',
    "accelerator": '"H100 SXM"',
    "accelerators": "[64, 128]",
    "per_node": "8",
    "global_batch_sequences": "[512, 1024]",
    "seq_len": "[4096, 8192]",
    "policies": '["mixed bf16, fp32 master"]',
    "optimizers": '["AdamW"]',
    "software": f'"{USUAL_SOFTWARE}"',
    "tokens": "15e12",
    "constraints": '{"tensor": [4, 8], "zero": [1], "most": {"pipeline": 16}}',
    "tensor_in_node": "true",
    "top": "10",
}
"""Field → what would do as its value."""

_T = TypeVar("_T")


def _wrong(field: str, value: object, rule: str) -> StudyError:
    """Names the field, what it is, what it must be, and an example."""
    return _wrong_field(field, f"is {shown(value)}; {rule.removesuffix('.')}")


def _wrong_field(field: str, what: str) -> StudyError:
    name = next((part for part in reversed(field.split(".")) if part in _EXAMPLES), "")
    example = f'"{name}": {_EXAMPLES[name]}' if name else EXAMPLE
    return StudyError(f"{sendable(field)} {what}. For example: {example}", field)


def load_study(path: Path) -> Study:
    """The study in a file. Raises `StudyError` for one that cannot be read, and for all that `read_study` refuses."""
    most = limit("study_bytes")
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as problem:
        raise StudyError(f"{path} cannot be read: {problem.strerror}.") from None
    if len(content) > most:
        raise StudyError(f"{path} has more than {most:,} bytes, the most that a study file may have.")
    try:
        return read_study(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise StudyError(f"{path} is no text in UTF-8. A study is JSON. For example: {EXAMPLE}") from None


def read_study(text: str) -> Study:
    """The study that ``text`` describes.

    Raises `StudyError` for what is no JSON object, for a field that is unknown, missing or no such value, for a model,
    accelerator, policy or optimizer that is not known, and for more points than the caps allow.
    """
    from pydantic import ValidationError

    from core.search.study.study_fields import StudyFields

    try:
        values = read_object(text, "study file")
    except ConfigError as wrong:
        what = f"{sendable(wrong.field)} is {shown(wrong.value)}; {wrong.rule}" if wrong.field else wrong.rule
        raise StudyError(f"{what} For example: {EXAMPLE}", wrong.field) from None
    try:
        read = StudyFields.model_validate(values)
    except ValidationError as problem:
        first: Any = problem.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        if first["type"] == "missing":
            raise _wrong_field(place, "is missing") from None
        raise _wrong(place, first["input"], _rule(first["type"], first.get("ctx", {}))) from None
    sizes = sum(len(fields.accelerators) for fields in read.clusters)
    points = len(read.models) * sizes * len(read.global_batch_sequences) * len(read.seq_len)
    points *= len(read.policies) * len(read.optimizers)
    for name, number, most in (
        ("points", points, limit("study_points")),
        ("plans to keep, points times top", points * read.top, limit("study_rows")),
    ):
        if number > most:
            raise StudyError(f"The study has {number:,} {name}; it may have {most:,}. Leave values of some field out.")
    return Study(
        models=_each("models", read.models, _model),
        clusters=tuple(
            result
            for at, fields in enumerate(read.clusters)
            for result in _clusters(f"clusters.{at}", fields.accelerator, fields.accelerators, fields.per_node)
        ),
        batches=_each("global_batch_sequences", read.global_batch_sequences, int),
        lengths=_each("seq_len", read.seq_len, int),
        policies=_each("policies", read.policies, lambda name: find_policy(name).id),
        optimizers=_each("optimizers", read.optimizers, lambda name: find_optimizer(name).name),
        software=_known("software", read.software, _software),
        tokens=read.tokens,
        constraints=_constraints(read.constraints.model_dump(exclude_none=True)),
        top=read.top,
    )


def _each(field: str, values: Sequence[Any], make: Callable[[Any], _T]) -> tuple[_T, ...]:
    """What each value of an axis stands for; no two may stand for the same. Hashed: a file has room for thousands."""
    table: dict[_T, None] = {}
    for at, value in enumerate(values):
        item = _known(f"{field}.{at}", value, make)
        if item in table:
            raise _wrong(f"{field}.{at}", value, "it is there already.")
        table[item] = None
    return tuple(table)


def _known(place: str, value: Any, make: Callable[[Any], _T]) -> _T:
    """What a value stands for; a name is looked up, and a shape is read."""
    try:
        return make(value)
    except KeyError as problem:
        raise _wrong(place, value, f"{problem.args[0]}") from None
    except (SpecTextError, SpecError) as problem:
        raise StudyError(f"{place} is {shown(value)}; {problem}", place) from None


def _model(text: str) -> tuple[str, TransformerSpec]:
    """A model of the catalogue by name, or a shape written out."""
    if "=" in text:
        return text, modelled(read_spec(text))
    known = model_named(text)
    return known.name, known.spec


def _software(name: str) -> str:
    """A software that trains, by name."""
    if name not in SOFTWARE:
        raise KeyError(f"it is one of {', '.join(SOFTWARE)}.")
    return name


def _constraints(given: dict[str, Any]) -> Constraints:
    """What is given, by the names of `Constraints`: allowed values, at most a largest one, or those up to it."""
    most, in_node = given.pop("most"), given.pop("tensor_in_node")
    pins: dict[str, Any] = {name: Range(0, largest) for name, largest in most.items()}
    pins |= {name: tuple(value for value in values if value <= most.get(name, value)) for name, values in given.items()}
    return Constraints(**pins, tensor_in_node=in_node)


def _clusters(field: str, name: str, sizes: Sequence[int], per_node: int | None) -> tuple[Cluster, ...]:
    kind = _known(f"{field}.accelerator", name, find)
    return _each(f"{field}.accelerators", sizes, lambda count: cluster(kind, count, per_node))


def _rule(kind: str, bounds: dict[str, Any]) -> str:
    """What pydantic found wrong, as the second half of a sentence."""
    for bound, text in (("le", "at most"), ("ge", "at least"), ("gt", "more than")):
        if bound in bounds:
            return f"it is {text} {bounds[bound]:,}."
    if "max_length" in bounds:
        return f"it has at most {bounds['max_length']:,} entries or characters."
    if "min_length" in bounds:
        return "it is not empty."
    return _RULES.get(kind, "it is a whole number, without quotes or decimals.")


_RULES = {
    "extra_forbidden": "a study has no such field.",
    "list_type": "it is a list, in square brackets.",
    "model_type": "it is an object, in braces.",
    "dict_type": "it is an object, in braces.",
    "model_attributes_type": "it is an object, in braces.",
    "string_type": "it is a text, in quotation marks.",
    "bool_type": "it is true or false.",
    "float_type": "it is a number, without quotes.",
    "finite_number": "it is a number that is finite.",
}
