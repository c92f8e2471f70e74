"""Plans: what a training run takes in time, accelerators and dollars, and what published runs took."""
