"""Numbers in float formats, in sentences and charts."""
