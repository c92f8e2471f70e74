"""Measured collectives, in sentences and charts."""
