"""Sentences about exercises."""
