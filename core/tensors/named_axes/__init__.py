"""Axes by name: what an einops pattern or an einsum becomes, and what that costs."""
