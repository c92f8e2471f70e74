"""Optimizers in motion: torch.optim on surfaces of two weights."""
