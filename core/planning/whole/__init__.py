"""The whole run: failures, checkpoints, goodput, energy."""
