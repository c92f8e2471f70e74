"""A plan on real torch tensors, step by step: what each did to memory, why, and the picture and words of it."""
