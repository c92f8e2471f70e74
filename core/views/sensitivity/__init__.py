"""What moves a plan's answer, in sentences and charts."""
