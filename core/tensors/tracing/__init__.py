"""A program on real torch tensors, step by step, and what each step did to memory."""
