"""Saved plans, in sentences and rows."""
