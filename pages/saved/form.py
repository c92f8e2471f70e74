"""Fields of Saved plans: the search, the page of the list, and the selected plan."""

from __future__ import annotations

from core.fields import Field, Form, quantity, switch
from core.limits import limit
from core.messages import message
from core.store.rows import tags_of

PER_PAGE = 20

SEARCH = Field(
    "q",
    message("saved.field.search"),
    "",
    str,
    placeholder=message("saved.field.search_placeholder"),
    max_chars=limit("search_chars"),
)
TAGS = Field("tags", message("saved.field.tags"), "", tags_of, max_chars=limit("search_chars"))
ARCHIVED = switch("old", message("saved.field.archived"), False)
PAGE = quantity("page", message("saved.field.page"), "1", "count", low=1, high=limit("saved_plans"), whole=True)
PLAN = Field("plan", message("saved.field.plan"), "", str, max_chars=limit("plan_id"))

FORM = Form("r", (SEARCH, TAGS, ARCHIVED, PAGE, PLAN))
