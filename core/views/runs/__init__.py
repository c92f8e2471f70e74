"""Published runs, goodput and energy, in sentences and charts."""
