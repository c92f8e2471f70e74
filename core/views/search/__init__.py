"""A search over layouts: sentences, charts, and tables to take away."""
