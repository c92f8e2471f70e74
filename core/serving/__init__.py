"""Serving a trained model: its weights, the cache of each user, and the least time of a token."""
