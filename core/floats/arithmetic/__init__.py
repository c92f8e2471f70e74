"""Arithmetic in a float format: one operation stage by stage, and long sums."""
