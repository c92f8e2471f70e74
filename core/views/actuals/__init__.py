"""A running job against its plan, in sentences and a chart."""
