"""A sweep of a plan, in sentences and charts."""
