"""Measuring: time square matmuls on the machine at hand, one job per process, and set them beside the datasheet."""
