"""Plans beside each other, in sentences and charts."""
