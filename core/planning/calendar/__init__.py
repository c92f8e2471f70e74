"""When runs on one fleet start and end, on the calendar."""
