"""Exercises: predict, then see, with the reason; each is made from a seed, and its answer worked out by core."""
