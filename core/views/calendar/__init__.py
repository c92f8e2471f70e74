"""A calendar of runs: sentences, its chart, and an .ics file."""
