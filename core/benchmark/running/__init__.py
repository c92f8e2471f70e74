"""The process that measures: what it says, what it does, and who watches it."""
