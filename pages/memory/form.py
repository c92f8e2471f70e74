"""What Training memory asks: the fields of a plan, and those of its own panels."""

from __future__ import annotations

from core.planning.answer.form import plan_form

FORM = plan_form("m", n="32B", count="8")
