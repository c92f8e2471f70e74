"""A plan's answer: sentences, charts, and tables to take away."""
