"""The what-if board: one plan, two of its parameters swept, every cell answered as if it were asked alone."""
