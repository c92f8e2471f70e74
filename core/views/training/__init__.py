"""Training memory and optimizers, in sentences and charts."""
