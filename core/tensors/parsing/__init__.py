"""What a visitor typed, read into single operations."""
