"""The plan as a form: its fields with bounds, and the plan that their texts describe."""
