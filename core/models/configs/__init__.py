"""Hugging Face's config.json, read into a shape: keys, families, and what was not understood."""
