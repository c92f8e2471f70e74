"""Saved plans: kept in SQLite or PostgreSQL, each with the history of its changes.

What a page needs before it looks into the database stands here; what reads and writes it is imported by
`core.store.locations.opened`.
"""
