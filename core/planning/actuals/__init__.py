"""What a running job has logged, and what it says of its plan."""
