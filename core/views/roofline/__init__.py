"""A layer on the roofline, in sentences and charts."""
