"""What moves the answer."""
