"""A decision in words, tables, and charts."""
