"""How long one training step takes under a parallel layout, part by part, and how well that agrees with readings."""
