"""Training memory: precision policies, optimizers, layouts, and what one accelerator has to hold."""
