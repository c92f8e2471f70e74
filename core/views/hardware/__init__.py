"""Accelerators, in sentences."""
