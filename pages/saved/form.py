"""What Saved plans asks: words and tags to look for, which page of the list, and which plan is looked at."""

from __future__ import annotations

from core.fields import Field, Form, quantity, switch
from core.limits import limit
from core.store.rows import tags_of

PER_PAGE = 20

SEARCH = Field(
    "q",
    "Search",
    "",
    str,
    placeholder="name, note, tag, owner, model or accelerator",
    max_chars=limit("search_chars"),
)
TAGS = Field("tags", "Tags", "", tags_of, max_chars=limit("search_chars"))
ARCHIVED = switch("old", "Archived", False)
PAGE = quantity("page", "Page", "1", "count", low=1, high=limit("saved_plans"), whole=True)
PLAN = Field("plan", "Plan", "", str, max_chars=limit("plan_id"))

FORM = Form("r", (SEARCH, TAGS, ARCHIVED, PAGE, PLAN))
