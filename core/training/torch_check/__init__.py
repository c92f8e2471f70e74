"""A real training step of a small model on this machine, beside what is counted."""
