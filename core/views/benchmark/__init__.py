"""Measurements, in sentences, tables and charts."""
