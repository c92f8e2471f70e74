"""Float formats: what a number becomes in each, bit by bit and exactly."""
