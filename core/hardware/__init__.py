"""Accelerators as data, and what their datasheet rates mean."""
