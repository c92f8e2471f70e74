"""The lecture's models in table cells."""
