"""The plan as a person asks for it, and its answer."""
