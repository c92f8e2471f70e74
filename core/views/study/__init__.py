"""A study's results, as rows and sentences."""
