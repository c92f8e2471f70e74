"""Parameters or tokens: the compute-optimal split."""
