"""The fields of a file of plans, checked by pydantic. Imported where a file is read and not before."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from core.limits import limit

_CONFIG = ConfigDict(strict=True, frozen=True, extra="ignore")
_Short = Annotated[str, Field(max_length=limit("number_chars"))]
_Text = Annotated[str, Field(max_length=limit("spec_chars"))]
_Number = Annotated[float, Field(allow_inf_nan=False)]


class PlanFields(BaseModel):
    """One plan."""

    model_config = _CONFIG

    name: str
    texts: dict[_Short, _Text]
    results: dict[_Short, _Number] = {}


class FileFields(BaseModel):
    """A whole file."""

    model_config = _CONFIG

    kind: str
    version: Annotated[int, Field(ge=1, lt=10**6)]
    knowledge: _Short = ""
    plans: Annotated[list[PlanFields], Field(min_length=1)]
