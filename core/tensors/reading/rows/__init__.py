"""The rows of the table of operations, by what they are for."""
