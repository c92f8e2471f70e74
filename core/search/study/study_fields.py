"""The fields of a study file, checked by pydantic. Imported where a file is read and not before."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from core.limits import limit
from core.step_time.software import USUAL_SOFTWARE
from core.training.optimizers import USUAL_OPTIMIZER
from core.training.precision import USUAL_POLICY

_POINTS = limit("study_points")
Size = Annotated[int, Field(ge=1, le=limit("model_dimension"))]
Accelerators = Annotated[int, Field(ge=1, le=limit("accelerators"))]
Text = Annotated[str, Field(min_length=1, max_length=limit("spec_chars"))]
Name = Annotated[str, Field(min_length=1, max_length=limit("number_chars"))]


_CONFIG = ConfigDict(strict=True, frozen=True, extra="forbid")
_Count = Annotated[int, Field(ge=0, le=limit("accelerators"))]
_Allowed = Annotated[list[_Count], Field(min_length=1, max_length=_POINTS)]


class MostFields(BaseModel):
    """The largest value that each choice of a search may take."""

    model_config = _CONFIG

    tensor: _Count | None = None
    pipeline: _Count | None = None
    interleave: _Count | None = None
    context: _Count | None = None
    expert: _Count | None = None
    expert_tensor: _Count | None = None
    data: _Count | None = None
    micro_batch: _Count | None = None
    zero: _Count | None = None
    shard_group: _Count | None = None
    sequence_parallel: _Count | None = None
    recompute: _Count | None = None
    offload: _Count | None = None
    overlap: _Count | None = None


class ConstraintFields(BaseModel):
    """The values that each choice of a search may take; None leaves it as free as it is."""

    model_config = _CONFIG

    tensor: _Allowed | None = None
    pipeline: _Allowed | None = None
    interleave: _Allowed | None = None
    context: _Allowed | None = None
    expert: _Allowed | None = None
    expert_tensor: _Allowed | None = None
    data: _Allowed | None = None
    micro_batch: _Allowed | None = None
    zero: _Allowed | None = None
    shard_group: _Allowed | None = None
    sequence_parallel: _Allowed | None = None
    recompute: _Allowed | None = None
    offload: _Allowed | None = None
    overlap: _Allowed | None = None
    most: MostFields = MostFields()
    tensor_in_node: bool = True


class ClusterFields(BaseModel):
    """One accelerator, in clusters of one or several sizes."""

    model_config = _CONFIG

    accelerator: Name
    accelerators: Annotated[list[Accelerators], Field(min_length=1, max_length=_POINTS)]
    per_node: Accelerators | None = None


class StudyFields(BaseModel):
    """A study as its file has it."""

    model_config = _CONFIG

    models: Annotated[list[Text], Field(min_length=1, max_length=_POINTS)]
    clusters: Annotated[list[ClusterFields], Field(min_length=1, max_length=_POINTS)]
    global_batch_sequences: Annotated[list[Size], Field(min_length=1, max_length=_POINTS)]
    seq_len: Annotated[list[Size], Field(min_length=1, max_length=_POINTS)]
    policies: Annotated[list[Name], Field(min_length=1, max_length=_POINTS)] = [USUAL_POLICY]
    optimizers: Annotated[list[Name], Field(min_length=1, max_length=_POINTS)] = [USUAL_OPTIMIZER]
    software: Name = USUAL_SOFTWARE
    tokens: Annotated[float, Field(gt=0, le=limit("tokens"), allow_inf_nan=False)] | None = None
    constraints: ConstraintFields = ConstraintFields()
    top: Annotated[int, Field(ge=1, le=limit("study_top"))] = 10
