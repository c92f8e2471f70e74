"""What a visitor typed, read into a plan of single operations: text, syntax, the table of operations, guards."""
