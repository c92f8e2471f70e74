"""A trace of tensors, in sentences and pictures."""
