"""A plan swept over two of its fields."""
