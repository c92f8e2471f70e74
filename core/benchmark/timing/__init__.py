"""How things are timed. Runs in the measuring process only; torch comes in as an argument."""
