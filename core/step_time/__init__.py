"""Step time of a layout: what one training step takes and what it goes to."""
