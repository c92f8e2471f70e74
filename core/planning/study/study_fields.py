"""The fields of a study file, checked by pydantic. Imported where a file is read and not before."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from core.limits import limit

_POINTS = limit("study_points")
Size = Annotated[int, Field(ge=1, le=limit("model_dimension"))]
Accelerators = Annotated[int, Field(ge=1, le=limit("accelerators"))]
Text = Annotated[str, Field(min_length=1, max_length=limit("spec_chars"))]
Name = Annotated[str, Field(min_length=1, max_length=limit("number_chars"))]


class ClusterFields(BaseModel):
    """One accelerator, in clusters of one or several sizes."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    accelerator: Name
    accelerators: Annotated[list[Accelerators], Field(min_length=1, max_length=_POINTS)]
    per_node: Accelerators | None = None


class StudyFields(BaseModel):
    """A study as its file has it."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    models: Annotated[list[Text], Field(min_length=1, max_length=_POINTS)]
    clusters: Annotated[list[ClusterFields], Field(min_length=1, max_length=_POINTS)]
    global_batch_sequences: Annotated[list[Size], Field(min_length=1, max_length=_POINTS)]
    seq_len: Annotated[list[Size], Field(min_length=1, max_length=_POINTS)]
    policies: Annotated[list[Name], Field(min_length=1, max_length=_POINTS)] = ["mixed bf16, fp32 master"]
    optimizers: Annotated[list[Name], Field(min_length=1, max_length=_POINTS)] = ["AdamW"]
    tokens: Annotated[float, Field(gt=0, le=limit("tokens"), allow_inf_nan=False)] | None = None
    constraints: dict[str, object] = {}
    top: Annotated[int, Field(ge=1, le=limit("study_top"))] = 10
