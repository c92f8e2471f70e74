"""Experiments as sentences, tables and charts."""
