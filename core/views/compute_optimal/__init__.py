"""The best split of a compute budget, in sentences and tables."""
