"""A study: the fastest plan at every point of a grid of models, clusters, batches, lengths, precisions and optimizers.

Its file is JSON, which anybody may have written: pydantic checks every field before anything is made.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from core.hardware.accelerators import find
from core.hardware.cluster import Cluster, cluster
from core.limits import limit
from core.messages import message, pick_message
from core.models.catalog import model_named
from core.models.spec import TransformerSpec, modelled
from core.models.spec_text import read_spec
from core.search.request import Constraints, Range
from core.step_time.running import SOFTWARE, USUAL_SOFTWARE
from core.training.optimizers import USUAL_OPTIMIZER, find_optimizer
from core.training.precision import USUAL_POLICY, find_policy

EXAMPLE = (
    '{"models": ["Llama 3.1 8B"], "clusters": [{"accelerator": "H100 SXM", "accelerators": [64, 128]}], '
    '"global_batch_sequences": [512], "seq_len": [8192], "policies": ["mixed bf16, fp32 master"], '
    '"optimizers": ["AdamW"], "tokens": 15e12, "constraints": {"tensor": [4, 8], "most": {"pipeline": 16}}, "top": 10}'
)
"""A study file with what people set, as messages show it."""

_CHUNKS = 512
"""A study has about so many chunks at most: each is a file, and a task for a worker."""

_CONFIG = ConfigDict(strict=True, frozen=True, extra="forbid")


class StudyError(ValueError):
    """A study that cannot be read, run or kept."""


def _known(find: Callable[[str], Any]) -> AfterValidator:
    """Check that a name, or a shape written out, can be found."""

    def check(name: str) -> str:
        try:
            find(name)
        except KeyError as problem:
            raise ValueError(problem.args[0]) from None
        return name

    return AfterValidator(check)


def spec_named(text: str) -> TransformerSpec:
    """Return the shape of a model of the catalog, or one that is written out such as ``layers=32, …``."""
    return modelled(read_spec(text)) if "=" in text else model_named(text).spec


def _software(name: str) -> str:
    if name not in SOFTWARE:
        raise KeyError(f"it is one of {', '.join(SOFTWARE)}")
    return name


Count: TypeAlias = Annotated[int, Field(ge=0, le=limit("accelerators"))]
Size: TypeAlias = Annotated[int, Field(ge=1, le=limit("model_dimension"))]
Accelerators: TypeAlias = Annotated[int, Field(ge=1, le=limit("accelerators"))]
Name: TypeAlias = Annotated[str, Field(max_length=limit("number_chars"))]
Degree: TypeAlias = Literal[
    "tensor", "pipeline", "interleave", "context", "expert", "expert_tensor", "data", "micro_batch", "zero",
    "shard_group", "sequence_parallel", "recompute", "offload",
]  # fmt: skip
_MANY = Field(min_length=1, max_length=limit("study_points"))


class ConstraintFields(BaseModel):
    """What every search keeps to: for each degree the values allowed. most: the largest value of each."""

    model_config = ConfigDict(strict=True, frozen=True, extra="allow")
    __pydantic_extra__: dict[Degree, Annotated[list[Count], _MANY]]  # pyright: ignore[reportIncompatibleVariableOverride]

    most: dict[Degree, Count] = {}
    tensor_in_node: bool = True

    @property
    def constraints(self) -> Constraints:
        """The same as a search takes it."""
        pins: dict[str, Any] = {name: Range(0, largest) for name, largest in self.most.items()}
        for name, values in self.__pydantic_extra__.items():
            pins[name] = tuple(value for value in values if value <= self.most.get(name, value))
        return Constraints(**pins, tensor_in_node=self.tensor_in_node)


class ClusterFields(BaseModel):
    """One accelerator, in clusters of one or several sizes."""

    model_config = _CONFIG

    accelerator: Annotated[Name, _known(find)]
    accelerators: Annotated[list[Accelerators], _MANY]
    per_node: Accelerators | None = None


@dataclass(frozen=True, slots=True)
class StudyPoint:
    """One search of a study. index: its place in the study's order, in which the optimizer changes fastest.

    batch: sequences of one step. model, policy, optimizer: by name.
    """

    index: int
    model: str
    cluster: Cluster
    batch: int
    seq_len: int
    policy: str
    optimizer: str


class Study(BaseModel):
    """Grid of searches; every list is an axis.

    software: training software by name. tokens: tokens of the training run; None without days. constraints: constraints
    of every search. top: layouts saved per point.
    """

    model_config = _CONFIG

    models: Annotated[list[Annotated[str, Field(max_length=limit("spec_chars")), _known(spec_named)]], _MANY]
    clusters: Annotated[list[ClusterFields], _MANY]
    global_batch_sequences: Annotated[list[Size], _MANY]
    seq_len: Annotated[list[Size], _MANY]
    policies: Annotated[list[Annotated[Name, _known(find_policy)]], _MANY] = [USUAL_POLICY]
    optimizers: Annotated[list[Annotated[Name, _known(find_optimizer)]], _MANY] = [USUAL_OPTIMIZER]
    software: Annotated[Name, _known(_software)] = USUAL_SOFTWARE
    tokens: Annotated[float, Field(gt=0, le=limit("tokens"), allow_inf_nan=False)] | None = None
    constraints: ConstraintFields = ConstraintFields.model_validate({})
    top: Annotated[int, Field(ge=1, le=limit("study_top"))] = 10

    @model_validator(mode="after")
    def _is_within_limits(self) -> Self:
        for name, number, most in (
            ("study.error.points", self.count, limit("study_points")),
            ("study.error.rows", self.count * self.top, limit("study_rows")),
        ):
            if number > most:
                raise ValueError(message(name, number=float(number), most=float(most)))
        return self

    @property
    def _sizes(self) -> list[tuple[ClusterFields, int]]:
        return [(fields, count) for fields in self.clusters for count in fields.accelerators]

    @property
    def _axes(self) -> tuple[list[Any], ...]:
        return (
            self.models, self._sizes, self.global_batch_sequences, self.seq_len, self.policies, self.optimizers,
        )  # fmt: skip

    @property
    def count(self) -> int:
        """Points of the grid."""
        return math.prod(map(len, self._axes))

    @property
    def _per_chunk(self) -> int:
        return -(-self.count // _CHUNKS)

    @property
    def chunk_count(self) -> int:
        """Number of chunks into which the points are divided."""
        return -(-self.count // self._per_chunk)

    def point(self, index: int) -> StudyPoint:
        """Return one point, by its place."""
        at: list[Any] = []
        left = index
        for axis in reversed(self._axes):
            left, place = divmod(left, len(axis))
            at.append(axis[place])
        optimizer, policy, length, batch, (fields, count), model = at
        return StudyPoint(
            index, model, cluster(find(fields.accelerator), count, fields.per_node), batch, length, policy, optimizer
        )

    def chunk(self, index: int) -> tuple[StudyPoint, ...]:
        """Return points that are searched, kept and, should it come to that, lost together: neighbors."""
        size = self._per_chunk
        return tuple(map(self.point, range(index * size, min((index + 1) * size, self.count))))

    @property
    def digest(self) -> str:
        """Name the study by all that is in it, the data of its models and accelerators included."""
        data = [spec_named(name) for name in self.models], [find(fields.accelerator) for fields in self.clusters]
        return hashlib.sha256(f"{self.model_dump_json()}{data!r}".encode()).hexdigest()[:32]


def load_study(path: Path) -> Study:
    """Return the study in a file. Raises `StudyError` for one that cannot be read, and as `read_study` does."""
    most = limit("study_bytes")
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as problem:
        raise StudyError(message("study.error.read", file=path, problem=problem.strerror)) from None
    if len(content) > most:
        raise StudyError(message("study.error.bytes", file=path, most=float(most)))
    return read_study(content)


def read_study(content: str | bytes) -> Study:
    """Return the study that JSON describes.

    Raises `StudyError`, which names the field, for what is no JSON object, for a field that is unknown, missing or no
    such value, for a model, accelerator, policy or optimizer that is not known, and for too many points.
    """
    try:
        return Study.model_validate_json(content)
    except ValidationError as wrong:
        first = wrong.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])[:200]
        given = f"{first['input']!r:.100}" if field and first["type"] != "missing" else ""
        problem = first["msg"].removeprefix("Value error, ").rstrip(".")
        field, given, problem = (text.encode(errors="replace").decode() for text in (field, given, problem))
        way = "study.error.value" if given else "study.error.field" if field else "study.error.json"
        said = pick_message(way, field=field, problem=problem, given=given, example=EXAMPLE)
        raise StudyError(said) from None
